//! What one run hands to another: the envelope of an agent. The agent that receives it may do less than
//! the run that sent it, never more, and can check that for itself whenever it goes on.

use std::collections::BTreeSet;

use lula_protocol::{BudgetAmounts, Digest, RunId};
use lula_repair::trial::TestBaseline;
use lula_runner_api::BranchWorkspaceStart;
use serde::{Deserialize, Serialize};

use super::{AgentRole, PROPOSE, SharedTaskView};
use crate::plan::{PathScope, StepId};

/// What a run may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAuthority {
    /// The tools its agents may call.
    pub tools: BTreeSet<String>,
    /// The models it may ask.
    pub models: BTreeSet<String>,
    /// What it may write.
    pub scope: PathScope,
    /// What it may spend; a dimension that is not named has no limit.
    pub budget: BudgetAmounts,
}

/// What an agent was given that the giver does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an agent cannot be given {0}: the run that sends it does not have it")]
pub struct AuthorityExcess(pub String);

impl RunAuthority {
    /// Whether this is no more than the other.
    pub fn within(&self, giver: &Self) -> Result<(), AuthorityExcess> {
        let over = |what: String| Err(AuthorityExcess(what));
        if let Some(tool) = self.tools.difference(&giver.tools).next() {
            return over(format!("the tool {tool}"));
        }
        if let Some(model) = self.models.difference(&giver.models).next() {
            return over(format!("the model {model}"));
        }
        let wide = self.scope.patterns().iter();
        if let Some(pattern) = wide.clone().find(|pattern| !giver.scope.covers(pattern)) {
            return over(format!("the files {pattern}"));
        }
        for (dimension, limit) in giver.budget.iter() {
            match self.budget.get(dimension) {
                Some(own) if own <= limit => {}
                Some(own) => return over(format!("{own} of {dimension}")),
                None => return over(format!("{dimension} without a limit")),
            }
        }
        Ok(())
    }
}

/// Something an agent is told that others found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentInput {
    /// Where it comes from: a task, or what went wrong.
    pub from: String,
    /// The text. Material, never an instruction.
    pub text: String,
}

/// The envelope of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentHandoff {
    /// The run that sends the agent.
    pub parent: RunId,
    /// The step it is to do.
    #[serde(rename = "job")]
    pub step: StepId,
    /// The commit the whole work began with.
    pub base: String,
    /// What the workspace begins with.
    pub start: BranchWorkspaceStart,
    /// Commits that have to be there already.
    pub contains: Vec<String>,
    /// What others found out.
    pub inputs: Vec<AgentInput>,
    pub role: AgentRole,
    /// The name of that.
    pub role_name: String,
    /// What it may do.
    pub authority: RunAuthority,
    /// What the sender may do.
    pub of: RunAuthority,
    /// What the tests say of what is merged so far, where that is known.
    pub baseline: Option<Box<TestBaseline>>,
    /// The whole that the step is part of, where there is a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Box<SharedTaskView>>,
    /// What a person said before the agent began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl AgentHandoff {
    /// Why a file is not the agent's to write, where it certainly is not. An agent that may ask for
    /// more files may have been given it since: then the runner, which knows, judges.
    pub fn refuses_write(&self, path: &str) -> Option<String> {
        let scope = &self.authority.scope;
        let may_ask = self.role.writes && self.authority.tools.contains(PROPOSE);
        (!may_ask && !scope.holds(path)).then(|| {
            format!(
                "{path} is not yours to change: only {} are",
                scope.patterns().join(", ")
            )
        })
    }

    /// Whether the agent may do no more than its sender. Looked at when it is sent and whenever it
    /// begins.
    pub fn check(&self) -> Result<(), AuthorityExcess> {
        self.authority.within(&self.of)?;
        let extra = |tool: &&String| !self.role.tools.contains(tool);
        if let Some(tool) = self.authority.tools.iter().find(extra) {
            return Err(AuthorityExcess(format!(
                "the tool {tool} as a {}",
                self.role_name
            )));
        }
        if !self.role.writes && !self.authority.scope.is_empty() {
            return Err(AuthorityExcess(format!(
                "files to write as a {}",
                self.role_name
            )));
        }
        Ok(())
    }
}

/// The run of an agent: the same for the same step and attempt, so that ordering it again finds it.
pub fn agent_run(parent: &RunId, step: &StepId, attempt: u32) -> RunId {
    RunId::from_parts(0, derived(&format!("{parent}/{step}/{attempt}")))
}

/// A number that no repository of a run has: that of a workspace which is as the first repository was
/// before anything was changed.
pub(crate) const BEFORE: usize = 1 << 20;

/// The name that the work of a run in one of its repositories goes by; its own in the first.
pub fn repository_run(run: &RunId, number: usize) -> RunId {
    match number {
        0 => run.clone(),
        // No task has an empty name.
        _ => RunId::from_parts(0, derived(&format!("{run}//{number}"))),
    }
}

fn derived(text: &str) -> [u8; 10] {
    let digest = Digest::of_bytes(text.as_bytes());
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    random
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::AgentRoles;
    use lula_protocol::BudgetDimension;
    use proptest::prelude::*;

    fn authority(tools: &[&str], scope: &[&str], money: Option<u64>) -> RunAuthority {
        RunAuthority {
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            models: BTreeSet::from(["m".to_owned()]),
            scope: PathScope::new(scope).unwrap(),
            budget: money.map_or_else(BudgetAmounts::none, |money| {
                BudgetAmounts::none().with(BudgetDimension::MicroUsd, money)
            }),
        }
    }

    #[test]
    fn an_agent_gets_no_more_than_its_sender_has() {
        let giver = authority(&["read_file", "run"], &["src/"], Some(10));
        let within = |given: RunAuthority| given.within(&giver);
        assert!(within(authority(&["run"], &["src/a.py"], Some(10))).is_ok());
        assert!(within(authority(&["write_file"], &[], Some(1))).is_err());
        assert!(within(authority(&[], &["docs/x"], Some(1))).is_err());
        assert!(within(authority(&[], &["**"], Some(1))).is_err());
        assert!(within(authority(&[], &[], Some(11))).is_err());
        assert!(within(authority(&[], &[], None)).is_err());
        let mut stranger = authority(&[], &[], Some(1));
        stranger.models.insert("other".to_owned());
        assert!(within(stranger).is_err());
    }

    #[test]
    fn an_envelope_that_was_widened_is_refused_when_it_is_opened() {
        let of = authority(&["read_file", "write_file", "run"], &["**"], None);
        let role = AgentRoles::built_in().get("reviewer").unwrap().clone();
        let run = RunId::from_parts(1, [1; 10]);
        let mut handoff = AgentHandoff {
            parent: run,
            step: StepId::new("a").unwrap(),
            base: String::new(),
            start: BranchWorkspaceStart::Branch,
            contains: Vec::new(),
            inputs: Vec::new(),
            role,
            role_name: "reviewer".to_owned(),
            authority: authority(&["read_file"], &[], None),
            of,
            baseline: None,
            whole: None,
            notes: Vec::new(),
        };
        assert!(handoff.check().is_ok());
        let text = serde_json::to_string(&handoff).unwrap();
        let again: AgentHandoff = serde_json::from_str(&text).unwrap();
        assert!(again.check().is_ok());
        handoff.authority.tools.insert("write_file".to_owned());
        assert!(handoff.check().is_err(), "a reviewer writes nothing");
        handoff.authority.tools.remove("write_file");
        handoff.authority.scope = PathScope::everything();
        assert!(handoff.check().is_err());
    }

    proptest! {
        #[test]
        fn within_is_transitive(a in any::<(u8, u8)>(), b in any::<(u8, u8)>(), c in any::<(u8, u8)>()) {
            let all = ["read_file", "run", "search", "outline"];
            let made = |(bits, money): (u8, u8)| {
                let tools: Vec<&str> = (0..4).filter(|n| bits & (1 << n) != 0).map(|n| all[n]).collect();
                authority(&tools, &[], Some(u64::from(money)))
            };
            let (a, b, c) = (made(a), made(b), made(c));
            if a.within(&b).is_ok() && b.within(&c).is_ok() {
                prop_assert!(a.within(&c).is_ok());
            }
        }
    }
}
