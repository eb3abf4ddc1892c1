//! A text as lines that remember how each of them ends.

/// A line's text and its ending: `\n`, `\r\n`, or nothing on a last line without one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    text: String,
    ending: &'static str,
}

/// A text, cut into lines without losing a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextLines {
    mark: bool,
    lines: Vec<Line>,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl TextLines {
    pub(crate) fn of(text: &str) -> Self {
        let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let lines = text
            .split_inclusive('\n')
            .map(|line| {
                let (text, ending) = if let Some(text) = line.strip_suffix("\r\n") {
                    (text, "\r\n")
                } else if let Some(text) = line.strip_suffix('\n') {
                    (text, "\n")
                } else {
                    (line, "")
                };
                Line {
                    text: text.to_owned(),
                    ending,
                }
            })
            .collect();
        Self { mark, lines }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.text.as_str())
    }

    /// The lines of a text that is only looked at.
    pub(crate) fn texts_of(text: &str) -> Vec<&str> {
        text.lines().collect()
    }

    /// How most lines of the file end.
    fn usual_ending(&self) -> &'static str {
        let crlf = self
            .lines
            .iter()
            .filter(|line| line.ending == "\r\n")
            .count();
        if crlf * 2 > self.lines.len() {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// The text with each range replaced by new lines. Ranges are sorted and do not overlap.
    pub(crate) fn splice(&self, changes: &[(std::ops::Range<usize>, Vec<String>)]) -> String {
        let usual = self.usual_ending();
        let mut out: Vec<(&str, &str)> = Vec::new();
        let mut at = 0;
        for (range, new) in changes {
            out.extend(
                self.lines[at..range.start]
                    .iter()
                    .map(|line| (line.text.as_str(), line.ending)),
            );
            out.extend(new.iter().map(|line| (line.as_str(), usual)));
            at = range.end;
        }
        out.extend(
            self.lines[at..]
                .iter()
                .map(|line| (line.text.as_str(), line.ending)),
        );
        // A file keeps its last line end, or the lack of it.
        let ended = self.lines.last().is_none_or(|line| !line.ending.is_empty());
        let last = out.len().saturating_sub(1);
        let mut text = String::new();
        if self.mark {
            text.push(BYTE_ORDER_MARK);
        }
        for (index, (line, ending)) in out.into_iter().enumerate() {
            text.push_str(line);
            text.push_str(match (index == last, ended) {
                (true, false) => "",
                _ if ending.is_empty() => usual,
                _ => ending,
            });
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn new_lines_end_as_the_file_does() {
        let lines = TextLines::of("\u{feff}a\r\nb\r\nc");
        assert_eq!(
            lines.splice(&[(1..2, vec!["x".into(), "y".into()])]),
            "\u{feff}a\r\nx\r\ny\r\nc"
        );
        assert_eq!(
            lines.splice(&[(2..3, vec!["z".into()])]),
            "\u{feff}a\r\nb\r\nz"
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost_where_nothing_changes(text in "(\u{feff})?([a \r\té]{0,5}(\n|\r\n)){0,6}[a-z]{0,3}") {
            prop_assert_eq!(TextLines::of(&text).splice(&[]), text);
        }
    }
}
