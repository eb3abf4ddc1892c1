//! `lula repair`: failing tests made to pass by search, with no model.

pub(crate) mod flags;

use std::path::Path;

use lula_host::{repair, sandbox};
use lula_protocol::RunExit;
use lula_repair::{RepairOutcome, RepairPatch, RepairReport, RepairTask};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, WARN, paint};
use flags::RepairFlags;

pub(super) fn run(flags: &RepairFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let home = std::env::var_os("HOME");
    let workspace = sandbox::workspace(flags.workspace.as_deref(), home.as_deref().map(Path::new))?;
    let named = flags.workspace.is_some();
    let task = RepairTask {
        all: flags.all,
        ..repair::task(&workspace, named, flags.tests.clone(), flags.budget)
    };
    let live = session.screen.live("looking at the project");
    let say = |progress: &str| live.say(progress);
    let repaired = repair::repair(&workspace, &task, &say, &session.host)?;
    drop(live);
    if session.screen.is_json() {
        session.screen.document(&repaired)?;
    } else {
        tell(&repaired.report, flags.all, session)?;
    }
    Ok(repaired.exit())
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

/// What speaks for a patch, and what makes one look twice.
fn evidence(patch: &RepairPatch) -> String {
    let text = repair::evidence(patch);
    if patch.doubts.is_empty() {
        return text;
    }
    let doubts = patch.doubts.iter().map(|doubt| format!("{doubt:?}"));
    let doubts = doubts.collect::<Vec<_>>().join(", ");
    text + &paint(WARN, format!(" (look twice: {doubts})"))
}
