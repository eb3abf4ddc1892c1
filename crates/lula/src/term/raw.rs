//! The terminal handed over to a command: every key goes to it.

use std::io::{self, IsTerminal};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Raw mode until dropped.
#[derive(Debug)]
pub(crate) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Takes the terminal over where a person sits at both ends.
    pub(crate) fn if_interactive() -> Option<Self> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        if !stdin.is_terminal() || !stdout.is_terminal() {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }

    /// The size of the terminal in rows and columns.
    #[expect(
        clippy::unused_self,
        reason = "only meaningful while the terminal is held"
    )]
    pub(crate) fn size(&self) -> (u16, u16) {
        terminal_size::terminal_size().map_or((24, 80), |(columns, rows)| (rows.0, columns.0))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // The terminal is gone: there is nothing left to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
