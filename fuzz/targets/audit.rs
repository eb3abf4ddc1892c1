//! No bytes are an intact log but those we wrote.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_audit::verify_bundle;

fuzz_target!(|bytes: &[u8]| {
    let _ = verify_bundle(bytes, None);
});
