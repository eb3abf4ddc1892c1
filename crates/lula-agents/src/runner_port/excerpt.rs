//! Texts within a limit: the beginning and the end, at whole lines, and what is missing between.

/// A text in at most about `most` bytes. Where it is longer, its beginning and its end are kept, and
/// how many bytes between them are left out stands there. `missing` bytes were left out of its middle
/// before.
pub(crate) fn excerpt(text: &str, most: usize, missing: u64) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 3);
    let tail = text.ceil_char_boundary(text.len() - (most - most / 3));
    // Whole lines, unless lines are so long that little would be left.
    let head = match text[..head].rfind('\n') {
        Some(at) if at >= head / 2 => at + 1,
        _ => head,
    };
    let tail = match text[tail..].find('\n') {
        Some(at) if at <= (text.len() - tail) / 2 => tail + at + 1,
        _ => tail,
    };
    let left_out = missing.saturating_add((tail - head) as u64);
    let open = if text[..head].ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!(
        "{}{open}[… {} bytes left out …]\n{}",
        &text[..head],
        grouped(left_out),
        &text[tail..]
    )
}

/// A number with its thousands set apart: `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends_at_whole_lines_and_says_what_is_missing() {
        let text = (0..2000)
            .map(|number| format!("line {number}\n"))
            .collect::<Vec<_>>()
            .concat();
        let shown = excerpt(&text, 300, 0);
        assert!(shown.starts_with("line 0\nline 1\n"), "{shown}");
        assert!(shown.ends_with("\nline 1999\n"), "{shown}");
        assert!(shown.contains("\n[… 18,"), "{shown}");
        assert!(shown.len() < 350, "{}", shown.len());
        assert_eq!(excerpt("short", 300, 0), "short");
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown: Vec<String> = [0, 999, 1054, 1_234_567].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,054", "1,234,567"]);
    }

    proptest! {
        #[test]
        fn nothing_is_left_out_without_a_word(text in "[a€\n]{0,400}", most in 12_usize..200) {
            let shown = excerpt(&text, most, 0);
            match shown.split_once("[… ") {
                None => prop_assert_eq!(shown, text),
                Some((head, rest)) => {
                    let (count, tail) = rest.split_once(" bytes left out …]\n").unwrap();
                    prop_assert!(text.starts_with(head.trim_end_matches('\n')), "{}", head);
                    prop_assert!(text.ends_with(tail), "{}", tail);
                    let all = head.len() + tail.len() + count.parse::<usize>().unwrap();
                    // A newline is added where the head ends in the middle of a line.
                    prop_assert!(all == text.len() || all == text.len() + 1);
                }
            }
        }
    }
}
