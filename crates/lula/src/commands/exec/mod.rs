//! `lula exec`: like the command itself, with a fence around it.

mod ending;
mod streams;

use std::io;
use std::path::Path;

use lula_audit::AuditEntry;
use lula_config::keys;
use lula_host::sandbox::{self, Line};
use lula_host::{HostError, record, workspaces};
use lula_protocol::{Code, IsolationTier, RunExit, SandboxReceipt};
use lula_sandbox::{
    EarlyHelper, FinishedCommand, HostToolchains, OverlayWorkspace, Sandbox, SandboxCommand,
    SandboxEngine, SandboxError, SandboxSession as Opened,
};
use lula_workspace::{
    ExcludedChanges, LayerDirectories, LayerPreference, Workspace, WorkspaceDiff, WorkspaceError,
    WorkspaceLayer,
};
use serde::Serialize;

use crate::cli::{ExecFlags, WriteMode};
use crate::commands::review;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::status::ProcessExitStatus;
use crate::term::{DIM, TextTable, WARN, paint};

use ending::{ExecCleanup, ExecRemains};
use streams::TerminalStreams;

pub(super) fn run(
    flags: &ExecFlags,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    match execute(flags, session, helper) {
        Ok(finished) => Ok(ProcessExitStatus::of_command(finished.shell_status())),
        Err(Ended::Refused(error)) => {
            let status = refusal_status(&error);
            session.screen.failure(&error.into());
            Ok(status)
        }
        Err(Ended::Failed(failure)) => Err(failure),
    }
}

/// Why there is no status of the command's own.
enum Ended {
    Refused(SandboxError),
    Failed(CommandFailure),
}

impl From<SandboxError> for Ended {
    fn from(error: SandboxError) -> Self {
        Self::Refused(error)
    }
}

impl<E: Into<CommandFailure>> From<E> for Ended
where
    E: NotRefusal,
{
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Failures around the command, as opposed to the sandbox saying no.
trait NotRefusal {}
impl NotRefusal for CommandFailure {}
impl NotRefusal for HostError {}
impl NotRefusal for io::Error {}
impl NotRefusal for WorkspaceError {}
impl NotRefusal for serde_json::Error {}

fn refusal_status(error: &SandboxError) -> ProcessExitStatus {
    match error {
        SandboxError::NotStarted { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            ProcessExitStatus::NOT_FOUND
        }
        SandboxError::NotStarted { .. } => ProcessExitStatus::NOT_EXECUTABLE,
        _ => ProcessExitStatus::REFUSED,
    }
}

fn refusal_code(error: &SandboxError) -> lula_protocol::Code {
    match error {
        SandboxError::NotStarted { .. } => lula_protocol::Code::CommandNotStarted,
        _ => lula_protocol::Code::SandboxRefused,
    }
}

fn execute(
    flags: &ExecFlags,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<FinishedCommand, Ended> {
    let home = std::env::var_os("HOME");
    let workspace = sandbox::workspace(flags.workspace.as_deref(), home.as_deref().map(Path::new))?;
    if flags.on.is_some() && flags.write != WriteMode::Review {
        let message = "--on goes on in a workspace, which only --write review has";
        let failure = CommandFailure::new(Code::BadCommandLine, RunExit::Usage, message);
        return Err(failure.remedy("leave one of the two out").into());
    }
    let ending = ExecCleanup::new(record::begin(&session.host)?);
    let (ran, left) = match fenced(flags, session, &workspace, helper, &ending) {
        Ok((ran, left)) => (ran, Some(left)),
        Err(never) => (Err(never), None),
    };
    let over = ending.carry_out(|| entry(flags, &workspace, &ran), left);
    let told = ran.and_then(|finished| {
        let closed = over.closed?;
        report(flags, session, &finished)?;
        tell(session, &finished, closed.as_ref())?;
        Ok(finished)
    });
    // Last: taking its helper apart keeps a processor busy.
    if let Some(engine) = over.engine {
        engine.leave();
    }
    over.recorded?;
    told
}

/// How a command ended, and what there is then.
type Run = (Result<FinishedCommand, Ended>, (ExecRemains, SandboxEngine));

/// Runs the command in its sandbox, on the directory or on a layer over it.
fn fenced(
    flags: &ExecFlags,
    session: &CliSession,
    workspace: &Path,
    helper: Option<EarlyHelper>,
    ending: &ExecCleanup,
) -> Result<Run, Ended> {
    let mut policy = match &flags.policy {
        Some(file) => sandbox::policy_file(&session.host, file, workspace)?,
        None => sandbox::policy(&session.host, flags.profile),
    };
    if let Some(tier) = flags.tier {
        // A tier below the floor of the profile is the person's explicit choice.
        policy.min_tier = policy.min_tier.min(tier);
        if tier == IsolationTier::Process {
            policy.required_layers.clear();
            session
                .screen
                .warn("the process tier is no boundary: the command can do what you can");
        }
    }
    let engine = SandboxEngine::start_early(helper)?;
    let toolchains = toolchains(session, workspace);
    let mut sandbox = Sandbox::new(policy, workspace).toolchains(toolchains);
    if let Some(tier) = flags.tier {
        sandbox = sandbox.tier(tier);
    }
    if flags.explain {
        sandbox = sandbox.watch_paths();
    }
    engine.expect(&mut sandbox);
    if flags.write == WriteMode::Review {
        return reviewed(flags, session, engine, &sandbox, workspace, ending);
    }
    if flags.write == WriteMode::None {
        sandbox = sandbox.read_only_workspace();
    }
    let command = command(flags, workspace, workspace);
    let (ran, opened) = attend(session, &engine, &sandbox, command, || ending.rehearse());
    let left = ExecRemains {
        opened,
        layer: None,
        workspace: None,
        git: String::new(),
    };
    Ok((ran, (left, engine)))
}

/// Runs the command in a workspace of its own.
fn reviewed(
    flags: &ExecFlags,
    session: &CliSession,
    engine: SandboxEngine,
    sandbox: &Sandbox,
    base: &Path,
    ending: &ExecCleanup,
) -> Result<Run, Ended> {
    let mut workspace = workspace(flags, session, base)?;
    let meanwhile = || ending.rehearse();
    let ((mut ran, mut opened), mut layer) =
        held(flags, session, &engine, sandbox, &workspace, meanwhile)?;
    if let Err(Ended::Refused(error)) = &ran
        && flags.on.is_none()
        && may_be_the_overlay(error, &workspace)
    {
        drop((opened, layer));
        workspace.fall_back_to_copy(&error.to_string())?;
        ((ran, opened), layer) = held(flags, session, &engine, sandbox, &workspace, || ())?;
    }
    let left = ExecRemains {
        opened,
        layer: Some(layer),
        workspace: Some(workspace),
        git: session.host.config.get(&keys::GIT_PROGRAM),
    };
    Ok((ran, (left, engine)))
}

/// Tells what the command would change, and everything else where a document is wanted.
fn tell(
    session: &CliSession,
    finished: &FinishedCommand,
    changes: Option<&(Workspace, WorkspaceDiff, ExcludedChanges)>,
) -> Result<(), CommandFailure> {
    let held = changes.filter(|(_, diff, _)| !diff.is_empty());
    if session.screen.is_json() {
        let held = held.map(|(workspace, diff, aside)| {
            workspaces::HeldWorkspaceView::new(workspace, diff, aside)
        });
        session.screen.document(&Document::new(finished, held))?;
    } else if let Some((workspace, diff, aside)) = held {
        review::announce(session, workspace, diff, aside);
    } else if let Some((_, _, aside)) = changes.filter(|(_, _, aside)| aside.files() > 0) {
        let told = review::left_aside(aside);
        let told = format!("{told} and not kept; --write direct keeps them");
        session.screen.note(&paint(DIM, told));
    }
    Ok(())
}

/// A new one, or the one that was named.
fn workspace(flags: &ExecFlags, session: &CliSession, base: &Path) -> Result<Workspace, Ended> {
    let store = review::store(session)?;
    if let Some(id) = &flags.on {
        return Ok(workspaces::open(&store, Some(id))?);
    }
    let wanted = match flags.tier {
        Some(tier @ (IsolationTier::Landlock | IsolationTier::Process)) => {
            LayerPreference::Copy(format!("the tier `{tier}` has no overlay"))
        }
        _ => LayerPreference::Overlay,
    };
    let words = flags.command.iter().map(|word| word.to_string_lossy());
    let title = words.collect::<Vec<_>>().join(" ");
    Ok(store.create(base, wanted, &title)?)
}

/// Runs the command on the layer of a workspace.
fn held(
    flags: &ExecFlags,
    session: &CliSession,
    engine: &SandboxEngine,
    sandbox: &Sandbox,
    workspace: &Workspace,
    meanwhile: impl FnOnce(),
) -> Result<(Attended, WorkspaceLayer), Ended> {
    let layer = workspace.layer()?;
    let mut sandbox = sandbox.clone();
    // A workspace that was named may be another directory's.
    let base = workspace.record().base();
    if flags.on.is_some() {
        sandbox = sandbox.toolchains(toolchains(session, &base));
    }
    let sandbox = match &layer.place {
        // Changes that are kept are flushed when they are known.
        LayerDirectories::Overlay { lower, upper, work } => {
            sandbox.unflushed_layer().laid_over(OverlayWorkspace {
                lowers: vec![lower.clone()],
                upper: upper.clone(),
                work: work.clone(),
            })
        }
        LayerDirectories::Copy { directory } => sandbox.on(directory).owned_workspace(),
    };
    let command = command(flags, &base, layer.place.shown())
        // Looking at a repository does not have to change its index.
        .variable("GIT_OPTIONAL_LOCKS", "0");
    let store = review::store(session)?;
    let meanwhile = move || {
        meanwhile();
        store.tidy_spares();
        if store.trash_is_full() {
            // Ends with this process, wherever it is: what it leaves is found by the next.
            std::thread::spawn(move || store.empty_trash());
        }
    };
    Ok((attend(session, engine, &sandbox, command, meanwhile), layer))
}

/// Whether a copy might do where this was refused.
fn may_be_the_overlay(error: &SandboxError, workspace: &Workspace) -> bool {
    let overlay = workspace.record().backend == lula_workspace::LayerBackend::Overlay;
    overlay
        && matches!(
            error,
            SandboxError::OverlayNeedsNamespaces { .. } | SandboxError::Setup { .. }
        )
}

/// How the command ended, and the sandbox it was in.
type Attended = (Result<FinishedCommand, Ended>, Option<Opened>);

/// Runs the command, connected with our own streams unless they are for a document. `meanwhile` is
/// done while its sandbox is being built.
fn attend(
    session: &CliSession,
    engine: &SandboxEngine,
    sandbox: &Sandbox,
    command: SandboxCommand,
    meanwhile: impl FnOnce(),
) -> Attended {
    let screen = &session.screen;
    let streams = if screen.is_json() {
        Ok((None, command))
    } else {
        TerminalStreams::connect(command).map(|(streams, command)| (Some(streams), command))
    };
    let (streams, command) = match streams {
        Ok(connected) => connected,
        Err(error) => return (Err(error.into()), None),
    };
    let started = engine.start_alone_with(sandbox, &command, meanwhile);
    match started {
        Ok((opened, process)) => {
            screen.detail(&format!("{} tier", opened.tier()));
            let ended = match streams {
                Some(streams) => streams.pass_through(&process),
                None => process.wait().map_err(Ended::from),
            };
            (ended, Some(opened))
        }
        Err(error) => (Err(error.into()), None),
    }
}

/// Writes the receipt where it was asked for, and says what stood around the command.
fn report(
    flags: &ExecFlags,
    session: &CliSession,
    finished: &FinishedCommand,
) -> Result<(), CommandFailure> {
    if let Some(path) = &flags.receipt {
        write_receipt(path, &finished.receipt)?;
    }
    let screen = &session.screen;
    if screen.is_verbose() {
        screen.detail(posture(&finished.receipt).render(2).trim_end());
    } else if flags.explain {
        for line in sandbox::denials(&finished.receipt) {
            screen.note(&line);
        }
    }
    Ok(())
}

/// A receipt for people.
fn posture(receipt: &SandboxReceipt) -> TextTable {
    let mut table = TextTable::default();
    for line in sandbox::posture(receipt) {
        match line {
            Line::Fact(name, text) => table.row([name, text]),
            Line::Warning(name, text) => table.row([paint(WARN, name), text]),
            Line::Aside(name, text) => table.row([paint(DIM, name), paint(DIM, text)]),
        }
    }
    table
}

/// What was run and how it ended, as it is written down.
fn entry(
    flags: &ExecFlags,
    workspace: &Path,
    ended: &Result<FinishedCommand, Ended>,
) -> Result<AuditEntry, CommandFailure> {
    let argv: Vec<_> = flags
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let outcome = match ended {
        Ok(finished) => lula_audit::AuditEnding::Done {
            status: Some(finished.shell_status()),
        },
        Err(Ended::Refused(error)) => lula_audit::AuditEnding::Failed {
            code: refusal_code(error).as_str().to_owned(),
        },
        Err(Ended::Failed(failure)) => lula_audit::AuditEnding::Failed {
            code: failure.code.as_str().to_owned(),
        },
    };
    let call = serde_json::json!({
        "argv": argv,
        "workspace": workspace.to_string_lossy(),
        "write": format!("{:?}", flags.write).to_lowercase(),
    });
    let act = record::OperatorAct {
        tool: "exec",
        about: lula_gate::redact::redact_words(&argv).join(" "),
        call: &call,
        outcome,
        receipt: ended.as_ref().ok().map(|finished| &finished.receipt),
        diff: None,
    };
    Ok(record::entry(act)?)
}

/// What the project's commands need, wherever in it the person is.
fn toolchains(session: &CliSession, top: &Path) -> HostToolchains {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let folder = here.ok().filter(|here| here.starts_with(top));
    let found = HostToolchains::for_project(top, folder.as_deref().unwrap_or(top));
    let broken = found.virtualenv().and_then(|one| one.broken.as_ref());
    if let Some(why) = broken {
        let message = format!("the project's virtual environment is broken: {why}");
        session.screen.warn(&message);
    }
    found
}

/// `base` is the directory of the person, `shown` the one that the command has in its place.
fn command(flags: &ExecFlags, base: &Path, shown: &Path) -> SandboxCommand {
    let mut words = flags.command.iter();
    let program = words.next().cloned().unwrap_or_default();
    let mut command = SandboxCommand::new(program).arguments(words);
    // Start where the person is, if that is inside the workspace.
    if let Ok(here) = std::env::current_dir().and_then(|here| here.canonicalize())
        && let Ok(below) = here.strip_prefix(base)
    {
        command = command.directory(shown.join(below));
    }
    if let Some(timeout) = flags.timeout {
        command = command.timeout(timeout);
    }
    command
}

fn write_receipt(path: &Path, receipt: &SandboxReceipt) -> Result<(), CommandFailure> {
    let mut text = serde_json::to_string_pretty(receipt)?;
    text.push('\n');
    std::fs::write(path, text).map_err(|error| {
        let message = format!("cannot write the receipt to {}: {error}", path.display());
        CommandFailure::new(Code::FileAccess, RunExit::Environment, message)
            .remedy("name a file that you can write")
    })
}

#[derive(Serialize)]
struct Document<'a> {
    status: u8,
    stdout: String,
    stdout_dropped_bytes: u64,
    stderr: String,
    stderr_dropped_bytes: u64,
    receipt: &'a SandboxReceipt,
    /// What it changed, where that waits for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<workspaces::HeldWorkspaceView<'a>>,
}

impl<'a> Document<'a> {
    fn new(finished: &'a FinishedCommand, held: Option<workspaces::HeldWorkspaceView<'a>>) -> Self {
        Self {
            status: finished.shell_status(),
            stdout: finished.stdout.text(),
            stdout_dropped_bytes: finished.stdout.dropped(),
            stderr: finished.stderr.text(),
            stderr_dropped_bytes: finished.stderr.dropped(),
            receipt: &finished.receipt,
            held,
        }
    }
}
