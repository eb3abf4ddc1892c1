//! The terminal: rows that stay, and below them a few that move. The program takes no more of the screen
//! than that, so what was said can be scrolled back, copied and searched like anything else.

use std::fmt::Write as _;
use std::io::{self, Write};

use anstream::adapter::strip_str;
use crossterm::terminal;

use crate::style::width;

/// Begins and ends a change that a terminal may show at once.
const TOGETHER: (&str, &str) = ("\u{1b}[?2026h", "\u{1b}[?2026l");

/// What is drawn on the terminal.
pub(crate) struct ChatScreen {
    colour: bool,
    /// The rows that move, as they were drawn last.
    live: Vec<String>,
    /// At which of them the cursor is left, and in which column.
    pub(crate) size: (usize, usize),
}

impl ChatScreen {
    pub(crate) fn new(colour: bool) -> Self {
        let mut screen = Self {
            colour,
            live: Vec::new(),
            size: (80, 24),
        };
        screen.measure();
        screen
    }

    /// Looks how large the terminal is now.
    pub(crate) fn measure(&mut self) {
        if let Ok((columns, rows)) = terminal::size()
            && columns > 0
        {
            self.size = (columns.into(), rows.into());
        }
    }

    /// How many columns a row may take. The last one stays free: some terminals wrap behind it.
    pub(crate) const fn columns(&self) -> usize {
        let columns = self.size.0.saturating_sub(1);
        if columns < 20 { 20 } else { columns }
    }

    pub(crate) const fn rows(&self) -> usize {
        self.size.1
    }

    fn row(&self, row: &str) -> String {
        if self.colour {
            row.to_owned()
        } else {
            strip_str(row).to_string()
        }
    }

    /// Goes to the first of the rows that move, and clears from there on.
    fn erase(&mut self, out: &mut String) {
        let columns = self.size.0.max(1);
        // A terminal that was made narrower has broken rows in two.
        let drawn = self.live.iter().map(|row| {
            let wide = width(&strip_str(row).to_string());
            wide.div_ceil(columns).max(1)
        });
        let up = drawn.sum::<usize>().saturating_sub(1);
        if !self.live.is_empty() {
            if up > 0 {
                let _ = write!(out, "\u{1b}[{up}A");
            }
            out.push_str("\r\u{1b}[J");
        }
        self.live.clear();
    }

    /// Draws rows that stay, and below them rows that move.
    pub(crate) fn draw(&mut self, stay: &[String], live: Vec<String>) -> io::Result<()> {
        if stay.is_empty() && live == self.live {
            return Ok(());
        }
        let mut out = String::from(TOGETHER.0);
        self.erase(&mut out);
        for row in stay {
            out.push_str(&self.row(row));
            out.push_str("\r\n");
        }
        for (at, row) in live.iter().enumerate() {
            if at > 0 {
                out.push_str("\r\n");
            }
            out.push_str(&self.row(row));
        }
        self.live = live;
        out.push_str(TOGETHER.1);
        let mut terminal = io::stdout().lock();
        terminal.write_all(out.as_bytes())?;
        terminal.flush()
    }

    /// Prints rows that stay. Nothing moves any more.
    pub(crate) fn print(&mut self, rows: &[String]) -> io::Result<()> {
        self.draw(rows, Vec::new())
    }

    /// Calls the person who looked away.
    pub(crate) fn bell() {
        let mut terminal = io::stdout().lock();
        let _ = terminal.write_all(b"\x07").and_then(|()| terminal.flush());
    }
}
