//! `lula config`

pub(crate) mod flags;

use lula_config::resolve::{ConfigEntry, SettingVerdict};
use lula_config::write::{self, ConfigFileChange};
use lula_config::{ConfigKeySpec, ConfigLayer, reference};
use lula_host::configuration::{ConfigKeyView, entry, file, key as key_of};
use lula_protocol::RunExit;
use serde_json::json;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, paint, unified};
use flags::{ConfigCommand, FileLayer};

pub(super) fn run(command: ConfigCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        ConfigCommand::List => list(session)?,
        ConfigCommand::Get { key } => get(entry(&key, &session.host)?, session)?,
        ConfigCommand::Explain { key } => explain(entry(&key, &session.host)?, session)?,
        ConfigCommand::Set { key, value, layer } => {
            let (spec, layer) = (key_of(&key)?, ConfigLayer::from(layer));
            let change = write::set(file(layer, &session.host)?, layer, spec, &value)?;
            changed(session, spec, layer, &change)?;
        }
        ConfigCommand::Unset { key, layer } => {
            let (spec, layer) = (key_of(&key)?, ConfigLayer::from(layer));
            let change = write::unset(file(layer, &session.host)?, layer, spec)?;
            changed(session, spec, layer, &change)?;
        }
        ConfigCommand::Reference => session.screen.line(reference::page().trim_end())?,
    }
    Ok(RunExit::Verified)
}

fn list(session: &CliSession) -> Result<(), CommandFailure> {
    let entries = session.host.config.entries();
    if session.screen.is_json() {
        return session
            .screen
            .document(&entries.iter().map(ConfigKeyView::of).collect::<Vec<_>>());
    }
    let mut table = TextTable::default();
    for entry in entries {
        let winner = entry.winner();
        let value = match winner.value.to_string() {
            empty if empty.is_empty() => paint(DIM, "(empty)"),
            value => value,
        };
        let layer = match winner.layer {
            ConfigLayer::BuiltIn => paint(DIM, winner.layer),
            layer => layer.to_string(),
        };
        table.row([paint(STRONG, entry.spec.name), layer, value]);
    }
    session.screen.line(table.render(0).trim_end())
}

fn get(entry: &ConfigEntry, session: &CliSession) -> Result<(), CommandFailure> {
    if session.screen.is_json() {
        session.screen.document(&ConfigKeyView::of(entry))
    } else {
        session.screen.line(&entry.winner().value)
    }
}

fn explain(entry: &ConfigEntry, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        return screen.document(&ConfigKeyView::with_layers(entry));
    }
    let spec = entry.spec;
    screen.line(format!("{}: {}", paint(STRONG, spec.name), spec.doc))?;
    screen.line(format!("It takes {}.", spec.kind.expected()))?;
    screen.line(format!(
        "Set it with ${} or --{}.\n",
        spec.variable(),
        spec.flag()
    ))?;
    let mut table = TextTable::default();
    for considered in &entry.history {
        let setting = &considered.setting;
        let verdict = match &considered.verdict {
            SettingVerdict::Won => paint(GOOD, "won"),
            SettingVerdict::Overridden => paint(DIM, "overridden"),
            SettingVerdict::Refused(reason) => paint(BAD, format!("refused: {reason}")),
        };
        let value = setting.value.to_string();
        table.row([
            setting.layer.to_string(),
            value,
            setting.origin.to_string(),
            verdict,
        ]);
    }
    screen.line(table.render(2).trim_end())
}

impl From<FileLayer> for ConfigLayer {
    fn from(layer: FileLayer) -> Self {
        match layer {
            FileLayer::System => Self::System,
            FileLayer::User => Self::User,
            FileLayer::Repository => Self::Repository,
        }
    }
}

fn changed(
    session: &CliSession,
    spec: &ConfigKeySpec,
    layer: ConfigLayer,
    change: &ConfigFileChange,
) -> Result<(), CommandFailure> {
    let path = change.path.display().to_string();
    let is_changed = change.before != change.after;
    if session.screen.is_json() {
        return session.screen.document(&json!({
            "key": spec.name,
            "layer": layer.name(),
            "file": path,
            "changed": is_changed,
        }));
    }
    if is_changed {
        let name = path.trim_start_matches('/');
        session
            .screen
            .line(unified(name, &change.before, &change.after))?;
    } else {
        session
            .screen
            .note(&format!("{path} already says so; nothing was changed"));
    }
    Ok(())
}
