//! What is read and parsed again, and what is kept between commands.

use lula_index::{IndexOrigin, SymbolIndex};

use crate::project::{map, shop};

#[test]
fn only_files_that_changed_are_read_and_only_new_text_is_parsed() {
    let mut project = shop();
    let mut index = SymbolIndex::default();
    let first = project.update(&mut index);
    assert_eq!((first.files, first.sources, first.parsed), (7, 5, 5));

    let again = project.update(&mut index);
    assert_eq!((again.read, again.parsed, again.changed), (0, 0, false));

    project.write("shop/legacy.py", b"def newer():\n    pass\n");
    project.write("shop/copy.py", b"def newer():\n    pass\n");
    let edited = project.update(&mut index);
    assert_eq!(edited.read, 2);
    assert_eq!(
        *project.read.lock().unwrap(),
        ["shop/copy.py", "shop/legacy.py"]
    );

    project.write("shop/copy.py", b"def newer():\n    pass\n");
    let touched = project.update(&mut index);
    assert_eq!(
        (touched.read, touched.parsed),
        (1, 0),
        "same text, not parsed"
    );

    project.remove("shop/copy.py");
    assert_eq!(project.update(&mut index).gone, 1);
    assert!(
        index
            .find("newer", 9)
            .iter()
            .all(|found| found.path == "shop/legacy.py")
    );
}

#[test]
fn without_a_fingerprint_a_file_is_read_again() {
    let project = shop();
    let mut index = project.index();
    let mut listing = project.listing();
    for listed in &mut listing {
        listed.fingerprint = None;
    }
    let update = project.update_with(&mut index, listing);
    assert_eq!((update.read, update.parsed), (5, 0));
}

#[test]
fn an_index_comes_back_from_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/index");
    assert_eq!(SymbolIndex::load(&path).1, IndexOrigin::New);
    let project = shop();
    let index = project.index();
    index.save(&path).unwrap();
    let (mut kept, origin) = SymbolIndex::load(&path);
    assert_eq!(origin, IndexOrigin::Kept);
    assert_eq!(project.update(&mut kept).read, 0);
    assert_eq!(map(&kept, "cart", 50), map(&index, "cart", 50));
    assert_eq!(kept.to_bytes(), index.to_bytes());
}

#[test]
fn a_damaged_file_is_no_index_and_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let good = shop().index().to_bytes();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let mut other_version = good.clone();
    other_version[8] ^= 1;
    for bytes in [
        &b""[..],
        b"nonsense",
        &good[..good.len() - 1],
        &flipped,
        &other_version,
    ] {
        std::fs::write(&path, bytes).unwrap();
        let (index, origin) = SymbolIndex::load(&path);
        assert_eq!(origin, IndexOrigin::Unusable);
        assert_eq!(index.find("", 10), []);
    }
}

#[test]
fn names_nobody_uses_any_more_are_not_kept() {
    let mut project = shop();
    let mut index = project.index();
    project.write(
        "shop/legacy.py",
        b"def something_else_entirely():\n    pass\n",
    );
    project.update(&mut index);
    let bytes = index.to_bytes();
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(holds(b"something_else_entirely"));
    assert!(!holds(b"old_thing_nobody_calls"));
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_tried_again() {
    let mut project = shop();
    let mut listing = project.listing();
    project.remove("shop/money.py");
    let mut index = SymbolIndex::default();
    let update = project.update_with(&mut index, listing.clone());
    assert_eq!(
        update.skipped,
        [(
            "shop/money.py".to_owned(),
            lula_index::SkippedFileReason::Unreadable
        )]
    );
    listing.retain(|listed| listed.path == "shop/money.py");
    project.update_with(&mut index, listing);
    assert_eq!(*project.read.lock().unwrap(), ["shop/money.py"]);
}
