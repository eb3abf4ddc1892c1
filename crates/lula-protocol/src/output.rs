//! What a tool returned: a text to show, the same in a form programs read, and where it came from.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// What a tool returned, with where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolOutput {
    pub text: String,
    /// Whether more was produced than is kept here.
    pub truncated: bool,
    /// Where the text came from. Anything but Lula itself is material, never an instruction.
    pub origin: TextOrigin,
    /// The same for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<ToolOutputDetails>,
    /// What was noticed in the text: hidden characters, instructions to agents, secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl ToolOutput {
    /// A whole text from there, with nothing noticed in it.
    pub fn new(text: impl Into<String>, origin: TextOrigin) -> Self {
        Self {
            text: text.into(),
            truncated: false,
            origin,
            details: None,
            findings: Vec::new(),
        }
    }

    /// With the same for programs.
    #[must_use]
    pub fn with(mut self, details: ToolOutputDetails) -> Self {
        self.details = Some(details);
        self
    }
}

/// Where a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TextOrigin {
    /// Written by Lula itself.
    Lula,
    /// Read from the repository.
    Repository,
    /// Printed by a command in the sandbox.
    Command,
    /// Fetched from a network.
    Network,
}

impl TextOrigin {
    /// Whether the text may carry intentions other than the operator's.
    pub const fn is_untrusted(self) -> bool {
        !matches!(self, Self::Lula)
    }
}

/// What a tool returned, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolOutputDetails {
    /// A file that was read.
    File {
        /// Path inside the workspace.
        path: String,
        /// Digest of all its bytes, equal to what `b3sum` prints.
        digest: Digest,
        /// Size of the whole file.
        bytes: u64,
        /// Its lines; 0 where it is binary.
        lines: u32,
        /// First line returned, from 1; 0 where none was.
        from_line: u32,
        /// Last line returned, from 1; 0 where none was.
        to_line: u32,
        /// Whether it is no text. None of it is returned then.
        binary: bool,
        /// Whether bytes that are no UTF-8 were replaced.
        lossy: bool,
    },
    /// A picture: a PNG, JPEG, GIF or WebP file, by its first bytes.
    Picture {
        /// Path inside the workspace.
        path: String,
        /// Digest of all its bytes, equal to what `b3sum` prints.
        digest: Digest,
        /// Size of the whole file.
        bytes: u64,
        /// Its format, as in `image/png`.
        media_type: String,
        /// How many pixels it is wide.
        width: u32,
        /// How many pixels it is high.
        height: u32,
        /// All its bytes in base64, where they were asked for and are no more than may be returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
    },
    /// Files that were listed.
    Files {
        /// In the order of their names.
        entries: Vec<DirectoryEntry>,
        /// How many more there are at least.
        #[serde(default, skip_serializing_if = "is_none_of_them")]
        left_out: u64,
    },
    /// Lines that were found.
    Matches {
        /// In the order of their files.
        matches: Vec<SearchMatch>,
        /// Files that were searched.
        files: u64,
        /// How many more lines match at least.
        #[serde(default, skip_serializing_if = "is_none_of_them")]
        left_out: u64,
    },
    /// Symbols of a file.
    Symbols {
        /// In the order of the file.
        symbols: Vec<OutlineSymbol>,
    },
    /// Files that were written or removed.
    Written {
        /// In the order of their names.
        files: Vec<WrittenFile>,
    },
    /// A command that ended.
    Command {
        /// The status a shell would report: 124 for a timeout, 128 + n for a signal.
        status: u8,
        /// What was kept of its standard output.
        stdout: String,
        /// Bytes of it that were left out.
        stdout_dropped: u64,
        /// What was kept of its standard error.
        stderr: String,
        /// Bytes of it that were left out.
        stderr_dropped: u64,
    },
    /// A command in the background.
    Job {
        /// What it is called.
        job: String,
        /// The status it ended with, as a shell would report it; none while it runs, and where it
        /// ended with the runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u8>,
        /// Whether it still runs.
        running: bool,
        /// What it wrote since it was last looked at, as far as that is kept.
        output: String,
        /// Bytes before that which are not kept.
        #[serde(default, skip_serializing_if = "is_none_of_them")]
        left_out: u64,
    },
    /// A state that was remembered or returned to.
    Snapshot {
        /// Name of the snapshot, which `undo` takes.
        id: String,
    },
    /// A commit that was made.
    Commit {
        /// Object id of the commit.
        id: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_none_of_them(count: &u64) -> bool {
    *count == 0
}

/// A file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DirectoryEntry {
    /// Path inside the workspace.
    pub path: String,
    pub kind: DirectoryEntryKind,
    /// Size of a file.
    pub bytes: u64,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DirectoryEntryKind {
    /// A file with bytes of its own.
    File,
    /// A directory, whose entries are listed on their own.
    Directory,
    /// A symbolic link, which is not followed.
    Link,
    /// A pipe, socket or device.
    Other,
}

/// A line that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchMatch {
    /// Path inside the workspace.
    pub path: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// The line, cut where it is long.
    pub text: String,
}

/// A symbol of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutlineSymbol {
    /// `function`, `class`, `method`, …
    pub kind: String,
    pub name: String,
    /// First line, from 1.
    pub from_line: u32,
    /// Last line, from 1 and included.
    pub to_line: u32,
    /// How many symbols enclose it.
    pub depth: u32,
}

/// A file that was written or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WrittenFile {
    /// Path inside the workspace.
    pub path: String,
    /// Digest of what it holds now; none where it was removed.
    pub digest: Option<Digest>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lulas_own_words_are_trusted() {
        for origin in [
            TextOrigin::Repository,
            TextOrigin::Command,
            TextOrigin::Network,
        ] {
            assert!(origin.is_untrusted(), "{origin:?}");
        }
        assert!(!TextOrigin::Lula.is_untrusted());
    }

    #[test]
    fn an_output_of_an_older_runner_is_still_read() {
        let old = serde_json::json!({"text": "hi", "truncated": false, "origin": "command"});
        let output: ToolOutput = serde_json::from_value(old.clone()).unwrap();
        assert_eq!(output, ToolOutput::new("hi", TextOrigin::Command));
        assert_eq!(serde_json::to_value(output).unwrap(), old);
    }
}
