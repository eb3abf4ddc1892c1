//! Any text is a rules file or a mistake with a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_gate::rules::{self, Source, Trust};

fuzz_target!(|text: &str| {
    let source = Source {
        file: "fuzz",
        text,
        trust: Trust::Repository,
    };
    if let Err(error) = rules::test(&source) {
        assert!(error.line >= 1);
    }
});
