//! `cargo xtask bench graph --crash`: processes killed with SIGKILL, ours and the rival's.
//!
//! Ours is the crash test of `lula-graph`, which fails where anything is lost, doubled or stuck; the
//! rival runs the same pipeline in the same kind of world.

use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::graph::measure;
use crate::repository::Repository;
use crate::servers::Servers;

/// Ours, over every backend. The servers are ended and started again meanwhile.
pub(super) fn ours(
    repository: &Repository,
    servers: &mut Servers,
    kills: u32,
) -> Result<Vec<Value>> {
    let mut killing = repository
        .cargo("test -p lula-graph --test it -- kill:: --nocapture --test-threads 1")
        .envs(servers.environment())
        .env("LULA_CRASH_KILLS", kills.to_string())
        .env("LULA_CRASH_RESTART", servers.end_suddenly())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .context("cannot start the crash test")?;
    let mut pipe = killing
        .stdout
        .take()
        .context("the crash test has no output")?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let status = loop {
        if let Some(status) = killing.try_wait()? {
            break status;
        }
        servers.revive()?;
        thread::sleep(Duration::from_millis(20));
    };
    let Ok(Ok(text)) = reader.join() else {
        bail!("the crash test's output could not be read");
    };
    if !status.success() {
        bail!("the crash test failed:\n{text}");
    }
    let found: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.split_once("crash ")?.1).ok())
        .collect();
    if found.is_empty() {
        bail!("the crash test reported nothing:\n{text}");
    }
    Ok(found)
}

/// The rival's, over SQLite.
pub(super) fn theirs(python: &Path, script: &Path, place: &Path, kills: u32) -> Result<Value> {
    let mut command = Command::new(python);
    command.arg(script).arg("race").arg(place);
    measure(command.arg(kills.to_string()))
}

pub(super) fn table(rows: &[Value]) -> String {
    let mut out = String::from(
        "\n| killed with SIGKILL | backend | kills | at a commit | server ended | runs | stuck | \
         pushes lost | pushes doubled | ended otherwise |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let text = |field: &str| row[field].as_str().unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            text("engine"),
            text("backend"),
            row["kills"],
            row["at_commits"].as_u64().unwrap_or(0),
            row["restarts"].as_u64().unwrap_or(0),
            row["runs"],
            row["stuck"],
            row["lost_external"],
            row["doubled_external"],
            row["ended_otherwise"],
        );
    }
    out.push_str(
        "\nThe same pipeline (plan, two rounds of edits, commit, push) in the same kind of world. \
         Ours asks the world what became of an effect that a crash cut off, and puts edits back; \
         LangGraph runs the node again, as it documents, and leaves the rest to the node.\n",
    );
    out
}
