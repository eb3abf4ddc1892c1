//! `lula models`

use std::time::Duration;

use lula_config::{Layer, keys, write};
use lula_models::probe::{Probe, probe};
use lula_models::spend::Unlimited;
use lula_models::{Client, Patience};
use lula_protocol::{Code, Exit};
use lula_store::SecretGuard;
use serde_json::{Value, json};

use crate::cli::ModelsCommand;
use crate::failure::Failure;
use crate::models;
use crate::runs::{self, standing, store};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, STRONG, Table, paint};

pub(super) fn run(command: ModelsCommand, session: &Session) -> Result<Exit, Failure> {
    match command {
        ModelsCommand::List => list(session),
        ModelsCommand::Test { model, timeout } => {
            let (document, works) = try_out(&model, timeout, session)?;
            show(&document, session)?;
            Ok(if works { Exit::Verified } else { Exit::Failed })
        }
        ModelsCommand::Use {
            model,
            untried,
            timeout,
        } => choose(&model, untried, timeout, session),
        ModelsCommand::Stats => stats(session),
    }
}

fn list(session: &Session) -> Result<Exit, Failure> {
    let config = &session.config;
    let (in_use, prices) = (config.get(&keys::MODELS_USE), models::prices(config)?);
    let providers = models::providers(config);
    let price = |model: &str| {
        let name = models::name(model).ok()?;
        let price = prices.of(&name.priced_as());
        Some(json!({
            "input_usd_per_million": dollars(price.input),
            "output_usd_per_million": dollars(price.output),
            "as_of": price.as_of,
        }))
    };
    if session.screen.is_json() {
        let providers: Vec<_> = providers
            .iter()
            .map(|provider| {
                let names: Vec<_> = provider
                    .models
                    .iter()
                    .map(|model| models::full_name(provider, model, config))
                    .collect();
                json!({
                    "provider": provider.name, "place": provider.place, "found": provider.found,
                    "detail": provider.detail, "models": names,
                })
            })
            .collect();
        let in_use: Vec<_> = in_use
            .iter()
            .map(|model| json!({"model": model, "price": price(model)}))
            .collect();
        session
            .screen
            .document(&json!({"in_use": in_use, "providers": providers}))?;
        return Ok(Exit::Verified);
    }
    let screen = &session.screen;
    screen.line(paint(STRONG, "In use"))?;
    if in_use.is_empty() {
        screen.line("  none; `lula models use NAME` sets one\n")?;
    } else {
        let mut table = Table::default();
        for model in &in_use {
            let cost = match price(model) {
                Some(price) if price["as_of"].is_string() => format!(
                    "at most ${:.2} read, ${:.2} written for a million tokens, as of {}",
                    price["input_usd_per_million"].as_f64().unwrap_or_default(),
                    price["output_usd_per_million"].as_f64().unwrap_or_default(),
                    price["as_of"].as_str().unwrap_or_default(),
                ),
                Some(price) => format!(
                    "price unknown, counts as ${:.2} for a million tokens",
                    price["input_usd_per_million"].as_f64().unwrap_or_default()
                ),
                None => paint(BAD, "not the name of a model"),
            };
            table.row([model.clone(), paint(DIM, cost)]);
        }
        screen.line(table.render(2))?;
    }
    screen.line(paint(STRONG, "Here"))?;
    let mut table = Table::default();
    for provider in &providers {
        let mark = if provider.found {
            paint(GOOD, "✓")
        } else {
            paint(DIM, "-")
        };
        table.row([
            mark,
            provider.name.to_owned(),
            provider.place.clone(),
            paint(DIM, &provider.detail),
        ]);
        for model in &provider.models {
            let name = models::full_name(provider, model, config);
            table.row([String::new(), String::new(), name, String::new()]);
        }
    }
    screen.line(table.render(2).trim_end())?;
    Ok(Exit::Verified)
}

#[allow(clippy::cast_precision_loss)] // For people; a price is far below 2^53.
fn dollars(micro: u64) -> f64 {
    micro as f64 / 1e6
}

/// Asks a model three small questions; the document says what it did.
fn try_out(given: &str, timeout: Duration, session: &Session) -> Result<(Value, bool), Failure> {
    let name = models::name(given)?;
    let endpoint = models::endpoint(&name, &session.config)?;
    let broken = |message: String| Failure::new(Code::Internal, Exit::Failed, message);
    let client = Client::live().map_err(|error| broken(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| broken(error.to_string()))?;
    session.screen.note(&format!("asking {name} …"));
    let patience = Patience {
        streamed: true,
        idle: timeout,
        total: timeout,
    };
    let seen = runtime.block_on(probe(&client, &endpoint, &name.model, patience, &Unlimited));
    let works = seen.words.is_ok();
    Ok((document(given, &endpoint, &seen), works))
}

fn document(model: &str, endpoint: &lula_models::name::Endpoint, seen: &Probe) -> Value {
    json!({
        "model": model,
        "answers": seen.words.is_ok(),
        "error": seen.words.as_ref().err().map(ToString::to_string),
        "tool_calls": seen.tool_calls,
        "json_schema": seen.json_schema,
        "counts_tokens": seen.counts,
        "use_with": seen.capability.name(),
        "tokens": {"input": seen.usage.input, "output": seen.usage.output},
        "cost_usd": dollars(endpoint.price.of(&seen.usage)),
        "price_known": endpoint.price.as_of.is_some(),
    })
}

fn show(document: &Value, session: &Session) -> Result<(), Failure> {
    if session.screen.is_json() {
        return session.screen.document(document);
    }
    let mark = |key: &str| {
        if document[key] == true {
            paint(GOOD, "yes")
        } else {
            paint(DIM, "no")
        }
    };
    let answers = match document["error"].as_str() {
        Some(error) => paint(BAD, error),
        None => paint(GOOD, "yes"),
    };
    let mut table = Table::default();
    table.row(["answers".into(), answers]);
    if document["answers"] == true {
        table.row(["calls tools".into(), mark("tool_calls")]);
        table.row(["held to a JSON schema".into(), mark("json_schema")]);
        table.row(["counts tokens".into(), mark("counts_tokens")]);
        table.row([
            "used here with".into(),
            document["use_with"].as_str().unwrap_or_default().to_owned(),
        ]);
        let known = if document["price_known"] == true {
            ""
        } else {
            ", at the ceiling for an unknown price"
        };
        table.row([
            "the trial took".into(),
            format!(
                "{} tokens in, {} out, ${:.6}{known}",
                document["tokens"]["input"],
                document["tokens"]["output"],
                document["cost_usd"].as_f64().unwrap_or_default()
            ),
        ]);
    }
    session.screen.line(paint(
        STRONG,
        document["model"].as_str().unwrap_or_default(),
    ))?;
    session.screen.line(table.render(2).trim_end())
}

/// Tries a model and puts it first among those in use.
fn choose(
    model: &str,
    untried: bool,
    timeout: Duration,
    session: &Session,
) -> Result<Exit, Failure> {
    let name = models::name(model)?.to_string();
    let mut seen = None;
    if !untried {
        let (document, works) = try_out(model, timeout, session)?;
        if !works {
            let reason = document["error"].as_str().unwrap_or_default().to_owned();
            return Err(Failure::new(Code::ModelUnusable, Exit::Environment, reason)
                .remedy("nothing was changed; start its server or set its key, or add --untried"));
        }
        if !session.screen.is_json() {
            show(&document, session)?;
        }
        seen = document["use_with"].as_str().map(str::to_owned);
    }
    let mut names = session.config.get(&keys::MODELS_USE);
    names.retain(|known| *known != name);
    names.insert(0, name.clone());
    let file = session.locations.of(Layer::User).ok_or_else(|| {
        Failure::new(
            Code::ConfigUnreadable,
            Exit::Usage,
            "no home directory is known",
        )
        .remedy("set HOME or LULA_CONFIG_FILE")
    })?;
    if let Some(seen) = seen {
        let mut entries = session.config.get(&keys::MODELS_CAPABILITIES);
        entries.retain(|entry| {
            entry
                .rsplit_once('=')
                .is_none_or(|(known, _)| known != name)
        });
        entries.push(format!("{name}={seen}"));
        let spec = keys::MODELS_CAPABILITIES.spec();
        write::set(file, Layer::User, spec, &entries.join(","))?;
    }
    let spec = keys::MODELS_USE.spec();
    let change = write::set(file, Layer::User, spec, &names.join(","))?;
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
    Ok(Exit::Verified)
}

/// How models did in the runs that are kept here.
fn stats(session: &Session) -> Result<Exit, Failure> {
    let (stats, unread) = runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        standing::stats(store).await
    })?;
    let screen = &session.screen;
    if screen.is_json() {
        let rows: Vec<_> = stats
            .rows()
            .map(|(role, class, model, row)| {
                json!({
                    "role": role, "task": class, "model": model, "asked": row.calls,
                    "verified": row.verified, "reward": stats.reward(role, class, model),
                    "uplift": stats.uplift(role, class, model), "cost_usd": dollars(row.cost),
                    "input_tokens": row.usage.input, "output_tokens": row.usage.output,
                    "cached_share": row.cache_share(), "asked_again": row.repairs,
                })
            })
            .collect();
        screen.document(&json!({"models": rows, "unreadable_runs": unread}))?;
        return Ok(Exit::Verified);
    }
    if unread > 0 {
        screen.warn(&format!("{unread} runs could not be read and are left out"));
    }
    if stats.rows().next().is_none() {
        screen.line("no run has asked a model yet")?;
        return Ok(Exit::Verified);
    }
    let mut table = Table::default();
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
            format!("${:.4}", dollars(each(row.cost))),
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
    Ok(Exit::Verified)
}
