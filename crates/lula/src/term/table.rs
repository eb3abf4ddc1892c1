//! Aligned columns; the last one wraps at the width of the terminal.
//!
//! Our own, because the usual crate brings a second colour model and a terminal library with it.
//! Errors are rendered by us for the same reason; most of them have one place with a line, never a
//! tree.

use unicode_width::UnicodeWidthStr;

/// Widest a line gets where no terminal says otherwise.
const PLAIN_WIDTH: usize = 100;
/// Narrowest the last column gets.
const MIN_LAST: usize = 24;
const GAP: usize = 2;

/// Rows of cells. A cell may carry colours, which take no space.
#[derive(Debug, Default)]
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The table as lines, each behind the indent.
    pub(crate) fn render(&self, indent: usize) -> String {
        let width = terminal_size::terminal_size().map_or(PLAIN_WIDTH, |(width, _)| width.0.into());
        self.render_within(indent, width)
    }

    fn render_within(&self, indent: usize, width: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows
                    .iter()
                    .map(|row| visible(&row[column]))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let before: usize = indent
            + widths
                .iter()
                .take(columns.saturating_sub(1))
                .map(|width| width + GAP)
                .sum::<usize>();
        let last_width = width.saturating_sub(before).max(MIN_LAST);
        let mut out = String::new();
        for row in &self.rows {
            let Some((last, first)) = row.split_last() else {
                continue;
            };
            let mut line = " ".repeat(indent);
            for (cell, width) in first.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width - visible(cell) + GAP));
            }
            for (number, part) in wrap(last, last_width).iter().enumerate() {
                if number > 0 {
                    line = " ".repeat(before);
                }
                line.push_str(part);
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        out
    }
}

/// Columns a text takes on the screen.
fn visible(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// Breaks at spaces. A word longer than the width stays whole, so that it can be copied.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let word_width = visible(word);
        if used > 0 && used + 1 + word_width > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
        }
        used += word_width;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::{GOOD, paint};

    #[test]
    fn columns_line_up_whatever_they_hold() {
        let mut table = TextTable::default();
        table.row(["ü".into(), paint(GOOD, "yes"), "first".into()]);
        table.row(["日本".into(), "no".into(), "second".into()]);
        let text = anstream::adapter::strip_str(&table.render_within(1, 80)).to_string();
        assert_eq!(text, " ü     yes  first\n 日本  no   second\n");
    }

    #[test]
    fn the_last_column_wraps_under_itself() {
        let mut table = TextTable::default();
        table.row(["name".into(), "one two three four five six seven".into()]);
        assert_eq!(
            table.render_within(0, 20),
            "name  one two three four five\n      six seven\n"
        );
    }
}
