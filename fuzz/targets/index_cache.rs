//! Any bytes are a whole index or none; one that is read can be used and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_index::{SymbolIndex, MapQuery, estimate};

fuzz_target!(|bytes: &[u8]| {
    // As a file that was damaged, and as one whose digest happens to fit.
    assert!(SymbolIndex::from_bytes(bytes).is_none() || bytes.starts_with(b"lulaindx"));
    let Some(index) = SymbolIndex::from_bytes(&SymbolIndex::sealed(bytes)) else { return };
    let map = index.map(&MapQuery::default(), 200, &estimate);
    assert!(map.tokens <= 200);
    let again = SymbolIndex::from_bytes(&index.to_bytes()).expect("what was written is read");
    assert_eq!(again.map(&MapQuery::default(), 200, &estimate), map);
});
