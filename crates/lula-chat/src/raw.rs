//! The keyboard, key by key, until dropped.

use std::io;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::{execute, terminal};

/// Every key comes here as it is pressed.
#[derive(Debug)]
pub(crate) struct RawKeys(());

impl RawKeys {
    pub(crate) fn take() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(Self(()))
    }

    /// Takes them back from another reader, which leaves the terminal as other programs want it.
    pub(crate) fn again() -> io::Result<()> {
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnableBracketedPaste)
    }
}

impl Drop for RawKeys {
    fn drop(&mut self) {
        // The terminal may be gone; there is nothing else to do for it.
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }
}
