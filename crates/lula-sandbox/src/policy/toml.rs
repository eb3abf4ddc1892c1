//! Policies as TOML: strict to read, with every mistake named by line, key and remedy.

use std::fmt;

use toml_edit::{Array, Document, DocumentMut, Item, Table, Value};

use super::{PolicyOverlay, Profile, SandboxPolicy, reader};

/// Why a text is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.lines())]
pub struct SandboxPolicyError {
    /// Every mistake found, in the order of the text. Never empty.
    pub mistakes: Vec<PolicyMistake>,
}

impl SandboxPolicyError {
    fn lines(&self) -> String {
        let lines: Vec<_> = self.mistakes.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

/// One mistake in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyMistake {
    /// Line, counted from one.
    pub line: usize,
    /// The key with its tables, such as `limits.memory`; empty where the text is not TOML.
    pub key: String,
    /// What is wrong and what to write instead.
    pub problem: String,
}

impl fmt::Display for PolicyMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

impl SandboxPolicy {
    /// Reads a policy: the profile it names (`build` where it names none) with its own values.
    pub fn from_toml(text: &str) -> Result<Self, SandboxPolicyError> {
        let overlay = PolicyOverlay::from_toml(text)?;
        let profile = overlay.profile.unwrap_or(Profile::DEFAULT);
        Ok(profile.policy().changed(overlay))
    }

    /// The policy in full, as TOML that reads back to the same policy.
    pub fn to_toml(&self) -> String {
        let mut document = DocumentMut::new();
        document["profile"] = self.profile.name().into();
        document["min_tier"] = self.min_tier.name().into();
        document["required_layers"] = list(self.required_layers.iter());
        document["network"] = self.network.name().into();
        document["nested_userns"] = self.nested_userns.into();
        document["caches"] = list(self.caches.iter());
        document["paths"] = table([
            ("read", list(self.paths.read.iter())),
            ("write", list(self.paths.write.iter())),
            ("mask", list(self.paths.mask.iter())),
        ]);
        document["environment"] = table(
            self.environment
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str().into())),
        );
        let limits = &self.limits;
        document["limits"] = table([
            ("memory", limits.memory.to_string().into()),
            ("cpu", limits.cpu.to_string().into()),
            ("pids", i64::from(limits.pids).into()),
            ("disk", limits.disk.to_string().into()),
            ("open_files", i64::from(limits.open_files).into()),
            ("output", limits.output.to_string().into()),
            ("wall", limits.wall.to_string().into()),
        ]);
        document.to_string()
    }
}

fn list<T: fmt::Display>(values: impl Iterator<Item = T>) -> Item {
    values
        .map(|value| Value::from(value.to_string()))
        .collect::<Array>()
        .into()
}

fn table<'a>(entries: impl IntoIterator<Item = (&'a str, Item)>) -> Item {
    let mut table = Table::new();
    for (name, item) in entries {
        table.insert(name, item);
    }
    Item::Table(table)
}

impl PolicyOverlay {
    /// Reads changes to a policy. Unknown keys are mistakes: a key that is ignored is a wish that
    /// is not kept.
    pub fn from_toml(text: &str) -> Result<Self, SandboxPolicyError> {
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(text.len(), |span| span.start);
            let problem = format!("not TOML: {}", error.message());
            SandboxPolicyError {
                mistakes: vec![PolicyMistake {
                    line: reader::line(text, at),
                    key: String::new(),
                    problem,
                }],
            }
        })?;
        let (overlay, mistakes) = reader::read(text, document.as_table());
        if mistakes.is_empty() {
            Ok(overlay)
        } else {
            Err(SandboxPolicyError { mistakes })
        }
    }
}
