//! Stable error codes. A code never changes its meaning and is never used again for another one;
//! `lula explain CODE` shows its page, kept in `docs/errors/`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal),* $(,)?) => {
        /// A stable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The code as it is printed.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }
        }
    };
}

// L00 command line, L01 configuration, L02 this machine, L03 sandbox, L04 workspaces,
// L05 policy and approvals, L06 store, L07 models, L08 repair, L09 runs.
codes! {
    /// Something in Lula itself went wrong.
    Internal = "L0000",
    /// The command line is not understood.
    BadCommandLine = "L0001",
    /// A code that does not exist was asked for.
    UnknownCode = "L0002",
    /// A file or stream could not be read or written.
    FileAccess = "L0003",
    /// A configuration key that does not exist.
    UnknownKey = "L0101",
    /// A configuration value of the wrong type or out of range.
    BadValue = "L0102",
    /// A configuration file that is not TOML.
    BadToml = "L0103",
    /// A configuration file that cannot be read or written.
    ConfigUnreadable = "L0104",
    /// A repository tried to set what only its user may set.
    RepositoryOverreach = "L0105",
    /// The machine lacks something the job needs.
    EnvironmentUnfit = "L0201",
    /// git is missing or does not work.
    GitUnusable = "L0202",
    /// No place to keep state.
    NoStateDirectory = "L0203",
    /// A program the task needs is not installed.
    ToolMissing = "L0204",
    /// No sandbox could be built that meets the policy.
    SandboxRefused = "L0301",
    /// A command could not be started inside the sandbox.
    CommandNotStarted = "L0302",
    /// The sandbox or its helper ended unexpectedly.
    SandboxBroke = "L0303",
    /// A directory that must not be a workspace.
    WorkspaceTooWide = "L0304",
    /// A project that cannot be copied to work on.
    CannotFork = "L0401",
    /// The place where runs are kept cannot be used.
    StoreUnusable = "L0601",
    /// A log or a bundle was changed, or is not complete.
    LogBroken = "L0602",
    /// There is no such run.
    NoSuchRun = "L0603",
    /// Not the name of a model.
    BadModelName = "L0701",
    /// The key of a model cannot be had.
    NoModelKey = "L0702",
    /// A model that does not answer.
    ModelUnusable = "L0703",
    /// There is nothing that could be repaired.
    NothingToRepair = "L0801",
    /// The project's tests cannot be run.
    TestsCannotRun = "L0802",
    /// The failing tests fail only now and then.
    FlakyTests = "L0803",
    /// A directory that is no git repository.
    NotARepository = "L0901",
    /// A repository without a commit.
    EmptyRepository = "L0902",
    /// A run that somebody else is working on.
    RunBusy = "L0903",
    /// A run that cannot go on, or not from there.
    RunRefused = "L0904",
}

/// A text that is no error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an error code: codes look like L0101")]
pub struct InvalidCode(String);

impl FromStr for Code {
    type Err = InvalidCode;
    fn from_str(given: &str) -> Result<Self, InvalidCode> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str().eq_ignore_ascii_case(given))
            .ok_or_else(|| InvalidCode(given.chars().take(32).collect()))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_sorted_and_parse_back() {
        assert!(Code::ALL.is_sorted_by(|a, b| a.as_str() < b.as_str()));
        for code in Code::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
            assert_eq!(code.as_str().to_lowercase().parse(), Ok(*code));
        }
    }
}
