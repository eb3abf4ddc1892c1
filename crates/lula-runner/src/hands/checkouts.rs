//! Workspaces of commits: what a run works on, what it changed, and its way into the repository.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use lula_audit::{Decided, Ended, Entry as Recorded};
use lula_gate::rules::Act;
use lula_protocol::{Principal, WorkspaceId};
use lula_workspace::checkout::{self, CheckoutError, Delivery, Taken};
use lula_workspace::{Checkout, Git, Wanted, WorkspaceError};

use super::before::Before;
use super::clock::now_ms;
use super::commit::request;
use super::effect::Stored;
use super::gate::{self, Asked, Shown};
use super::refusal::Refusal;
use super::room::StandIn;
use super::{Gated, Hands, scope, views};
use crate::api::{
    CheckoutWanted, DeliverChange, DeliveredView, IgnoredView, OpenWorkspace, OriginView, START,
    TakenView, WorkspaceState, WorkspaceView,
};

/// What a delivery is called in the audit.
const TOOL: &str = "deliver_change";
/// Longest message of a commit, in bytes.
pub(super) const MESSAGE: usize = 64 << 10;
/// Longest name of a branch, in bytes.
pub(super) const BRANCH: usize = 200;
/// Longest diff that is told, in bytes.
const DIFF: usize = 24 << 20;

impl Hands {
    pub(super) fn git(&self) -> Result<&Git, Refusal> {
        let none = "this runner has no git: install one, or name it with git.program";
        self.setup
            .git
            .as_ref()
            .ok_or_else(|| Refusal::BadRequest(none.to_owned()))
    }

    pub(super) fn checkout(&self, id: &WorkspaceId) -> Result<Checkout, Refusal> {
        Checkout::find(&self.setup.state, id, self.git()?).map_err(|error| match error {
            CheckoutError::Gone(id) => Refusal::NoWorkspace(id),
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
    pub(super) fn stand_in(&self, base: &Path) -> Option<StandIn> {
        let checkout = self.checkout_at(base)?;
        Some(StandIn {
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
        wanted: &CheckoutWanted,
    ) -> Result<WorkspaceView, Refusal> {
        let commit = wanted.commit.as_deref();
        let is_name = |text: &str| text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if commit.is_some_and(|commit| !is_name(commit)) {
            let message = "a commit is named by its whole hexadecimal name".to_owned();
            return Err(Refusal::BadRequest(message));
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
    ) -> Result<WorkspaceView, Refusal> {
        let id = checkout.id();
        match self
            .store
            .create_as(id.clone(), &checkout.tree(), Wanted::Overlay, title)
        {
            Ok(made) => {
                self.ledger().declare(made.id(), write_scope)?;
                drop(made);
            }
            Err(WorkspaceError::InUse(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let begun = |room: &super::room::Room| {
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
    pub(super) fn view_cleared(&self, id: &WorkspaceId) -> Result<WorkspaceView, Refusal> {
        let gone = || Refusal::NoWorkspace(id.clone());
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
    pub(super) fn clear_checkout(&self, id: &WorkspaceId) -> Result<(), Refusal> {
        match self.checkout(id) {
            Ok(checkout) => Ok(checkout.clear()?),
            Err(_) => Ok(()),
        }
    }

    /// What was changed since the commit, as git sees it.
    pub fn taken(&self, id: &WorkspaceId) -> Result<TakenView, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let taken = self.checkout(id)?.take(&room.workspace())?;
        shown_whole(&taken)?;
        Ok(TakenView {
            tree: taken.digest,
            files: taken.files.iter().map(|file| file.path.clone()).collect(),
            diff: taken.diff,
        })
    }

    /// Puts exactly the judged change into its repository as a branch, if the rules for what it
    /// changes say so: commands in the sandbox write files without asking anybody.
    pub fn deliver(
        &self,
        who: &Principal,
        id: &WorkspaceId,
        asked: &DeliverChange,
    ) -> Result<Gated<DeliveredView>, Refusal> {
        if asked.branch.is_empty() || asked.branch.len() > BRANCH || asked.message.len() > MESSAGE {
            let message =
                format!("a branch has 1 to {BRANCH} bytes, its message at most {MESSAGE}");
            return Err(Refusal::BadRequest(message));
        }
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let request = request(
            id,
            &DeliverChange {
                epoch: 0,
                ..asked.clone()
            },
        )?;
        let entry = self.entry_of(id, &asked.effect, (&asked.run, asked.epoch), request);
        let agreed = match self.known(&*room, &entry)? {
            Stored::Result(stored) => return Ok(Gated::Done(stored)),
            Stored::Agreed(subject) => Some(subject),
            Stored::Nothing => None,
        };
        let checkout = self.checkout(id)?;
        let taken = checkout.take(&room.workspace())?;
        if taken.digest != asked.tree {
            let message = "the workspace is not what was judged any more; run the task again";
            return Err(CheckoutError::Refused(message.to_owned()).into());
        }
        shown_whole(&taken)?;
        let paths: Vec<String> = taken.files.iter().map(|file| file.path.clone()).collect();
        let added = lula_gate::rules::added_lines(&taken.diff);
        let act = Act::commit(paths.clone(), [added]);
        let verdict = gate::judge(&room.rules, &scope::within(act, &room.invariants));
        let labels: String = paths.iter().map(|path| views::labels(path)).collect();
        let shown = Shown {
            rendered: format!("{labels}{}", taken.diff),
            base_tree: taken.digest,
        };
        let question = Asked {
            rules: gate::version(&room.rules)?,
            verdict: &verdict,
            tool: TOOL,
            call: request,
            shown: &shown,
            who,
            agreed,
            class: entry.class,
            beforehand: self.setup.beforehand,
        };
        let recorded = |decided: Decided, outcome| Recorded {
            time_ms: now_ms(),
            principal: who.clone(),
            run: Some(asked.run.clone()),
            effect: Some(asked.effect.clone()),
            tool: TOOL.to_owned(),
            about: format!("{} {}", asked.branch, paths.join(" ")),
            call: request,
            decision: decided,
            outcome,
            receipt: None,
            diff: Some(taken.digest),
        };
        // Doing it again makes the same branch.
        let decided = match self.admit(&entry, &Before::Nothing, &question, &recorded)? {
            Ok(decided) => decided,
            Err(outcome) => return Ok(Gated::held(&asked.effect, outcome)),
        };
        let delivered = if asked.into_files {
            self.put_into_files(&checkout, &taken, asked)
        } else {
            let order = Delivery {
                branch: &asked.branch,
                message: &asked.message,
                at: asked.at,
            };
            checkout::delivered(&checkout, &taken, &order)
                .map(|done| DeliveredView {
                    branch: Some(asked.branch.clone()),
                    commit: Some(done.commit),
                    directory: None,
                    workspace: None,
                })
                .map_err(Refusal::from)
        };
        match delivered {
            Ok(delivered) => {
                let recorded = recorded(decided, Ended::Done { status: None });
                self.store_result(&asked.effect, &delivered, &recorded)?;
                Ok(Gated::Done(delivered))
            }
            Err(error) => {
                self.ledger().forget(&asked.effect)?;
                Err(error)
            }
        }
    }

    /// Changes the files of the checkout in one journaled step, or finds that done already.
    fn put_into_files(
        &self,
        checkout: &Checkout,
        taken: &Taken,
        asked: &DeliverChange,
    ) -> Result<DeliveredView, Refusal> {
        let repository = &checkout.origin().repository;
        let title = format!("lula run {}", asked.run);
        let workspace = if let Some(there) = self.store.was_put(repository, &title)? {
            there
        } else {
            let pieces = checkout.pieces(taken)?;
            let put = self.store.put(repository, &title, &pieces);
            put.map_err(|error| match error {
                WorkspaceError::Conflicts(paths) => {
                    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
                    let message = format!(
                        "your checkout has other content in {}, and nothing in it was changed; \
                         the change is in the record: `lula diff RUN | git apply --3way` merges it",
                        paths.join(", ")
                    );
                    Refusal::from(CheckoutError::Refused(message))
                }
                other => other.into(),
            })?
            .0
        };
        Ok(DeliveredView {
            branch: None,
            commit: None,
            directory: Some(repository.display().to_string()),
            workspace: Some(workspace),
        })
    }
}

pub(super) fn shown_whole(taken: &Taken) -> Result<(), Refusal> {
    if taken.diff.len() <= DIFF {
        return Ok(());
    }
    let message = format!("the change has more than {DIFF} bytes and cannot be shown");
    Err(CheckoutError::Refused(message).into())
}

fn origin(checkout: &Checkout) -> OriginView {
    let origin = checkout.origin();
    OriginView {
        commit: origin.commit.clone(),
        uncommitted: u64::try_from(origin.uncommitted).unwrap_or(u64::MAX),
        history: origin.history.clone(),
        ignored: origin.ignored.as_ref().map(|ignored| IgnoredView {
            paths: ignored.paths.clone(),
            bytes: ignored.bytes,
            more: ignored.more,
            hidden: ignored.hidden.clone(),
        }),
    }
}
