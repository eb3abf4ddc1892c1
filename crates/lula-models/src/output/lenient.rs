//! Reading JSON that a model wrote among other things: fences, talk around it, trailing commas,
//! comments. What is read is exactly what was written; nothing missing is made up.

use serde_json::Value;

/// The one JSON object or array in the text, or why there is none.
pub fn value(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let whole = strip_fence(text);
    let first = match parse(whole) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut found = values(text);
    match found.len() {
        0 => Err(first),
        1 => Ok(found.remove(0)),
        n => Err(format!("{n} JSON values where one is wanted")),
    }
}

/// So many bytes are looked at, again and again, behind brackets that open nothing.
const PATIENCE: usize = 16 << 20;

/// Every whole JSON object or array that stands in the text, in order. A text that is nearly all
/// brackets has none.
pub fn values(text: &str) -> Vec<Value> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let (mut at, mut looked_at) = (0, 0);
    while at < bytes.len() {
        if matches!(bytes[at], b'{' | b'[') {
            let (end, seen) = balanced(&bytes[at..]);
            looked_at += seen;
            if looked_at > PATIENCE {
                return Vec::new();
            }
            if let Some(end) = end
                && let Ok(value) = parse(&text[at..at + end])
            {
                out.push(value);
                at += end;
                continue;
            }
        }
        at += 1;
    }
    out
}

/// Strict JSON first; then the same without comments and trailing commas.
pub fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .or_else(|strict| serde_json::from_str(&relaxed(text)).map_err(|_| strict.to_string()))
}

fn strip_fence(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("```") else {
        return text;
    };
    let Some((_, body)) = rest.split_once('\n') else {
        return text;
    };
    body.trim_end().strip_suffix("```").map_or(text, str::trim)
}

/// The length of the bracketed value at the start, strings respected, and how much was looked at.
fn balanced(bytes: &[u8]) -> (Option<usize>, usize) {
    let mut open = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    for (index, &byte) in bytes.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    return (None, index + 1);
                }
                if open.is_empty() {
                    return (Some(index + 1), index + 1);
                }
            }
            _ => {}
        }
    }
    (None, bytes.len())
}

/// Without `//` comments, and without commas before a closing bracket. Strings stay untouched.
fn relaxed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            out.push(c);
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '}' | ']' => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
                out.push(c);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn json_is_found_in_fences_and_talk() {
        for text in [
            r#"{"a": [1, "}"]}"#,
            "```json\n{\"a\": [1, \"}\"]}\n```",
            "Sure! Here it is:\n\n```\n{\"a\": [1, \"}\",],}\n```\nHope it helps.",
            "{\"a\": [1, // one\n \"}\"]}",
        ] {
            assert_eq!(value(text).unwrap(), json!({"a": [1, "}"]}), "{text}");
        }
    }

    #[test]
    fn a_sea_of_brackets_is_given_up() {
        let sea = format!("{{\"a\": 1}} {}", "[".repeat(1 << 20));
        assert!(values(&sea).is_empty());
        let few = format!("{{\"a\": 1}} {}", "[".repeat(1000));
        assert_eq!(values(&few), [json!({"a": 1})]);
    }

    #[test]
    fn two_answers_are_no_answer() {
        assert!(
            value("{\"a\":1}\n{\"a\":2}")
                .unwrap_err()
                .contains("2 JSON values")
        );
    }

    #[test]
    fn half_an_object_is_not_completed() {
        assert!(value("{\"a\": 1").is_err());
        assert!(value("{\"path\": \"src/ma").is_err());
    }

    #[test]
    fn strings_keep_their_commas_and_slashes() {
        assert_eq!(
            parse("{\"a\": \"x,}//y\",}").unwrap(),
            json!({"a": "x,}//y"})
        );
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "[{}\\[\\]\",:a/`\\\\ \né]{0,60}") {
            let _ = value(&text);
        }

        #[test]
        fn what_is_already_json_is_read_as_it_is(text in ".{0,30}", number: i32) {
            let written = json!({"t": text, "n": [number]});
            prop_assert_eq!(value(&written.to_string()).unwrap(), written);
        }
    }
}
