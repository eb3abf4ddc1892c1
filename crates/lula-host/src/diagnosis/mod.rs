//! The diagnostic log: what a process of Lula does, line by line, for an operator who looks for a fault.
//!
//! It is off unless `LULA_LOG` or `-v` asks for it, and then nothing but a comparison is left of each
//! event. Every process writes it to its standard error; a runner and a driver in the background have a
//! file of the state directory there. Each line names the run and the effect it belongs to, and no line
//! holds a secret: contents of tasks, prompts, answers and files are not logged, and what is logged is
//! redacted on its way out.

mod effects;
mod json;
mod redacted;

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::OnceLock;

use lula_config::variables;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use crate::error::HostError;
use crate::installation::Installation;

pub(crate) use effects::TracedWorld;
pub use redacted::conceal;
pub(crate) use redacted::redacted_text;

/// All crates of Lula have names that begin so.
const OURS: &str = "lula";
/// The file of the runners that drivers start, in the directory of logs of the state directory.
const RUNNER_LOG: &str = "runner.log";
/// A larger file becomes the old one when the next runner starts.
const ROTATE_AT: u64 = 16 << 20;

/// The filter in force in this process, as its children are given it.
static IN_FORCE: OnceLock<(String, LogFormat)> = OnceLock::new();

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    #[default]
    Text,
    /// A document a line.
    Json,
}

impl LogFormat {
    /// What `LULA_LOG_FORMAT` asks for.
    pub fn requested(variable: Option<&str>) -> Result<Self, HostError> {
        match variable.map(str::trim) {
            None | Some("" | "text") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            Some(other) => Err(HostError::BadLogFormat(other.to_owned())),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Which events are logged: a level (`debug`), or targets with levels (`lula_graph=trace,lula_runner=info`).
#[derive(Debug, Clone, PartialEq)]
pub struct LogFilter {
    text: String,
    targets: Targets,
}

impl LogFilter {
    /// What `LULA_LOG` and the number of `-v` ask for: nothing, usually. The variable wins.
    pub fn requested(variable: Option<&str>, verbose: u8) -> Result<Option<Self>, HostError> {
        let text = match (variable.map(str::trim), verbose) {
            (Some(text), _) if !text.is_empty() => text,
            (_, 0) => return Ok(None),
            (_, 1) => "info",
            (_, 2) => "debug",
            (_, _) => "trace",
        };
        if text.eq_ignore_ascii_case("off") {
            return Ok(None);
        }
        Self::parse(text).map(Some)
    }

    fn parse(text: &str) -> Result<Self, HostError> {
        let refused = |why: String| HostError::BadLogFilter {
            filter: text.to_owned(),
            why,
        };
        // A level alone means this program, not every library in it.
        let targets = if let Ok(level) = text.parse::<tracing::level_filters::LevelFilter>() {
            Targets::new().with_target(OURS, level)
        } else if text.contains('=') || text.contains(OURS) {
            text.parse::<Targets>()
                .map_err(|error| refused(error.to_string()))?
        } else {
            return Err(refused("it is no level".to_owned()));
        };
        Ok(Self {
            text: text.to_owned(),
            targets,
        })
    }

    /// Begins to log in this process, to `sink`. Once: a second time changes nothing.
    pub fn install<W>(self, format: LogFormat, sink: W)
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let installed = match format {
            LogFormat::Json => {
                let lines = json::JsonLines(sink).with_filter(self.targets);
                tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines))
            }
            LogFormat::Text => {
                let lines = tracing_subscriber::fmt::layer()
                    .with_ansi(false)
                    // A reader that went away is no reason to say so where it cannot be read.
                    .log_internal_errors(false)
                    .with_writer(redacted::RedactedWriter::new(sink))
                    .with_filter(self.targets);
                let subscriber = tracing_subscriber::registry().with(lines);
                tracing::subscriber::set_global_default(subscriber)
            }
        };
        if installed.is_ok() {
            let _ = IN_FORCE.set((self.text, format));
        }
    }
}

/// Whether this process logs.
pub fn is_on() -> bool {
    IN_FORCE.get().is_some()
}

/// The variables that give a process which this one starts the same log.
pub fn variables() -> Vec<(&'static str, OsString)> {
    let Some((filter, format)) = IN_FORCE.get() else {
        return Vec::new();
    };
    vec![
        (variables::LOG, filter.into()),
        (variables::LOG_FORMAT, format.name().into()),
    ]
}

/// The log of the runner this process is going to start, where this process logs too.
pub(crate) fn runner_log(installation: &Installation) -> Result<Option<File>, HostError> {
    if !is_on() {
        return Ok(None);
    }
    let path = runner_log_path(installation)?;
    let opened = open_log(&path).map_err(|error| HostError::File { path, error })?;
    Ok(Some(opened))
}

/// Where runners that drivers start write their log.
pub fn runner_log_path(installation: &Installation) -> Result<PathBuf, HostError> {
    Ok(installation
        .state_directory()?
        .join("logs")
        .join(RUNNER_LOG))
}

fn open_log(path: &std::path::Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    if std::fs::metadata(path).is_ok_and(|file| file.len() > ROTATE_AT) {
        std::fs::rename(path, path.with_extension("log.old"))?;
    }
    File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_logged_unless_it_is_asked_for() {
        for variable in [None, Some(""), Some("off"), Some(" ")] {
            assert_eq!(LogFilter::requested(variable, 0).unwrap(), None);
        }
    }

    #[test]
    fn a_level_means_this_program_and_no_library() {
        let asked = LogFilter::requested(Some("debug"), 0).unwrap().unwrap();
        let debug = tracing::Level::DEBUG;
        assert!(asked.targets.would_enable("lula_graph::drive", &debug));
        assert!(!asked.targets.would_enable("hyper::client", &debug));
        let trace = tracing::Level::TRACE;
        assert!(!asked.targets.would_enable("lula_graph::drive", &trace));
    }

    #[test]
    fn the_variable_says_more_than_the_flag() {
        let asked = LogFilter::requested(Some("lula_runner=info"), 2).unwrap();
        assert_eq!(asked.unwrap().text, "lula_runner=info");
        let asked = LogFilter::requested(None, 2).unwrap();
        assert_eq!(asked.unwrap().text, "debug");
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in ["loud", "lula=loud", "1x"] {
            assert!(LogFilter::requested(Some(text), 0).is_err(), "{text}");
        }
    }
}
