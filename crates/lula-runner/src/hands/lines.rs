//! Lines: what several agents of a run build on together, and the workspaces over it.

use lula_audit::{Decided, Ended, Entry as Recorded, Verdict};
use lula_protocol::digest::Domain;
use lula_protocol::{Digest, EffectId, Principal, RunId, WorkspaceId};
use lula_workspace::checkout::{CheckoutError, Delivery, Taken};
use lula_workspace::line::{self, LineName, Task};
use lula_workspace::{Checkout, Line, WorkspaceError};
use serde::Serialize;

use super::before::Before;
use super::clock::now_ms;
use super::effect::Stored;
use super::ledger::Entry;
use super::refusal::Refusal;
use super::{Hands, scope};
use crate::api::{
    LaidView, LayLine, LineList, LineStart, LineView, OpenAtLine, OpenLine, ProduceChange,
    ProducedState, ProducedView, START, WorkspaceView,
};

/// Most commits that a line is asked about at once.
const CONTAINS: usize = 256;

/// How one effect on a line is told to the audit.
pub(super) struct Deed<'a> {
    pub(super) who: &'a Principal,
    pub(super) run: &'a RunId,
    pub(super) effect: &'a EffectId,
    pub(super) tool: &'a str,
    pub(super) about: String,
    pub(super) call: Digest,
    pub(super) diff: Option<Digest>,
}

impl Deed<'_> {
    pub(super) fn recorded(&self) -> Recorded {
        Recorded {
            time_ms: now_ms(),
            principal: self.who.clone(),
            run: Some(self.run.clone()),
            effect: Some(self.effect.clone()),
            tool: self.tool.to_owned(),
            about: self.about.clone(),
            call: self.call,
            // Nothing of it leaves the state directory; deliveries are judged.
            decision: Decided {
                verdict: Verdict::Allowed,
                rule: None,
                approval: None,
            },
            outcome: Ended::Done { status: None },
            receipt: None,
            diff: self.diff,
        }
    }
}

fn refused(message: impl Into<String>) -> Refusal {
    CheckoutError::Refused(message.into()).into()
}

pub(super) fn task(text: &str) -> Result<Task, Refusal> {
    let task = text.parse::<Task>();
    task.map_err(|error| Refusal::BadRequest(error.to_string()))
}

pub(super) fn message(text: &str) -> Result<(), Refusal> {
    let most = super::checkouts::MESSAGE;
    if (1..=most).contains(&text.len()) {
        return Ok(());
    }
    let problem = format!("a message has 1 to {most} bytes");
    Err(Refusal::BadRequest(problem))
}

fn commit_name(text: &str) -> Result<(), Refusal> {
    if line::is_commit_name(text) {
        return Ok(());
    }
    let problem = "a commit is named by its whole hexadecimal name";
    Err(Refusal::BadRequest(problem.to_owned()))
}

/// The digest of what is asked of a line. The epoch says who asks, and is no part of it.
pub(super) fn request_on(line: &LineName, asked: &impl Serialize) -> Result<Digest, Refusal> {
    Digest::of(Domain::Effect, &(line.as_str(), asked))
        .map_err(|error| Refusal::BadRequest(format!("the request has no digest: {error}")))
}

impl Hands {
    /// The line of that name, if its repository is below a root.
    pub(super) fn line(&self, name: &str) -> Result<Line, Refusal> {
        let none = || Refusal::NoLine(name.chars().take(80).collect());
        let parsed: LineName = name.parse().map_err(|_| none())?;
        let line = Line::find(&self.setup.state, &parsed, self.git()?)?.ok_or_else(none)?;
        if self.is_below_a_root(line.repository()) {
            Ok(line)
        } else {
            Err(none())
        }
    }

    /// The line, for an act of its own run.
    pub(super) fn line_of(&self, name: &str, run: &RunId) -> Result<Line, Refusal> {
        let line = self.line(name)?;
        if line.run() == run {
            return Ok(line);
        }
        let problem = format!("{name} is a line of another run than {run}");
        Err(Refusal::BadRequest(problem))
    }

    /// What lies about and belongs to nothing is set aside before anything is begun.
    pub(super) fn set_aside(&self) -> Result<(), Refusal> {
        if let Some(git) = &self.setup.git {
            line::quarantine(&self.setup.state, git)?;
        }
        Ok(())
    }

    /// Begins a line, or finds it again.
    pub fn open_line(&self, asked: &OpenLine) -> Result<LineView, Refusal> {
        let repository = self.directory(&asked.path)?;
        if let Some(commit) = &asked.commit {
            commit_name(commit)?;
        }
        let line = Line::begin(
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
    pub fn lines(&self) -> Result<LineList, Refusal> {
        let Ok(git) = self.git() else {
            return Ok(LineList {
                lines: Vec::new(),
                quarantined: Vec::new(),
            });
        };
        let lines = Line::list(&self.setup.state, git);
        let ours = lines
            .iter()
            .filter(|line| self.is_below_a_root(line.repository()));
        Ok(LineList {
            lines: ours.map(view).collect::<Result<_, _>>()?,
            quarantined: line::quarantined(&self.setup.state),
        })
    }

    /// One line.
    pub fn view_line(&self, name: &str) -> Result<LineView, Refusal> {
        view(&self.line(name)?)
    }

    /// Puts what was produced for a line into one file, and gives the rest of its space back.
    pub fn archive_line(&self, name: &str) -> Result<LineView, Refusal> {
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
    pub fn open_at_line(&self, name: &str, asked: &OpenAtLine) -> Result<WorkspaceView, Refusal> {
        let line = self.line(name)?;
        if asked.contains.len() > CONTAINS {
            let problem = format!("a line is asked for at most {CONTAINS} commits");
            return Err(Refusal::BadRequest(problem));
        }
        asked
            .contains
            .iter()
            .try_for_each(|commit| commit_name(commit))?;
        scope::invariants(&asked.write_scope)?;
        let with = match &asked.start {
            LineStart::Line => None,
            LineStart::Merge { commit } => {
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
        line: &Line,
        asked: &OpenAtLine,
        with: Option<&str>,
    ) -> Result<Checkout, Refusal> {
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
    fn room_for_more(&self) -> Result<(), Refusal> {
        let allowed = self.setup.max_bytes;
        let layers = self.store.make_room()?;
        let rest = allowed.saturating_sub(layers);
        let used = layers + line::space(&self.setup.state, self.git()?, rest)?;
        if used > allowed {
            return Err(WorkspaceError::Full { used, allowed }.into());
        }
        Ok(())
    }

    /// Makes a commit of what an agent changed, and keeps it.
    pub fn produce(
        &self,
        who: &Principal,
        name: &str,
        asked: &ProduceChange,
    ) -> Result<ProducedView, Refusal> {
        message(&asked.message)?;
        let task = task(&asked.task)?;
        let line = self.line_of(name, &asked.run)?;
        let id = &asked.workspace;
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let plain = ProduceChange {
            epoch: 0,
            ..asked.clone()
        };
        let call = request_on(line.name(), &plain)?;
        let entry = self.entry_of(id, &asked.effect, (&asked.run, asked.epoch), call);
        if let Stored::Result(stored) = self.known(&*room, &entry)? {
            return Ok(stored);
        }
        let checkout = self.checkout(id)?;
        let taken = checkout.take(&room.workspace())?;
        if taken.digest != asked.tree {
            let problem = "the workspace is not what was judged any more; judge it again";
            return Err(refused(problem));
        }
        if let Some(path) = unresolved(&checkout, &taken) {
            return Err(refused(format!(
                "{path} still has the markers of a conflict"
            )));
        }
        let files: Vec<String> = taken.files.iter().map(|file| file.path.clone()).collect();
        let outside = scope::outside(&room.invariants, &files);
        self.begin(&entry, &Before::Nothing, None)?;
        // Doing it again makes the same commit.
        let order = Delivery {
            branch: "",
            message: &asked.message,
            at: asked.at,
        };
        match line.keep(&task, &checkout, &taken, &order, !outside.is_empty()) {
            Ok(commit) => {
                let deed = Deed {
                    who,
                    run: &asked.run,
                    effect: &asked.effect,
                    tool: "produce_change",
                    about: format!("{} {commit} {}", asked.task, files.join(" ")),
                    call,
                    diff: Some(taken.digest),
                };
                let produced = ProducedView {
                    commit,
                    files,
                    outside,
                };
                self.store_result(&asked.effect, &produced, &deed.recorded())?;
                Ok(produced)
            }
            Err(error) => {
                self.ledger().forget(&asked.effect)?;
                Err(error.into())
            }
        }
    }

    /// Makes a workspace of the line's first commit hold what the line holds now.
    pub fn lay(&self, who: &Principal, name: &str, asked: &LayLine) -> Result<LaidView, Refusal> {
        let line = self.line_of(name, &asked.run)?;
        let id = &asked.workspace;
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let plain = LayLine {
            epoch: 0,
            ..asked.clone()
        };
        let call = request_on(line.name(), &plain)?;
        let entry = self.entry_of(id, &asked.effect, (&asked.run, asked.epoch), call);
        if let Stored::Result(stored) = self.known(&*room, &entry)? {
            return Ok(stored);
        }
        let checkout = self.checkout(id)?;
        let origin = checkout.origin();
        if origin.commit != line.base() || origin.repository != line.repository() {
            return Err(refused(format!(
                "the workspace is not one of {}, with which the line began",
                line.base()
            )));
        }
        // Cut off, it returns to the beginning; done again, it begins there too.
        self.begin(&entry, &Before::Restoring(START.to_owned()), None)?;
        let laid = || -> Result<LaidView, Refusal> {
            let commit = line.commit()?;
            let pieces = line.pieces(line.base(), &commit)?;
            room.restore(START)?;
            room.lay(&pieces)?;
            let taken = checkout.take(&room.workspace())?;
            Ok(LaidView {
                commit,
                tree: taken.digest,
                files: taken.files.into_iter().map(|file| file.path).collect(),
            })
        };
        match laid() {
            Ok(laid) => {
                let deed = Deed {
                    who,
                    run: &asked.run,
                    effect: &asked.effect,
                    tool: "lay_line",
                    about: format!("{} {}", line.name(), laid.commit),
                    call,
                    diff: Some(laid.tree),
                };
                self.store_result(&asked.effect, &laid, &deed.recorded())?;
                Ok(laid)
            }
            Err(error) => {
                room.restore(START)?;
                self.ledger().forget(&asked.effect)?;
                Err(error)
            }
        }
    }

    /// For effects on a line as a whole.
    pub(super) fn entry_on(
        &self,
        line: &Line,
        effect: &EffectId,
        (run, epoch): (&RunId, u64),
        call: Digest,
    ) -> Entry {
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

/// A file in which the markers of the conflict that the workspace began with still stand.
fn unresolved(checkout: &Checkout, taken: &Taken) -> Option<String> {
    let origin = checkout.origin();
    let (marker, other) = (
        format!("<<<<<<< {}", origin.commit),
        format!(">>>>>>> {}", origin.with.as_deref()?),
    );
    let holds = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().any(|line| line == marker || line == other)
    };
    let mut files = taken.files.iter();
    let found = files.find(|file| file.after.as_deref().is_some_and(holds))?;
    Some(found.path.clone())
}

fn view(line: &Line) -> Result<LineView, Refusal> {
    let archived = line.is_archived();
    let (commit, produced) = if archived {
        (line.base().to_owned(), Vec::new())
    } else {
        let commit = line.commit()?;
        let state = |one: line::Produced| -> Result<ProducedState, Refusal> {
            Ok(ProducedState {
                integrated: line.contains(&one.commit)?,
                task: one.task.as_str().to_owned(),
                commit: one.commit,
                outside: one.outside,
            })
        };
        let produced = line.produced()?.into_iter().map(state);
        (commit, produced.collect::<Result<_, _>>()?)
    };
    Ok(LineView {
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
