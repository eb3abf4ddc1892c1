//! Checking a value against a JSON schema. A keyword this does not know is an error of the
//! schema, never a check that silently passes.

use std::fmt;

use serde_json::Value;

/// Deepest nesting that is checked.
const MAX_DEPTH: usize = 64;
/// Most faults that are reported.
const MAX_FAULTS: usize = 8;

/// Keywords that say something to people only.
const ANNOTATIONS: [&str; 12] = [
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "$comment",
    "deprecated",
    "readOnly",
];

/// A place where a value breaks its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaBreach {
    /// The place, as a JSON pointer; empty is the whole value.
    pub at: String,
    /// What is wrong, in words a model can act on.
    pub what: String,
}

impl fmt::Display for SchemaBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() {
            "the answer"
        } else {
            &self.at
        };
        write!(f, "{at}: {}", self.what)
    }
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the schema uses {0}, which is not supported: write it with type, properties, required, additionalProperties, items, enum, const, anyOf, oneOf, allOf, $ref, minimum, maximum, minLength, maxLength, minItems or maxItems"
)]
pub struct UnsupportedSchema(pub String);

/// Every breach of the schema, up to eight; none means the value fits.
pub fn check(schema: &Value, value: &Value) -> Result<Vec<SchemaBreach>, UnsupportedSchema> {
    let mut check = Check {
        root: schema,
        breaches: Vec::new(),
    };
    check.value(schema, value, "", 0)?;
    Ok(check.breaches)
}

struct Check<'a> {
    root: &'a Value,
    breaches: Vec<SchemaBreach>,
}

impl<'a> Check<'a> {
    fn breach(&mut self, at: &str, what: impl Into<String>) {
        if self.breaches.len() < MAX_FAULTS {
            self.breaches.push(SchemaBreach {
                at: at.to_owned(),
                what: what.into(),
            });
        }
    }

    fn value(
        &mut self,
        schema: &'a Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), UnsupportedSchema> {
        if depth > MAX_DEPTH {
            return Err(UnsupportedSchema("too much nesting".to_owned()));
        }
        let rules = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => {
                self.breach(at, "is not allowed");
                return Ok(());
            }
            Value::Object(rules) => rules,
            _ => return Err(UnsupportedSchema("a schema that is no object".to_owned())),
        };
        for (keyword, rule) in rules {
            match keyword.as_str() {
                "type" => self.kind(rule, value, at)?,
                "enum" => {
                    let choices = rule.as_array().ok_or_else(|| bad(keyword))?;
                    if !choices.contains(value) {
                        let list: Vec<_> = choices.iter().map(Value::to_string).collect();
                        self.breach(at, format!("must be one of {}", list.join(", ")));
                    }
                }
                "const" if rule != value => self.breach(at, format!("must be {rule}")),
                "const" => {}
                "properties" => self.properties(rule, value, at, depth)?,
                "required" => self.required(rule, value, at)?,
                "additionalProperties" => {
                    self.additional(rules.get("properties"), rule, value, at, depth)?;
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(rule, item, &format!("{at}/{index}"), depth + 1)?;
                    }
                }
                "anyOf" | "oneOf" | "allOf" => self.several(keyword, rule, value, at, depth)?,
                "$ref" => {
                    let target = self.target(rule)?;
                    self.value(target, value, at, depth + 1)?;
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minLength"
                | "maxLength" | "minItems" | "maxItems" => self.bound(keyword, rule, value, at)?,
                known if ANNOTATIONS.contains(&known) => {}
                other => return Err(UnsupportedSchema(other.to_owned())),
            }
        }
        Ok(())
    }

    fn kind(&mut self, rule: &Value, value: &Value, at: &str) -> Result<(), UnsupportedSchema> {
        let wanted: Vec<&str> = match rule {
            Value::String(one) => vec![one.as_str()],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => return Err(bad("type")),
        };
        let fits = |kind: &str| match kind {
            "object" => Ok(value.is_object()),
            "array" => Ok(value.is_array()),
            "string" => Ok(value.is_string()),
            "boolean" => Ok(value.is_boolean()),
            "null" => Ok(value.is_null()),
            "number" => Ok(value.is_number()),
            "integer" => Ok(value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)),
            other => Err(UnsupportedSchema(format!("the type {other:?}"))),
        };
        for kind in &wanted {
            if fits(kind)? {
                return Ok(());
            }
        }
        self.breach(
            at,
            format!("must be {}, but is {}", wanted.join(" or "), kind_of(value)),
        );
        Ok(())
    }

    fn properties(
        &mut self,
        rule: &'a Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), UnsupportedSchema> {
        let rules = rule.as_object().ok_or_else(|| bad("properties"))?;
        for (name, rule) in rules {
            if let Some(field) = value.get(name) {
                self.value(rule, field, &format!("{at}/{name}"), depth + 1)?;
            }
        }
        Ok(())
    }

    fn required(&mut self, rule: &Value, value: &Value, at: &str) -> Result<(), UnsupportedSchema> {
        let names = rule.as_array().ok_or_else(|| bad("required"))?;
        if let Value::Object(fields) = value {
            for name in names.iter().filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    self.breach(at, format!("the field {name:?} is missing"));
                }
            }
        }
        Ok(())
    }

    fn additional(
        &mut self,
        known: Option<&Value>,
        rule: &'a Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), UnsupportedSchema> {
        for (name, field) in value.as_object().into_iter().flatten() {
            if known.and_then(|known| known.get(name)).is_some() {
                continue;
            }
            if *rule == Value::Bool(false) {
                self.breach(at, format!("the field {name:?} is not known"));
            } else {
                self.value(rule, field, &format!("{at}/{name}"), depth + 1)?;
            }
        }
        Ok(())
    }

    fn several(
        &mut self,
        keyword: &str,
        rule: &'a Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), UnsupportedSchema> {
        let schemas = rule.as_array().ok_or_else(|| bad(keyword))?;
        if keyword == "allOf" {
            for schema in schemas {
                self.value(schema, value, at, depth + 1)?;
            }
            return Ok(());
        }
        let mut fitting = 0;
        let mut nearest: Option<Vec<SchemaBreach>> = None;
        for schema in schemas {
            let mut inner = Check {
                root: self.root,
                breaches: Vec::new(),
            };
            inner.value(schema, value, at, depth + 1)?;
            if inner.breaches.is_empty() {
                fitting += 1;
            } else if nearest
                .as_ref()
                .is_none_or(|best| inner.breaches.len() < best.len())
            {
                nearest = Some(inner.breaches);
            }
        }
        if fitting == 0 {
            let hint = nearest.and_then(|breaches| breaches.into_iter().next());
            let hint = hint.map_or(String::new(), |breach| format!("; nearest: {breach}"));
            self.breach(
                at,
                format!("fits none of the {} allowed forms{hint}", schemas.len()),
            );
        } else if keyword == "oneOf" && fitting > 1 {
            self.breach(
                at,
                format!("fits {fitting} of the allowed forms, must fit one"),
            );
        }
        Ok(())
    }

    fn target(&self, rule: &Value) -> Result<&'a Value, UnsupportedSchema> {
        rule.as_str()
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| self.root.pointer(pointer))
            .ok_or_else(|| UnsupportedSchema(format!("the reference {rule}")))
    }

    fn bound(
        &mut self,
        keyword: &str,
        rule: &Value,
        value: &Value,
        at: &str,
    ) -> Result<(), UnsupportedSchema> {
        let limit = rule.as_f64().ok_or_else(|| bad(keyword))?;
        #[allow(clippy::cast_precision_loss)] // Lengths of answers are far below 2^52.
        let measured = match (keyword, value) {
            ("minLength" | "maxLength", Value::String(text)) => text.chars().count() as f64,
            ("minItems" | "maxItems", Value::Array(items)) => items.len() as f64,
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", number) => {
                match number.as_f64() {
                    Some(number) => number,
                    None => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        let fits = match keyword {
            "exclusiveMinimum" => measured > limit,
            "exclusiveMaximum" => measured < limit,
            _ if keyword.starts_with("min") => measured >= limit,
            _ => measured <= limit,
        };
        if !fits {
            self.breach(at, format!("breaks {keyword} {rule}"));
        }
        Ok(())
    }
}

fn bad(keyword: &str) -> UnsupportedSchema {
    UnsupportedSchema(format!("{keyword} in an unknown form"))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn breaches(schema: &Value, value: &Value) -> Vec<String> {
        check(schema, value)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn breaches_say_where_and_what() {
        let schema = json!({"type": "object", "required": ["file", "line"],
        "additionalProperties": false, "properties": {
            "file": {"enum": ["a.py", "b.py"]},
            "line": {"type": "integer", "minimum": 1},
        }});
        assert!(breaches(&schema, &json!({"file": "a.py", "line": 1})).is_empty());
        assert_eq!(
            breaches(&schema, &json!({"file": "c.py", "line": 0, "x": 1})),
            [
                "the answer: the field \"x\" is not known",
                "/file: must be one of \"a.py\", \"b.py\"",
                "/line: breaks minimum 1",
            ]
        );
        assert_eq!(
            breaches(&schema, &json!({"file": "a.py"})),
            ["the answer: the field \"line\" is missing"]
        );
        assert_eq!(
            breaches(&schema, &json!([])),
            ["the answer: must be object, but is an array"]
        );
    }

    #[test]
    fn alternatives_and_references_are_followed() {
        let schema = json!({"$defs": {"word": {"type": "string", "maxLength": 3}},
            "anyOf": [{"$ref": "#/$defs/word"}, {"type": "array", "items": {"$ref": "#/$defs/word"}}]});
        assert!(breaches(&schema, &json!("abc")).is_empty());
        assert!(breaches(&schema, &json!(["a", "b"])).is_empty());
        assert_eq!(breaches(&schema, &json!(["abcd"])).len(), 1);
    }

    #[test]
    fn a_check_that_is_not_understood_never_passes() {
        for schema in [
            json!({"pattern": "^a"}),
            json!({"type": "date"}),
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "#"}),
            json!({"properties": {"a": {"if": {}}}}),
        ] {
            assert!(check(&schema, &json!({"a": 1})).is_err(), "{schema}");
        }
    }
}
