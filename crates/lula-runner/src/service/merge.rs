//! The merge queue: an agent's commit is merged into its integration branch when git merges it and
//! the tests of the merged files say nothing worse; otherwise nothing is changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lula_protocol::Principal;
use lula_repair::TestSelection;
use lula_repair::trial::{self, ProjectTestResults, TestBaseline, TestRunAttempt};
use lula_workspace::checkout::BranchDelivery;
use lula_workspace::integration_branch::{BranchAdvance, Merge, StepName};
use lula_workspace::{ForkableProject, IntegrationBranch};

use super::RunnerService;
use super::before::EffectRollback;
use super::branches::{message, request_on, step};
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::test_runs::{COMMAND, COMMANDS};
use crate::ground::SandboxedForkSource;
use crate::halt::CommandStopper;
use lula_runner_api::{
    ConflictFile, ConflictHunk, EffectCall, FailedCommand, MergeAgentChange,
    MergeAgentChangeResult, MergeTestRequirement,
};

/// How often a merge is made anew because the branch was moved meanwhile.
const TRIES: usize = 8;
/// Most tests that are named.
const NAMED: usize = 200;

/// An agent's commit on its way into the integration branch.
struct MergeEffect<'a> {
    branch: &'a IntegrationBranch,
    step: &'a StepName,
    call: &'a EffectCall<MergeAgentChange>,
    request: EffectCallerRequest,
}

impl RunnerEffect for MergeEffect<'_> {
    type Output = MergeAgentChangeResult;
    type Plan = ();

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        None
    }

    fn prepare(
        &self,
        _: &RunnerService,
    ) -> Result<EffectPreparation<(), MergeAgentChangeResult>, RequestRefusal> {
        self.branch.candidate(self.step, &self.call.order.commit)?;
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission: EffectPermission::Free,
            // Asked again, the branch tells what was merged.
            before: EffectRollback::Nothing,
            subject: EffectSubject::default(),
            plan: (),
        }))
    }

    fn perform(
        &mut self,
        service: &RunnerService,
        (): (),
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<MergeAgentChangeResult>, EffectFailure> {
        let order = &self.call.order;
        let under_way = service.halts.begin(&self.call.effect);
        let result = service.merge_now(self.branch, order, &under_way.halt)?;
        subject.about = format!("{} {}: {}", order.step, order.commit, word(&result));
        Ok(PerformedEffect::done(result))
    }
}

impl RunnerService {
    /// Merges an agent's commit into its integration branch, one after the other.
    pub fn merge(
        &self,
        who: &Principal,
        call: &EffectCall<MergeAgentChange>,
    ) -> Result<MergeAgentChangeResult, RequestRefusal> {
        let order = &call.order;
        message(&order.message)?;
        let step = step(&order.step)?;
        let accept = &order.tests.accept;
        if accept.len() > COMMANDS || accept.iter().any(|line| line.len() > COMMAND) {
            let message = format!("at most {COMMANDS} commands of {COMMAND} bytes");
            return Err(RequestRefusal::BadRequest(message));
        }
        let branch = self.branch_of(&call.run, &order.branch)?;
        let digest = request_on(branch.name(), call)?;
        let of_run = (&call.effect, &call.run, call.epoch);
        let request = self.caller_request_on((who, "merge_agent_change"), &branch, of_run, digest);
        let _turn = branch.turn()?;
        let mut merge = MergeEffect {
            branch: &branch,
            step: &step,
            call,
            request,
        };
        self.run_effect(&mut merge)?.free()
    }

    fn merge_now(
        &self,
        branch: &IntegrationBranch,
        order: &MergeAgentChange,
        halt: &Arc<CommandStopper>,
    ) -> Result<MergeAgentChangeResult, RequestRefusal> {
        // Done before a crash, perhaps: a caller that asks again is told the same again.
        if let Some(commit) = branch.merged_by(&order.commit)? {
            let note = branch.note(&order.commit)?;
            let tests = note.and_then(|note| serde_json::from_slice(&note).ok());
            let tests: Option<Box<ProjectTestResults>> = tests.unwrap_or_default();
            return Ok(MergeAgentChangeResult::Merged { commit, tests });
        }
        branch.sweep();
        for _ in 0..TRIES {
            let merge = branch.merge(&order.commit)?;
            if !merge.conflicts.is_empty() {
                return conflict(branch, &merge);
            }
            let tests = match &order.tests.before {
                Some(before) if !branch.same_files(&merge.onto, &merge.tree)? => {
                    match self.test_merged(branch, &merge, (before, &order.tests), halt)? {
                        Ok(results) => results,
                        Err(worse) => return Ok(worse),
                    }
                }
                _ => None,
            };
            let note = serde_json::to_vec(&tests).map_err(|error| {
                RequestRefusal::Internal(format!("a note cannot be written: {error}"))
            })?;
            let commit = BranchDelivery {
                branch: "",
                message: &order.message,
                at: order.at,
            };
            if let BranchAdvance::Merged(commit) = branch.advance(&merge, &commit, &note)? {
                return Ok(MergeAgentChangeResult::Merged { commit, tests });
            }
        }
        Err(RequestRefusal::Busy(
            "the integration branch moves too often: send it again".to_owned(),
        ))
    }

    /// What the merged files say: their results, or what stands against the merge.
    fn test_merged(
        &self,
        branch: &IntegrationBranch,
        merge: &Merge,
        (before, asked): (&TestBaseline, &MergeTestRequirement),
        halt: &Arc<CommandStopper>,
    ) -> Result<Result<Option<Box<ProjectTestResults>>, MergeAgentChangeResult>, RequestRefusal>
    {
        let extracted = branch.extract(&merge.tree)?;
        let project = ForkableProject::at(&extracted.path())
            .map_err(|error| {
                RequestRefusal::Internal(format!("merged files cannot be used: {error}"))
            })?
            .over(extracted.below())
            .in_layers(self.forks());
        let policy = self.setup.policy.clone();
        let wall = policy.limits.wall.millis();
        let ground =
            SandboxedForkSource::on(self.engine.clone(), project, policy, &self.environments())?;
        let ground = ground.stopping(Arc::clone(halt));
        let within = Duration::from_millis(asked.tests_ms.min(wall).max(1));
        let onto = merge.onto.clone();
        let unclear = |why: String| MergeAgentChangeResult::Unclear {
            onto: onto.clone(),
            why,
        };
        let tests = TestSelection {
            command: asked.command.clone(),
            folder: asked.folder.clone(),
        };
        let after = match trial::baseline(&ground, &tests, within) {
            Ok(after) => after,
            Err(error) => return Ok(Err(unclear(error.to_string()))),
        };
        let compared = compare(before, &after);
        let mut failed = Vec::new();
        for command in &asked.accept {
            match trial::succeeds(&ground, command, &tests.folder, within) {
                Ok((true, _, _)) => {}
                Ok((false, true, _)) => {
                    return Ok(Err(unclear(format!("{command:?} did not end in time"))));
                }
                Ok((false, false, output)) => failed.push(FailedCommand {
                    command: command.clone(),
                    output,
                }),
                Err(error) => return Ok(Err(unclear(error.to_string()))),
            }
        }
        let (failing, why) = match compared {
            MergeTestVerdict::Unclear(why) => return Ok(Err(unclear(why))),
            MergeTestVerdict::Fine(results) if failed.is_empty() => return Ok(Ok(results)),
            MergeTestVerdict::Fine(_) => {
                let why = format!("{} acceptance commands do not succeed", failed.len());
                (Vec::new(), why)
            }
            MergeTestVerdict::Worse { failing, why } => (failing, why),
        };
        let messages = after.messages.into_iter();
        let messages = messages.filter(|(id, _)| failing.contains(id)).collect();
        Ok(Err(MergeAgentChangeResult::TestConflict {
            onto: merge.onto.clone(),
            failing,
            messages,
            accept: failed,
            why,
        }))
    }
}

const fn word(result: &MergeAgentChangeResult) -> &'static str {
    match result {
        MergeAgentChangeResult::Merged { .. } => "merged",
        MergeAgentChangeResult::Conflict { .. } => "conflict",
        MergeAgentChangeResult::TestConflict { .. } => "test conflict",
        MergeAgentChangeResult::Unclear { .. } => "unclear",
    }
}

fn conflict(
    branch: &IntegrationBranch,
    merge: &Merge,
) -> Result<MergeAgentChangeResult, RequestRefusal> {
    let (ours, theirs) = branch.sides(merge)?;
    let file = |conflict: &lula_workspace::integration_branch::MergeConflict| ConflictFile {
        path: conflict.path.clone(),
        what: conflict.what.clone(),
        hunks: conflict
            .hunks
            .iter()
            .map(|hunk| ConflictHunk {
                line: hunk.line,
                text: hunk.text.clone(),
            })
            .collect(),
    };
    Ok(MergeAgentChangeResult::Conflict {
        onto: merge.onto.clone(),
        files: merge.conflicts.iter().map(file).collect(),
        ours,
        theirs,
    })
}

/// What tests after a merge say beside those before.
#[derive(Debug, PartialEq, Eq)]
enum MergeTestVerdict {
    /// Nothing worse; the results, where there are some.
    Fine(Option<Box<ProjectTestResults>>),
    /// Tests fail that did not before, or a command does.
    Worse { failing: Vec<String>, why: String },
    /// It cannot be told, with the reason.
    Unclear(String),
}

/// What passed must pass, and what was not known before must not fail. Pure.
fn compare(before: &TestBaseline, after: &TestBaseline) -> MergeTestVerdict {
    let known = before.looked.results().cloned().unwrap_or_default();
    let mut now = match &after.looked.plain() {
        TestRunAttempt::Ran(results) => results.clone(),
        TestRunAttempt::NoTests if known.passing.is_empty() => return MergeTestVerdict::Fine(None),
        TestRunAttempt::NoTests => {
            return MergeTestVerdict::Worse {
                failing: known.passing.into_iter().take(NAMED).collect(),
                why: "no test is left that could be run".to_owned(),
            };
        }
        TestRunAttempt::OutOfTime(ms) => {
            let within = Duration::from_millis(*ms);
            return MergeTestVerdict::Unclear(format!(
                "the tests of the merged files did not end in {within:?}"
            ));
        }
        TestRunAttempt::NotRun | TestRunAttempt::EnvironmentBroken(_) => {
            return MergeTestVerdict::Unclear("the tests were not run".to_owned());
        }
        TestRunAttempt::CannotRun(_)
            if matches!(before.looked.plain(), TestRunAttempt::CannotRun(_)) =>
        {
            return MergeTestVerdict::Fine(None);
        }
        TestRunAttempt::CannotRun(why) if known.passing.is_empty() => {
            return MergeTestVerdict::Unclear(format!(
                "the tests of the merged files cannot be run: {why}"
            ));
        }
        TestRunAttempt::CannotRun(why) => {
            return MergeTestVerdict::Worse {
                failing: Vec::new(),
                why: format!("the tests no longer run: {why}"),
            };
        }
    };
    // Not installed is not passed either.
    now.failing.extend(after.unfixable.iter().cloned());
    let excused: BTreeSet<&String> = known
        .failing
        .iter()
        .chain(&known.flaky)
        .chain(&before.unfixable)
        .collect();
    let lost = known
        .passing
        .iter()
        .filter(|id| !now.passing.contains(*id) && !now.flaky.contains(*id));
    let broken: BTreeSet<String> = lost
        .chain(now.failing.iter().filter(|id| !excused.contains(id)))
        .cloned()
        .collect();
    if broken.is_empty() {
        return MergeTestVerdict::Fine(Some(Box::new(now)));
    }
    MergeTestVerdict::Worse {
        why: match broken.len() {
            1 => "1 test fails, or is gone, in the merged files".to_owned(),
            many => format!("{many} tests fail, or are gone, in the merged files"),
        },
        failing: broken.into_iter().take(NAMED).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(passing: &[&str], failing: &[&str]) -> TestBaseline {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        TestBaseline {
            looked: TestRunAttempt::Ran(ProjectTestResults {
                passing: set(passing),
                failing: set(failing),
                ..ProjectTestResults::default()
            }),
            ..TestBaseline::default()
        }
    }

    fn unable(why: &str) -> TestBaseline {
        TestBaseline {
            looked: TestRunAttempt::CannotRun(why.to_owned()),
            ..said(&[], &[])
        }
    }

    fn worse(before: &TestBaseline, after: &TestBaseline) -> Vec<String> {
        match compare(before, after) {
            MergeTestVerdict::Worse { failing, .. } => failing,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_passed_must_pass_and_what_is_new_must_not_fail() {
        let before = said(&["a", "b"], &["old"]);
        let fine = compare(&before, &said(&["a", "b", "new"], &["old"]));
        assert!(matches!(fine, MergeTestVerdict::Fine(Some(_))), "{fine:?}");
        assert_eq!(worse(&before, &said(&["a"], &["b", "old"])), ["b"]);
        assert_eq!(worse(&before, &said(&["a"], &[])), ["b"], "gone is no pass");
        assert_eq!(worse(&before, &said(&["a", "b"], &["new"])), ["new"]);
    }

    #[test]
    fn no_evidence_is_no_pass() {
        let before = said(&["a"], &[]);
        let none = TestBaseline {
            looked: TestRunAttempt::NoTests,
            ..said(&[], &[])
        };
        assert_eq!(worse(&before, &none), ["a"]);
        assert!(matches!(
            compare(&before, &unable("x")),
            MergeTestVerdict::Worse { .. }
        ));
        assert!(matches!(
            compare(&none, &unable("x")),
            MergeTestVerdict::Unclear(_)
        ));
        assert_eq!(
            compare(&unable("x"), &unable("x")),
            MergeTestVerdict::Fine(None)
        );
        assert_eq!(worse(&unable("x"), &said(&[], &["a"])), ["a"]);
    }
}
