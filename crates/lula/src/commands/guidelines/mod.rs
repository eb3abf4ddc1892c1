//! `lula guidelines`: what is never done, what a good change looks like, and what that came to

pub(crate) mod flags;

use std::path::Path;
use std::sync::Arc;

use lula_agents::CodingState;
use lula_agents::guidelines::{Guideline, GuidelineRater};
use lula_gate::rules::{GateAct, Ruling};
use lula_host::confidence::{self, ReviewCounts};
use lula_host::policy::brief;
use lula_host::{examples, guidelines, rules, runs, store};
use lula_protocol::RunExit;
use lula_store::SecretGuard;
use serde_json::{Value, json};

use super::policy;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain, visible};
use flags::GuidelinesCommand;

pub(super) fn run(
    command: GuidelinesCommand,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    match command {
        GuidelinesCommand::List => list(session),
        GuidelinesCommand::Test { file } => run_examples(file.as_deref(), session),
        GuidelinesCommand::Explain { what, command } => match what {
            Some(what) => explain(&what, session),
            None => policy::check(&GateAct::command(&command), session),
        },
    }
}

/// The repository around this directory.
fn repository(session: &CliSession) -> Option<&Path> {
    session.host.locations.repository.as_deref()?.parent()
}

fn list(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let policy = rules::load(&session.host)?;
    let all = guidelines::in_force(repository(session), &session.host)?;
    let labels = ReviewCounts::read(&session.host)?;
    let guards = policy.rules().filter(|rule| rule.ruling > Ruling::Allow);
    let screen = &session.screen;
    if screen.is_json() {
        let guards: Vec<Value> = guards.map(brief).collect();
        screen.document(&json!({"guards": guards, "guidelines": all, "labels": labels}))?;
        return Ok(RunExit::Verified);
    }
    screen.line(paint(
        STRONG,
        "Guards: decided by code before anything happens",
    ))?;
    let mut table = TextTable::default();
    for rule in guards {
        table.row([
            policy::coloured(rule.ruling),
            rule.id.clone(),
            rule.reason.clone(),
        ]);
    }
    screen.line(table.render(2).trim_end())?;
    screen.line(paint(
        STRONG,
        "\nGuidelines: rated, for how sure a run may be",
    ))?;
    let mut table = TextTable::default();
    for one in &all {
        table.row([
            phase(one),
            one.id.clone(),
            if one.required { "required" } else { "" }.to_owned(),
            visible(&one.text),
        ]);
    }
    screen.line(table.render(2).trim_end())?;
    let standing = if labels.calibrated {
        "calibrated".to_owned()
    } else {
        format!("uncalibrated until {}", labels.enough)
    };
    screen.note(&format!(
        "confidence: {} labels, {} good; {standing}",
        labels.known,
        labels.good()
    ));
    Ok(RunExit::Verified)
}

fn phase(one: &Guideline) -> String {
    let by = match one.rater {
        GuidelineRater::Check(_) => "code",
        GuidelineRater::Judge => "judge",
    };
    format!("{:?}, by {by}", one.phase).to_lowercase()
}

fn run_examples(file: Option<&Path>, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let report = examples::of_guidelines(file, repository(session), &session.host)?;
    policy::tell_examples(&report, session)
}

/// A guideline or a guard by its name, or what all of them came to in a run.
fn explain(what: &str, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let all = guidelines::in_force(repository(session), &session.host)?;
    if let Some(one) = all.iter().find(|one| one.id == what) {
        if screen.is_json() {
            screen.document(one)?;
        } else {
            let text = format!("{}: {} ({})", one.id, visible(&one.text), phase(one));
            screen.line(text)?;
        }
        return Ok(RunExit::Verified);
    }
    let policy = rules::load(&session.host)?;
    if let Some(rule) = policy.rules().find(|rule| rule.id == what) {
        if screen.is_json() {
            screen.document(&brief(rule))?;
        } else {
            let decision = policy::coloured(rule.ruling);
            screen.line(format!("{decision} {}: {}", rule.id, rule.reason))?;
            screen.line(paint(DIM, rule.about()))?;
        }
        return Ok(RunExit::Verified);
    }
    let state = runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        let run = runs::named(&*store, what).await.map_err(|error| {
            CommandFailure::from(error)
                .remedy("`lula guidelines list` names guidelines, `lula runs` lists runs")
        })?;
        let known = runs::reader(Arc::clone(&store))?.show(&run, None).await?;
        Ok::<_, CommandFailure>(known.state)
    })?;
    explain_run(&state, session)
}

fn explain_run(work: &CodingState, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let parts = confidence::shares(work);
    if screen.is_json() {
        screen.document(
            &json!({"confidence": work.confidence, "ratings": work.ratings,
            "features": parts}),
        )?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for rating in &work.ratings {
        for score in &rating.scores {
            let shown = match score.score {
                None => paint(DIM, "n/a"),
                Some(score @ ..0) => paint(BAD, score),
                Some(0) => paint(WARN, 0),
                Some(score) => paint(GOOD, format!("+{score}")),
            };
            table.row([
                format!("attempt {}", rating.attempt + 1),
                score.id.clone(),
                shown,
                plain(&score.by, 40),
                plain(&score.why, 160),
            ]);
        }
    }
    if work.ratings.is_empty() {
        screen.note("nothing was rated in this run");
    } else {
        screen.line(table.render(0).trim_end())?;
    }
    if let Some(known) = &work.confidence {
        screen.line(format!("confidence {}", known.spoken()))?;
        let mut table = TextTable::default();
        for part in parts {
            table.row([
                part.feature.to_owned(),
                format!("{:.2}", part.value),
                format!("{:+.2}", part.adds),
            ]);
        }
        screen.line(table.render(2).trim_end())?;
    }
    Ok(RunExit::Verified)
}
