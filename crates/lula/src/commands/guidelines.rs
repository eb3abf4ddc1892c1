//! `lula guidelines`: what is never done, what a good change looks like, and what that came to

use std::path::Path;
use std::sync::Arc;

use lula_agents::CodingState;
use lula_agents::guidelines::{
    BUILT_IN_FILE, ENOUGH, Guideline, GuidelineFileSource, GuidelineFileTrust, GuidelineRater,
    ReviewLabel, built_in_text, confidence, test,
};
use lula_gate::rules::{GateAct, Ruling};
use lula_host::guidelines::{self, GuidelineFile};
use lula_host::history::{History, labels};
use lula_host::repository::find_git;
use lula_host::{rules, runs, store};
use lula_protocol::{Code, RunExit};
use lula_store::SecretGuard;
use serde_json::{Value, json};

use super::policy;
use crate::cli::GuidelinesCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain, visible};

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

fn known_labels(session: &CliSession) -> Result<Vec<labels::LabelledChange>, CommandFailure> {
    if !store::is_there(&session.host)? {
        return Ok(Vec::new());
    }
    let git = find_git(&session.host).ok();
    runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        let history = History::read(store).await?;
        Ok(history.labels(git.as_ref(), &session.host)?)
    })
}

fn list(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let policy = rules::load(&session.host)?;
    let all = guidelines::in_force(repository(session), &session.host)?;
    let labels = known_labels(session)?;
    let good = labels.iter().filter(|one| one.label.is_good()).count();
    let screen = &session.screen;
    if screen.is_json() {
        let guards: Vec<Value> = policy
            .rules()
            .filter(|rule| rule.ruling > Ruling::Allow)
            .map(|rule| {
                json!({"id": rule.id, "decision": rule.ruling, "about": rule.about(),
                    "reason": rule.reason})
            })
            .collect();
        let by_label =
            |wanted: ReviewLabel| labels.iter().filter(|one| one.label == wanted).count();
        screen.document(&json!({
            "guards": guards, "guidelines": all,
            "labels": {"known": labels.len(), "enough": ENOUGH,
                "calibrated": labels.len() >= ENOUGH as usize,
                "approved": by_label(ReviewLabel::Approved), "merged": by_label(ReviewLabel::Merged),
                "rejected": by_label(ReviewLabel::Rejected), "undone": by_label(ReviewLabel::Undone)},
        }))?;
        return Ok(RunExit::Verified);
    }
    screen.line(paint(
        STRONG,
        "Guards: decided by code before anything happens",
    ))?;
    let mut table = TextTable::default();
    for rule in policy.rules().filter(|rule| rule.ruling > Ruling::Allow) {
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
    let standing = if labels.len() >= ENOUGH as usize {
        "calibrated".to_owned()
    } else {
        format!("uncalibrated until {ENOUGH}")
    };
    screen.note(&format!(
        "confidence: {} labels, {good} good; {standing}",
        labels.len()
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
    let files = match file {
        Some(path) => {
            let read = GuidelineFile::at(path, GuidelineFileTrust::Operator)?;
            vec![read.ok_or_else(|| {
                let message = format!("the file {} does not exist", path.display());
                CommandFailure::new(Code::BadRules, RunExit::Usage, message).remedy("name a file")
            })?]
        }
        None => guidelines::files(repository(session), &session.host)?,
    };
    let built_in = GuidelineFileSource {
        file: BUILT_IN_FILE,
        text: built_in_text(),
        trust: GuidelineFileTrust::Operator,
    };
    let mut sources: Vec<GuidelineFileSource<'_>> = Vec::new();
    if file.is_none() {
        sources.push(built_in);
    }
    sources.extend(files.iter().map(GuidelineFile::source));
    let mut failures = Vec::new();
    for source in &sources {
        failures.extend(test(source)?);
    }
    if failures.is_empty() {
        // Names that are taken and a repository's reach show only together.
        let own: Vec<GuidelineFileSource<'_>> = files.iter().map(GuidelineFile::source).collect();
        lula_agents::guidelines::load(&own)?;
    }
    let screen = &session.screen;
    if screen.is_json() {
        let failures: Vec<Value> = failures
            .iter()
            .map(|one| json!({"file": one.file, "line": one.line, "what": one.what}))
            .collect();
        let files: Vec<&str> = sources.iter().map(|source| source.file).collect();
        screen.document(&json!({"files": files, "failures": failures}))?;
    } else {
        for failure in &failures {
            screen.line(format!("{} {failure}", paint(BAD, "failed:")))?;
        }
        if failures.is_empty() {
            let names: Vec<&str> = sources.iter().map(|source| source.file).collect();
            let names = names.join(", ");
            screen.line(format!(
                "{} every example of {names} holds",
                paint(GOOD, "ok:")
            ))?;
        }
    }
    Ok(if failures.is_empty() {
        RunExit::Verified
    } else {
        RunExit::Failed
    })
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
            screen.document(&json!({"id": rule.id, "decision": rule.ruling,
                "about": rule.about(), "reason": rule.reason}))?;
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
    let calibration = work.task.guidance.calibration.as_ref();
    let parts: Vec<(&str, f64, f64)> = work.confidence.as_ref().map_or_else(Vec::new, |known| {
        let weights = confidence::contributions(calibration, &known.features);
        known
            .features
            .named()
            .zip(weights)
            .map(|((name, value), adds)| (name, value, adds))
            .collect()
    });
    if screen.is_json() {
        let features: Vec<Value> = parts
            .iter()
            .map(|(name, value, adds)| json!({"feature": name, "value": value, "adds": adds}))
            .collect();
        screen.document(
            &json!({"confidence": work.confidence, "ratings": work.ratings,
            "features": features}),
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
        for (name, value, adds) in parts {
            table.row([
                name.to_owned(),
                format!("{value:.2}"),
                format!("{adds:+.2}"),
            ]);
        }
        screen.line(table.render(2).trim_end())?;
    }
    Ok(RunExit::Verified)
}
