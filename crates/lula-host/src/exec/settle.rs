//! The end of a command: what was run is written down while what it left is cleared away. Neither needs
//! the other, and both wait for the disk.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SendError, Sender};
use std::thread;

use lula_audit::{AuditEnding, AuditEntry, AuditLog};
use lula_gate::redact::redact_words;
use lula_protocol::SandboxReceipt;
use lula_sandbox::{FinishedCommand, SandboxEngine, SandboxSession};
use lula_workspace::{ExcludedChanges, Workspace, WorkspaceDiff, WorkspaceLayer};
use serde::Serialize;

use super::{ExecError, ExecInvocation};
use crate::error::HostError;
use crate::workspaces::HeldWorkspaceView;
use crate::{record, workspaces};

/// The workspace, what was changed in it and is to be reviewed, and what is left aside, where there is
/// one.
pub type ReviewableChanges = Option<(Workspace, WorkspaceDiff, ExcludedChanges)>;

/// How a command ended, what it left, and the engine.
pub(super) type FinishedExec = (
    Result<FinishedCommand, ExecError>,
    ExecRemains,
    SandboxEngine,
);

/// What is there when a command has ended, beside the engine.
pub(super) struct ExecRemains {
    /// The sandbox, where one stood: empty, and about to go.
    pub(super) session: Option<SandboxSession>,
    /// No other process gets the layer while the sandbox stands.
    pub(super) layer: Option<WorkspaceLayer>,
    /// Where its changes went, if not to the directory itself.
    pub(super) workspace: Option<Workspace>,
    /// The git of the configuration, where it names one.
    pub(super) git: String,
}

impl ExecRemains {
    /// Lets go of everything; tells what the command would change.
    fn clear_away(self, engine: &SandboxEngine) -> Result<ReviewableChanges, ExecError> {
        // Whatever the command left running ends here, before its changes are looked at.
        drop(self.session);
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

/// A command that is over, with everything it left in order.
pub struct SettledExec {
    pub ran: Result<FinishedCommand, ExecError>,
    /// What it would change.
    pub changes: Result<ReviewableChanges, ExecError>,
    /// Whether it is on record.
    pub recorded: Result<(), HostError>,
    /// To be let go of last: taking its helper apart keeps a processor busy.
    pub engine: Option<SandboxEngine>,
}

/// A command that ended, for programs.
#[derive(Debug, Serialize)]
pub struct ExecReport<'a> {
    status: u8,
    stdout: String,
    stdout_dropped_bytes: u64,
    stderr: String,
    stderr_dropped_bytes: u64,
    receipt: &'a SandboxReceipt,
    /// What it changed, where that waits for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<HeldWorkspaceView<'a>>,
}

impl<'a> ExecReport<'a> {
    /// Of a command, with what it would change.
    pub fn new(finished: &'a FinishedCommand, changes: &'a ReviewableChanges) -> Self {
        let held = changes.as_ref().filter(|(_, diff, _)| !diff.is_empty());
        Self {
            status: finished.shell_status(),
            stdout: finished.stdout.text(),
            stdout_dropped_bytes: finished.stdout.dropped(),
            stderr: finished.stderr.text(),
            stderr_dropped_bytes: finished.stderr.dropped(),
            receipt: &finished.receipt,
            held: held
                .map(|(workspace, diff, aside)| HeldWorkspaceView::new(workspace, diff, aside)),
        }
    }
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
    pub(super) fn settle(
        self,
        request: &ExecInvocation<'_>,
        base: &Path,
        finished: Result<FinishedExec, ExecError>,
    ) -> SettledExec {
        let Self { mut log, cleaner } = self;
        let mut record = |ran: &Result<FinishedCommand, ExecError>| match &mut log {
            Some(log) => record::append(log, entry(request, base, ran)?),
            None => Ok(()),
        };
        let (ran, remains, engine) = match finished {
            Ok(finished) => finished,
            Err(error) => {
                let ran = Err(error);
                return SettledExec {
                    recorded: record(&ran),
                    ran,
                    changes: Ok(None),
                    engine: None,
                };
            }
        };
        let (recorded, changes) = if let Some(cleaner) = cleaner.into_inner() {
            let cleared = cleaner.give(remains, engine.clone());
            (record(&ran), cleared())
        } else {
            (record(&ran), remains.clear_away(&engine))
        };
        SettledExec {
            ran,
            changes,
            recorded,
            engine: Some(engine),
        }
    }
}

/// What was run and how it ended, as it is written down.
fn entry(
    request: &ExecInvocation<'_>,
    base: &Path,
    ran: &Result<FinishedCommand, ExecError>,
) -> Result<AuditEntry, HostError> {
    let words = request.command.iter();
    let argv: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let outcome = match ran {
        Ok(finished) => AuditEnding::Done {
            status: Some(finished.shell_status()),
        },
        Err(error) => AuditEnding::Failed {
            code: error.code().as_str().to_owned(),
        },
    };
    let call = serde_json::json!({
        "argv": argv,
        "workspace": base.to_string_lossy(),
        "write": request.write.name(),
    });
    record::entry(record::OperatorAct {
        tool: "exec",
        about: redact_words(&argv).join(" "),
        call: &call,
        outcome,
        receipt: ran.as_ref().ok().map(|finished| &finished.receipt),
        diff: None,
    })
}

/// A thread that clears away, begun before there is anything: the thread that begins it then waits for that.
struct Cleaner {
    to: Sender<(ExecRemains, SandboxEngine)>,
    cleared: Receiver<Result<ReviewableChanges, ExecError>>,
}

impl Cleaner {
    fn begin() -> Option<Self> {
        let (to, given) = mpsc::channel::<(ExecRemains, SandboxEngine)>();
        let (tell, cleared) = mpsc::channel();
        let work = move || {
            if let Ok((remains, engine)) = given.recv() {
                // Told, not returned: the end of a thread is more to wait for than that of its work.
                let _ = tell.send(remains.clear_away(&engine));
            }
        };
        let thread = thread::Builder::new().name("clear away".to_owned());
        thread.spawn(work).ok()?;
        Some(Self { to, cleared })
    }

    /// Has it begin; what is returned waits for it.
    fn give(
        self,
        remains: ExecRemains,
        engine: SandboxEngine,
    ) -> impl FnOnce() -> Result<ReviewableChanges, ExecError> {
        let Self { to, cleared } = self;
        let refused = to.send((remains, engine));
        move || match refused {
            Ok(()) => cleared.recv().unwrap_or_else(|_| Err(cut_off())),
            Err(SendError((remains, engine))) => remains.clear_away(&engine),
        }
    }
}

/// The thread is gone before it told how it went: it panicked.
fn cut_off() -> ExecError {
    let message = "what the command left could not be cleared away";
    ExecError::Failed(HostError::Internal(message.to_owned()))
}
