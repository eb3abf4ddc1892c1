//! Workspaces of commits: what a run works on, and what it changed.
//!
//! The files of the commit lie below the state directory beside a private git directory, the layer
//! lies over them, and the change is taken as a git tree from the touched paths alone. The caller
//! chooses the name of such a workspace, so opening it again finds it. `test_runs.rs` runs its tests,
//! or the search of the repairer, in private forks; `deliver.rs` puts its judged change into the
//! repository.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use lula_protocol::WorkspaceId;
use lula_workspace::checkout::{CheckoutError, GitChange};
use lula_workspace::{Checkout, GitProgram, LayerPreference, WorkspaceError};

use super::refusal::RequestRefusal;
use super::room::CheckoutStandIn;
use super::{RunnerService, views};
use lula_runner_api::{
    CheckoutOriginView, CheckoutRequest, CommittedChangeView, IgnoredFilesView, OpenWorkspace,
    START, WorkspaceState, WorkspaceView,
};

/// Longest message of a commit, in bytes.
pub(super) const MESSAGE: usize = 64 << 10;
/// Longest diff that is told, in bytes.
const DIFF: usize = 24 << 20;

impl RunnerService {
    pub(super) fn git(&self) -> Result<&GitProgram, RequestRefusal> {
        let none = "this runner has no git: install one, or name it with git.program";
        self.setup
            .git
            .as_ref()
            .ok_or_else(|| RequestRefusal::BadRequest(none.to_owned()))
    }

    pub(super) fn checkout(&self, id: &WorkspaceId) -> Result<Checkout, RequestRefusal> {
        Checkout::find(&self.setup.state, id, self.git()?).map_err(|error| match error {
            CheckoutError::Gone(id) => RequestRefusal::NoWorkspace(id),
            error => error.into(),
        })
    }

    /// The checkout whose files lie there, if they are those of one.
    pub(super) fn checkout_at(&self, base: &Path) -> Option<Checkout> {
        let inside = base.strip_prefix(Checkout::home(&self.setup.state)).ok()?;
        let id = inside.iter().next()?.to_str()?.parse().ok()?;
        self.checkout(&id).ok()
    }

    /// The directory of the person's that a workspace on `base` is about.
    pub(super) fn belongs_to(&self, base: &Path) -> PathBuf {
        self.checkout_at(base).map_or_else(
            || base.to_owned(),
            |checkout| checkout.origin().repository.clone(),
        )
    }

    /// What is shown below the files of a workspace on `base`, and stands in for it.
    pub(super) fn stand_in(&self, base: &Path) -> Option<CheckoutStandIn> {
        let checkout = self.checkout_at(base)?;
        // What an environment brings is no part of a change, as nothing installed is.
        let shown = &checkout.origin().repository;
        if let Ok(Some(found)) = self.environments().find(base, shown) {
            let brought = found
                .record
                .directories
                .iter()
                .map(|path| format!("{path}/"));
            let brought = brought.chain(found.record.files.iter().cloned());
            if let Err(error) = checkout.leave_aside(brought) {
                tracing::warn!(%error, "what the environment brings counts as changed where it is");
            }
        }
        Some(CheckoutStandIn {
            below: checkout.below(),
            checkout,
        })
    }

    pub(super) fn with_origin(&self, mut view: WorkspaceView) -> WorkspaceView {
        if let Some(checkout) = self.checkout_at(Path::new(&view.path)) {
            view.path = checkout.origin().repository.display().to_string();
            view.origin = Some(origin(&checkout));
        }
        view
    }

    /// Opens the workspace of a commit, or finds it again.
    pub(super) fn open_checkout(
        &self,
        repository: &Path,
        asked: &OpenWorkspace,
        wanted: &CheckoutRequest,
    ) -> Result<WorkspaceView, RequestRefusal> {
        let commit = wanted.commit.as_deref();
        let is_name = |text: &str| text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if commit.is_some_and(|commit| !is_name(commit)) {
            let message = "a commit is named by its whole hexadecimal name".to_owned();
            return Err(RequestRefusal::BadRequest(message));
        }
        let _laying = self.laying.lock().unwrap_or_else(PoisonError::into_inner);
        let checkout = Checkout::make(
            &self.setup.state,
            &wanted.id,
            repository,
            commit,
            self.git()?,
        )?;
        let origin = checkout.origin();
        if origin.repository != repository || commit.is_some_and(|commit| commit != origin.commit) {
            let message = format!("{} is the name of another workspace", wanted.id);
            return Err(CheckoutError::Refused(message).into());
        }
        if checkout.is_cleared() {
            return self.view_cleared(&wanted.id);
        }
        self.furnish_checkout(&checkout, &asked.title, &asked.write_scope)
    }

    /// The workspace over a checkout, made where there is none.
    pub(super) fn furnish_checkout(
        &self,
        checkout: &Checkout,
        title: &str,
        write_scope: &[String],
    ) -> Result<WorkspaceView, RequestRefusal> {
        let id = checkout.id();
        match self.store.create_as(
            id.clone(),
            &checkout.tree(),
            LayerPreference::Overlay,
            title,
        ) {
            Ok(made) => {
                self.ledger().declare(made.id(), write_scope)?;
                drop(made);
            }
            Err(WorkspaceError::InUse(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let begun = |room: &super::room::RunnerWorkspace| {
            let workspace = room.workspace();
            let snapshots = &workspace.record().snapshots;
            snapshots.iter().any(|one| one.label == START)
        };
        if !begun(&room) {
            // First the sandbox: where there is no overlay it turns the layer into a copy.
            drop(room.live()?);
            let pieces = checkout.laid_over()?;
            if !pieces.is_empty() {
                room.lay(&pieces)?;
            }
            room.workspace().snapshot(START)?;
        }
        let view = views::workspace(room.workspace().record());
        Ok(self.with_origin(view))
    }

    /// What is still known of a workspace of a commit whose space was given back.
    pub(super) fn view_cleared(&self, id: &WorkspaceId) -> Result<WorkspaceView, RequestRefusal> {
        let gone = || RequestRefusal::NoWorkspace(id.clone());
        let checkout = self.checkout(id).map_err(|_| gone())?;
        if !self.is_below_a_root(&checkout.origin().repository) {
            return Err(gone());
        }
        Ok(WorkspaceView {
            id: id.clone(),
            path: checkout.origin().repository.display().to_string(),
            title: String::new(),
            state: WorkspaceState::Discarded,
            backend: "none".to_owned(),
            opened_ms: 0,
            snapshots: Vec::new(),
            origin: Some(origin(&checkout)),
        })
    }

    /// Gives the files of a workspace back that is removed, if they are those of a commit.
    pub(super) fn clear_checkout(&self, id: &WorkspaceId) -> Result<(), RequestRefusal> {
        match self.checkout(id) {
            Ok(checkout) => Ok(checkout.clear()?),
            Err(_) => Ok(()),
        }
    }

    /// What was changed since the commit, as git sees it.
    pub fn taken(&self, id: &WorkspaceId) -> Result<CommittedChangeView, RequestRefusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let taken = self.checkout(id)?.take(&room.workspace())?;
        shown_whole(&taken)?;
        Ok(CommittedChangeView {
            tree: taken.digest,
            files: taken.files.iter().map(|file| file.path.clone()).collect(),
            diff: taken.diff,
        })
    }
}

pub(super) fn shown_whole(taken: &GitChange) -> Result<(), RequestRefusal> {
    if taken.diff.len() <= DIFF {
        return Ok(());
    }
    let message = format!("the change has more than {DIFF} bytes and cannot be shown");
    Err(CheckoutError::Refused(message).into())
}

fn origin(checkout: &Checkout) -> CheckoutOriginView {
    let origin = checkout.origin();
    CheckoutOriginView {
        commit: origin.commit.clone(),
        uncommitted: u64::try_from(origin.uncommitted).unwrap_or(u64::MAX),
        history: origin.history.clone(),
        ignored: origin.ignored.as_ref().map(|ignored| IgnoredFilesView {
            paths: ignored.paths.clone(),
            bytes: ignored.bytes,
            more: ignored.more,
            hidden: ignored.hidden.clone(),
        }),
    }
}
