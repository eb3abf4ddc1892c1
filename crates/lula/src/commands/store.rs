//! `lula store`

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lula_config::keys;
use lula_host::store::StoreOpenOptions;
use lula_host::{runs, store};
use lula_protocol::{Code, RunExit};
use lula_store::{RunStore, SecretGuard, check_store, compact_store, copy_store};
use serde_json::json;

use crate::cli::runs::StoreCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, GOOD, paint};

pub(super) fn run(command: &StoreCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        StoreCommand::Backup { file } => backup(file, session),
        StoreCommand::Restore { file } => restore(file, session),
        StoreCommand::Check => check(session),
        StoreCommand::Compact { older_than } => compact(*older_than, session),
        StoreCommand::Migrate { from, to } => migrate(from, to, session),
    }
}

fn refuse(message: impl Into<String>) -> CommandFailure {
    CommandFailure::new(Code::StoreUnusable, RunExit::Usage, message)
}

fn manner(session: &CliSession) -> StoreOpenOptions {
    StoreOpenOptions::of(&session.host, SecretGuard::default())
}

fn compact(older_than: Duration, session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let here = store::open(&session.host, SecretGuard::default()).await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let before = now.unwrap_or_default().saturating_sub(older_than);
        let before_ms = u64::try_from(before.as_millis()).unwrap_or(u64::MAX);
        let compacted = compact_store(&*here, before_ms).await?;
        let screen = &session.screen;
        if screen.is_json() {
            screen.document(&compacted)?;
        } else {
            screen.line(format!(
                "{} values ({} bytes) of {} old runs dropped; their logs are whole",
                compacted.blobs, compacted.bytes, compacted.runs
            ))?;
        }
        Ok(RunExit::Verified)
    })
}

fn backup(file: &Path, session: &CliSession) -> Result<RunExit, CommandFailure> {
    if file.exists() {
        return Err(refuse(format!("{} exists already", file.display()))
            .remedy("name a file that does not exist"));
    }
    runs::block_on(async {
        let url = session.host.config.get(&keys::STORE_URL);
        if url.is_empty() {
            let here = manner(session).file(store::default_file(&session.host)?)?;
            here.backup(file).await?;
        } else {
            let from = manner(session).at(&url).await?;
            let to = manner(session).file(file)?;
            copy_store(&*from, &to).await?;
        }
        let copy = manner(session).file(file)?;
        looked_through(&copy, session, &format!("{}", file.display())).await
    })
}

fn restore(file: &Path, session: &CliSession) -> Result<RunExit, CommandFailure> {
    if !file.is_file() {
        return Err(refuse(format!("{} is no backup", file.display())));
    }
    runs::block_on(async {
        let from = manner(session).file(file)?;
        let (_, broken) = check_store(&from).await?;
        if let Some(error) = broken.into_iter().next() {
            return Err(error.into());
        }
        let to = store::open(&session.host, SecretGuard::default()).await?;
        let copied = copy_store(&from, &*to).await?;
        if session.screen.is_json() {
            session.screen.document(&copied)?;
        } else {
            let text = "runs brought back; runs that were there already were left alone";
            session.screen.line(format!("{} {text}", copied.runs))?;
        }
        Ok(RunExit::Verified)
    })
}

fn check(session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let here = store::open(&session.host, SecretGuard::default()).await?;
        looked_through(&*here, session, "the store").await
    })
}

async fn looked_through(
    store: &dyn RunStore,
    session: &CliSession,
    what: &str,
) -> Result<RunExit, CommandFailure> {
    let (checked, broken) = check_store(store).await?;
    let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&json!({"checked": checked, "broken": broken}))?;
    } else {
        for error in &broken {
            screen.line(format!("{} {error}", paint(BAD, "✗")))?;
        }
        if broken.is_empty() {
            screen.line(format!(
                "{} {what}: {} runs, {} events and {} blobs are whole",
                paint(GOOD, "✓"),
                checked.runs,
                checked.events,
                checked.blobs
            ))?;
            if checked.dropped > 0 {
                screen.line(format!(
                    "  {} more blobs were dropped by `lula store compact`",
                    checked.dropped
                ))?;
            }
        }
    }
    Ok(if broken.is_empty() {
        RunExit::Verified
    } else {
        RunExit::Failed
    })
}

fn migrate(from: &str, to: &str, session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let source = manner(session).at(from).await?;
        let target = manner(session).at(to).await?;
        let copied = copy_store(&*source, &*target).await?;
        if session.screen.is_json() {
            session.screen.document(&copied)?;
        } else {
            session
                .screen
                .line(format!("{} runs copied and verified", copied.runs))?;
        }
        Ok(RunExit::Verified)
    })
}
