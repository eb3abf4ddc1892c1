//! A JSON schema as a grammar (GBNF), for servers that constrain by grammar only.
//!
//! Every text of the grammar fits the schema; fields come in one order, the required ones first.

use std::fmt::Write;

use serde_json::Value;

use super::schema::UnsupportedSchema;

const TERMINALS: &str = r#"ws ::= [ \t\n]{0,8}
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
"#;

/// The grammar of the schema.
pub fn of_schema(schema: &Value) -> Result<String, UnsupportedSchema> {
    let mut grammar = Grammar {
        rules: String::new(),
        count: 0,
    };
    let root = grammar.rule(schema, 0)?;
    Ok(format!("root ::= {root}\n{}{TERMINALS}", grammar.rules))
}

struct Grammar {
    rules: String,
    count: usize,
}

impl Grammar {
    fn name(&mut self, body: &str) -> String {
        self.count += 1;
        let name = format!("r{}", self.count);
        // Writing to a string cannot fail.
        let _ = writeln!(self.rules, "{name} ::= {body}");
        name
    }

    fn rule(&mut self, schema: &Value, depth: usize) -> Result<String, UnsupportedSchema> {
        if depth > 16 {
            return Err(UnsupportedSchema("too much nesting".to_owned()));
        }
        if let Some(value) = schema.get("const") {
            return Ok(literal(value));
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            let body = choices.iter().map(literal).collect::<Vec<_>>().join(" | ");
            return Ok(self.name(&body));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(forms) = schema.get(keyword).and_then(Value::as_array) {
                let forms = forms
                    .iter()
                    .map(|form| self.rule(form, depth + 1))
                    .collect::<Result<Vec<_>, _>>()?;
                return Ok(self.name(&forms.join(" | ")));
            }
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let items = schema.get("items").ok_or_else(|| missing("items"))?;
                let item = self.rule(items, depth + 1)?;
                let some = format!("{item} (ws \",\" ws {item})*");
                let some = match schema.get("minItems").and_then(Value::as_u64) {
                    None | Some(0) => format!("({some})?"),
                    Some(1) => some,
                    Some(_) => return Err(UnsupportedSchema("minItems above 1".to_owned())),
                };
                Ok(self.name(&format!("\"[\" ws {some} ws \"]\"")))
            }
            Some("null") => Ok("\"null\"".to_owned()),
            Some(plain @ ("string" | "integer" | "number" | "boolean")) => Ok(plain.to_owned()),
            Some(other) => Err(UnsupportedSchema(format!("the type {other:?}"))),
            None => Err(missing("type")),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Result<String, UnsupportedSchema> {
        let fields = schema
            .get("properties")
            .and_then(Value::as_object)
            .ok_or_else(|| missing("properties"))?;
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let is_required = |name: &str| required.is_empty() || required.contains(&name);
        let mut body = String::from("\"{\" ws ");
        let mut first = true;
        for wanted in [true, false] {
            for (name, field) in fields
                .iter()
                .filter(|(name, _)| is_required(name) == wanted)
            {
                let value = self.rule(field, depth + 1)?;
                let key = literal(&Value::String(name.clone()));
                let comma = if first { "" } else { "\",\" ws " };
                let pair = format!("{comma}{key} ws \":\" ws {value} ws ");
                let pair = if wanted { pair } else { format!("({pair})? ") };
                body.push_str(&pair);
                first = false;
            }
        }
        body.push_str("\"}\"");
        Ok(self.name(&body))
    }
}

fn literal(value: &Value) -> String {
    // JSON text as a quoted terminal: GBNF escapes as JSON strings do.
    Value::String(value.to_string()).to_string()
}

fn missing(what: &str) -> UnsupportedSchema {
    UnsupportedSchema(format!("a place without {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flat_schema_becomes_a_grammar() {
        let schema = json!({"type": "object", "required": ["file"], "properties": {
            "file": {"enum": ["a.py", "b.py"]}, "line": {"type": "integer"}}});
        let grammar = of_schema(&schema).unwrap();
        let head: Vec<_> = grammar.lines().take(3).collect();
        assert_eq!(
            head,
            [
                "root ::= r2",
                r#"r1 ::= "\"a.py\"" | "\"b.py\"""#,
                r#"r2 ::= "{" ws "\"file\"" ws ":" ws r1 ws ("," ws "\"line\"" ws ":" ws integer ws )? "}""#,
            ]
        );
    }

    #[test]
    fn a_schema_without_a_grammar_is_refused() {
        for schema in [json!({}), json!({"type": "object"}), json!({"$ref": "#/a"})] {
            assert!(of_schema(&schema).is_err());
        }
    }
}
