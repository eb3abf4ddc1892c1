//! `lula doctor`

pub(crate) mod flags;

use lula_host::doctor::{self, DoctorCheckState, DoctorReport};
use lula_protocol::RunExit;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint};

pub(super) fn run(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let step = session.screen.step("examining this machine");
    let examination = doctor::examine(&session.host);
    drop(step);
    if session.screen.is_json() {
        session.screen.document(&examination)?;
    } else {
        print(&examination, session)?;
    }
    Ok(if examination.fit {
        RunExit::Verified
    } else {
        RunExit::Environment
    })
}

fn print(examination: &DoctorReport, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    screen.line(paint(STRONG, "Sandbox tiers, strongest first"))?;
    let mut table = TextTable::default();
    for tier in &examination.tiers {
        let mark = match (tier.available, tier.is_floor) {
            (true, true) => paint(GOOD, "✓"),
            (true, false) => paint(WARN, "!"),
            (false, _) => paint(DIM, "–"),
        };
        let mut text = tier.reason.clone();
        if !tier.layers.is_empty() {
            text = format!("{text}: {}", tier.layers.join(", "));
        }
        table.row([
            mark,
            tier.name.to_string(),
            with_remedy(text, tier.remedy.as_deref()),
        ]);
    }
    screen.line(table.render(2))?;

    screen.line(paint(STRONG, "This machine"))?;
    let mut table = TextTable::default();
    for check in &examination.checks {
        let mark = match check.state {
            DoctorCheckState::Good => paint(GOOD, "✓"),
            DoctorCheckState::Limited => paint(WARN, "!"),
            DoctorCheckState::Bad => paint(BAD, "✗"),
        };
        let text = with_remedy(check.reason.clone(), check.remedy.as_deref());
        table.row([mark, check.name.to_owned(), text]);
    }
    screen.line(table.render(2))?;

    screen.line(paint(STRONG, "Models"))?;
    let mut table = TextTable::default();
    for provider in &examination.providers {
        let mark = if provider.found {
            paint(GOOD, "✓")
        } else {
            paint(DIM, "–")
        };
        let mut text = provider.detail.clone();
        if !provider.models.is_empty() {
            text = format!("{text}: {}", provider.models.join(", "));
        }
        table.row([mark, provider.name.to_owned(), provider.place.clone(), text]);
    }
    screen.line(table.render(2))?;

    let verdict = if examination.fit {
        paint(GOOD, &examination.summary)
    } else {
        paint(BAD, &examination.summary)
    };
    screen.line(verdict)
}

fn with_remedy(text: String, remedy: Option<&str>) -> String {
    match remedy {
        Some(remedy) => format!("{text} — {remedy}"),
        None => text,
    }
}
