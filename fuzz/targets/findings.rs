//! Spans lie in the text, and redacting twice changes nothing more.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_gate::{findings, redact};

fuzz_target!(|text: &str| {
    for finding in findings::scan(text).findings {
        assert!(text.get(finding.span).is_some());
    }
    let once = redact::redact(text).into_owned();
    assert_eq!(redact::redact(&once), once);
});
