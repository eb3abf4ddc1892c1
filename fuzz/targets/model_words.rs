//! Any words of a model are calls of tools that were offered, values, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_models::normal::ModelTool;
use lula_models::output::{gbnf, lenient, schema, text_calls};
use serde_json::json;

fuzz_target!(|text: &str| {
    let tools = ["read_file", "run"].map(|name| ModelTool {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
    });
    if let Ok(calls) = text_calls::parse(text, &tools) {
        assert!(calls.iter().all(|call| tools.iter().any(|tool| tool.name == call.name)));
    }
    let _ = lenient::values(text);
    let _ = lenient::parse(text);
    if let Ok(value) = lenient::value(text) {
        // What a lenient reader took is JSON, and may be a schema like any other.
        let written = serde_json::to_string(&value).expect("a value is written");
        assert_eq!(lenient::value(&written).as_ref(), Ok(&value));
        let _ = gbnf::of_schema(&value);
        let _ = schema::check(&value, &json!({"a": [1, "b", null]}));
    }
});
