//! `lula repair`: failing tests made to pass by search, with no model.

use std::path::Path;
use std::time::Duration;

use lula_host::repair::repair;
use lula_host::{folder, sandbox};
use lula_protocol::RunExit;
use lula_repair::{RepairOutcome, RepairPatch, RepairReport, RepairTask, TestSelection};

use crate::cli::RepairFlags;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, WARN, paint};

pub(super) fn run(flags: &RepairFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let home = std::env::var_os("HOME");
    let workspace = sandbox::workspace(flags.workspace.as_deref(), home.as_deref().map(Path::new))?;
    let task = RepairTask {
        tests: TestSelection {
            command: flags.tests.clone(),
            folder: around(flags, &workspace),
        },
        budget: flags.budget.unwrap_or(Duration::from_mins(2)),
        all: flags.all,
        lanes: lanes(),
        ..RepairTask::default()
    };
    let live = session.screen.live("looking at the project");
    let say = |progress: &str| live.say(progress);
    let repaired = repair(&workspace, &task, &say, &session.host)?;
    drop(live);
    if session.screen.is_json() {
        session.screen.document(&repaired)?;
    } else {
        tell(&repaired.report, flags.all, session)?;
    }
    Ok(repaired.exit())
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

fn lanes() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn tell(report: &RepairReport, all: bool, session: &CliSession) -> Result<(), CommandFailure> {
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
pub(super) fn evidence(patch: &RepairPatch) -> String {
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
