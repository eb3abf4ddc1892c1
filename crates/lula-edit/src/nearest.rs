//! What a text that was not found comes nearest to, and how it differs from that.

use std::ops::Range;

use similar::TextDiff;

use crate::ladder;
use crate::numbered::numbered;

/// Lines quoted, at most.
const QUOTED: usize = 12;
/// Lines that are compared letter by letter, at most, and the longest of them.
const COMPARED: usize = 4_000;
const LONGEST: usize = 300;
/// How alike a line must be to be worth showing.
const LIKE: f32 = 0.5;

/// Where to look for lines that do not stand in a file, in words that are true.
pub(crate) fn miss(file: &[&str], wanted: &[&str]) -> String {
    let Some(place) = place(file, wanted) else {
        return match file.len() {
            0 => "The file is empty.".to_owned(),
            count => format!("Nothing in its {count} lines is like it."),
        };
    };
    let end = place.end.min(place.start + QUOTED);
    let shown = numbered(place.start + 1, &file[place.start..end].join("\n"));
    let lines = match place.len() {
        1 => format!("line {}", place.end),
        _ => format!("lines {}-{}", place.start + 1, place.end),
    };
    let mut text = format!("The nearest place is {lines}:\n{shown}");
    text.push_str(&difference(file, wanted, &place));
    text
}

/// The lines most like the wanted ones.
fn place(file: &[&str], wanted: &[&str]) -> Option<Range<usize>> {
    if let Some(found) = in_step(file, wanted).or_else(|| ladder::nearest(file, wanted)) {
        return Some(found);
    }
    // No line is the same: the one most like the longest of them tells where it was meant.
    let (at, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(index, line)| (line.trim().len(), usize::MAX - index))?;
    let longest = longest.trim();
    if longest.is_empty() || longest.len() > LONGEST {
        return None;
    }
    let mut best: Option<(usize, f32)> = None;
    for (index, line) in file.iter().enumerate().take(COMPARED) {
        let line = line.trim();
        if line.is_empty() || line.len() > LONGEST {
            continue;
        }
        let ratio = if line.contains(longest) {
            1.0
        } else {
            TextDiff::from_chars(longest, line).ratio()
        };
        if ratio >= LIKE && best.is_none_or(|(_, known)| ratio > known) {
            best = Some((index, ratio));
        }
    }
    let (line, _) = best?;
    let start = line.saturating_sub(at);
    Some(start..(start + wanted.len()).min(file.len()).max(line + 1))
}

/// The place where most lines are the same, each at its place in the order.
fn in_step(file: &[&str], wanted: &[&str]) -> Option<Range<usize>> {
    let same = |start: usize| {
        let pairs = file[start..].iter().zip(wanted);
        let same =
            |(there, line): &(&&str, &&str)| !line.trim().is_empty() && there.trim() == line.trim();
        pairs.filter(same).count()
    };
    let last = file.len().checked_sub(wanted.len())?;
    let start = (0..=last).max_by_key(|start| (same(*start), usize::MAX - start))?;
    (same(start) > 0).then(|| start..start + wanted.len())
}

/// The first line in which they differ, and how.
fn difference(file: &[&str], wanted: &[&str], place: &Range<usize>) -> String {
    let last = wanted.len().saturating_sub(1);
    for (index, line) in wanted.iter().enumerate() {
        let number = place.start + index + 1;
        let Some(there) = file.get(place.start + index) else {
            return format!("The file ends there; you wrote one more line: `{line}`.");
        };
        // The first line may begin, and the last one end, in the middle of a line.
        let same = there == line
            || (index == 0 && there.ends_with(line))
            || (index == last && there.starts_with(line));
        if same {
            continue;
        }
        if there.split_whitespace().eq(line.split_whitespace()) {
            return format!(
                "Line {number} differs in blanks: the file has {there:?}, you wrote {line:?}."
            );
        }
        return format!("Line {number} differs: the file has `{there}`, you wrote `{line}`.");
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: [&str; 5] = [
        "def total(cart):",
        "    sum = 0",
        "    for item in cart:",
        "        sum += item.price",
        "    return sum",
    ];

    #[test]
    fn a_miss_quotes_the_nearest_lines_and_says_what_differs() {
        let said = miss(
            &FILE,
            &["    for item in cart:", "        sum += item.cost"],
        );
        let expected = "The nearest place is lines 3-4:\n    3\t    for item in cart:\n    4\t        \
                        sum += item.price\nLine 4 differs: the file has `        sum += \
                        item.price`, you wrote `        sum += item.cost`.";
        assert_eq!(said, expected);
    }

    #[test]
    fn one_line_that_is_nearly_right_is_found() {
        let said = miss(&FILE, &["sum += item.prize"]);
        assert!(said.contains("is line 4:"), "{said}");
        let said = miss(&FILE, &["  return  sum"]);
        assert!(said.contains("differs in blanks"), "{said}");
        let said = miss(&FILE, &["€€€€"]);
        assert_eq!(said, "Nothing in its 5 lines is like it.");
        assert_eq!(miss(&[], &["a"]), "The file is empty.");
    }
}
