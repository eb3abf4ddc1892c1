//! Any text is a rules file or a mistake with a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_gate::rules::{self, RulesFileSource, RulesFileTrust};

fuzz_target!(|text: &str| {
    let source = RulesFileSource {
        file: "fuzz",
        text,
        trust: RulesFileTrust::Repository,
    };
    if let Err(error) = rules::test(&source) {
        assert!(error.line >= 1);
    }
});
