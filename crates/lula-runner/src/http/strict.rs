//! One value, one spelling: nothing of a request is ignored, and nothing means something else than
//! it says.
//!
//! Types that reject unknown fields do not do so everywhere: beside a variant without fields others
//! are passed over, and a variant can be named by its number. So what was understood is written
//! again and compared with what was sent.

use serde_json::{Number, Value};

/// The place of the first thing in `sent` that is not in `understood`. A field that is left out and
/// one that says nothing are the same.
pub(super) fn ignored(sent: &Value, understood: &Value) -> Option<String> {
    match (sent, understood) {
        (Value::Object(sent), Value::Object(understood)) => {
            sent.iter().find_map(|(name, value)| {
                let place = match understood.get(name) {
                    Some(known) => ignored(value, known)?,
                    None if says_nothing(value) => return None,
                    None => String::new(),
                };
                Some(format!("/{name}{place}"))
            })
        }
        (Value::Array(sent), Value::Array(understood)) if sent.len() == understood.len() => sent
            .iter()
            .zip(understood)
            .enumerate()
            .find_map(|(index, (sent, understood))| {
                Some(format!("/{index}{}", ignored(sent, understood)?))
            }),
        // Another reader of the same request would round it.
        (Value::Number(number), _) if is_rounded(number) => Some(String::new()),
        (sent, understood) => (sent != understood).then(String::new),
    }
}

/// Whether some readers of JSON take this whole number for another one.
fn is_rounded(number: &Number) -> bool {
    const SAFE: u64 = (1 << 53) - 1;
    let magnitude = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
    magnitude.is_some_and(|magnitude| magnitude > SAFE)
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lula_protocol::ToolAction;
    use serde_json::json;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(tag = "kind", deny_unknown_fields)]
    enum UnitVariant {
        Plain,
    }

    fn place(sent: &Value) -> Option<String> {
        let understood: ToolAction = serde_json::from_value(sent.clone()).unwrap();
        ignored(sent, &serde_json::to_value(understood).unwrap())
    }

    #[test]
    fn what_was_understood_is_what_was_sent() {
        for good in [
            json!({"tool": "exec", "input": {"argv": ["a"], "stdin": null, "cwd": ""}}),
            json!({"tool": "git", "input": {"command": "status"}}),
            json!({"tool": "read_file", "input": {"path": "a", "from_line": 3}}),
        ] {
            assert_eq!(place(&good), None, "{good}");
        }
    }

    #[test]
    fn a_number_that_others_would_round_is_refused() {
        let call = |ms: u64| json!({"tool": "exec", "input": {"argv": ["a"], "timeout_ms": ms}});
        assert_eq!(place(&call((1 << 53) - 1)), None);
        assert_eq!(place(&call(1 << 53)).as_deref(), Some("/input/timeout_ms"));
    }

    #[test]
    fn a_variant_by_number_and_a_field_that_is_passed_over_are_found() {
        let by_number = json!({"tool": "git", "input": {"command": 0}});
        assert_eq!(place(&by_number).as_deref(), Some("/input/command"));
        // Our own types have no variant without fields; should one come, it is found.
        let beside = json!({"kind": "Plain", "trusted": true});
        let understood: UnitVariant = serde_json::from_value(beside.clone()).unwrap();
        let understood = serde_json::to_value(understood).unwrap();
        assert_eq!(ignored(&beside, &understood).as_deref(), Some("/trusted"));
        let ours = json!({"tool": "git", "input": {"command": "status", "trusted": true}});
        assert!(serde_json::from_value::<ToolAction>(ours).is_err());
    }
}
