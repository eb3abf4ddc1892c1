//! The OpenAPI document, made from the table of routes and the types that are really read.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::routes::{ROUTES, RunnerReply, RunnerRoute};
use lula_runner_api::RunnerProblem;

/// The largest whole number that every JSON reader keeps exactly.
const SAFE: u64 = (1 << 53) - 1;

/// Why a request can fail, whatever it is.
const FAILURES: [(u16, &str); 12] = [
    (400, "The request is not what this document describes"),
    (401, "The bearer key is missing or wrong"),
    (403, "A rule forbids it"),
    (404, "What it names is not there"),
    (405, "The path has other methods"),
    (408, "The request did not arrive in time"),
    (409, "The state is another one than the request supposes"),
    (413, "The request is too large"),
    (415, "The body is not JSON"),
    (429, "Too much at once; send it again later"),
    (500, "Something in the runner went wrong"),
    (
        503,
        "A sandbox or a tool in it broke; the same call may be sent again",
    ),
];

/// The OpenAPI document of the runner's API.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    "/components/schemas".clone_into(settings.definitions_path.to_mut());
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<RunnerProblem>().to_value();
    let result = generator
        .subschema_for::<lula_protocol::ToolResult>()
        .to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let mut responses = Map::new();
        responses.insert(route.status.to_string(), success(route, &mut generator));
        for (status, about) in FAILURES {
            let schema = if status == 403 && route.gated {
                json!({"anyOf": [result, problem]})
            } else {
                problem.clone()
            };
            responses.insert(status.to_string(), content(about, &schema));
        }
        if route.gated {
            let about = "A person has to agree first; nothing was done";
            responses.insert("428".to_owned(), content(about, &result));
        }
        let mut operation = json!({
            "operationId": route.id,
            "summary": route.summary,
            "responses": responses,
        });
        if let Some(body) = route.body {
            operation["requestBody"] = json!({
                "required": true,
                "content": {"application/json": {"schema": body(&mut generator)}},
            });
        }
        if let Some(name) = variable(route.path) {
            operation["parameters"] = json!([{
                "name": name,
                "in": "path",
                "required": true,
                "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            }]);
        }
        if route.path == "/healthz" {
            operation["security"] = json!([]);
        }
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let mut schemas = Value::Object(generator.take_definitions(true));
    bound_numbers(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lula runner",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The runner: tools in sandboxed, transactional workspaces. \
                Over a Unix socket the connecting user is the identity; over TCP a bearer key is needed.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    })
}

fn variable(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once('{')?;
    rest.split_once('}').map(|(name, _)| name)
}

fn content(about: &str, schema: &Value) -> Value {
    json!({"description": about, "content": {"application/json": {"schema": schema}}})
}

fn success(route: &RunnerRoute, generator: &mut schemars::SchemaGenerator) -> Value {
    match &route.reply {
        RunnerReply::Json(schema) => content("Done", &schema(generator).to_value()),
        RunnerReply::Document => content("Done", &json!({"type": "object"})),
        RunnerReply::Text(kind) => json!({
            "description": "Done",
            "content": {*kind: {"schema": {"type": "string"}}},
        }),
        RunnerReply::Events(schema) => {
            // What one line or event holds; the stream as a whole is a string to a JSON schema.
            let line = schema(generator).to_value();
            json!({
                "description": "A stream: one event on each line, or server-sent events",
                "content": {
                    "application/x-ndjson": {"schema": {"type": "string"}, "x-line": line},
                    "text/event-stream": {"schema": {"type": "string"}, "x-event": line},
                },
            })
        }
        RunnerReply::Nothing => json!({"description": "Done"}),
    }
}

/// Numbers that JSON readers could round are refused; the document says so.
fn bound_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.get("format").and_then(Value::as_str) == Some("uint64") {
                map.insert("maximum".to_owned(), SAFE.into());
            }
            map.values_mut().for_each(bound_numbers);
        }
        Value::Array(items) => items.iter_mut().for_each(bound_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = document();
        let mut waiting = vec![&document];
        let mut seen = 0;
        while let Some(value) = waiting.pop() {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(place)) = map.get("$ref") {
                        seen += 1;
                        let pointer = place.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{place}");
                    }
                    waiting.extend(map.values());
                }
                Value::Array(items) => waiting.extend(items),
                _ => {}
            }
        }
        assert!(seen > 50);
    }

    #[test]
    fn what_reaches_a_gate_takes_no_further_fields() {
        let document = document();
        for name in [
            "ToolCall",
            "ApprovalToken",
            "CommitWorkspace",
            "ExecCommand",
            "WriteFile",
        ] {
            let schema = &document["components"]["schemas"][name];
            assert_eq!(schema["additionalProperties"], false, "{name}: {schema}");
        }
    }
}
