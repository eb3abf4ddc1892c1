//! What is said to the person at the terminal of a run that rests.

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_host::drive::{DriveResult, DriveStopReason};
use lula_host::report::RunReport;
use lula_host::story::{environment, evidence};
use lula_protocol::{RunExit, RunId};

use super::DriveContext;
use crate::failure::CommandFailure;
use crate::runs::plan;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, WARN, paint, plain};

impl DriveContext<'_> {
    /// Says where a run is that is driven no more, and what came of it.
    pub(in crate::commands) async fn tell(
        &self,
        run: &RunId,
        reached: &DriveResult,
    ) -> Result<RunExit, CommandFailure> {
        match reached {
            DriveResult::Stopped(stopped) => self.put_down(run, *stopped).await,
            DriveResult::Rested(known) => rested(known, self.session),
        }
    }

    async fn put_down(
        &self,
        run: &RunId,
        stopped: DriveStopReason,
    ) -> Result<RunExit, CommandFailure> {
        let known = self.driver.engine.show(run, None).await?;
        let mut report = RunReport::of(&known);
        let (why, exit) = match stopped {
            DriveStopReason::Asked => ("interrupted", RunExit::Inconclusive),
            DriveStopReason::AtOnce => ("interrupted at once", RunExit::Inconclusive),
            DriveStopReason::OutOfTime => ("out of time", RunExit::Budget),
        };
        report.summary = format!("{why}: `lula resume {run}` goes on where it stopped");
        report.exit = exit;
        if self.session.screen.is_json() {
            self.session.screen.document(&report)?;
        }
        self.session.screen.note(&paint(WARN, &report.summary));
        Ok(exit)
    }
}

/// Says what came of a run that is over, or what it waits for.
pub(super) fn rested(
    known: &RunState<CodingState>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let report = RunReport::of(known);
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&report)?;
        return Ok(report.exit);
    }
    if let Some(plan) = &report.plan {
        if known
            .state
            .task
            .team
            .as_ref()
            .is_some_and(|team| team.plan_only)
        {
            screen.line(plan::table(plan))?;
        } else {
            screen.note(&plan::table(plan));
        }
    }
    let waits = report.exit == RunExit::WaitingForApproval;
    if !report.diff.is_empty()
        && (waits || matches!(report.exit, RunExit::Verified | RunExit::Inconclusive))
    {
        screen.patch(&report.diff)?;
    }
    let style = match report.exit {
        RunExit::Verified => GOOD,
        RunExit::Inconclusive | RunExit::Budget | RunExit::WaitingForApproval => WARN,
        _ => BAD,
    };
    if !matches!(report.exit, RunExit::Verified) {
        for line in evidence::said(&known.state) {
            screen.note(&line);
        }
    }
    let word = paint(style, format!("{}:", report.word()));
    screen.note(&format!("{word} {}", plain(&report.summary, 400)));
    if let Some(broken) = &report.environment {
        for line in environment::lines(broken).iter().skip(1) {
            screen.note(line);
        }
        screen.note("nothing was tried, and no model was asked (L0804)");
    } else {
        for (name, text) in evidence::rows(&known.state) {
            screen.note(&paint(DIM, format!("{name}: {text}")));
        }
    }
    if let Some(place) = known
        .state
        .place_of(0)
        .filter(|place| place.origin.uncommitted > 0)
    {
        let text = "files have changes that are not committed; they were not part of this run";
        screen.warn(&format!("{} {text}", place.origin.uncommitted));
    }
    screen.notices(&report.delivery());
    screen.note(&paint(
        DIM,
        format!("lula trace {}   shows how it went", report.run),
    ));
    Ok(report.exit)
}
