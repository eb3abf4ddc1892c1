//! Any bytes are a whole index or none; one that is read can be used and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_index::{Index, Task, estimate};

fuzz_target!(|bytes: &[u8]| {
    // As a file that was damaged, and as one whose digest happens to fit.
    assert!(Index::from_bytes(bytes).is_none() || bytes.starts_with(b"lulaindx"));
    let Some(index) = Index::from_bytes(&Index::sealed(bytes)) else { return };
    let map = index.map(&Task::default(), 200, &estimate);
    assert!(map.tokens <= 200);
    let again = Index::from_bytes(&index.to_bytes()).expect("what was written is read");
    assert_eq!(again.map(&Task::default(), 200, &estimate), map);
});
