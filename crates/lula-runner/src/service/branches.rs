//! Integration branches: what several agents of a run build on together, and the workspaces over it.
//!
//! The integration branch of a run is a bare git directory of ours that borrows the repository's
//! objects. Each agent has a workspace over its commit. An agent's change becomes a commit under a
//! reference of its own (`agent_commit.rs`) and enters the branch by git's own merge, after tests of
//! the merged files in a sandbox, in one compare-and-swap under the branch's lock (`merge.rs`). A
//! conflict is a result and changes nothing. A crash needs no repair: whether the branch contains
//! the commit says whether it was merged. `fill.rs` makes a workspace hold what came of it.

use lula_protocol::digest::DigestDomain;
use lula_protocol::{Digest, EffectId, Principal, RunId, WorkspaceId};
use lula_workspace::checkout::CheckoutError;
use lula_workspace::integration_branch::{self, IntegrationBranchName, StepName};
use lula_workspace::{Checkout, IntegrationBranch, WorkspaceError};
use serde::Serialize;

use super::effect::EffectCallerRequest;
use super::refusal::RequestRefusal;
use super::{RunnerService, scope};
use lula_runner_api::{
    BranchWorkspaceStart, CommittedChangeState, EffectCall, IntegrationBranchList,
    IntegrationBranchRef, IntegrationBranchView, OpenWorkspaceOnBranch, WorkspaceView,
};

/// Most commits that a branch is asked about at once.
const CONTAINS: usize = 256;

pub(super) fn refused(message: impl Into<String>) -> RequestRefusal {
    CheckoutError::Refused(message.into()).into()
}

pub(super) fn step(text: &str) -> Result<StepName, RequestRefusal> {
    let step = text.parse::<StepName>();
    step.map_err(|error| RequestRefusal::BadRequest(error.to_string()))
}

pub(super) fn message(text: &str) -> Result<(), RequestRefusal> {
    let most = super::checkouts::MESSAGE;
    if (1..=most).contains(&text.len()) {
        return Ok(());
    }
    let problem = format!("a message has 1 to {most} bytes");
    Err(RequestRefusal::BadRequest(problem))
}

fn commit_name(text: &str) -> Result<(), RequestRefusal> {
    if integration_branch::is_commit_name(text) {
        return Ok(());
    }
    let problem = "a commit is named by its whole hexadecimal name";
    Err(RequestRefusal::BadRequest(problem.to_owned()))
}

/// The digest of what is asked of a branch. The epoch says who asks, and is no part of it.
pub(super) fn request_on(
    branch: &IntegrationBranchName,
    call: &EffectCall<impl Serialize>,
) -> Result<Digest, RequestRefusal> {
    let asked = (branch.as_str(), &call.effect, &call.run, &call.order);
    Digest::of(DigestDomain::Effect, &asked)
        .map_err(|error| RequestRefusal::BadRequest(format!("the request has no digest: {error}")))
}

impl RunnerService {
    /// The branch of that name, if its repository is below a root.
    pub(super) fn branch(&self, name: &str) -> Result<IntegrationBranch, RequestRefusal> {
        let none = || RequestRefusal::NoBranch(name.chars().take(80).collect());
        let parsed: IntegrationBranchName = name.parse().map_err(|_| none())?;
        let branch =
            IntegrationBranch::find(&self.setup.state, &parsed, self.git()?)?.ok_or_else(none)?;
        if self.is_below_a_root(branch.repository()) {
            Ok(branch)
        } else {
            Err(none())
        }
    }

    /// The branch that an effect is about, which is that of its own run.
    pub(super) fn branch_of(
        &self,
        run: &RunId,
        asked: &IntegrationBranchRef,
    ) -> Result<IntegrationBranch, RequestRefusal> {
        if asked.run == *run {
            return self.begin_branch(asked);
        }
        let problem = format!("the branch is one of {}, not of {run}", asked.run);
        Err(RequestRefusal::BadRequest(problem))
    }

    /// What lies about and belongs to nothing is set aside before anything is begun.
    pub(super) fn set_aside(&self) -> Result<(), RequestRefusal> {
        if let Some(git) = &self.setup.git {
            integration_branch::quarantine(&self.setup.state, git)?;
        }
        Ok(())
    }

    /// Begins an integration branch, or finds it again.
    fn begin_branch(
        &self,
        asked: &IntegrationBranchRef,
    ) -> Result<IntegrationBranch, RequestRefusal> {
        let repository = self.directory(&asked.repository)?;
        let base = asked.base.as_deref();
        if let Some(base) = base {
            commit_name(base)?;
        }
        let state = &self.setup.state;
        let branch = IntegrationBranch::begin(state, &asked.run, &repository, base, self.git()?)?;
        if base.is_some_and(|base| base != branch.base()) {
            return Err(refused(format!(
                "the integration branch of {} in {} began with {}",
                asked.run,
                repository.display(),
                branch.base()
            )));
        }
        Ok(branch)
    }

    /// Begins an integration branch, or finds it again.
    pub fn open_branch(
        &self,
        asked: &IntegrationBranchRef,
    ) -> Result<IntegrationBranchView, RequestRefusal> {
        view(&self.begin_branch(asked)?)
    }

    /// Every integration branch below the roots.
    pub fn branches(&self) -> Result<IntegrationBranchList, RequestRefusal> {
        let Ok(git) = self.git() else {
            return Ok(IntegrationBranchList {
                branches: Vec::new(),
                quarantined: Vec::new(),
            });
        };
        let branches = IntegrationBranch::list(&self.setup.state, git);
        let ours = branches
            .iter()
            .filter(|branch| self.is_below_a_root(branch.repository()));
        Ok(IntegrationBranchList {
            branches: ours.map(view).collect::<Result<_, _>>()?,
            quarantined: integration_branch::quarantined(&self.setup.state),
        })
    }

    /// Looks one integration branch up by its name.
    pub fn view_branch(&self, name: &str) -> Result<IntegrationBranchView, RequestRefusal> {
        view(&self.branch(name)?)
    }

    /// Puts the commits of a branch into one file, and gives the rest of its space back.
    pub fn archive_branch(&self, name: &str) -> Result<IntegrationBranchView, RequestRefusal> {
        let branch = self.branch(name)?;
        let turn = branch.turn()?;
        branch.archive()?;
        drop(turn);
        for record in self.store.list()? {
            let of_it = self.checkout(&record.id).is_ok_and(|checkout| {
                checkout.origin().line.as_deref() == Some(branch.name().as_str())
            });
            if of_it {
                self.discard(&record.id, true)?;
            }
        }
        view(&branch)
    }

    /// Opens a workspace over an integration branch, or finds it again.
    pub fn open_on_branch(
        &self,
        asked: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RequestRefusal> {
        let branch = self.begin_branch(&asked.branch)?;
        if asked.contains.len() > CONTAINS {
            let problem = format!("a branch is asked for at most {CONTAINS} commits");
            return Err(RequestRefusal::BadRequest(problem));
        }
        asked
            .contains
            .iter()
            .try_for_each(|commit| commit_name(commit))?;
        scope::invariants(&asked.write_scope)?;
        let with = match &asked.start {
            BranchWorkspaceStart::Branch => None,
            BranchWorkspaceStart::Merge { commit } => {
                commit_name(commit)?;
                Some(commit.as_str())
            }
        };
        let git = self.git()?;
        let _laying = self.laying.lock();
        let checkout = match Checkout::find(&self.setup.state, &asked.workspace, git) {
            Ok(found) => found,
            Err(CheckoutError::Gone(_)) => self.make_over(&branch, asked, with)?,
            Err(error) => return Err(error.into()),
        };
        let origin = checkout.origin();
        if origin.line.as_deref() != Some(branch.name().as_str()) || origin.with.as_deref() != with
        {
            return Err(refused(format!(
                "{} is the name of another workspace",
                asked.workspace
            )));
        }
        if checkout.is_cleared() {
            return self.view_cleared(&asked.workspace);
        }
        let title = format!("lula run {}", asked.branch.run);
        let view = self.furnish_checkout(&checkout, &title, &asked.write_scope)?;
        self.widen(&asked.workspace, &asked.write_scope)?;
        Ok(view)
    }

    /// Gives the agent of a workspace that was opened before more files to write; none are taken away,
    /// so that opening it again as it was first opened changes nothing.
    fn widen(&self, id: &WorkspaceId, patterns: &[String]) -> Result<(), RequestRefusal> {
        let mut declared = self.ledger().declared(id)?;
        // Nothing declared means anywhere, and no less.
        let new = |pattern: &&String| !declared.contains(pattern);
        let new: Vec<String> = patterns.iter().filter(new).cloned().collect();
        if new.is_empty() || declared.is_empty() {
            return Ok(());
        }
        declared.extend(new);
        let invariants = scope::invariants(&declared)?;
        self.ledger().declare(id, &declared)?;
        self.room(id)?.hold_to(invariants);
        Ok(())
    }

    fn make_over(
        &self,
        branch: &IntegrationBranch,
        asked: &OpenWorkspaceOnBranch,
        with: Option<&str>,
    ) -> Result<Checkout, RequestRefusal> {
        for commit in &asked.contains {
            if !branch.contains(commit)? {
                let problem = format!(
                    "the integration branch does not contain {commit}, which the step needs"
                );
                return Err(refused(problem));
            }
        }
        if let Some(commit) =
            with.filter(|commit| !branch.has_agent_commit(commit).unwrap_or(false))
        {
            return Err(refused(format!(
                "{commit} was not committed for this branch"
            )));
        }
        let git = self.git()?;
        self.room_for_more()?;
        let made = Checkout::make_over(&self.setup.state, &asked.workspace, branch, with, git)?;
        if let Err(full) = self.room_for_more() {
            // Nothing was done in it yet.
            made.forget()?;
            return Err(full);
        }
        Ok(made)
    }

    /// Refuses where branches, checkouts and layers take all the space they may.
    fn room_for_more(&self) -> Result<(), RequestRefusal> {
        let allowed = self.setup.max_bytes;
        let layers = self.store.make_room()?;
        let rest = allowed.saturating_sub(layers);
        let used = layers + integration_branch::space(&self.setup.state, self.git()?, rest)?;
        if used > allowed {
            return Err(WorkspaceError::Full { used, allowed }.into());
        }
        Ok(())
    }

    /// For effects on a branch as a whole.
    pub(super) fn caller_request_on(
        &self,
        caller: (&Principal, &'static str),
        branch: &IntegrationBranch,
        of_run: (&EffectId, &RunId, u64),
        request: Digest,
    ) -> EffectCallerRequest {
        // No workspace has this name; a crash has nothing to take back there.
        let digest = Digest::of_bytes(branch.name().as_str().as_bytes());
        let mut body = [0; 10];
        body.copy_from_slice(&digest.as_bytes()[..10]);
        let workspace = WorkspaceId::from_parts(0, body);
        self.caller_request(caller, &workspace, of_run, request)
    }
}

fn view(branch: &IntegrationBranch) -> Result<IntegrationBranchView, RequestRefusal> {
    let archived = branch.is_archived();
    let (commit, commits) = if archived {
        (branch.base().to_owned(), Vec::new())
    } else {
        let commit = branch.commit()?;
        let state =
            |one: integration_branch::AgentCommit| -> Result<CommittedChangeState, RequestRefusal> {
                Ok(CommittedChangeState {
                    merged: branch.contains(&one.commit)?,
                    step: one.step.as_str().to_owned(),
                    commit: one.commit,
                    outside: one.outside,
                })
            };
        let commits = branch.agent_commits()?.into_iter().map(state);
        (commit, commits.collect::<Result<_, _>>()?)
    };
    Ok(IntegrationBranchView {
        branch: branch.name().to_string(),
        run: branch.run().clone(),
        path: branch.repository().display().to_string(),
        base: branch.base().to_owned(),
        commit,
        commits,
        archived,
        bytes: branch.bytes(),
    })
}
