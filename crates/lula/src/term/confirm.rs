//! A question that only a person at the terminal answers.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use lula_protocol::{Code, RunExit};

use crate::failure::CommandFailure;

/// Asks on the terminal. Where there is none, no person can have looked.
pub(crate) fn confirmed(question: &str) -> Result<bool, CommandFailure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CommandFailure::new(
            Code::BadCommandLine,
            RunExit::Usage,
            "there is no terminal to ask on",
        )
        .remedy("give --yes where a script answers"));
    }
    let mut screen = anstream::stderr();
    write!(screen, "{question}? type yes: ")?;
    screen.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim() == "yes")
}
