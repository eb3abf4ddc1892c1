//! How logs spell effects.
//!
//! A log holds the digest of what was ordered, and replay compares it: what was written once is
//! written for good, in the words of that time. Here, and nowhere else, stands how those words become
//! ours and back.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::RunEffect;

type Fields = Map<String, Value>;

/// What each kind of effect is called, by us and by logs, where that is not the same.
const KINDS: &[(&str, &str)] = &[
    ("run_tests", "examine"),
    ("search", "repair"),
    ("take_change", "change"),
    ("select_tests", "pick"),
    ("verify", "weigh"),
    ("open_on_branch", "open_over"),
    ("commit", "harvest"),
    ("merge", "join"),
    ("fill", "lay"),
    ("in_repository", "elsewhere"),
];

/// An effect as logs spell it.
pub(crate) struct EffectLogForm<'a>(pub(super) &'a RunEffect);

impl Serialize for EffectLogForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ours = serde_json::to_value(self.0).map_err(serde::ser::Error::custom)?;
        to_log(ours).serialize(serializer)
    }
}

/// Reads an effect as logs spell it.
pub(super) fn read(logged: Value) -> Result<RunEffect, serde_json::Error> {
    serde_json::from_value(from_log(logged))
}

fn to_log(ours: Value) -> Value {
    let Value::Object(mut fields) = ours else {
        return ours;
    };
    let kind = text(fields.remove("kind"));
    let known = KINDS.iter().find(|(ours, _)| *ours == kind);
    let logged = known.map_or(kind.as_str(), |(_, logged)| logged).to_owned();
    fields.insert("deed".to_owned(), Value::String(logged));
    match kind.as_str() {
        "ask" => rename(&mut fields, "model", "mind"),
        "propose" => rename(&mut fields, "step", "job"),
        "open_on_branch" => {
            rename(&mut fields, "order", "wanted");
            within(&mut fields, "wanted", |order| {
                rename(order, "branch", "line");
                rename(order, "write_scope", "scope");
                rename(order, "start", "footing");
                spell_out(order, &["scope", "contains"], &json!([]));
            });
        }
        "commit" => within(&mut fields, "order", branch_to_line),
        "merge" => within(&mut fields, "order", |order| {
            branch_to_line(order);
            if let Some(Value::Object(mut tests)) = order.remove("tests") {
                rename(&mut tests, "command", "tests");
                spell_out(&mut tests, &["tests", "before"], &Value::Null);
                spell_out(&mut tests, &["accept"], &json!([]));
                order.append(&mut tests);
            }
        }),
        "fill" => {
            if let Some(Value::Object(mut order)) = fields.remove("order") {
                rename(&mut order, "branch", "line");
                fields.append(&mut order);
            }
        }
        "deliver" => deliver_to_log(&mut fields),
        "in_repository" => {
            rename(&mut fields, "repo", "site");
            let inner = fields.remove("effect").unwrap_or_default();
            fields.insert("act".to_owned(), to_log(inner));
        }
        _ => {}
    }
    Value::Object(fields)
}

fn from_log(logged: Value) -> Value {
    let Value::Object(mut fields) = logged else {
        return logged;
    };
    let kind = text(fields.remove("deed"));
    let known = KINDS.iter().find(|(_, logged)| *logged == kind);
    let ours = known.map_or(kind.as_str(), |(ours, _)| ours).to_owned();
    match ours.as_str() {
        "ask" => rename(&mut fields, "mind", "model"),
        "propose" => rename(&mut fields, "job", "step"),
        "open_on_branch" => {
            rename(&mut fields, "wanted", "order");
            within(&mut fields, "order", |order| {
                rename(order, "line", "branch");
                rename(order, "scope", "write_scope");
                rename(order, "footing", "start");
            });
        }
        "commit" => within(&mut fields, "order", line_to_branch),
        "merge" => within(&mut fields, "order", |order| {
            line_to_branch(order);
            rename(order, "tests", "command");
            let mut tests = Fields::new();
            for key in ["command", "folder", "before", "accept", "tests_ms"] {
                tests.extend(order.remove(key).map(|value| (key.to_owned(), value)));
            }
            order.insert("tests".to_owned(), Value::Object(tests));
        }),
        "fill" => {
            rename(&mut fields, "line", "branch");
            fields = Fields::from_iter([("order".to_owned(), Value::Object(fields))]);
        }
        "deliver" | "deliver_all" => return deliver_from_log(fields),
        "in_repository" => {
            rename(&mut fields, "site", "repo");
            let inner = fields.remove("act").unwrap_or_default();
            fields.insert("effect".to_owned(), from_log(inner));
        }
        _ => {}
    }
    fields.insert("kind".to_owned(), Value::String(ours));
    Value::Object(fields)
}

/// Logs tell the delivery of a run with one repository from that of one with several.
fn deliver_to_log(fields: &mut Fields) {
    let several = fields.remove("several") == Some(Value::Bool(true));
    let parts = match fields.remove("parts") {
        Some(Value::Array(parts)) => parts,
        _ => Vec::new(),
    };
    let mut logged = parts.into_iter().map(|part| {
        let Value::Object(mut part) = part else {
            return part;
        };
        rename(&mut part, "repo", "site");
        rename(&mut part, "delivery", "order");
        within(&mut part, "order", |order| {
            let files = order.remove("into_files") == Some(Value::Bool(true));
            let mode = if files { "worktree" } else { "branch" };
            order.insert("deliver".to_owned(), mode.into());
        });
        Value::Object(part)
    });
    if several {
        let parts: Vec<Value> = logged.collect();
        fields.insert("deed".to_owned(), "deliver_all".into());
        fields.insert("parts".to_owned(), Value::Array(parts));
    } else if let Some(Value::Object(mut part)) = logged.next() {
        let order = part.remove("order").unwrap_or_default();
        fields.insert("order".to_owned(), order);
    }
}

fn deliver_from_log(mut fields: Fields) -> Value {
    let (parts, several) = match (fields.remove("parts"), fields.remove("order")) {
        (Some(Value::Array(parts)), _) => (parts, true),
        (_, order) => (vec![json!({"site": 0, "order": order})], false),
    };
    let parts: Vec<Value> = parts
        .into_iter()
        .map(|mut part| {
            if let Some(part) = part.as_object_mut() {
                rename(part, "site", "repo");
                rename(part, "order", "delivery");
                within(part, "delivery", |order| {
                    let files = text(order.remove("deliver")) == "worktree";
                    order.insert("into_files".to_owned(), files.into());
                });
            }
            part
        })
        .collect();
    json!({"kind": "deliver", "parts": parts, "several": several})
}

fn branch_to_line(order: &mut Fields) {
    rename(order, "branch", "line");
    rename(order, "step", "job");
}

fn line_to_branch(order: &mut Fields) {
    rename(order, "line", "branch");
    rename(order, "job", "step");
}

fn rename(fields: &mut Fields, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}

/// Writes what the API leaves out where it is nothing.
fn spell_out(fields: &mut Fields, keys: &[&str], nothing: &Value) {
    for key in keys {
        let value = fields.entry(*key).or_insert_with(|| nothing.clone());
        if value.is_null() {
            *value = nothing.clone();
        }
    }
}

fn within(fields: &mut Fields, key: &str, change: impl FnOnce(&mut Fields)) {
    if let Some(Value::Object(inner)) = fields.get_mut(key) {
        change(inner);
    }
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
