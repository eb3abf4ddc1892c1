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

/// Hands every code to a macro, as `Variant = "L0000"` with its documentation: a table over all codes
/// is written once, and misses none.
///
/// L00 command line, L01 configuration, L02 this machine, L03 sandbox, L04 workspaces,
/// L05 policy and approvals, L06 store, L07 models, L08 repair, L09 runs, L10 tools.
#[macro_export]
macro_rules! for_each_code {
    ($then:ident) => {
        $then! {
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
            /// What a sandbox may reach over the network cannot be given as it was asked for.
            NetworkRefused = "L0305",
            /// A project that cannot be copied to work on.
            CannotFork = "L0401",
            /// No workspace, change, snapshot or commit of that name.
            NoSuchWorkspace = "L0402",
            /// The user's files changed where the workspace changed them too.
            WorkspaceConflict = "L0403",
            /// The changes are not those that were reviewed.
            ChangedSinceReview = "L0404",
            /// Changes of a kind that is not committed without being allowed.
            HeldBack = "L0405",
            /// The private layers take all the space they may.
            WorkspacesFull = "L0406",
            /// A workspace that cannot be used as it is.
            WorkspaceUnusable = "L0407",
            /// A rules file that is wrong, or whose examples fail.
            BadRules = "L0501",
            /// A question that was never asked.
            UnknownApproval = "L0502",
            /// An answer that does not count.
            VoteRefused = "L0503",
            /// Keys that cannot be read or written safely.
            KeysUnusable = "L0504",
            /// An audit log that was changed after it was written.
            AuditBroken = "L0505",
            /// An audit log that cannot be read or written.
            AuditUnusable = "L0506",
            /// A database of approvals that cannot be used.
            ApprovalsUnusable = "L0507",
            /// The place where runs are kept cannot be used.
            StoreUnusable = "L0601",
            /// A log or a bundle was changed, or is not complete.
            LogBroken = "L0602",
            /// There is no such run.
            NoSuchRun = "L0603",
            /// A server that cannot be reached, or is none of Lula.
            ServerUnusable = "L0604",
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
            /// The tests lack something that no change of the code can give them.
            EnvironmentBroken = "L0804",
            /// An environment could not be built, or is not there.
            NoEnvironment = "L0805",
            /// A recipe of an environment that is not carried out.
            RecipeRefused = "L0806",
            /// A directory that is no git repository.
            NotARepository = "L0901",
            /// A repository without a commit.
            EmptyRepository = "L0902",
            /// A run that another process is working on.
            RunBusy = "L0903",
            /// A run that cannot go on, or not from there.
            RunRefused = "L0904",
            /// A path a tool must not use.
            PathRefused = "L1001",
            /// A file, snapshot or process a tool was asked for is not there.
            NothingThere = "L1002",
            /// A call that asks for more than a tool gives.
            OverLimit = "L1003",
            /// An edit that does not say which one place it means.
            EditNotPlaced = "L1004",
            /// A pattern that cannot be used.
            BadPattern = "L1005",
            /// An effect id that was used for another call.
            EffectReused = "L1006",
            /// A call from a worker that has been replaced.
            Fenced = "L1007",
            /// An effect of which it is not known whether it happened.
            EffectUnknown = "L1008",
            /// A workspace that is not open.
            NoWorkspace = "L1009",
            /// A request that is not understood.
            BadRequest = "L1010",
            /// A request without the right to make it.
            NotAllowed = "L1011",
            /// The tool server cannot take more at the moment.
            Busy = "L1012",
            /// A tool that broke or did not answer in time.
            ToolBroke = "L1013",
            /// A file that changed since it was looked at.
            ChangedMeanwhile = "L1014",
        }
    };
}
for_each_code!(codes);

/// A text that is no error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an error code: codes look like L0101")]
pub struct InvalidErrorCode(String);

impl FromStr for Code {
    type Err = InvalidErrorCode;
    fn from_str(given: &str) -> Result<Self, InvalidErrorCode> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str().eq_ignore_ascii_case(given))
            .ok_or_else(|| InvalidErrorCode(given.chars().take(32).collect()))
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
