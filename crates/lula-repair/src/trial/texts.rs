//! What programs printed, as it is handed on: within a limit, at whole lines, without colours.

use std::borrow::Cow;

/// A shorter run of lines is shown again.
const REPEATED: usize = 8;

/// The last part of a text, on a character boundary.
pub fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// The beginning and the end of a text, and how much was left out between them. Lines are whole, unless
/// they are so long that little would be left.
pub fn excerpt(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let first = text.floor_char_boundary(most / 3);
    let first = match text[..first].rfind('\n') {
        Some(at) if at >= first / 2 => at,
        _ => first,
    };
    let last = tail(text, most - most / 3);
    let last = match last.find('\n') {
        Some(at) if at <= last.len() / 2 => &last[at + 1..],
        _ => last,
    };
    let left_out = text.len() - first - last.len();
    format!(
        "{}\n[… {left_out} bytes left out …]\n{last}",
        &text[..first]
    )
}

/// A text without the longest run of lines that stands in the text shown before it too, as the source of
/// one test does that fails for several of its parameters.
pub fn beside(text: &str, before: &str) -> String {
    let (lines, known): (Vec<&str>, Vec<&str>) = (text.lines().collect(), before.lines().collect());
    // The end of the longest run, and its length: runs that end at the line before, by where they end there.
    let (mut end, mut longest) = (0, 0);
    let mut runs = vec![0_usize; known.len() + 1];
    for (index, line) in lines.iter().enumerate() {
        for (place, other) in known.iter().enumerate().rev() {
            runs[place + 1] = if line == other { runs[place] + 1 } else { 0 };
            if runs[place + 1] > longest {
                (end, longest) = (index + 1, runs[place + 1]);
            }
        }
    }
    if longest < REPEATED {
        return text.to_owned();
    }
    let mut shown: Vec<&str> = lines[..end - longest].to_vec();
    let told = format!("[… {longest} lines as above …]");
    shown.push(&told);
    shown.extend(&lines[end..]);
    shown.join("\n")
}

/// A text without the sequences that colour it or move the cursor of a terminal.
pub fn uncoloured(text: &str) -> Cow<'_, str> {
    const ESCAPE: char = '\u{1b}';
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(ESCAPE) {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at + 1..];
        rest = match sequence.strip_prefix('[') {
            // Parameters, and the letter that ends them.
            Some(inner) => match inner.find(|c: char| ('@'..='~').contains(&c)) {
                Some(end) => &inner[end + 1..],
                None => "",
            },
            None => sequence,
        };
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_between_its_lines() {
        let text = "a line of its own\n".repeat(100);
        let shown = excerpt(&text, 90);
        for line in shown.lines() {
            let whole = line == "a line of its own" || line.starts_with("[… ");
            assert!(whole, "{line}");
        }
        assert!(shown.len() < 150 && shown.lines().count() > 3, "{shown}");
        assert_eq!(excerpt("short", 90), "short");
        assert!(
            excerpt(&"x".repeat(500), 90).len() < 150,
            "a long line is cut all the same"
        );
    }

    #[test]
    fn what_was_shown_before_is_not_shown_again() {
        let source = "    case 1,\n    case 2,\n".repeat(15);
        let said = |value: u32| format!("args = {value}\n{source}E  {value} is wrong");
        assert_eq!(
            beside(&said(2), &said(1)),
            "args = 2\n[… 30 lines as above …]\nE  2 is wrong"
        );
        assert_eq!(beside("a\nb", "a\nb"), "a\nb", "little is shown again");
        assert_eq!(beside("", "a"), "");
    }

    #[test]
    fn colours_of_a_terminal_are_no_words() {
        assert_eq!(
            uncoloured("E  \u{1b}[0m\u{1b}[91m- 1 kB\u{1b}[39;49;00m"),
            "E  - 1 kB"
        );
        assert_eq!(uncoloured("cut \u{1b}[3"), "cut ");
        assert_eq!(uncoloured("odd \u{1b}x"), "odd x");
        assert!(matches!(uncoloured("plain"), Cow::Borrowed("plain")));
    }
}
