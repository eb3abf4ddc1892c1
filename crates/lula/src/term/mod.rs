//! The terminal: results on standard output, everything else on standard error.

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
use serde::Serialize;

use crate::cli::OutputFlags;
use crate::failure::Failure;

pub(crate) use diff::unified;
pub(crate) use progress::Step;
pub(crate) use raw::RawTerminal;
pub(crate) use style::{BAD, DIM, GOOD, STRONG, WARN, paint};
pub(crate) use table::Table;

/// Where and how to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    json: bool,
    quiet: bool,
    verbose: bool,
    live: bool,
}

impl Screen {
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
        Self {
            json: flags.json,
            quiet: flags.quiet,
            verbose: flags.verbose,
            live: live && !flags.quiet,
        }
    }

    /// Before the configuration is known.
    pub(crate) fn for_arguments(matches: &ArgMatches) -> Self {
        Self {
            json: matches.get_flag("json"),
            quiet: false,
            verbose: false,
            live: false,
        }
    }

    /// For machines.
    pub(crate) const fn json() -> Self {
        Self {
            json: true,
            quiet: true,
            verbose: false,
            live: false,
        }
    }

    /// Whether the result is wanted as JSON.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// A line of the result.
    #[expect(clippy::unused_self, reason = "all printing goes through the screen")]
    pub(crate) fn line(&self, text: impl Display) -> Result<(), Failure> {
        Ok(writeln!(anstream::stdout(), "{text}")?)
    }

    /// The whole result, as JSON.
    #[expect(clippy::unused_self, reason = "all printing goes through the screen")]
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, value)?;
        Ok(writeln!(out)?)
    }

    /// Something worth knowing beside the result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            stderr_line(text);
        }
    }

    /// Something only the curious want to know.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            stderr_line(&paint(DIM, text));
        }
    }

    /// Something that may surprise.
    pub(crate) fn warn(&self, text: &str) {
        stderr_line(&format!("{} {text}", paint(WARN, "warning:")));
    }

    /// Why the command ended.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.json {
            // Standard output is closed or full: the exit status still tells.
            let _ = self.document(&failure::as_json(failure));
        } else {
            stderr_line(failure::as_text(failure).trim_end());
        }
    }

    /// Work that takes a while.
    pub(crate) fn step(&self, what: &str) -> Step {
        Step::begin(what, self.live, self.quiet)
    }
}

/// Standard error may be closed; there is nobody else to tell.
fn stderr_line(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
