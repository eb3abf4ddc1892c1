//! Source files as syntax trees.

use tree_sitter::{InputEdit, Node, Point, Tree};

use super::RepairLanguage;
use crate::patches::ByteRangeEdit;

/// Longest file that is looked into, in bytes: what is longer was written by a program.
const MAX_TEXT: usize = 512 << 10;
/// Deepest nesting of brackets: at the end of a text with many open brackets the parser copies them
/// all over and over.
const MAX_BRACKETS: usize = 250;

/// Why a file is left aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnusableSourceReason {
    /// No grammar for it, or no text.
    #[error("it is no source text that patches can be written for")]
    Foreign,
    /// More text than is looked into.
    #[error("it is longer than {} KiB", MAX_TEXT >> 10)]
    TooLong,
    /// The parser would take too long.
    #[error("it nests too deep, or takes too long to parse")]
    TooHard,
}

/// Deepest nesting of brackets in a text, wherever they stand.
fn brackets(text: &str) -> usize {
    let (mut deepest, mut depth) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// One file of the project, parsed.
#[derive(Debug)]
pub(crate) struct ParsedSource {
    pub(crate) path: String,
    pub(crate) language: RepairLanguage,
    pub(crate) text: String,
    pub(crate) tree: Tree,
}

impl ParsedSource {
    /// Parses a file, or says why it is left aside. The bytes are the project's: what would take
    /// the parser too long is refused before it starts, or given up.
    pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Self, UnusableSourceReason> {
        let language = RepairLanguage::of(path).ok_or(UnusableSourceReason::Foreign)?;
        if bytes.len() > MAX_TEXT {
            return Err(UnusableSourceReason::TooLong);
        }
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| UnusableSourceReason::Foreign)?;
        if brackets(&text) > MAX_BRACKETS {
            return Err(UnusableSourceReason::TooHard);
        }
        let tree = language.parse(&text).ok_or(UnusableSourceReason::TooHard)?;
        Ok(Self {
            path: path.to_owned(),
            language,
            text,
            tree,
        })
    }

    /// The tree of this text with edits, which gave the new one.
    pub(crate) fn reparse(&self, edits: &[ByteRangeEdit], text: &str) -> Option<Tree> {
        let mut tree = self.tree.clone();
        let mut order: Vec<&ByteRangeEdit> = edits.iter().collect();
        order.sort();
        // From the last to the first, so that the places of the others stay true.
        for edit in order.into_iter().rev() {
            let start = self.point(edit.start);
            let lines = edit.text.matches('\n').count();
            let tail = edit.text.rsplit('\n').next().unwrap_or_default().len();
            let end = if lines == 0 {
                Point::new(start.row, start.column + edit.text.len())
            } else {
                Point::new(start.row + lines, tail)
            };
            tree.edit(&InputEdit {
                start_byte: edit.start,
                old_end_byte: edit.end,
                new_end_byte: edit.start + edit.text.len(),
                start_position: start,
                old_end_position: self.point(edit.end),
                new_end_position: end,
            });
        }
        self.language.parse_from(text, Some(&tree))
    }

    fn point(&self, byte: usize) -> Point {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let row = before.matches('\n').count();
        Point::new(row, byte - before.rfind('\n').map_or(0, |at| at + 1))
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    pub(crate) fn of<'a>(&'a self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The line of a node, from one.
    pub(crate) fn line(node: Node<'_>) -> usize {
        node.start_position().row + 1
    }

    /// White space before the first character of the node's line.
    pub(crate) fn indent(&self, node: Node<'_>) -> &str {
        let start = self.line_start(node.start_byte());
        let line = &self.text[start..];
        let width = line.len() - line.trim_start_matches([' ', '\t']).len();
        &line[..width]
    }

    pub(crate) fn line_start(&self, byte: usize) -> usize {
        self.text[..byte].rfind('\n').map_or(0, |at| at + 1)
    }

    /// First byte after the line that holds this one.
    pub(crate) fn line_end(&self, byte: usize) -> usize {
        self.text[byte..]
            .find('\n')
            .map_or(self.text.len(), |at| byte + at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_hard_to_parse_is_refused_by_name() {
        let deep = format!("x = {}1{}", "(".repeat(400), ")".repeat(400));
        let long = "x = 1\n".repeat(100_000);
        for (path, text, why) in [
            ("a.py", deep.as_str(), UnusableSourceReason::TooHard),
            ("a.js", long.as_str(), UnusableSourceReason::TooLong),
            ("a.txt", "x", UnusableSourceReason::Foreign),
        ] {
            let refused = ParsedSource::parse(path, text.as_bytes());
            assert_eq!(refused.err(), Some(why), "{path}");
        }
        // Nothing but mistakes: answered or refused, and soon.
        let noise = "{%$)(".repeat(8_000);
        assert!(ParsedSource::parse("a.js", noise.as_bytes()).is_err());
        let plain = "def f(a):\n    return [a, {1: (2, 3)}]\n".repeat(2_000);
        assert!(ParsedSource::parse("a.py", plain.as_bytes()).is_ok());
    }

    #[test]
    fn an_edited_text_has_the_tree_that_it_would_have_anew() {
        let text = "def f(a):\n    b = a\n    return b\n";
        let source = ParsedSource::parse("a.py", text.as_bytes()).unwrap();
        let at = text.find("    return").unwrap();
        let edits = [
            ByteRangeEdit {
                start: at,
                end: at,
                text: "    if b:\n        b = 2\n".to_owned(),
            },
            ByteRangeEdit {
                start: text.find("b = a").unwrap() + 4,
                end: text.find("b = a").unwrap() + 5,
                text: "a + 1".to_owned(),
            },
        ];
        let new = "def f(a):\n    b = a + 1\n    if b:\n        b = 2\n    return b\n";
        let tree = source.reparse(&edits, new).unwrap();
        let anew = RepairLanguage::Python.parse(new).unwrap();
        assert_eq!(tree.root_node().to_sexp(), anew.root_node().to_sexp());
    }
}
