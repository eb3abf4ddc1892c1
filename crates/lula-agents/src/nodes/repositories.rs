//! The repositories of a run beside the first: what is done in the first one's workspace is done in
//! theirs, and what comes of all of them is delivered together.
//!
//! Each repository has a workspace and an integration branch of its own; a step of the plan names
//! one, and an effect in another workspace than the first is `RunEffect::InRepository`. Each
//! repository tunes the roles, has the guidelines of the agents that work in it, and commands that
//! must succeed there (`Task::terms`). All changes are judged, the worst verdict counts, and one
//! effect delivers all of them or none. Taking them back is `lula_workspace::checkout::undo`.

use std::fmt::Write;

use lula_graph::{NodeContext, VisitStop};
use lula_protocol::WorkspaceId;

use super::{context, tried};
use lula_runner_api::{CommittedChangeView, FillWorkspaceFromBranch, IntegrationBranchRef};

use crate::effects::RunEffect;
use crate::recovery::AttemptFailureClass;
use crate::runner_port::AgentWorkspace;
use crate::survey::ProjectSurvey;
use crate::verdict::{RunVerdict, VerificationEvidence, judge};
use crate::work::{
    CoderBrief, CoderProposal, CodingState, EarlyEnd, RepositoryEvent, RepositoryPlace,
    RepositoryState, RunStateEvent, TestBaseline,
};

/// An effect in the workspace of a repository.
pub(super) fn in_repository(repo: usize, effect: RunEffect) -> RunEffect {
    if repo == 0 {
        return effect;
    }
    RunEffect::InRepository {
        repo,
        effect: Box::new(effect),
    }
}

/// Opens the workspaces of the other repositories.
pub(super) async fn open(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<Vec<RepositoryPlace>, String>, VisitStop> {
    let mut places = Vec::new();
    for (repo, named) in work.task.repositories.iter().enumerate().skip(1) {
        let repository = named.path.clone();
        let effect = RunEffect::Open {
            repository: repository.clone(),
        };
        let effect = in_repository(repo, effect).request();
        match tried(ctx.effect::<AgentWorkspace>(effect).await)? {
            Ok(place) => places.push(RepositoryPlace { repository, place }),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(places))
}

/// The repositories beside the first, with their workspaces, once those are open.
pub(super) fn others(
    work: &CodingState,
) -> impl Iterator<Item = (usize, &RepositoryState, WorkspaceId)> {
    let all = work.repositories.iter().enumerate().skip(1);
    all.filter_map(|(repo, it)| Some((repo, it, it.place.as_ref()?.workspace.clone())))
}

/// What the other repositories hold, and what their tests say.
pub(super) async fn look(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<Vec<(TestBaseline, CoderBrief)>, EarlyEnd>, VisitStop> {
    let mut seen = Vec::new();
    for (repo, repository, workspace) in others(work) {
        let baseline = if let Some(baseline) = &repository.baseline {
            baseline.clone()
        } else {
            let effect = context::run_tests(work, repo, &workspace);
            match tried(ctx.effect(in_repository(repo, effect).request()).await)? {
                Ok(baseline) => baseline,
                Err(why) => {
                    let name = work.repository_name(repo);
                    let why = format!("the tests of {name} cannot be run here: {why}");
                    return Ok(Err(EarlyEnd::Environment { why, broken: None }));
                }
            }
        };
        if let Some(end) = context::unusable(&baseline.looked) {
            return Ok(Err(end));
        }
        let mut wanted = context::wanted(work, &baseline);
        work.repository(repo).clone_into(&mut wanted.repository);
        let effect = RunEffect::Survey { workspace, wanted };
        let effect = in_repository(repo, effect).request();
        let survey: ProjectSurvey = tried(ctx.effect(effect).await)?.unwrap_or_default();
        let brief = context::brief(survey, &work.task.text, &baseline);
        seen.push((baseline, brief));
    }
    Ok(Ok(seen))
}

/// The integration branch of a run in one of its repositories.
pub(super) fn branch(
    work: &CodingState,
    repo: usize,
    ctx: &NodeContext<'_>,
) -> IntegrationBranchRef {
    IntegrationBranchRef {
        run: ctx.run().clone(),
        repository: work.repository(repo).to_owned(),
        base: Some(work.base_of(repo).to_owned()),
    }
}

/// Fills the workspaces of the other repositories from their integration branches.
pub(super) async fn fill(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<(), String>, VisitStop> {
    let Some(joint) = &work.joint else {
        return Ok(Ok(()));
    };
    for (repo, _, workspace) in others(work) {
        if !joint.changed(repo) {
            continue;
        }
        let effect = RunEffect::Fill {
            order: FillWorkspaceFromBranch {
                branch: branch(work, repo, ctx),
                workspace,
            },
        };
        let filled = tried(
            ctx.effect::<()>(in_repository(repo, effect).request())
                .await,
        )?;
        if let Err(why) = filled {
            return Ok(Err(why));
        }
    }
    Ok(Ok(()))
}

/// Takes the changes of the other repositories, and makes one change of all of them for the
/// reader.
pub(super) async fn take(
    work: &CodingState,
    proposal: &mut CoderProposal,
    ctx: &mut NodeContext<'_>,
) -> Result<Vec<RunStateEvent>, VisitStop> {
    let Some(joint) = work.joint.as_ref().filter(|_| work.repositories.len() > 1) else {
        return Ok(Vec::new());
    };
    let mut events = Vec::new();
    let mut all = CombinedChange::default();
    all.add(&work.repository_name(0), &proposal.diff, &proposal.files);
    for (repo, _, workspace) in others(work) {
        if !joint.changed(repo) {
            continue;
        }
        let effect = RunEffect::TakeChange { workspace };
        let taken: CommittedChangeView = ctx.effect(in_repository(repo, effect).request()).await?;
        all.add(&work.repository_name(repo), &taken.diff, &taken.files);
        events.push(RunStateEvent::Repository(RepositoryEvent::Taken {
            repo,
            taken,
        }));
    }
    proposal.diff = all.diff;
    proposal.files = all.files;
    Ok(events)
}

/// Changes of several repositories as one.
#[derive(Default)]
struct CombinedChange {
    diff: String,
    files: Vec<String>,
}

impl CombinedChange {
    fn add(&mut self, name: &str, diff: &str, files: &[String]) {
        if files.is_empty() {
            return;
        }
        let _ = write!(self.diff, "# {name}\n{diff}");
        let named = files.iter().map(|path| format!("{name}/{path}"));
        self.files.extend(named);
    }
}

/// Judges the changes of the other repositories too. All of it is right, or it is not.
pub(super) async fn verify_others(
    own: (VerificationEvidence, RunVerdict),
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<(VerificationEvidence, RunVerdict), VisitStop> {
    let mut judged = Vec::new();
    for (repo, repository, workspace) in others(work) {
        let accept = work.acceptance(repo);
        let taken = repository.taken.as_ref();
        let changed = taken.is_some_and(|taken| !taken.files.is_empty());
        if !changed && accept.is_empty() {
            continue;
        }
        let before = work.steady_baseline(repo);
        let effect = RunEffect::Verify {
            workspace,
            tests: work.task.tests.clone(),
            folder: work.task.folder_of(repo).to_owned(),
            before: Box::new(before),
            first: Vec::new(),
            accept,
            tests_ms: work.task.tests_ms,
        };
        let effect = in_repository(repo, effect).request();
        let name = work.repository_name(repo);
        judged.push(
            match tried(ctx.effect::<VerificationEvidence>(effect).await)? {
                Ok(evidence) if changed => {
                    let verdict = judge(&work.goal(repo), &evidence);
                    (name, Some(evidence), verdict)
                }
                Ok(evidence) => match unmet(&evidence) {
                    Some(verdict) => (name, Some(evidence), verdict),
                    None => continue,
                },
                Err(why) => (name, None, RunVerdict::Inconclusive { why }),
            },
        );
    }
    if judged.is_empty() {
        return Ok(own);
    }
    Ok(together(&work.repository_name(0), own, judged))
}

/// Where nothing was to be done: what has to succeed when all of it is done, and does not.
fn unmet(evidence: &VerificationEvidence) -> Option<RunVerdict> {
    let missed = evidence.accepted.iter().find(|one| !one.after)?;
    Some(RunVerdict::Fail {
        class: AttemptFailureClass::Acceptance,
        why: format!("{:?} does not succeed: {}", missed.command, missed.output),
        named: vec![missed.command.clone()],
    })
}

type RepositoryJudgement = (String, Option<VerificationEvidence>, RunVerdict);

/// What is thought of changes of several repositories: the worst that is thought of one. Pure.
fn together(
    name: &str,
    own: (VerificationEvidence, RunVerdict),
    others: Vec<RepositoryJudgement>,
) -> (VerificationEvidence, RunVerdict) {
    let (evidence, verdict) = own;
    let mut all: Vec<RepositoryJudgement> = Vec::new();
    if evidence.changed_files > 0 {
        all.push((name.to_owned(), Some(evidence.clone()), verdict));
    } else if let Some(verdict) = unmet(&evidence) {
        all.push((name.to_owned(), Some(evidence.clone()), verdict));
    }
    all.extend(others);
    let rank = |verdict: &RunVerdict| match verdict {
        RunVerdict::Fail { .. } => 2,
        RunVerdict::Inconclusive { .. } => 1,
        RunVerdict::Pass { .. } => 0,
    };
    let told: Vec<String> = all
        .iter()
        .map(|(name, _, verdict)| format!("{name}: {}", verdict.why()))
        .collect();
    // The first of the worst; there is one, or this would not have been called.
    let mut worst = 0;
    for (index, (_, _, verdict)) in all.iter().enumerate() {
        if rank(verdict) > rank(&all[worst].2) {
            worst = index;
        }
    }
    let (name, found, verdict) = all.swap_remove(worst);
    let verdict = match verdict {
        RunVerdict::Pass { .. } => RunVerdict::Pass {
            why: told.join("; "),
        },
        RunVerdict::Inconclusive { why } => RunVerdict::Inconclusive {
            why: format!("{name}: {why}"),
        },
        RunVerdict::Fail { class, why, named } => RunVerdict::Fail {
            class,
            why: format!("{name}: {why}"),
            named,
        },
    };
    (found.unwrap_or(evidence), verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::AcceptanceResult;
    use proptest::prelude::*;

    fn evidence(changed_files: usize) -> VerificationEvidence {
        VerificationEvidence {
            changed_files,
            ..VerificationEvidence::default()
        }
    }

    fn verdict(kind: u8) -> RunVerdict {
        let why = "because".to_owned();
        match kind {
            0 => RunVerdict::Pass { why },
            1 => RunVerdict::Inconclusive { why },
            _ => RunVerdict::Fail {
                class: AttemptFailureClass::TestFail,
                why,
                named: Vec::new(),
            },
        }
    }

    proptest! {
        /// A pass of all is a pass of each.
        #[test]
        fn one_that_does_not_pass_holds_all_of_them(kinds in proptest::collection::vec(0..3_u8, 2..6)) {
            let own = (evidence(1), verdict(kinds[0]));
            let others = kinds[1..].iter().map(|kind| ("x".to_owned(), None, verdict(*kind)));
            let (_, all) = together("own", own, others.collect());
            let worst = kinds.iter().max().copied().unwrap();
            prop_assert_eq!(all.name(), verdict(worst).name());
        }
    }

    #[test]
    fn a_repository_without_a_change_holds_nobody_unless_something_of_it_must_succeed() {
        let others = || vec![("b".to_owned(), Some(evidence(1)), verdict(0))];
        let unchanged = (evidence(0), verdict(2));
        assert_eq!(together("a", unchanged.clone(), others()).1.name(), "pass");
        let (mut seen, fail) = unchanged;
        seen.accepted = vec![AcceptanceResult {
            command: "make check".to_owned(),
            before: false,
            after: false,
            timed_out: false,
            unsteady: false,
            output: String::new(),
        }];
        assert_eq!(together("a", (seen, fail), others()).1.name(), "fail");
    }
}
