//! Lines: what several agents of a run build on together, and the workspaces over it.
//!
//! A line (the integration branch of a run) is a bare git directory of ours that borrows the
//! repository's objects. Each agent has a workspace over its commit. An agent's change becomes a
//! commit under a reference of its own and enters the line by git's own merge, after tests of the
//! merged files in a sandbox, in one compare-and-swap under the line's lock (`integrate.rs`). A
//! conflict is a result and changes nothing. A crash needs no repair: whether the line contains the
//! commit says whether it was merged.

use lula_protocol::digest::DigestDomain;
use lula_protocol::{Digest, EffectId, RunId, WorkspaceId};
use lula_workspace::checkout::CheckoutError;
use lula_workspace::integration_branch::{self, AgentTaskName, IntegrationBranchName};
use lula_workspace::{Checkout, IntegrationBranch, WorkspaceError};
use serde::Serialize;

use super::effect::EffectLedgerEntry;
use super::refusal::RequestRefusal;
use super::{RunnerService, scope};
use lula_runner_api::{
    BranchWorkspaceStart, CommittedChangeState, IntegrationBranchList, IntegrationBranchView,
    OpenIntegrationBranch, OpenWorkspaceOnBranch, WorkspaceView,
};

/// Most commits that a line is asked about at once.
const CONTAINS: usize = 256;

pub(super) fn refused(message: impl Into<String>) -> RequestRefusal {
    CheckoutError::Refused(message.into()).into()
}

pub(super) fn task(text: &str) -> Result<AgentTaskName, RequestRefusal> {
    let task = text.parse::<AgentTaskName>();
    task.map_err(|error| RequestRefusal::BadRequest(error.to_string()))
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

/// The digest of what is asked of a line. The epoch says who asks, and is no part of it.
pub(super) fn request_on(
    line: &IntegrationBranchName,
    asked: &impl Serialize,
) -> Result<Digest, RequestRefusal> {
    Digest::of(DigestDomain::Effect, &(line.as_str(), asked))
        .map_err(|error| RequestRefusal::BadRequest(format!("the request has no digest: {error}")))
}

impl RunnerService {
    /// The line of that name, if its repository is below a root.
    pub(super) fn line(&self, name: &str) -> Result<IntegrationBranch, RequestRefusal> {
        let none = || RequestRefusal::NoLine(name.chars().take(80).collect());
        let parsed: IntegrationBranchName = name.parse().map_err(|_| none())?;
        let line =
            IntegrationBranch::find(&self.setup.state, &parsed, self.git()?)?.ok_or_else(none)?;
        if self.is_below_a_root(line.repository()) {
            Ok(line)
        } else {
            Err(none())
        }
    }

    /// The line, for an act of its own run.
    pub(super) fn line_of(
        &self,
        name: &str,
        run: &RunId,
    ) -> Result<IntegrationBranch, RequestRefusal> {
        let line = self.line(name)?;
        if line.run() == run {
            return Ok(line);
        }
        let problem = format!("{name} is a line of another run than {run}");
        Err(RequestRefusal::BadRequest(problem))
    }

    /// What lies about and belongs to nothing is set aside before anything is begun.
    pub(super) fn set_aside(&self) -> Result<(), RequestRefusal> {
        if let Some(git) = &self.setup.git {
            integration_branch::quarantine(&self.setup.state, git)?;
        }
        Ok(())
    }

    /// Begins a line, or finds it again.
    pub fn open_line(
        &self,
        asked: &OpenIntegrationBranch,
    ) -> Result<IntegrationBranchView, RequestRefusal> {
        let repository = self.directory(&asked.path)?;
        if let Some(commit) = &asked.commit {
            commit_name(commit)?;
        }
        let line = IntegrationBranch::begin(
            &self.setup.state,
            &asked.run,
            &repository,
            asked.commit.as_deref(),
            self.git()?,
        )?;
        if asked
            .commit
            .as_deref()
            .is_some_and(|commit| commit != line.base())
        {
            return Err(refused(format!(
                "the line of {} in {} began with {}",
                asked.run,
                repository.display(),
                line.base()
            )));
        }
        view(&line)
    }

    /// Every line below the roots.
    pub fn lines(&self) -> Result<IntegrationBranchList, RequestRefusal> {
        let Ok(git) = self.git() else {
            return Ok(IntegrationBranchList {
                lines: Vec::new(),
                quarantined: Vec::new(),
            });
        };
        let lines = IntegrationBranch::list(&self.setup.state, git);
        let ours = lines
            .iter()
            .filter(|line| self.is_below_a_root(line.repository()));
        Ok(IntegrationBranchList {
            lines: ours.map(view).collect::<Result<_, _>>()?,
            quarantined: integration_branch::quarantined(&self.setup.state),
        })
    }

    /// Looks one line up by its name.
    pub fn view_line(&self, name: &str) -> Result<IntegrationBranchView, RequestRefusal> {
        view(&self.line(name)?)
    }

    /// Puts what was produced for a line into one file, and gives the rest of its space back.
    pub fn archive_line(&self, name: &str) -> Result<IntegrationBranchView, RequestRefusal> {
        let line = self.line(name)?;
        let turn = line.turn()?;
        line.archive()?;
        drop(turn);
        for record in self.store.list()? {
            let of_it = self.checkout(&record.id).is_ok_and(|checkout| {
                checkout.origin().line.as_deref() == Some(line.name().as_str())
            });
            if of_it {
                self.discard(&record.id, true)?;
            }
        }
        view(&line)
    }

    /// Opens a workspace over a line, or finds it again.
    pub fn open_at_line(
        &self,
        name: &str,
        asked: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RequestRefusal> {
        let line = self.line(name)?;
        if asked.contains.len() > CONTAINS {
            let problem = format!("a line is asked for at most {CONTAINS} commits");
            return Err(RequestRefusal::BadRequest(problem));
        }
        asked
            .contains
            .iter()
            .try_for_each(|commit| commit_name(commit))?;
        scope::invariants(&asked.write_scope)?;
        let with = match &asked.start {
            BranchWorkspaceStart::Line => None,
            BranchWorkspaceStart::Merge { commit } => {
                commit_name(commit)?;
                Some(commit.as_str())
            }
        };
        let git = self.git()?;
        let _laying = self.laying.lock();
        let checkout = match Checkout::find(&self.setup.state, &asked.id, git) {
            Ok(found) => found,
            Err(CheckoutError::Gone(_)) => self.make_over(&line, asked, with)?,
            Err(error) => return Err(error.into()),
        };
        let origin = checkout.origin();
        if origin.line.as_deref() != Some(line.name().as_str()) || origin.with.as_deref() != with {
            return Err(refused(format!(
                "{} is the name of another workspace",
                asked.id
            )));
        }
        if checkout.is_cleared() {
            return self.view_cleared(&asked.id);
        }
        self.furnish_checkout(&checkout, &asked.title, &asked.write_scope)
    }

    fn make_over(
        &self,
        line: &IntegrationBranch,
        asked: &OpenWorkspaceOnBranch,
        with: Option<&str>,
    ) -> Result<Checkout, RequestRefusal> {
        for commit in &asked.contains {
            if !line.contains(commit)? {
                let problem = format!("the line does not contain {commit}, which the task needs");
                return Err(refused(problem));
            }
        }
        if let Some(commit) = with.filter(|commit| !line.was_produced(commit).unwrap_or(false)) {
            return Err(refused(format!("{commit} was not produced for this line")));
        }
        let git = self.git()?;
        self.room_for_more()?;
        let made = Checkout::make_over(&self.setup.state, &asked.id, line, with, git)?;
        if let Err(full) = self.room_for_more() {
            // Nothing was done in it yet.
            made.forget()?;
            return Err(full);
        }
        Ok(made)
    }

    /// Refuses where lines, checkouts and layers take all the space they may.
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

    /// For effects on a line as a whole.
    pub(super) fn entry_on(
        &self,
        line: &IntegrationBranch,
        effect: &EffectId,
        (run, epoch): (&RunId, u64),
        call: Digest,
    ) -> EffectLedgerEntry {
        // No workspace has this name; a crash has nothing to take back there.
        let digest = Digest::of_bytes(line.name().as_str().as_bytes());
        let mut body = [0; 10];
        body.copy_from_slice(&digest.as_bytes()[..10]);
        self.entry_of(
            &WorkspaceId::from_parts(0, body),
            effect,
            (run, epoch),
            call,
        )
    }
}

fn view(line: &IntegrationBranch) -> Result<IntegrationBranchView, RequestRefusal> {
    let archived = line.is_archived();
    let (commit, produced) = if archived {
        (line.base().to_owned(), Vec::new())
    } else {
        let commit = line.commit()?;
        let state =
            |one: integration_branch::AgentCommit| -> Result<CommittedChangeState, RequestRefusal> {
                Ok(CommittedChangeState {
                    integrated: line.contains(&one.commit)?,
                    task: one.task.as_str().to_owned(),
                    commit: one.commit,
                    outside: one.outside,
                })
            };
        let produced = line.produced()?.into_iter().map(state);
        (commit, produced.collect::<Result<_, _>>()?)
    };
    Ok(IntegrationBranchView {
        line: line.name().to_string(),
        run: line.run().clone(),
        path: line.repository().display().to_string(),
        base: line.base().to_owned(),
        commit,
        produced,
        archived,
        bytes: line.bytes(),
    })
}
