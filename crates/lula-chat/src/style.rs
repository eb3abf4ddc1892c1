//! Few colours with fixed meanings, and rows that fit the terminal. Styles are taken off again where the
//! terminal shows none.

use std::fmt::Display;

use anstyle::{AnsiColor, Effects, Style};
use unicode_width::UnicodeWidthChar;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().effects(Effects::DIMMED);
pub(crate) const STRONG: Style = Style::new().effects(Effects::BOLD);
pub(crate) const PLAIN: Style = Style::new();

/// The text in that style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// How many columns a text takes that holds no styles.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Text with its style.
pub(crate) type Span = (Style, String);

/// Spans as rows of at most so many columns, broken at spaces; rows after the first begin with the indent.
pub(crate) fn rows(spans: &[Span], indent: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(20);
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    let mut begins = true;
    for (style, text) in spans {
        for word in words(text) {
            let mut word = word;
            let mut wide = width(word);
            if used + wide > columns && !begins {
                rows.push(std::mem::take(&mut row));
                row.push_str(indent);
                used = width(indent);
                begins = true;
                word = word.trim_start();
                wide = width(word);
            }
            // A word that no row holds is broken where it has to be.
            while used + wide > columns {
                let (head, tail) = cut(word, columns.saturating_sub(used).max(1));
                row.push_str(&paint(*style, head));
                rows.push(std::mem::take(&mut row));
                row.push_str(indent);
                used = width(indent);
                word = tail;
                wide = width(word);
            }
            if !word.is_empty() {
                row.push_str(&paint(*style, word));
                used += wide;
                begins = false;
            }
        }
    }
    rows.push(row);
    rows
}

/// A plain text as rows.
pub(crate) fn wrapped(style: Style, text: &str, columns: usize) -> Vec<String> {
    rows(&[(style, text.to_owned())], "", columns)
}

/// The first columns of a text.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (head, _) = cut(text, columns.saturating_sub(1));
    format!("{head}…")
}

/// Splits before each run of spaces.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut from = 0;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        if c == ' ' && last != ' ' && at > from {
            words.push(&text[from..at]);
            from = at;
        }
        last = c;
    }
    words.push(&text[from..]);
    words
}

fn cut(text: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        let wide = c.width().unwrap_or(0);
        if used + wide > columns && at > 0 {
            return text.split_at(at);
        }
        used += wide;
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: Vec<String>) -> Vec<String> {
        let strip = |row: String| anstream::adapter::strip_str(&row).to_string();
        rows.into_iter().map(strip).collect()
    }

    #[test]
    fn text_is_broken_at_spaces_and_wide_letters_count_twice() {
        let spans = [
            (PLAIN, "one two ".to_owned()),
            (STRONG, "three four five".to_owned()),
        ];
        assert_eq!(
            shown(rows(&spans, "  ", 20)),
            ["one two three four", "  five"]
        );
        let wide = "日".repeat(15);
        assert_eq!(
            shown(wrapped(PLAIN, &wide, 20)),
            ["日".repeat(10), "日".repeat(5)]
        );
    }

    #[test]
    fn what_is_too_long_is_clipped() {
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(clipped("abc", 4), "abc");
    }
}
