//! Any bytes are the beginning of a TLS hello, a hello or something else, and more bytes never change that. Any text is a rule in its one spelling or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_egress::{EgressRule, FirstBytes, read_client_hello};

fuzz_target!(|bytes: &[u8]| {
    let mut decided = None;
    for end in 0..=bytes.len() {
        let answer = read_client_hello(&bytes[..end]);
        match &decided {
            Some(decided) => assert_eq!(*decided, answer),
            None if answer == FirstBytes::Incomplete => {}
            None => decided = Some(answer),
        }
    }
    if let Ok(rule) = String::from_utf8_lossy(bytes).parse::<EgressRule>() {
        assert_eq!(rule.to_string().parse::<EgressRule>(), Ok(rule));
    }
});
