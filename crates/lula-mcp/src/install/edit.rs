//! One entry put into a configuration or taken out of it, with the rest of the text as the person wrote it:
//! comments, order and spaces stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table};

/// A configuration after an edit.
#[derive(Debug)]
pub(super) struct EditedText {
    pub(super) text: String,
    /// The entry that stood there before.
    pub(super) replaced: Option<Value>,
}

/// With `entry` under `table.name` of a JSON text, or without it. Comments and trailing commas are taken.
pub(super) fn json_text(
    text: &str,
    table: &str,
    name: &str,
    entry: Option<&Value>,
) -> Result<EditedText, String> {
    let parsed = CstRootNode::parse(text, &ParseOptions::default());
    let root = parsed.map_err(|error| error.to_string())?;
    let no_object = || "it holds something else than an object".to_owned();
    let top = match (root.value(), entry) {
        (None, None) => return Ok(unchanged(text)),
        (None, Some(_)) => root.object_value_or_create(),
        (Some(_), _) => root.object_value(),
    };
    let top = top.ok_or_else(no_object)?;
    let servers = match (top.get(table), entry) {
        (None, None) => return Ok(unchanged(text)),
        (None, Some(_)) => top.object_value_or_create(table),
        (Some(property), _) => property.object_value(),
    };
    let servers = servers.ok_or_else(|| format!("{table} is no object"))?;
    let found = servers.get(name);
    let replaced = found.as_ref().and_then(|one| one.value()?.to_serde_value());
    match (found, entry) {
        (None, None) => return Ok(unchanged(text)),
        (Some(found), None) => found.remove(),
        (Some(found), Some(entry)) => found.set_value(input(entry)),
        (None, Some(entry)) => drop(servers.append(name, input(entry))),
    }
    if entry.is_none() && servers.properties().is_empty() {
        // What was made for the entry goes with it.
        if let Some(property) = top.get(table) {
            property.remove();
        }
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(EditedText { text, replaced })
}

fn unchanged(text: &str) -> EditedText {
    EditedText {
        text: text.to_owned(),
        replaced: None,
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(fields.collect())
        }
    }
}

/// The same for TOML.
pub(super) fn toml_text(
    text: &str,
    table: &str,
    name: &str,
    entry: Option<&Value>,
) -> Result<EditedText, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    if entry.is_none() && !document.contains_key(table) {
        return Ok(unchanged(text));
    }
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let servers = document.entry(table).or_insert(Item::Table(implicit));
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| format!("{table} is no table"))?;
    let replaced = servers.get(name).map(plain);
    match entry {
        None if replaced.is_none() => return Ok(unchanged(text)),
        None => drop(servers.remove(name)),
        Some(entry) => drop(servers.insert(name, Item::Table(fields(entry)))),
    }
    if entry.is_none() && servers.is_empty() {
        document.remove(table);
    }
    Ok(EditedText {
        text: document.to_string(),
        replaced,
    })
}

fn fields(entry: &Value) -> Table {
    let mut table = Table::new();
    for (name, value) in entry.as_object().into_iter().flatten() {
        let value = match value {
            Value::String(text) => toml_edit::value(text),
            Value::Bool(value) => toml_edit::value(*value),
            Value::Number(number) => toml_edit::value(number.as_i64().unwrap_or_default()),
            Value::Array(values) => {
                toml_edit::value(values.iter().filter_map(Value::as_str).collect::<Array>())
            }
            Value::Null | Value::Object(_) => continue,
        };
        table.insert(name, value);
    }
    table
}

/// What an entry starts; the rest of it is not asked for.
fn plain(item: &Item) -> Value {
    let text = |name: &str| item.get(name).and_then(Item::as_str);
    let args = item.get("args").and_then(Item::as_array);
    let args: Vec<&str> = args
        .into_iter()
        .flatten()
        .filter_map(toml_edit::Value::as_str)
        .collect();
    serde_json::json!({"command": text("command"), "args": args})
}
