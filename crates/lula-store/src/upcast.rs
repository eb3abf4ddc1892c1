//! Reading event bodies of older shapes. Each upcaster lifts a body by one version and is kept for
//! ever; digests are always taken over the bytes as they were written.

use lula_protocol::event::EVENT_SCHEMA;
use serde_json::Value;

use crate::error::{StoreError, StoreResult};

/// Lifts a body by one version.
pub type EventUpcaster = fn(Value) -> Value;

/// `UPCASTERS[0]` lifts shape 1 to shape 2, and so on.
const UPCASTERS: &[EventUpcaster] = &[];

/// Lifts a body to today's shape.
pub fn to_current(schema: u32, body: Value) -> StoreResult<Value> {
    lift(UPCASTERS, EVENT_SCHEMA, schema, body)
}

/// Lifts a body from `from` to `to` with the given steps.
pub fn lift(steps: &[EventUpcaster], to: u32, from: u32, body: Value) -> StoreResult<Value> {
    if from > to || from == 0 {
        return Err(StoreError::Newer {
            what: "an event",
            found: from,
            known: to,
        });
    }
    let first = from as usize - 1;
    let last = to as usize - 1;
    let steps = steps.get(first..last).ok_or(StoreError::Newer {
        what: "an event",
        found: from,
        known: to,
    })?;
    Ok(steps.iter().fold(body, |body, step| step(body)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rename_tool(mut body: Value) -> Value {
        if let Some(fields) = body.as_object_mut()
            && let Some(tool) = fields.remove("tool")
        {
            fields.insert("name".to_owned(), tool);
        }
        body
    }

    fn add_class(mut body: Value) -> Value {
        body["class"] = "external".into();
        body
    }

    const STEPS: &[EventUpcaster] = &[rename_tool, add_class];

    #[test]
    fn an_old_body_is_lifted_through_every_version_since() {
        let old = json!({"kind": "effect_intended", "tool": "push"});
        let new = json!({"kind": "effect_intended", "name": "push", "class": "external"});
        assert_eq!(lift(STEPS, 3, 1, old).unwrap(), new);
        let middle = json!({"kind": "effect_intended", "name": "push"});
        assert_eq!(lift(STEPS, 3, 2, middle).unwrap(), new);
        assert_eq!(lift(STEPS, 3, 3, new.clone()).unwrap(), new);
    }

    #[test]
    fn a_body_of_a_newer_program_is_refused_not_guessed() {
        for unknown in [0, 4, 900] {
            let error = lift(STEPS, 3, unknown, json!({})).unwrap_err();
            assert!(error.to_string().contains("newer lula"), "{error}");
        }
    }

    #[test]
    fn there_is_an_upcaster_for_every_shape_ever_written() {
        assert_eq!(UPCASTERS.len() + 1, EVENT_SCHEMA as usize);
    }
}
