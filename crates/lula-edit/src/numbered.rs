//! Lines as they are shown to a model: each after its number.

use std::fmt::Write;

use similar::{DiffOp, TextDiff};

/// Lines shown around a change.
const AROUND: usize = 3;

/// The lines of a text, each after its number; the first has the number `first`.
pub fn numbered(first: usize, text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + text.len() / 4);
    for (index, line) in text.lines().enumerate() {
        let _ = writeln!(shown, "{:>5}\t{line}", first + index);
    }
    shown
}

/// How many lines a change adds, and how many it removes.
pub fn changed_lines(before: &str, after: &str) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    for op in TextDiff::from_lines(before, after).ops() {
        if !matches!(op, DiffOp::Equal { .. }) {
            added += op.new_range().len();
            removed += op.old_range().len();
        }
    }
    (added, removed)
}

/// The places of `after` that differ from `before`, with a few lines around each and the numbers of
/// all of them. Places that would take more than `most` bytes are counted instead.
pub fn changed_places(before: &str, after: &str, most: usize) -> String {
    let diff = TextDiff::from_lines(before, after);
    let lines: Vec<&str> = after.lines().collect();
    let groups = diff.grouped_ops(AROUND);
    let mut shown = String::new();
    let mut left_out = 0;
    for group in &groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let start = first.new_range().start.min(lines.len());
        let end = last.new_range().end.min(lines.len());
        let place = numbered(start + 1, &lines[start..end].join("\n"));
        if left_out > 0 || shown.len() + place.len() > most {
            left_out += 1;
            continue;
        }
        if !shown.is_empty() {
            shown.push_str("    …\n");
        }
        shown.push_str(&place);
    }
    if left_out > 0 {
        let places = if left_out == 1 { "place" } else { "places" };
        let _ = writeln!(shown, "[… {left_out} more changed {places} left out …]");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_place_is_shown_with_its_numbers_and_the_lines_around_it() {
        let before = (1..=20)
            .map(|number| format!("line {number}\n"))
            .collect::<Vec<_>>()
            .concat();
        let after = before.replace("line 10\n", "ten\nten and a half\n");
        let shown = changed_places(&before, &after, 1000);
        let expected = "    7\tline 7\n    8\tline 8\n    9\tline 9\n   10\tten\n   \
                        11\tten and a half\n   12\tline 11\n   13\tline 12\n   14\tline 13\n";
        assert_eq!(shown, expected);
        assert_eq!(changed_lines(&before, &after), (2, 1));
    }

    #[test]
    fn places_without_room_are_counted() {
        let before = (1..=60)
            .map(|number| format!("line {number}\n"))
            .collect::<Vec<_>>()
            .concat();
        let after = before
            .replace("line 5\n", "")
            .replace("line 50\n", "fifty\n");
        let shown = changed_places(&before, &after, 100);
        assert!(shown.starts_with("    2\tline 2\n"), "{shown}");
        assert!(
            shown.ends_with("[… 1 more changed place left out …]\n"),
            "{shown}"
        );
        assert!(!shown.contains("fifty"), "{shown}");
    }
}
