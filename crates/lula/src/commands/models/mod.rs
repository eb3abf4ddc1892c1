//! `lula models`

pub(crate) mod flags;

use std::time::Duration;

use lula_host::history::{History, standing};
use lula_host::models::listing::{ListedPrice, ModelListing};
use lula_host::models::trial::{self, ModelTrial};
use lula_host::text::dollars;
use lula_host::{models, runs, store};
use lula_protocol::{Code, RunExit};
use lula_store::SecretGuard;
use serde_json::{Value, json};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, paint};
use flags::ModelsCommand;

pub(super) fn run(command: ModelsCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        ModelsCommand::List => list(session),
        ModelsCommand::Test { model, timeout } => {
            let (document, works) = try_out(&model, timeout, session)?;
            show(&document, session)?;
            Ok(if works {
                RunExit::Verified
            } else {
                RunExit::Failed
            })
        }
        ModelsCommand::Use {
            model,
            untried,
            timeout,
        } => choose(&model, untried, timeout, session),
        ModelsCommand::Stats => stats(session),
    }
}

fn list(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let listing = ModelListing::look(&session.host)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&listing)?;
        return Ok(RunExit::Verified);
    }
    screen.line(paint(STRONG, "In use"))?;
    if listing.in_use.is_empty() {
        screen.line("  none; `lula models use NAME` sets one\n")?;
    } else {
        let mut table = TextTable::default();
        for used in &listing.in_use {
            table.row([used.model.clone(), known(used.price.as_ref())]);
        }
        screen.line(table.render(2))?;
    }
    screen.line(paint(STRONG, "Here"))?;
    let mut table = TextTable::default();
    for provider in listing.providers {
        let mark = if provider.found {
            paint(GOOD, "✓")
        } else {
            paint(DIM, "-")
        };
        let detail = paint(DIM, &provider.detail);
        table.row([mark, provider.provider, provider.place, detail]);
        for name in provider.models {
            table.row([String::new(), String::new(), name, String::new()]);
        }
    }
    screen.line(table.render(2).trim_end())?;
    Ok(RunExit::Verified)
}

fn known(price: Option<&ListedPrice>) -> String {
    price.map_or_else(
        || paint(BAD, "not the name of a model"),
        |price| paint(DIM, price.words()),
    )
}

fn show(document: &Value, session: &CliSession) -> Result<(), CommandFailure> {
    if session.screen.is_json() {
        return session.screen.document(document);
    }
    let mut table = TextTable::default();
    for row in trial::rows(document) {
        table.row(row);
    }
    session.screen.line(paint(
        STRONG,
        document["model"].as_str().unwrap_or_default(),
    ))?;
    session.screen.line(table.render(2).trim_end())
}

fn try_out(
    given: &str,
    timeout: Duration,
    session: &CliSession,
) -> Result<(Value, bool), CommandFailure> {
    let trial = ModelTrial::new(given, timeout, &session.host)?;
    session.screen.note(&format!("asking {} …", trial.name));
    Ok(trial.ask()?)
}

/// Tries a model and puts it first among those in use.
fn choose(
    model: &str,
    untried: bool,
    timeout: Duration,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let name = models::name(model)?.to_string();
    let mut seen = None;
    if !untried {
        let (document, works) = try_out(model, timeout, session)?;
        if !works {
            let reason = document["error"].as_str().unwrap_or_default().to_owned();
            return Err(
                CommandFailure::new(Code::ModelUnusable, RunExit::Environment, reason).remedy(
                    "nothing was changed; start its server or set its key, or add --untried",
                ),
            );
        }
        if !session.screen.is_json() {
            show(&document, session)?;
        }
        seen = document["use_with"].as_str().map(str::to_owned);
    }
    let (names, change) = trial::prefer(&name, seen.as_deref(), &session.host)?;
    if session.screen.is_json() {
        session.screen.document(&json!({
            "models": names,
            "file": change.path,
            "changed": change.before != change.after,
        }))?;
    } else {
        session.screen.note(&format!(
            "{} now says models.use = {}",
            change.path.display(),
            names.join(", ")
        ));
    }
    Ok(RunExit::Verified)
}

/// How models did in the runs that are kept here.
fn stats(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let history = runs::block_on(async {
        let store = store::open(&session.host, SecretGuard::default()).await?;
        History::read(store).await
    })?;
    let (stats, unread) = (history.stats(), history.unread);
    let screen = &session.screen;
    if screen.is_json() {
        let rows = standing::document(&stats);
        screen.document(&json!({"models": rows, "unreadable_runs": unread}))?;
        return Ok(RunExit::Verified);
    }
    if unread > 0 {
        screen.warn(&format!("{unread} runs could not be read and are left out"));
    }
    if stats.rows().next().is_none() {
        screen.line("no run has asked a model yet")?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    let heads = [
        "model",
        "as",
        "at",
        "verified",
        "uplift",
        "cost each",
        "tokens each",
        "cached",
        "asked again",
    ];
    table.row(heads.map(|head| paint(DIM, head)));
    for (role, class, model, row) in stats.rows() {
        let each = |sum: u64| sum / u64::from(row.calls.max(1));
        table.row([
            model.to_owned(),
            role.to_owned(),
            class.to_owned(),
            format!("{} of {}", row.verified, row.calls),
            stats.uplift(role, class, model).map_or_else(
                || "none to compare".to_owned(),
                |uplift| format!("{:+.0} %", uplift * 100.0),
            ),
            match row.unpriced {
                0 => format!("${:.4}", dollars(each(row.cost))),
                _ => "unknown".to_owned(),
            },
            format!(
                "{} in, {} out",
                each(row.usage.input),
                each(row.usage.output)
            ),
            format!("{:.0} %", row.cache_share() * 100.0),
            row.repairs.to_string(),
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}
