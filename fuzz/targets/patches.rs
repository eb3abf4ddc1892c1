//! Any text is a patch that can be placed, or an error; any passage is replaced, or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_edit::{PassageEdit, patch, replace_passages};

fuzz_target!(|texts: (&str, &str, &str, bool)| {
    let (text, old, new, all) = texts;
    for frame in ["", "*** Begin Patch\n*** Update File: a\n", "--- a/a\n+++ b/a\n@@\n"] {
        let Ok(patches) = patch::parse(&format!("{frame}{old}")) else {
            continue;
        };
        for patch in patches {
            assert!(patch.paths().count() > 0);
            let _ = patch.apply(text);
        }
    }
    let edit = PassageEdit { old: old.to_owned(), new: new.to_owned(), all };
    let _ = replace_passages("a.py", Some(text), &[edit]);
});
