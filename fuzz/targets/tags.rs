//! Any bytes are symbols of any language or a reason why not; what is found points into the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_index::{IndexLanguage, MAX_SYMBOLS, MAX_USES, tags};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, text)) = bytes.split_first() else { return };
    let language = IndexLanguage::ALL[usize::from(*first) % IndexLanguage::ALL.len()];
    let found = tags(language, text);
    assert_eq!(found, tags(language, text), "the same text, the same symbols");
    let Ok(found) = found else { return };
    assert!(found.symbols.len() <= MAX_SYMBOLS && found.uses.len() <= MAX_USES);
    let lines = text.split(|&byte| byte == b'\n').count() as u32;
    for (at, symbol) in found.symbols.iter().enumerate() {
        assert!(symbol.parent.is_none_or(|parent| (parent as usize) < at));
        assert!(1 <= symbol.line && symbol.line <= symbol.end && symbol.end <= lines + 1);
        assert!(!symbol.signature.contains(char::is_control));
    }
    assert!(found.uses.is_sorted());
});
