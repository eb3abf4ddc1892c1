//! Any mount table and membership list yields hierarchies that never climb.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_sandbox::cgroup::layout::layout;

fuzz_target!(|text: &str| {
    let (mounts, groups) = text.split_once("\n\n").unwrap_or((text, "0::/\n"));
    for hierarchy in layout(mounts, groups) {
        assert!(hierarchy.mount_point.starts_with('/'));
        for name in &hierarchy.own {
            assert!(!name.is_empty() && !name.contains('/') && name != "." && name != "..");
        }
    }
});
