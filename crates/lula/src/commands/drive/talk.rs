//! What is said to the person at the terminal, and what they are asked.

use std::io::{self, BufRead, IsTerminal, Write};

use lula_agents::Work;
use lula_graph::RunState;
use lula_protocol::{Decision, Exit, RunId};

use super::{Answers, Desk, Stopped};
use crate::failure::Failure;
use crate::runs::consent::Question;
use crate::runs::report::RunReport;
use crate::runs::{environment, evidence, plan};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, WARN, paint, visible};

impl Desk<'_> {
    /// What the person says to a question; nothing where nobody can be asked now.
    pub(super) fn decide(
        &self,
        known: &RunState<Work>,
        question: &Question,
    ) -> Result<Option<Decision>, Failure> {
        // One vote is all a person has.
        if question.answered {
            return Ok(None);
        }
        match self.answers {
            Answers::Yes => {
                let text = format!("approved beforehand: {}", visible(&question.reason));
                self.session
                    .screen
                    .note(&format!("{} {text}", paint(GOOD, "»")));
                Ok(Some(Decision::Approve))
            }
            Answers::Terminal if self.can_ask() => ask(self.session, known, question),
            Answers::Terminal => Ok(None),
        }
    }

    fn can_ask(&self) -> bool {
        !self.session.screen.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    pub(super) async fn put_down(&self, run: &RunId, stopped: &Stopped) -> Result<Exit, Failure> {
        let known = self.engine.show(run, None).await?;
        let mut report = RunReport::of(&known);
        let (why, exit) = match stopped {
            Stopped::Asked => ("interrupted", Exit::Inconclusive),
            Stopped::AtOnce => ("interrupted at once", Exit::Inconclusive),
            Stopped::OutOfTime => ("out of time", Exit::Budget),
        };
        report.summary = format!("{why}: `lula resume {run}` goes on where it stopped");
        report.exit = exit;
        if self.session.screen.is_json() {
            self.session.screen.document(&report)?;
        }
        self.session.screen.note(&paint(WARN, &report.summary));
        Ok(exit)
    }

    /// Says what became of a run.
    pub(super) fn tell(&self, known: &RunState<Work>) -> Result<Exit, Failure> {
        let report = RunReport::of(known);
        let screen = &self.session.screen;
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
        let waits = report.exit == Exit::WaitingForApproval;
        if !report.diff.is_empty()
            && (waits || matches!(report.exit, Exit::Verified | Exit::Inconclusive))
        {
            screen.patch(&report.diff)?;
        }
        let style = match report.exit {
            Exit::Verified => GOOD,
            Exit::Inconclusive | Exit::Budget | Exit::WaitingForApproval => WARN,
            _ => BAD,
        };
        if !matches!(report.exit, Exit::Verified) {
            for line in evidence::said(&known.state) {
                screen.note(&line);
            }
        }
        let word = paint(style, format!("{}:", report.word()));
        screen.note(&format!("{word} {}", visible(&report.summary)));
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
            .place
            .as_ref()
            .filter(|place| place.uncommitted > 0)
        {
            let text = "files have changes that are not committed; they were not part of this run";
            screen.warn(&format!("{} {text}", place.uncommitted));
        }
        for line in report.delivery() {
            screen.note(&line);
        }
        screen.note(&paint(
            DIM,
            format!("lula trace {}   shows how it went", report.run),
        ));
        Ok(report.exit)
    }
}

/// Shows what is asked and reads the answer.
fn ask(
    session: &Session,
    known: &RunState<Work>,
    question: &Question,
) -> Result<Option<Decision>, Failure> {
    if let Some(produced) = &known.state.produced {
        session.screen.patch(&produced.diff)?;
    }
    if let Some(verdict) = &known.state.verdict {
        let text = format!("{}: {}", verdict.name(), visible(verdict.why()));
        session.screen.note(&text);
    }
    let mut screen = anstream::stderr();
    write!(
        screen,
        "{} {}. Agree to exactly this? yes, no, or later: ",
        paint(WARN, "?"),
        visible(&question.reason)
    )?;
    screen.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(match line.trim().to_lowercase().as_str() {
        "yes" | "y" => Some(Decision::Approve),
        "no" | "n" => Some(Decision::Reject),
        _ => None,
    })
}
