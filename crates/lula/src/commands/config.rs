//! `lula config`

use lula_config::resolve::{ConfigEntry, ConsideredSetting, SettingVerdict};
use lula_config::write::{self, ConfigFileChange};
use lula_config::{ConfigError, ConfigKeySpec, ConfigLayer, keys, reference};
use lula_protocol::{Code, RunExit};
use serde_json::{Value, json};

use crate::cli::{ConfigCommand, FileLayer};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, paint, unified};

pub(super) fn run(command: ConfigCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        ConfigCommand::List => list(session)?,
        ConfigCommand::Get { key } => get(entry(session, &key)?, session)?,
        ConfigCommand::Explain { key } => explain(entry(session, &key)?, session)?,
        ConfigCommand::Set { key, value, layer } => {
            let (spec, layer) = (find(&key)?, ConfigLayer::from(layer));
            let change = write::set(file(session, layer)?, layer, spec, &value)?;
            changed(session, spec, layer, &change)?;
        }
        ConfigCommand::Unset { key, layer } => {
            let (spec, layer) = (find(&key)?, ConfigLayer::from(layer));
            let change = write::unset(file(session, layer)?, layer, spec)?;
            changed(session, spec, layer, &change)?;
        }
        ConfigCommand::Reference => session.screen.line(reference::page().trim_end())?,
    }
    Ok(RunExit::Verified)
}

fn find(name: &str) -> Result<&'static ConfigKeySpec, CommandFailure> {
    keys::find(name).ok_or_else(|| ConfigError::unknown_key(name).into())
}

fn entry<'a>(session: &'a CliSession, name: &str) -> Result<&'a ConfigEntry, CommandFailure> {
    let spec = find(name)?;
    session
        .host
        .config
        .entry(spec)
        .ok_or_else(|| ConfigError::unknown_key(name).into())
}

fn list(session: &CliSession) -> Result<(), CommandFailure> {
    let entries = session.host.config.entries();
    if session.screen.is_json() {
        return session
            .screen
            .document(&entries.iter().map(summary).collect::<Vec<_>>());
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

fn summary(entry: &ConfigEntry) -> Value {
    let winner = entry.winner();
    json!({
        "key": entry.spec.name,
        "value": winner.value.to_string(),
        "layer": winner.layer.name(),
        "origin": winner.origin.to_string(),
        "default": entry.spec.default,
        "doc": entry.spec.doc,
    })
}

fn get(entry: &ConfigEntry, session: &CliSession) -> Result<(), CommandFailure> {
    if session.screen.is_json() {
        session.screen.document(&summary(entry))
    } else {
        session.screen.line(&entry.winner().value)
    }
}

fn explain(entry: &ConfigEntry, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        let mut document = summary(entry);
        document["layers"] = entry.history.iter().map(layer_document).collect();
        return screen.document(&document);
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

fn layer_document(considered: &ConsideredSetting) -> Value {
    let setting = &considered.setting;
    let (verdict, reason) = match &considered.verdict {
        SettingVerdict::Won => ("won", None),
        SettingVerdict::Overridden => ("overridden", None),
        SettingVerdict::Refused(reason) => ("refused", Some(reason)),
    };
    json!({
        "layer": setting.layer.name(),
        "value": setting.value.to_string(),
        "origin": setting.origin.to_string(),
        "verdict": verdict,
        "reason": reason,
    })
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

fn file(session: &CliSession, layer: ConfigLayer) -> Result<&std::path::Path, CommandFailure> {
    session.host.locations.of(layer).ok_or_else(|| {
        let (message, remedy) = match layer {
            ConfigLayer::Repository => (
                "this directory is in no git repository",
                "change to a repository, or leave out `--in repository`",
            ),
            _ => ("no home directory is known", "set HOME or LULA_CONFIG_FILE"),
        };
        CommandFailure::new(Code::ConfigUnreadable, RunExit::Usage, message).remedy(remedy)
    })
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
