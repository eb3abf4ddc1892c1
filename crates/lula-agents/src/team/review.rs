//! What a model says of a whole that it compared with the task: doubts for a person to read. They
//! change no verdict.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most doubts that are kept, and the longest of them.
const DOUBTS: usize = 8;
const DOUBT: usize = 400;

/// A whole compared with its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeReview {
    /// The model that was asked; empty where none was.
    pub by: String,
    /// Whether the same model wrote a part of it, and reviewed it in a conversation of its own.
    pub wrote_part: bool,
    /// What it doubts, one sentence each.
    pub doubts: Vec<String>,
    /// Why there is no review, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl WholeReview {
    /// No review, and why.
    pub fn none(why: impl Into<String>) -> Self {
        Self {
            by: String::new(),
            wrote_part: false,
            doubts: Vec::new(),
            missing: Some(why.into()),
        }
    }

    /// What a model answered.
    pub fn read(by: &str, wrote_part: bool, answer: &Value) -> Self {
        let doubts = answer.get("doubts").and_then(Value::as_array);
        let doubts = doubts.into_iter().flatten().filter_map(Value::as_str);
        let line = |text: &str| -> String {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            text.chars().take(DOUBT).collect()
        };
        Self {
            by: by.to_owned(),
            wrote_part,
            doubts: doubts
                .map(line)
                .filter(|doubt| !doubt.is_empty())
                .take(DOUBTS)
                .collect(),
            missing: None,
        }
    }

    /// The review in one line.
    pub fn told(&self) -> String {
        if let Some(why) = &self.missing {
            return format!("no model compared the whole with the task: {why}");
        }
        let found = match self.doubts.len() {
            0 => "no doubts".to_owned(),
            1 => "one doubt".to_owned(),
            more => format!("{more} doubts"),
        };
        let who = if self.wrote_part {
            format!(
                "{}, which wrote a part of it, in a conversation of its own",
                self.by
            )
        } else {
            self.by.clone()
        };
        format!("{found}, by {who}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_list_of_doubts_is_no_doubt() {
        let read = |answer: Value| WholeReview::read("a/b", false, &answer);
        assert!(read(json!({"doubts": "all of it"})).doubts.is_empty());
        assert!(read(json!(null)).doubts.is_empty());
        let said = read(json!({"doubts": [" the docs\nare missing ", "", 7]}));
        assert_eq!(said.doubts, ["the docs are missing"]);
        assert_eq!(said.told(), "one doubt, by a/b");
    }
}
