//! Calls that a model wrote into its words: fenced JSON, `<tool_call>`, `<function=…>`,
//! `<invoke name=…>`. Only whole calls of tools that were offered are taken.

use serde_json::{Map, Value};

use super::lenient;
use crate::normal::{ModelTool, ModelToolCall};

/// Why the text holds no call that may be acted on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextCallError {
    /// A call was begun and not ended, or its arguments are no JSON.
    #[error("a call is not whole: {0}")]
    Broken(String),
    /// The tool was not offered.
    #[error("there is no tool {name:?}; the tools are {known}")]
    UnknownTool {
        /// The name that was written.
        name: String,
        /// The names there are.
        known: String,
    },
}

/// The calls in the text, in order; empty where it is just words.
pub fn parse(text: &str, tools: &[ModelTool]) -> Result<Vec<ModelToolCall>, TextCallError> {
    let mut found = marked(text)?;
    if found.is_empty() {
        found = bare(text, tools);
    }
    found
        .into_iter()
        .enumerate()
        .map(|(place, (name, arguments))| {
            if !tools.iter().any(|tool| tool.name == name) {
                let known: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
                return Err(TextCallError::UnknownTool {
                    name,
                    known: known.join(", "),
                });
            }
            Ok(ModelToolCall {
                id: format!("text_{place}"),
                name,
                arguments,
            })
        })
        .collect()
}

type TextCall = (String, Value);

/// Calls between marks that mean nothing but a call: broken ones are errors.
fn marked(text: &str) -> Result<Vec<TextCall>, TextCallError> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((start, mark)) = first_mark(rest) {
        let after = &rest[start + mark.open.len()..];
        let Some(end) = after.find(mark.close) else {
            return Err(TextCallError::Broken(format!(
                "{} without {}",
                mark.open, mark.close
            )));
        };
        let body = &after[..end];
        match mark.kind {
            MarkKind::Json => {
                // Some models nest one form in the other.
                let inner = marked(body)?;
                if inner.is_empty() {
                    out.extend(json_calls(body)?);
                } else {
                    out.extend(inner);
                }
            }
            MarkKind::Named => out.push(named(body, mark)?),
        }
        rest = &after[end + mark.close.len()..];
    }
    Ok(out)
}

#[derive(Clone, Copy)]
enum MarkKind {
    Json,
    Named,
}

#[derive(Clone, Copy)]
struct Mark {
    open: &'static str,
    close: &'static str,
    kind: MarkKind,
    parameter: (&'static str, &'static str),
}

const MARKS: [Mark; 4] = [
    Mark {
        open: "<tool_call>",
        close: "</tool_call>",
        kind: MarkKind::Json,
        parameter: ("", ""),
    },
    Mark {
        open: "<tools>",
        close: "</tools>",
        kind: MarkKind::Json,
        parameter: ("", ""),
    },
    Mark {
        open: "<function=",
        close: "</function>",
        kind: MarkKind::Named,
        parameter: ("<parameter=", "</parameter>"),
    },
    Mark {
        open: "<invoke name=",
        close: "</invoke>",
        kind: MarkKind::Named,
        parameter: ("<parameter name=", "</parameter>"),
    },
];

fn first_mark(text: &str) -> Option<(usize, Mark)> {
    MARKS
        .into_iter()
        .filter_map(|mark| text.find(mark.open).map(|at| (at, mark)))
        .min_by_key(|(at, _)| *at)
}

fn json_calls(body: &str) -> Result<Vec<TextCall>, TextCallError> {
    let value = lenient::value(body).map_err(TextCallError::Broken)?;
    let items = match value {
        Value::Array(items) => items,
        one => vec![one],
    };
    items
        .into_iter()
        .map(|item| call_of(&item).ok_or_else(|| TextCallError::Broken("no name".to_owned())))
        .collect()
}

/// `name>` and then parameters, each a JSON value or plain text.
fn named(body: &str, mark: Mark) -> Result<TextCall, TextCallError> {
    let broken = |what: &str| TextCallError::Broken(what.to_owned());
    let (name, mut rest) = body
        .split_once('>')
        .ok_or_else(|| broken("a name without >"))?;
    let name = unquoted(name);
    let (open, close) = mark.parameter;
    let mut arguments = Map::new();
    while let Some(start) = rest.find(open) {
        let after = &rest[start + open.len()..];
        let (key, value) = after
            .split_once('>')
            .ok_or_else(|| broken("a parameter without >"))?;
        let end = value
            .find(close)
            .ok_or_else(|| broken("a parameter without its end"))?;
        let text = value[..end].strip_prefix('\n').unwrap_or(&value[..end]);
        let text = text.strip_suffix('\n').unwrap_or(text);
        arguments.insert(unquoted(key), plain_or_json(text));
        rest = &value[end + close.len()..];
    }
    // `<function=name>{"a": 1}</function>`
    if arguments.is_empty() && rest.trim_start().starts_with('{') {
        let value = lenient::value(rest).map_err(TextCallError::Broken)?;
        return Ok((name, value));
    }
    Ok((name, Value::Object(arguments)))
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

/// Numbers, booleans, lists and objects are taken as such; a quoted or bare text is text.
fn plain_or_json(text: &str) -> Value {
    match serde_json::from_str(text.trim()) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            value
        }
        _ => Value::String(text.to_owned()),
    }
}

/// JSON in fences or alone, which may also be just an example: taken only where it names a tool
/// that was offered, and nothing else stands beside it as JSON.
fn bare(text: &str, tools: &[ModelTool]) -> Vec<TextCall> {
    let values = lenient::values(text);
    let mut calls = Vec::new();
    for value in &values {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items {
            match call_of(item) {
                Some(call) if tools.iter().any(|tool| tool.name == call.0) => calls.push(call),
                _ => return Vec::new(),
            }
        }
    }
    calls
}

/// The spellings of a call in use.
fn call_of(value: &Value) -> Option<TextCall> {
    let object = value.as_object()?;
    if let Some(function) = object
        .get("function")
        .filter(|function| function.is_object())
    {
        return call_of(function);
    }
    let name = ["name", "tool", "tool_name", "function"]
        .into_iter()
        .find_map(|key| object.get(key).and_then(Value::as_str))?;
    let arguments = ["arguments", "parameters", "args", "input"]
        .into_iter()
        .find_map(|key| object.get(key));
    let arguments = match arguments {
        Some(Value::String(text)) => lenient::parse(text).ok()?,
        Some(value) => value.clone(),
        None => Value::Object(Map::new()),
    };
    arguments.is_object().then(|| (name.to_owned(), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tools() -> Vec<ModelTool> {
        ["read_file", "run"]
            .map(|name| ModelTool {
                name: name.into(),
                description: String::new(),
                parameters: json!({}),
            })
            .to_vec()
    }

    #[test]
    fn every_spelling_of_one_call_is_read() {
        for text in [
            "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.py\"}}\n```",
            "I will read it.\n{\"tool\": \"read_file\", \"parameters\": {\"path\": \"a.py\"}}",
            "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.py\"}}\n</tool_call>",
            "<tool_call>{\"name\": \"read_file\", \"arguments\": \"{\\\"path\\\": \\\"a.py\\\"}\"}</tool_call>",
            "<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>",
            "<tool_call><function=read_file>{\"path\": \"a.py\"}</function></tool_call>",
            "<invoke name=\"read_file\"><parameter name=\"path\">a.py</parameter></invoke>",
            "[{\"type\": \"function\", \"function\": {\"name\": \"read_file\", \"arguments\": {\"path\": \"a.py\"}}}]",
        ] {
            let calls = parse(text, &tools()).unwrap();
            assert_eq!(calls.len(), 1, "{text}");
            assert_eq!(calls[0].name, "read_file");
            assert_eq!(calls[0].arguments, json!({"path": "a.py"}), "{text}");
        }
    }

    #[test]
    fn several_calls_keep_their_order() {
        let text = "<tool_call>{\"name\":\"run\",\"arguments\":{\"n\":1}}</tool_call>\n\
                    <tool_call>{\"name\":\"run\",\"arguments\":{\"n\":2}}</tool_call>";
        let calls = parse(text, &tools()).unwrap();
        assert_eq!(
            calls
                .iter()
                .map(|call| &call.arguments["n"])
                .collect::<Vec<_>>(),
            [1, 2]
        );
    }

    #[test]
    fn half_a_call_is_an_error_never_an_action() {
        for text in [
            "<tool_call>{\"name\":\"run\",\"arguments\":{\"cmd\":\"rm -rf",
            "<tool_call>{\"name\":\"run\"</tool_call>",
            "<function=run><parameter=cmd>rm</function>",
        ] {
            assert!(
                matches!(parse(text, &tools()), Err(TextCallError::Broken(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn a_tool_that_was_not_offered_is_named_back() {
        let error = parse("<tool_call>{\"name\":\"rm\"}</tool_call>", &tools()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no tool \"rm\"; the tools are read_file, run"
        );
    }

    #[test]
    fn json_that_is_no_call_is_just_words() {
        for text in [
            "The config is {\"name\": \"demo\", \"version\": 1}.",
            "Hello",
            "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}} gives {\"lines\": 3}",
        ] {
            assert!(parse(text, &tools()).unwrap().is_empty(), "{text}");
        }
    }

    #[test]
    fn numbers_stay_numbers_and_text_keeps_its_lines() {
        let text = "<function=run><parameter=n>3</parameter><parameter=t>\n  a\n\n b\n</parameter></function>";
        let calls = parse(text, &tools()).unwrap();
        assert_eq!(calls[0].arguments, json!({"n": 3, "t": "  a\n\n b"}));
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(
            text in "(<tool_call>|</tool_call>|<function=|</function>|<parameter=|>|\\{|\\}|\"|name|run|:|é| ){0,30}"
        ) {
            let _ = parse(&text, &tools());
        }

        #[test]
        fn a_call_cut_anywhere_is_never_another_call(cut in 0_usize..71) {
            let whole = "<tool_call>{\"name\":\"run\",\"arguments\":{\"cmd\":\"make test\"}}</tool_call>";
            let Some(text) = whole.get(..cut) else { return Ok(()) };
            if cut < whole.len() {
                prop_assert!(parse(text, &tools()).map_or(true, |calls| calls.is_empty()));
            }
        }
    }
}
