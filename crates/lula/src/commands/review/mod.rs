//! Deciding about changes that wait in workspaces: `lula diff`, `commit`, `discard`, `undo`, `redo`
//! and `workspaces`.

mod commit;
mod diff;
mod discard;
pub(crate) mod flags;
mod lines;
mod list;
mod secrets;
mod undo;

use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_protocol::{Code, Exit};
use lula_workspace::{
    Aside, Backend, Change, Diff, Git, HeldBack, Record, RelPath, State, Store, Workspace,
    WorkspaceError,
};
use serde::Serialize;

use crate::failure::Failure;
use crate::sandboxed;
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, STRONG, Table, WARN, paint, visible};

pub(super) use commit::run as commit;
pub(super) use diff::run as diff;
pub(super) use discard::run as discard;
pub(super) use lines::{archive, lines};
pub(super) use list::run as list;
pub(super) use undo::{redo, undo};

/// So many changes are listed after a command; all of them by `lula diff --stat`.
const LISTED: usize = 12;

/// So many changes are looked at for secrets before they are listed; `lula commit` looks at all.
const LOOKED_AT: usize = 200;

/// This person's workspaces.
pub(crate) fn store(session: &Session) -> Result<Store, Failure> {
    let most = session.config.get(&keys::WORKSPACE_MAX_BYTES);
    Ok(Store::at(&session.state_directory()?, most))
}

/// The directory that workspaces made here belong to.
fn base() -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME");
    sandboxed::workspace(None, home.as_deref().map(Path::new))
}

/// The workspace of that id, or the latest of this directory that waits.
pub(crate) fn open(store: &Store, id: Option<&str>) -> Result<Workspace, Failure> {
    let id = match id.filter(|given| *given != "last") {
        Some(given) => store.find(given)?,
        None => latest(store, &base()?)?.id,
    };
    Ok(store.open(&id)?)
}

fn latest(store: &Store, base: &Path) -> Result<Record, Failure> {
    let waits = |record: &Record| record.state == State::Pending && record.base() == base;
    store.list()?.into_iter().find(waits).ok_or_else(|| {
        let message = format!("no changes wait for a decision in {}", base.display());
        Failure::new(Code::NoSuchWorkspace, Exit::Usage, message)
            .remedy("`lula workspaces` lists all there are; name one by its id")
    })
}

/// Paths as given on the command line, relative to where the person is, made relative to the top.
fn inside(record: &Record, given: &[String]) -> Result<Vec<RelPath>, Failure> {
    let base = record.base();
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let below = here
        .ok()
        .and_then(|here| here.strip_prefix(&base).map(Path::to_owned).ok());
    let inside = |given: &String| {
        let path = Path::new(given);
        let path = match path.strip_prefix(&base) {
            Ok(path) => path.to_owned(),
            Err(_) => below.as_deref().unwrap_or(Path::new("")).join(path),
        };
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => drop(plain.pop()),
                std::path::Component::CurDir => {}
                part => plain.push(part),
            }
        }
        RelPath::from_path(&plain).map_err(|error| Failure::from(WorkspaceError::from(error)))
    };
    given.iter().map(inside).collect()
}

/// What a command left in a workspace, for scripts.
#[derive(Serialize)]
pub(crate) struct Held<'a> {
    pub(crate) workspace: &'a str,
    pub(crate) base: String,
    pub(crate) backend: &'a Backend,
    #[serde(flatten)]
    pub(crate) diff: &'a Diff,
    /// Files that git ignores: they are not listed.
    pub(crate) left_aside: usize,
}

impl<'a> Held<'a> {
    pub(crate) fn new(workspace: &'a Workspace, diff: &'a Diff, aside: &Aside) -> Self {
        Self {
            workspace: workspace.id().as_str(),
            base: workspace.record().base().display().to_string(),
            backend: &workspace.record().backend,
            diff,
            left_aside: aside.files(),
        }
    }
}

/// After a command: how much waits, where, and what deserves a second look.
pub(crate) fn announce(session: &Session, workspace: &Workspace, diff: &Diff, aside: &Aside) {
    let screen = &session.screen;
    let count = diff.changes.len();
    let how = match &workspace.record().backend {
        Backend::Overlay => String::new(),
        Backend::Copy { why } => format!(", in a copy because {why}"),
    };
    let changes = if count == 1 {
        "1 change waits".to_owned()
    } else {
        format!("{count} changes wait")
    };
    let head = format!("{changes} for your review in {}{how}", workspace.id());
    screen.note(&paint(STRONG, head));
    let mut listed: Vec<&Change> = diff.changes.iter().collect();
    let looked = diff.changes.iter().take(LOOKED_AT);
    let secret: Vec<_> = looked
        .filter(|change| !secrets::added(workspace, change).is_empty())
        .map(|change| &change.path)
        .collect();
    // What deserves a second look must not be what is cut off.
    listed.sort_by_key(|change| {
        (
            !change.conflict,
            change.risks.is_empty() && !secret.contains(&&change.path),
            is_directory(change),
        )
    });
    screen.note(
        table(workspace, listed.iter().take(LISTED).copied())
            .render(2)
            .trim_end(),
    );
    if count > LISTED {
        screen.note(&format!(
            "  … and {} more: lula diff --stat",
            count - LISTED
        ));
    }
    if aside.files() > 0 {
        screen.note(&format!("  {}: lula diff --all", left_aside(aside)));
    }
    screen.note(&paint(
        DIM,
        "look: lula diff   take: lula commit   drop: lula discard",
    ));
}

fn is_directory(change: &Change) -> bool {
    let node = change.new.as_ref().or(change.old.as_ref());
    node.is_some_and(|node| node.kind == lula_workspace::Kind::Directory)
}

/// Changes, one to a line.
fn table<'a>(workspace: &Workspace, changes: impl Iterator<Item = &'a Change>) -> Table {
    let mut table = Table::default();
    for change in changes {
        let letter = change.what.letter();
        let style = match letter {
            'A' => GOOD,
            'D' => BAD,
            _ => STRONG,
        };
        let slash = if is_directory(change) { "/" } else { "" };
        let path = format!("{}{slash}", visible(&change.path.to_string()));
        table.row([paint(style, letter), path, notes(workspace, change)]);
    }
    table
}

/// What is to be said about a change beside where it is.
fn notes(workspace: &Workspace, change: &Change) -> String {
    let mut notes = Vec::new();
    if change.conflict {
        notes.push(paint(BAD, "conflict: changed by you too"));
    }
    match change.held_back {
        Some(HeldBack::Special | HeldBack::Unreadable) => notes.push(paint(BAD, "never committed")),
        Some(HeldBack::GitInternals) => notes.push(paint(WARN, "needs --allow-git")),
        None => {}
    }
    notes.extend(change.risks.iter().map(|risk| paint(WARN, risk.label())));
    if let [kind, ..] = secrets::added(workspace, change)[..] {
        notes.push(paint(BAD, format!("adds a secret ({kind})")));
    }
    if change.new.as_ref().is_some_and(|node| node.binary) {
        notes.push(paint(DIM, "binary"));
    }
    notes.join(", ")
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        let exit = match error.code() {
            Code::NoSuchWorkspace => Exit::Usage,
            Code::HeldBack => Exit::WaitingForApproval,
            Code::WorkspaceConflict | Code::ChangedSinceReview => Exit::Failed,
            _ => Exit::Environment,
        };
        Self::new(error.code(), exit, error.to_string()).remedy(error.remedy())
    }
}

/// Changes that are not reviewed, as build output is.
pub(crate) fn aside(session: &Session, workspace: &Workspace, diff: &Diff) -> Aside {
    workspace.aside(diff, || find_git(&session.config.get(&keys::GIT_PROGRAM)))
}

/// Git, which is asked what it tracks. Where there is none, nothing that it may track is left aside.
pub(crate) fn find_git(configured: &str) -> Option<Git> {
    Git::find(configured, std::env::var_os("PATH").as_deref()).ok()
}

/// How many of them there are, in words.
pub(crate) fn left_aside(aside: &Aside) -> String {
    match aside.files() {
        1 => "1 ignored file left aside".to_owned(),
        many => format!("{many} ignored files left aside"),
    }
}

/// So many changes, in words.
fn changes(count: impl std::fmt::Display) -> String {
    match count.to_string().as_str() {
        "1" => "1 change".to_owned(),
        many => format!("{many} changes"),
    }
}
