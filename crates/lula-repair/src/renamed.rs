//! Tests whose names change from run to run: those that hold the time of day, a random number or an
//! address. Where such a name is gone and another of the same shape is new, it is the same test.

use std::collections::{BTreeMap, HashMap};

/// A name with every number in it left out.
fn shape(id: &str) -> String {
    let part_of_number = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.' | '-');
    let mut shape = String::with_capacity(id.len());
    let mut rest = id;
    while let Some(first) = rest.chars().next() {
        let run = rest.find(|c| !part_of_number(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(run.max(first.len_utf8()));
        if word.contains(|c: char| c.is_ascii_digit()) {
            shape.push('#');
        } else {
            shape.push_str(word);
        }
        rest = after;
    }
    shape
}

/// The names that are gone, by the new ones that stand for them now. A shape of which more are gone than
/// are new stands for none: then a test may have been lost.
pub(crate) fn renamed<'a>(
    gone: impl Iterator<Item = &'a str>,
    new: impl Iterator<Item = &'a str>,
) -> HashMap<&'a str, &'a str> {
    let mut by_shape: BTreeMap<String, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for id in gone {
        by_shape.entry(shape(id)).or_default().0.push(id);
    }
    if by_shape.is_empty() {
        return HashMap::new();
    }
    for id in new {
        if let Some((_, new)) = by_shape.get_mut(&shape(id)) {
            new.push(id);
        }
    }
    let mut pairs = HashMap::new();
    for (mut gone, mut new) in by_shape.into_values() {
        if gone.len() > new.len() {
            continue;
        }
        gone.sort_unstable();
        new.sort_unstable();
        pairs.extend(new.into_iter().zip(gone));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_the_time_of_day_is_the_same_test_later() {
        let gone = [
            "t.py::test_at[16:24:51 2026-11-18]",
            "t.py::test_id[0x7f3a]",
        ];
        let new = [
            "t.py::test_at[16:25:02 2026-11-18]",
            "t.py::test_id[0x7f99]",
        ];
        let pairs = renamed(gone.into_iter(), new.into_iter());
        assert_eq!(pairs.get(new[0]), Some(&gone[0]));
        assert_eq!(pairs.get(new[1]), Some(&gone[1]));
    }

    #[test]
    fn a_test_that_is_gone_stays_gone() {
        let none = renamed(["test_a[1]"].into_iter(), ["test_b[2]"].into_iter());
        assert!(none.is_empty());
        let fewer = renamed(
            ["test_a[1]", "test_a[2]"].into_iter(),
            ["test_a[3]"].into_iter(),
        );
        assert!(fewer.is_empty(), "one of two is lost, whichever it was");
        assert!(renamed(["test_a"].into_iter(), std::iter::empty()).is_empty());
    }
}
