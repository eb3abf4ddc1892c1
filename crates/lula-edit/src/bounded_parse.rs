//! Parsing a text that may have been written to keep a parser busy.
//!
//! What a parse may cost is counted and not timed, so that the same text always gets the same
//! answer. Text that people write needs a fraction of it.

use std::cell::Cell;
use std::ops::ControlFlow;

use tree_sitter::{Language, ParseOptions, ParseState, Parser, Tree};

/// Longest text that is parsed, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Most brackets that may be open where a text ends: the parser copies them all over and over there,
/// in one operation.
const MAX_OPEN: usize = 400;
/// The parser gets the text in pieces of this many bytes.
const PIECE: usize = 4 << 10;

/// Most operations that a parse may take, in hundreds: the parser reports after each hundred.
///
/// It does about one for two bytes, up to three for each byte of dense tables, and more only where it
/// keeps guessing. This does not bound the parser's last step, which on text made of nothing but
/// mistakes takes the square of their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseBudget(usize);

impl ParseBudget {
    /// For one text that a person or a model waits for.
    pub const fn generous(length: usize) -> Self {
        Self(200 + length * 6 / 100)
    }

    /// For one of thousands of files of a project: half of that, and at most so many hundreds.
    pub fn sparing(length: usize, most: usize) -> Self {
        Self((80 + length * 3 / 100).min(most))
    }
}

/// Brackets of a text, counted blindly: those in strings and comments, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BracketCount {
    /// The most that are open at one place.
    pub deepest: usize,
    /// How many are open where the text ends.
    pub at_end: usize,
}

impl BracketCount {
    pub fn of(text: &[u8]) -> Self {
        let (mut open, mut deepest) = (0_usize, 0);
        for byte in text {
            match byte {
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' => open = open.saturating_sub(1),
                _ => continue,
            }
            deepest = deepest.max(open);
        }
        Self {
            deepest,
            at_end: open,
        }
    }
}

/// Parses a text within a budget; none where it takes more work than text that people write. With the
/// tree of an earlier text, edited where the two differ, only what differs is parsed.
pub fn parse_within(
    parser: &mut Parser,
    grammar: &Language,
    text: &[u8],
    earlier: Option<&Tree>,
    budget: ParseBudget,
) -> Option<Tree> {
    if text.len() > MAX_TEXT || BracketCount::of(text).at_end > MAX_OPEN {
        return None;
    }
    parser.reset();
    parser.set_language(grammar).ok()?;
    let work = WorkCount::allowed(text.len(), budget);
    let mut watch = |_: &ParseState| work.operated();
    let options = ParseOptions::new().progress_callback(&mut watch);
    let mut rest = |from: usize, _| {
        let to = if work.looked() { text.len() } else { 0 };
        text.get(from..to.min(from.saturating_add(PIECE)))
            .unwrap_or_default()
    };
    let tree = parser.parse_with_options(&mut rest, earlier, Some(options))?;
    // A text that was cut off says nothing for sure.
    (work.looks.get() > 0).then_some(tree)
}

/// What is left of a budget.
struct WorkCount {
    reports: Cell<usize>,
    looks: Cell<usize>,
}

impl WorkCount {
    fn allowed(length: usize, budget: ParseBudget) -> Self {
        Self {
            reports: Cell::new(budget.0),
            // Text is looked at once, and again where the parser changed its mind.
            looks: Cell::new(200 + length / PIECE * 16),
        }
    }

    fn operated(&self) -> ControlFlow<()> {
        self.reports.set(self.reports.get().saturating_sub(1));
        if self.reports.get() == 0 || self.looks.get() == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn looked(&self) -> bool {
        self.looks.set(self.looks.get().saturating_sub(1));
        self.looks.get() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, budget: ParseBudget) -> Option<Tree> {
        let grammar = tree_sitter_python::LANGUAGE.into();
        parse_within(&mut Parser::new(), &grammar, text.as_bytes(), None, budget)
    }

    #[test]
    fn ordinary_text_fits_either_budget() {
        let text = "def f(a):\n    return [a, {1: (2, 3)}]\n".repeat(2_000);
        assert!(parse(&text, ParseBudget::generous(text.len())).is_some());
        assert!(parse(&text, ParseBudget::sparing(text.len(), 8_000)).is_some());
    }

    #[test]
    fn too_long_too_open_or_too_much_work_is_no_tree() {
        let long = "x = 1\n".repeat(200_000);
        assert!(parse(&long, ParseBudget::generous(long.len())).is_none());
        let open = "(".repeat(MAX_OPEN + 1);
        assert!(parse(&open, ParseBudget::generous(open.len())).is_none());
        let text = "x = 1\n".repeat(10_000);
        assert!(parse(&text, ParseBudget::sparing(text.len(), 3)).is_none());
    }

    #[test]
    fn brackets_are_counted_where_they_are_deepest_and_where_the_text_ends() {
        let count = BracketCount::of(b"([{}] ) } (");
        assert_eq!((count.deepest, count.at_end), (3, 1));
    }
}
