//! The merge queue: an agent's commit is merged into its integration branch when git merges it and
//! the tests of the merged files say nothing worse; otherwise nothing is changed.

mod judgement;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lula_protocol::Principal;
use lula_repair::TestSelection;
use lula_repair::trial::{self, ProjectTestResults, TestBaseline};
use lula_workspace::checkout::BranchDelivery;
use lula_workspace::integration_branch::{BranchAdvance, ExtractedTree, Merge, StepName};
use lula_workspace::{ForkableProject, IntegrationBranch};
use serde::{Deserialize, Serialize};

use self::judgement::{FlakyTests, MergeTestVerdict};
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

/// What tests said when a commit was merged, as it is kept beside the branch.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeNote {
    results: Option<Box<ProjectTestResults>>,
    /// Tests that failed, and do without the change as well.
    flaky: BTreeSet<String>,
}

impl MergeNote {
    fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|_| Self {
            // As earlier versions left it: the results alone.
            results: serde_json::from_slice(bytes).unwrap_or_default(),
            flaky: BTreeSet::new(),
        })
    }

    fn told(self, commit: String) -> MergeAgentChangeResult {
        MergeAgentChangeResult::Merged {
            commit,
            tests: self.results,
            flaky: self.flaky,
        }
    }
}

/// The files of a tree, to be tested in forks.
struct TestableTree {
    ground: SandboxedForkSource,
    _files: ExtractedTree,
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
            let note = note.map(|note| MergeNote::read(&note));
            return Ok(note.unwrap_or_default().told(commit));
        }
        branch.sweep();
        for _ in 0..TRIES {
            let merge = branch.merge(&order.commit)?;
            if !merge.conflicts.is_empty() {
                return conflict(branch, &merge);
            }
            let note = match &order.tests.before {
                Some(before) if !branch.same_files(&merge.onto, &merge.tree)? => {
                    match self.test_merged(branch, &merge, (before, &order.tests), halt)? {
                        Ok(note) => note,
                        Err(worse) => return Ok(worse),
                    }
                }
                _ => MergeNote::default(),
            };
            let kept = serde_json::to_vec(&note).map_err(|error| {
                RequestRefusal::Internal(format!("a note cannot be written: {error}"))
            })?;
            let commit = BranchDelivery {
                branch: "",
                message: &order.message,
                at: order.at,
            };
            if let BranchAdvance::Merged(commit) = branch.advance(&merge, &commit, &kept)? {
                return Ok(note.told(commit));
            }
        }
        Err(RequestRefusal::Busy(
            "the integration branch moves too often: send it again".to_owned(),
        ))
    }

    fn testable(
        &self,
        branch: &IntegrationBranch,
        tree: &str,
        halt: &Arc<CommandStopper>,
    ) -> Result<TestableTree, RequestRefusal> {
        let files = branch.extract(tree)?;
        let project = ForkableProject::at(&files.path())
            .map_err(|error| {
                RequestRefusal::Internal(format!("merged files cannot be used: {error}"))
            })?
            .over(files.below())
            .in_layers(self.forks());
        let policy = self.setup.policy.clone();
        let ground =
            SandboxedForkSource::on(self.engine.clone(), project, policy, &self.environments())?;
        Ok(TestableTree {
            ground: ground.stopping(Arc::clone(halt)),
            _files: files,
        })
    }

    /// What the merged files say: their results, or what stands against the merge.
    fn test_merged(
        &self,
        branch: &IntegrationBranch,
        merge: &Merge,
        (before, asked): (&TestBaseline, &MergeTestRequirement),
        halt: &Arc<CommandStopper>,
    ) -> Result<Result<MergeNote, MergeAgentChangeResult>, RequestRefusal> {
        let merged = self.testable(branch, &merge.tree, halt)?;
        let wall = self.setup.policy.limits.wall.millis();
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
        let after = match trial::baseline(&merged.ground, &tests, within) {
            Ok(after) => after,
            Err(error) => return Ok(Err(unclear(error.to_string()))),
        };
        let mut compared = judgement::compare(before, &after);
        let mut flaky = FlakyTests::default();
        if let MergeTestVerdict::Worse { failing, .. } = &compared
            && !failing.is_empty()
        {
            let look = |tree: &TestableTree| trial::baseline(&tree.ground, &tests, within);
            // Before a change is blamed: the branch without it, and the same files once more.
            if failing.iter().any(|id| judgement::passed(before, id)) {
                let base = self.testable(branch, &merge.onto, halt)?;
                if let Ok(without) = look(&base) {
                    flaky.see_without(failing, before, &without);
                }
            }
            if flaky.without_change.len() < failing.len()
                && let Ok(again) = look(&merged)
            {
                flaky.see_again(failing, &again);
            }
            let excused = flaky.all();
            let [before, after] =
                [before, &after].map(|baseline| judgement::with_flaky(baseline, &excused));
            compared = judgement::compare(&before, &after);
        }
        let mut failed = Vec::new();
        for command in &asked.accept {
            match trial::succeeds(&merged.ground, command, &tests.folder, within) {
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
        let (failing, mut why) = match compared {
            MergeTestVerdict::Unclear(why) => return Ok(Err(unclear(why))),
            MergeTestVerdict::Fine(results) if failed.is_empty() => {
                return Ok(Ok(MergeNote {
                    results,
                    flaky: flaky.without_change,
                }));
            }
            MergeTestVerdict::Fine(_) => {
                let why = format!("{} acceptance commands do not succeed", failed.len());
                (Vec::new(), why)
            }
            MergeTestVerdict::Worse { failing, why } => (failing, why),
        };
        if !flaky.all().is_empty() {
            let names: Vec<String> = flaky.all().into_iter().take(NAMED).collect();
            why = format!("{why}; flaky, and not counted: {}", names.join(", "));
        }
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
