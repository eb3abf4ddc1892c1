//! What must hold before and after an act. Pure: the caller says what was declared and what was
//! seen, these checks say what is wrong with it.

use lula_protocol::Digest;
use serde::Serialize;

use crate::findings::secrets;
use crate::globs::{PathGlobs, inside};
use crate::rules::{added_lines, paths_of_diff};

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "violation", rename_all = "snake_case")]
pub enum InvariantViolation {
    /// A path that leaves the workspace.
    #[error("{path:?} leads out of the workspace")]
    LeavesWorkspace {
        /// The path as it was given.
        path: String,
    },
    /// A path outside what was declared.
    #[error("{path:?} is outside the declared write scope ({})", scope.join(", "))]
    OutsideScope {
        /// The path that is not in the scope.
        path: String,
        /// The patterns that were declared.
        scope: Vec<String>,
    },
    /// A path that must not be changed.
    #[error("{path:?} is protected")]
    Protected {
        /// The path that is protected.
        path: String,
    },
    /// The tree a change was made for is not the tree that is there.
    #[error("the base tree changed from {expected} to {found}: make the change anew")]
    BaseChanged {
        /// The tree the change was made for.
        expected: Digest,
        /// The tree that is there.
        found: Digest,
    },
    /// A secret in what is added.
    #[error("a secret ({kind}) is on added line {line}: take it out")]
    SecretAdded {
        /// Which kind of secret, never the secret itself.
        kind: &'static str,
        /// On which of the added lines, counted from 1.
        line: usize,
    },
    /// A declared act that did something else.
    #[error("{path:?} was changed although the act did not say so")]
    Undeclared {
        /// The path that was not declared.
        path: String,
    },
}

/// What must hold for an act.
#[derive(Debug, Clone, Default)]
pub struct ActInvariants {
    /// Where writes may go; anywhere in the workspace where nothing is declared.
    pub write_scope: Option<PathGlobs>,
    /// Paths that must not be changed.
    pub protected: Option<PathGlobs>,
    /// The tree the act was decided on.
    pub base_tree: Option<Digest>,
}

/// What happened, as it was read back.
#[derive(Debug, Clone, Copy)]
pub struct ObservedEffect<'a> {
    /// Every path that differs.
    pub changed: &'a [String],
    /// The tree the change was made on.
    pub base_tree: Option<Digest>,
    /// The change as a unified diff.
    pub diff: &'a str,
}

impl ActInvariants {
    /// Before: what an act says it will write, on which tree, with which diff.
    pub fn before(&self, declared: ObservedEffect<'_>) -> Vec<InvariantViolation> {
        let mut violations = self.of_paths(declared.changed);
        violations.extend(self.of_paths(&paths_of_diff(declared.diff)));
        violations.extend(self.of_base(declared.base_tree));
        violations.extend(secrets_added(declared.diff));
        dedup(violations)
    }

    /// After: what an act did. Paths it changed without having said so are named too.
    pub fn after(
        &self,
        declared: Option<&[String]>,
        observed: ObservedEffect<'_>,
    ) -> Vec<InvariantViolation> {
        let mut violations = self.before(observed);
        if let Some(declared) = declared {
            let said: Vec<_> = declared.iter().filter_map(|path| inside(path)).collect();
            for path in observed.changed {
                if inside(path).is_none_or(|path| !said.contains(&path)) {
                    violations.push(InvariantViolation::Undeclared { path: path.clone() });
                }
            }
        }
        dedup(violations)
    }

    fn of_paths(&self, paths: &[String]) -> Vec<InvariantViolation> {
        let mut violations = Vec::new();
        for path in paths {
            if inside(path).is_none_or(|path| path.is_empty()) {
                violations.push(InvariantViolation::LeavesWorkspace { path: path.clone() });
                continue;
            }
            if self
                .protected
                .as_ref()
                .is_some_and(|globs| globs.matches(path))
            {
                violations.push(InvariantViolation::Protected { path: path.clone() });
            }
            if let Some(scope) = &self.write_scope
                && !scope.matches(path)
            {
                violations.push(InvariantViolation::OutsideScope {
                    path: path.clone(),
                    scope: scope.patterns().to_vec(),
                });
            }
        }
        violations
    }

    /// A tree that was expected and cannot be read is a changed tree.
    fn of_base(&self, found: Option<Digest>) -> Option<InvariantViolation> {
        let expected = self.base_tree?;
        let found = found.unwrap_or(Digest::from_bytes([0; 32]));
        (expected != found).then_some(InvariantViolation::BaseChanged { expected, found })
    }
}

/// Secrets in the lines a diff adds. Those it removes are being dealt with.
pub fn secrets_added(diff: &str) -> Vec<InvariantViolation> {
    let added = added_lines(diff);
    secrets(&added)
        .into_iter()
        .map(|secret| InvariantViolation::SecretAdded {
            kind: secret.kind.0,
            line: added[..secret.span.start].matches('\n').count() + 1,
        })
        .collect()
}

fn dedup(violations: Vec<InvariantViolation>) -> Vec<InvariantViolation> {
    let mut unique: Vec<InvariantViolation> = Vec::with_capacity(violations.len());
    for violation in violations {
        if !unique.contains(&violation) {
            unique.push(violation);
        }
    }
    unique
}

#[cfg(test)]
mod tests;
