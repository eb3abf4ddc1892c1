//! `lula repair`: failing tests made to pass by search, with no model.

use std::path::Path;
use std::time::Duration;

use lula_protocol::{Code, Digest, Exit, Receipt};
use lula_repair::{
    Patch, Progress, RepairError, RepairOutcome, RepairReport, RepairTask, TestsWanted,
};
use lula_sandbox::policy::Profile;
use lula_workspace::Project;
use serde::Serialize;

use super::folder;
use crate::cli::RepairFlags;
use crate::failure::Failure;
use crate::ground::SandboxedGround;
use crate::record;
use crate::runs::environment;
use crate::sandboxed;
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, WARN, paint, visible};

/// What a repair found, and what stood around it.
#[derive(Serialize)]
pub(super) struct Repaired {
    #[serde(flatten)]
    pub(super) report: RepairReport,
    pub(super) receipt: Option<Receipt>,
}

pub(super) fn run(flags: &RepairFlags, session: &Session) -> Result<Exit, Failure> {
    let home = std::env::var_os("HOME");
    let workspace =
        sandboxed::workspace(flags.workspace.as_deref(), home.as_deref().map(Path::new))?;
    let task = RepairTask {
        tests: TestsWanted {
            command: flags.tests.clone(),
            folder: around(flags, &workspace),
        },
        budget: flags.budget.unwrap_or(Duration::from_mins(2)),
        all: flags.all,
        lanes: lanes(),
        ..RepairTask::default()
    };
    let mut log = record::begin(session)?;
    let searched = search(&workspace, &task, session);
    record(flags, &workspace, log.as_mut(), &searched)?;
    let repaired = searched?;
    if session.screen.is_json() {
        session.screen.document(&repaired)?;
    } else {
        tell(&repaired.report, flags.all, session)?;
    }
    Ok(exit_of(&repaired.report))
}

/// The folder of the repository that the command was started in, where that is a project of its own.
fn around(flags: &RepairFlags, top: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    match (&flags.workspace, here) {
        (None, Ok(here)) => folder::meant(top, &here, false),
        // A directory that is named is all there is.
        _ => String::new(),
    }
}

fn exit_of(report: &RepairReport) -> Exit {
    match report.outcome {
        RepairOutcome::Fixed | RepairOutcome::NothingFailing => Exit::Verified,
        RepairOutcome::NotFound if report.effort.exhausted => Exit::Failed,
        RepairOutcome::NotFound => Exit::Budget,
    }
}

/// Writes down what was searched, how it ended and which patch was printed.
fn record(
    flags: &RepairFlags,
    workspace: &Path,
    log: Option<&mut lula_audit::Log>,
    searched: &Result<Repaired, Failure>,
) -> Result<(), Failure> {
    let outcome = match searched {
        Ok(repaired) => lula_audit::Ended::Done {
            status: Some(exit_of(&repaired.report).status()),
        },
        Err(failure) => lula_audit::Ended::Failed {
            code: failure.code.as_str().to_owned(),
        },
    };
    let repaired = searched.as_ref().ok();
    let patch = repaired.and_then(|repaired| repaired.report.patches.first());
    let tests = repaired.map(|repaired| repaired.report.command.as_slice());
    let call = serde_json::json!({
        "workspace": workspace.to_string_lossy(),
        "tests": flags.tests,
        "all": flags.all,
    });
    let act = record::Act {
        tool: "repair",
        about: lula_gate::redact::redact_words(tests.unwrap_or_default()).join(" "),
        call: &call,
        outcome,
        receipt: repaired.and_then(|repaired| repaired.receipt.as_ref()),
        diff: patch.map(|patch| Digest::of_bytes(patch.diff.as_bytes())),
    };
    record::act(log, act)
}

fn lanes() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Searches in forks of a directory, with progress.
pub(super) fn search(
    workspace: &Path,
    task: &RepairTask,
    session: &Session,
) -> Result<Repaired, Failure> {
    let forks = session.state_directory()?.join("forks");
    lula_workspace::fork::sweep(&forks);
    let project = Project::at(workspace)?.in_layers(forks);
    let ground = SandboxedGround::new(project, sandboxed::policy(session, Profile::Build))?;
    let live = session.screen.live("looking at the project");
    let report = lula_repair::repair(&ground, task, &|progress| live.say(&spoken(&progress)));
    drop(live);
    Ok(Repaired {
        report: report?,
        receipt: ground.last_receipt(),
    })
}

pub(super) fn spoken(progress: &Progress) -> String {
    match progress {
        Progress::RunningTests { command } => format!("running the tests: {command}"),
        Progress::Failing { failing, passing } => {
            format!("{failing} tests fail, {passing} pass: looking for the place")
        }
        Progress::Searching { candidates } => format!("{candidates} candidates"),
        Progress::Tried { tried, passing } => format!("{tried} candidates tried, {passing} pass"),
    }
}

fn tell(report: &RepairReport, all: bool, session: &Session) -> Result<(), Failure> {
    let screen = &session.screen;
    screen.note(&format!(
        "{} {}",
        paint(DIM, "tests:"),
        report.command.join(" ")
    ));
    match report.outcome {
        RepairOutcome::NothingFailing => {
            screen.note(&paint(
                GOOD,
                format!("nothing failing: {} tests pass", report.before.passed),
            ));
        }
        RepairOutcome::NotFound => {
            let effort = &report.effort;
            let tried = format!(
                "{} tests fail, and none of {} candidates mends them{}",
                report.failing.len(),
                effort.tried,
                if effort.exhausted {
                    ""
                } else {
                    " that the budget allowed"
                }
            );
            screen.note(&paint(BAD, tried));
            screen.note("a larger --budget tries more; what search cannot mend needs a model");
        }
        RepairOutcome::Fixed => {
            let shown = if all { report.patches.len() } else { 1 };
            for patch in &report.patches[..shown] {
                screen.note(&evidence(patch));
                screen.patch(&patch.diff)?;
            }
            let others = report.patches.len() - shown;
            if others > 0 {
                screen.note(&format!(
                    "{others} more pass the tests too: --all shows them"
                ));
            }
            let hint = "nothing was changed: `lula repair -q | git apply` takes the patch over";
            screen.note(&paint(DIM, hint));
        }
    }
    for flaky in &report.flaky {
        screen.warn(&format!(
            "{flaky} fails only now and then and was left aside"
        ));
    }
    Ok(())
}

/// What speaks for a patch, in one line.
pub(super) fn evidence(patch: &Patch) -> String {
    let evidence = &patch.evidence;
    let mut text = format!(
        "{} that failed {} now, {} of {} tests pass, {}",
        evidence.fixed.len(),
        if evidence.fixed.len() == 1 {
            "passes"
        } else {
            "pass"
        },
        evidence.after.passed,
        evidence.after.passed + evidence.after.failed,
        if evidence.reverted {
            "and without the patch they fail again"
        } else {
            "but it was not shown that they fail without the patch"
        },
    );
    if !patch.doubts.is_empty() {
        let doubts: Vec<_> = patch
            .doubts
            .iter()
            .map(|doubt| format!("{doubt:?}"))
            .collect();
        text.push_str(&paint(
            WARN,
            format!(" (look twice: {})", doubts.join(", ")),
        ));
    }
    text
}

impl From<RepairError> for Failure {
    fn from(error: RepairError) -> Self {
        let (code, exit, remedy) = match &error {
            RepairError::OnlyFlaky(_) => (
                Code::FlakyTests,
                Exit::Inconclusive,
                "make the tests deterministic first",
            ),
            RepairError::OutOfTime(_) => (
                Code::TestsCannotRun,
                Exit::Budget,
                "give a larger --budget, or --tests with fewer tests",
            ),
            RepairError::EnvironmentBroken(broken) => {
                let remedy = broken.remedy.as_ref().map_or_else(
                    || "prepare the project as it says itself, then run the command again".into(),
                    |command| format!("`{}` installs it", visible(command)),
                );
                let message = environment::lines(broken).join("\n");
                return Self::new(Code::EnvironmentBroken, Exit::Environment, message)
                    .remedy(remedy);
            }
            RepairError::NotInstalled(_) => (
                Code::ToolMissing,
                Exit::Environment,
                "install it, then run the command again",
            ),
            RepairError::NoTests | RepairError::NoSources => (
                Code::NothingToRepair,
                Exit::Environment,
                "`lula detect` shows what was found",
            ),
            RepairError::CannotRun(_) | RepairError::Ground(_) => (
                Code::TestsCannotRun,
                Exit::Environment,
                "`lula exec -- CMD` shows what the tests see",
            ),
        };
        Self::new(code, exit, error.to_string()).remedy(remedy)
    }
}
