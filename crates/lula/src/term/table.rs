//! Aligned columns; the last one wraps at the width of the terminal.
//!
//! Our own, because the usual crate brings a second colour model and a terminal library with it.
//! Errors are rendered by us for the same reason; most of them have one place with a line, never a
//! tree.

use lula_host::columns;

/// Widest a line gets where no terminal says otherwise.
const PLAIN_WIDTH: usize = 100;

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
        columns::lay_out(&self.rows, indent, width)
    }
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
        let text = anstream::adapter::strip_str(&columns::lay_out(&table.rows, 1, 80)).to_string();
        assert_eq!(text, " ü     yes  first\n 日本  no   second\n");
    }

    #[test]
    fn the_last_column_wraps_under_itself() {
        let mut table = TextTable::default();
        table.row(["name".into(), "one two three four five six seven".into()]);
        assert_eq!(
            columns::lay_out(&table.rows, 0, 20),
            "name  one two three four five\n      six seven\n"
        );
    }
}
