//! An agent's change as a commit under the name of its step, kept for good.

use std::str::FromStr;

use super::{IntegrationBranch, named};
use crate::checkout::deliver::{commit_tree, unpack};
use crate::checkout::{BranchDelivery, Checkout, CheckoutError, CheckoutResult, GitChange};

/// The name of a step: 1 to 64 letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepName(String);

/// A text that is no name of a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a step's name has 1 to 64 letters, digits, - and _")]
pub struct InvalidStepName;

impl FromStr for StepName {
    type Err = InvalidStepName;
    fn from_str(text: &str) -> std::result::Result<Self, InvalidStepName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidStepName)
        }
    }
}

impl StepName {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One commit of an agent's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommit {
    pub step: StepName,
    pub commit: String,
    /// Whether it left the scope of its step.
    pub outside: bool,
}

const INSIDE: &str = "produced";
const OUTSIDE: &str = "outside";

impl IntegrationBranch {
    /// Makes a commit of a change over one of this branch's checkouts and keeps it. Every commit
    /// keeps a reference of its own; `task/NAME` is the last one. Doing it again changes
    /// nothing more.
    pub fn commit_change(
        &self,
        step: &StepName,
        checkout: &Checkout,
        taken: &GitChange,
        order: &BranchDelivery<'_>,
        outside: bool,
    ) -> CheckoutResult<String> {
        if checkout.origin().line.as_deref() != Some(self.name.as_str()) {
            return Err(CheckoutError::Refused(format!(
                "the workspace is not one of the integration branch {}",
                self.name
            )));
        }
        self.commit()?;
        let pack = checkout.pack_of(taken)?;
        unpack(self.command()?, &pack)?;
        let origin = checkout.origin();
        let mut parents = vec![origin.commit.as_str()];
        parents.extend(origin.with.as_deref());
        let commit = commit_tree(
            self.command()?,
            taken.tree(),
            &parents,
            order.message,
            order.at,
        )?;
        let kind = if outside { OUTSIDE } else { INSIDE };
        let kept = self.reference(&format!("{kind}/{}/{commit}", step.0));
        let last = self.reference(&format!("task/{}", step.0));
        let update = format!("update {kept} {commit}\nupdate {last} {commit}\n");
        self.ask(&["update-ref", "--no-deref", "--stdin"], update.as_bytes())?;
        Ok(commit)
    }

    /// Every commit that was ever made, by step.
    pub fn agent_commits(&self) -> CheckoutResult<Vec<AgentCommit>> {
        let mut found = Vec::new();
        for (kind, outside) in [(INSIDE, false), (OUTSIDE, true)] {
            let below = self.reference(kind);
            let listed = self.text(&["for-each-ref", "--format=%(refname)", &below])?;
            for name in listed.lines() {
                let rest = name.strip_prefix(&below).unwrap_or_default();
                let mut parts = rest.trim_start_matches('/').split('/');
                if let (Some(step), Some(commit), None) = (parts.next(), parts.next(), parts.next())
                    && let Ok(step) = step.parse()
                {
                    let commit = named(commit)?.to_owned();
                    found.push(AgentCommit {
                        step,
                        commit,
                        outside,
                    });
                }
            }
        }
        found.sort_by(|a, b| (&a.step, &a.commit).cmp(&(&b.step, &b.commit)));
        Ok(found)
    }

    /// A commit that was made for a step, inside its scope; refused where there is none.
    pub fn candidate(&self, step: &StepName, commit: &str) -> CheckoutResult<()> {
        named(commit)?;
        let is = |kind: &str| {
            let name = self.reference(&format!("{kind}/{}/{commit}", step.0));
            super::resolve(&self.git, &self.private(), &name).is_some()
        };
        if is(INSIDE) {
            return Ok(());
        }
        Err(CheckoutError::Refused(if is(OUTSIDE) {
            format!(
                "{commit} left the scope of {}: it is kept, and not merged",
                step.0
            )
        } else {
            format!("{commit} was not made for {}", step.0)
        }))
    }

    /// Whether a commit was made for any step, whatever its scope.
    pub fn has_agent_commit(&self, commit: &str) -> CheckoutResult<bool> {
        let commits = self.agent_commits()?;
        Ok(commits.iter().any(|one| one.commit == commit))
    }
}
