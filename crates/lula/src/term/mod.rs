//! The terminal: results on standard output, everything else on standard error.

mod confirm;
mod diff;
mod failure;
mod progress;
mod raw;
mod style;
mod table;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstream::ColorChoice;
use clap::ArgMatches;
use lula_config::{Config, keys};
use lula_host::diagnosis;
use lula_host::report::Notice;
use serde::Serialize;

use crate::cli::OutputFlags;
use crate::failure::CommandFailure;

pub(crate) use confirm::confirmed;
pub(crate) use diff::unified;
pub(crate) use lula_host::text::{plain, visible};
pub(crate) use lula_protocol::units::{rough_duration, rough_size};
pub(crate) use progress::{LiveProgress, ProgressStep, TerminalArea};
pub(crate) use raw::RawTerminal;
pub(crate) use style::{BAD, DIM, GOOD, STRONG, WARN, paint};
pub(crate) use table::TextTable;

/// Where and how to print.
#[derive(Debug, Clone)]
pub(crate) struct TerminalScreen {
    json: bool,
    talk: Talk,
    live: bool,
}

/// How much to say beside the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Talk {
    Nothing,
    Usual,
    Everything,
}

impl TerminalScreen {
    /// As the flags and the configuration say.
    pub(crate) fn configured(flags: OutputFlags, config: &Config) -> Self {
        match config.get(&keys::OUTPUT_COLOR).as_str() {
            "always" => ColorChoice::Always.write_global(),
            "never" => ColorChoice::Never.write_global(),
            _ => {}
        }
        let live = match config.get(&keys::OUTPUT_PROGRESS).as_str() {
            "always" => true,
            "never" => false,
            _ => io::stderr().is_terminal(),
        };
        let talk = match (flags.quiet, flags.verbose) {
            (true, _) => Talk::Nothing,
            (false, 0) => Talk::Usual,
            (false, _) => Talk::Everything,
        };
        Self {
            json: flags.json,
            talk,
            // Lines of the log would be drawn over.
            live: live && talk != Talk::Nothing && !diagnosis::is_on(),
        }
    }

    /// Before the configuration is known.
    pub(crate) fn for_arguments(matches: &ArgMatches) -> Self {
        Self {
            json: matches.get_flag("json"),
            talk: Talk::Usual,
            live: false,
        }
    }

    /// The terminal of `--json`: nothing is written but the document.
    pub(crate) const fn json() -> Self {
        Self {
            json: true,
            talk: Talk::Nothing,
            live: false,
        }
    }

    /// Whether the result is wanted as JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether standard output shows colours.
    #[expect(clippy::unused_self, reason = "what is printed where is the screen's")]
    pub(crate) fn has_colour(&self) -> bool {
        anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never
    }

    /// Whether only results and errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.talk == Talk::Nothing
    }

    /// A line of the result.
    #[expect(clippy::unused_self, reason = "all printing goes through the screen")]
    pub(crate) fn line(&self, text: impl Display) -> Result<(), CommandFailure> {
        Ok(writeln!(anstream::stdout(), "{text}")?)
    }

    /// A patch: in colour for a person, byte for byte for `git apply`.
    pub(crate) fn patch(&self, diff: &str) -> Result<(), CommandFailure> {
        Ok(self.write_patch(diff)?)
    }

    /// The same where standard output itself is what may fail.
    #[expect(clippy::unused_self, reason = "all printing goes through the screen")]
    pub(crate) fn write_patch(&self, diff: &str) -> io::Result<()> {
        if io::stdout().is_terminal() {
            writeln!(anstream::stdout(), "{}", diff::coloured(diff))
        } else {
            io::stdout().lock().write_all(diff.as_bytes())
        }
    }

    /// The whole result, as JSON.
    #[expect(clippy::unused_self, reason = "all printing goes through the screen")]
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), CommandFailure> {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, value)?;
        Ok(writeln!(out)?)
    }

    /// One of many documents, on a line of its own.
    #[expect(clippy::unused_self, reason = "all printing goes through the screen")]
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), CommandFailure> {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, value)?;
        writeln!(out)?;
        Ok(out.flush()?)
    }

    /// Something worth knowing beside the result.
    pub(crate) fn note(&self, text: &str) {
        if self.talk != Talk::Nothing {
            stderr_line(text);
        }
    }

    /// The same of several, with what can be typed next in a quieter colour.
    pub(crate) fn notices(&self, notices: &[Notice]) {
        for notice in notices {
            match notice {
                Notice::Fact(text) => self.note(text),
                Notice::Hint(text) => self.note(&paint(DIM, text)),
            }
        }
    }

    /// Whether the operator wants to know the details.
    pub(crate) fn is_verbose(&self) -> bool {
        self.talk == Talk::Everything
    }

    /// Something only the curious want to know.
    pub(crate) fn detail(&self, text: &str) {
        if self.talk == Talk::Everything {
            stderr_line(&paint(DIM, text));
        }
    }

    /// Something that may surprise.
    pub(crate) fn warn(&self, text: &str) {
        if self.talk != Talk::Nothing {
            stderr_line(&format!("{} {text}", paint(WARN, "warning:")));
        }
    }

    /// Why the command ended.
    pub(crate) fn failure(&self, failure: &CommandFailure) {
        if self.json {
            // Standard output is closed or full: the exit status still tells.
            let _ = self.document(&failure::as_json(failure));
        } else {
            stderr_line(failure::as_text(failure).trim_end());
        }
    }

    /// Work whose steps are not known before.
    pub(crate) fn live(&self, what: &str) -> LiveProgress {
        LiveProgress::begin(what, self.live, self.talk == Talk::Nothing)
    }

    /// Work that takes a while.
    pub(crate) fn step(&self, what: &str) -> ProgressStep {
        ProgressStep::begin(what, self.live, self.talk == Talk::Nothing)
    }
}

/// Standard error may be closed; there is nowhere else to tell it.
fn stderr_line(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
