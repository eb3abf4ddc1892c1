//! The end of a command: what was run is written down while what it left is cleared away. Neither needs
//! the other, and both wait for the disk.

use std::cell::OnceCell;
use std::sync::mpsc::{self, Receiver, SendError, Sender};
use std::thread;

use lula_audit::{AuditEntry, AuditLog};
use lula_host::{record, workspaces};
use lula_protocol::{Code, RunExit};
use lula_sandbox::{SandboxEngine, SandboxSession as Opened};
use lula_workspace::{ExcludedChanges, Workspace, WorkspaceDiff, WorkspaceLayer};

use super::Ended;
use crate::failure::CommandFailure;

/// The workspace, what was changed in it and is to be reviewed, and what is left aside, where there is
/// one.
pub(super) type ReviewableChanges = Option<(Workspace, WorkspaceDiff, ExcludedChanges)>;

/// What is there when a command has ended, beside the engine.
pub(super) struct ExecRemains {
    /// The sandbox, where one stood: empty, and about to go.
    pub(super) opened: Option<Opened>,
    /// No other process gets the layer while the sandbox stands.
    pub(super) layer: Option<WorkspaceLayer>,
    /// Where its changes went, if not to the directory itself.
    pub(super) workspace: Option<Workspace>,
    /// The git of the configuration, where it names one.
    pub(super) git: String,
}

impl ExecRemains {
    /// Lets go of everything; tells what the command would change.
    fn clear_away(self, engine: &SandboxEngine) -> Result<ReviewableChanges, Ended> {
        // Whatever the command left running ends here, before its changes are looked at.
        drop(self.opened);
        drop(self.layer);
        engine.hand_over();
        // Also after a failure: a command that never ran left nothing, one that was cut off may have.
        let Some(workspace) = self.workspace else {
            return Ok(None);
        };
        let (workspace, mut diff, aside) = workspace.close_leaving(|workspace, diff| {
            workspace.aside(diff, || workspaces::find_git(&self.git))
        })?;
        diff.changes.retain(|change| !aside.contains(&change.path));
        Ok(Some((workspace, diff, aside)))
    }
}

/// What came of the end.
pub(super) struct ExecResult {
    pub(super) recorded: Result<(), CommandFailure>,
    pub(super) closed: Result<ReviewableChanges, Ended>,
    pub(super) engine: Option<SandboxEngine>,
}

/// What the end of a command needs.
pub(super) struct ExecCleanup {
    log: Option<AuditLog>,
    cleaner: OnceCell<Cleaner>,
}

impl ExecCleanup {
    pub(super) fn new(log: Option<AuditLog>) -> Self {
        Self {
            log,
            cleaner: OnceCell::new(),
        }
    }

    /// Gets ready, for a moment in which there is something to wait for anyway.
    pub(super) fn rehearse(&self) {
        if let Some(log) = &self.log {
            log.rehearse();
        }
        if let Some(cleaner) = Cleaner::begin() {
            let _ = self.cleaner.set(cleaner);
        }
    }

    /// Writes the entry down and clears away.
    pub(super) fn carry_out(
        self,
        entry: impl FnOnce() -> Result<AuditEntry, CommandFailure>,
        left: Option<(ExecRemains, SandboxEngine)>,
    ) -> ExecResult {
        let Self { mut log, cleaner } = self;
        let record = || match &mut log {
            Some(log) => Ok(record::append(log, entry()?)?),
            None => Ok(()),
        };
        let Some((left, engine)) = left else {
            return ExecResult {
                recorded: record(),
                closed: Ok(None),
                engine: None,
            };
        };
        let (recorded, closed) = if let Some(cleaner) = cleaner.into_inner() {
            let cleared = cleaner.give(left, engine.clone());
            (record(), cleared())
        } else {
            (record(), left.clear_away(&engine))
        };
        ExecResult {
            recorded,
            closed,
            engine: Some(engine),
        }
    }
}

/// A thread that clears away, begun before there is anything: the thread that begins it then waits for that.
struct Cleaner {
    to: Sender<(ExecRemains, SandboxEngine)>,
    cleared: Receiver<Result<ReviewableChanges, Ended>>,
}

impl Cleaner {
    fn begin() -> Option<Self> {
        let (to, given) = mpsc::channel::<(ExecRemains, SandboxEngine)>();
        let (tell, cleared) = mpsc::channel();
        let work = move || {
            if let Ok((left, engine)) = given.recv() {
                // Told, not returned: the end of a thread is more to wait for than that of its work.
                let _ = tell.send(left.clear_away(&engine));
            }
        };
        let thread = thread::Builder::new().name("clear away".to_owned());
        thread.spawn(work).ok()?;
        Some(Self { to, cleared })
    }

    /// Has it begin; what is returned waits for it.
    fn give(
        self,
        left: ExecRemains,
        engine: SandboxEngine,
    ) -> impl FnOnce() -> Result<ReviewableChanges, Ended> {
        let Self { to, cleared } = self;
        let refused = to.send((left, engine));
        move || match refused {
            Ok(()) => cleared.recv().unwrap_or_else(|_| Err(cut_off())),
            Err(SendError((left, engine))) => left.clear_away(&engine),
        }
    }
}

/// The thread is gone before it told how it went: it panicked.
fn cut_off() -> Ended {
    let message = "what the command left could not be cleared away";
    Ended::Failed(CommandFailure::new(
        Code::Internal,
        RunExit::Environment,
        message,
    ))
}
