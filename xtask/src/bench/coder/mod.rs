//! `cargo xtask bench coder`

mod contestants;
mod conversation;
mod numbers;
mod server;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::chart::{self, Bar};
use super::program::{self, Profile};
use super::results::Results;
use crate::interrupt::Interrupt;
use crate::repository::Repository;
use contestants::{BenchCoder, LULA, RIVAL};
use conversation::RecordedConversation;
use numbers::ConversationCost;

/// All conversations as one, in the report.
const ALL: &str = "all";

#[derive(Args)]
pub(crate) struct Flags {
    /// Print JSON on standard output instead of the table
    #[arg(long)]
    json: bool,
    /// How often each conversation is had with each coder
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Measure unoptimised builds, which are there sooner and say less
    #[arg(long)]
    debug: bool,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let place = repository.root().join("target/bench");
    std::fs::create_dir_all(&place)?;
    let program = match program::lula(repository, interrupt, Profile::measured(flags.debug))? {
        ControlFlow::Continue(program) => program,
        ControlFlow::Break(ended) => return Ok(ended),
    };
    let coders = [BenchCoder::lula(program), BenchCoder::rival(&place)?];
    let conversations = RecordedConversation::all(&repository.root().join("eval/coder"))?;
    let rounds = flags.rounds.max(1);
    let mut costs: BTreeMap<(&str, &str), ConversationCost> = BTreeMap::new();
    // One after the other in each round: what else the machine does meets both.
    for _ in 0..rounds {
        for conversation in &conversations {
            for coder in &coders {
                let cost = coder.have(conversation)?;
                for name in [conversation.name.as_str(), ALL] {
                    let sum = costs.entry((coder.name(), name)).or_default();
                    *sum = std::mem::take(sum).and(&cost);
                }
            }
        }
    }
    let report = report(&costs, &coders, (rounds, conversations.len()))?;
    let results = Results {
        report: &report,
        table: &table(&report),
        plot: &plot(&report),
    };
    results.publish(&place, "coder", flags.json)
}

fn report(
    costs: &BTreeMap<(&str, &str), ConversationCost>,
    coders: &[BenchCoder; 2],
    (rounds, conversations): (usize, usize),
) -> Result<Value> {
    let (all, each): (Vec<_>, Vec<_>) = costs.iter().partition(|((_, name), _)| *name == ALL);
    let row = |((coder, name), cost): &(&(&str, &str), &ConversationCost)| {
        let mut row = cost.row(coder, name, rounds);
        if *name == ALL {
            // Of one conversation, as in the other rows.
            for field in ["first_s", "whole_s"] {
                let sum = row[field].as_f64().unwrap_or(f64::NAN);
                row[field] = json!(sum / f64::from(u32::try_from(conversations).unwrap_or(1)));
            }
            row["questions"] = Value::Null;
        }
        row
    };
    let rows: Vec<Value> = each.iter().chain(&all).map(row).collect();
    let of = |coder: &str, field: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row["coder"] == coder && row["conversation"] == ALL);
        row.and_then(|row| row[field].as_f64())
    };
    let ratio = |field: &str| Some(of(LULA, field)? / of(RIVAL, field)?);
    Ok(json!({
        "rounds": rounds,
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "rival": coders[1].version()?,
        "commands": {LULA: coders[0].shown(), RIVAL: coders[1].shown()},
        "rows": rows,
        "ratio": {"between_p50_s": ratio("between_p50_s"), "bytes": ratio("bytes")},
    }))
}

fn table(report: &Value) -> String {
    let mut out = String::from(
        "| coder | conversation | questions | between answers p50 s | p95 s | bytes sent | cache could \
         have | first question after s | whole s |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in report["rows"].as_array().into_iter().flatten() {
        let text = |field: &str| row[field].as_str().unwrap_or_default();
        let number = |field: &str| row[field].as_f64().unwrap_or(f64::NAN);
        let questions = row["questions"].as_u64();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {:.3} | {:.3} | {} | {:.1} % | {:.2} | {:.2} |",
            text("coder"),
            text("conversation"),
            questions.map_or_else(|| "–".to_owned(), |count| count.to_string()),
            number("between_p50_s"),
            number("between_p95_s"),
            row["bytes"],
            number("cached") * 100.0,
            number("first_s"),
            number("whole_s"),
        );
    }
    let _ = writeln!(
        out,
        "\n{} rounds; rival: {}",
        report["rounds"], report["rival"]
    );
    for (coder, command) in report["commands"].as_object().into_iter().flatten() {
        let _ = writeln!(out, "{coder}: `{}`", command.as_str().unwrap_or_default());
    }
    for (field, ratio) in report["ratio"].as_object().into_iter().flatten() {
        let ratio = ratio.as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(out, "{field}: ours is {ratio:.2} of the rival's");
    }
    out.push_str(
        "Lula works in a sandbox, and judges the change with tests before its end; the rival runs commands \
         as they are, and stops.\n",
    );
    out
}

fn plot(report: &Value) -> String {
    let rows: Vec<(String, &Value)> = report["rows"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap_or_default();
            (format!("{}, {}", text("coder"), text("conversation")), row)
        })
        .collect();
    let micros = |row: &Value, field: &str| row[field].as_f64().unwrap_or(f64::NAN) * 1e6;
    let bars: Vec<Bar<'_>> = rows
        .iter()
        .map(|(label, row)| Bar {
            label,
            p50: micros(row, "between_p50_s"),
            p95: micros(row, "between_p95_s"),
            ours: row["coder"] == LULA,
        })
        .collect();
    chart::svg("From an answer to the next question", &bars)
}
