//! Redaction: what is written down never holds a secret.
//!
//! Secrets are recognised twice: by the name of the field they stand in, and by scanning the text.

use std::borrow::Cow;

use serde_json::Value;

use crate::findings::{MAX_TEXT, secrets};

/// What stands in place of a field's value.
const BY_NAME: &str = "[redacted]";

/// The text with every secret replaced by what kind it was. What is too long to be scanned is cut
/// off and said to be.
pub fn redact(text: &str) -> Cow<'_, str> {
    let end = text.floor_char_boundary(MAX_TEXT.min(text.len()));
    let read = &text[..end];
    let found = secrets(read);
    if found.is_empty() && end == text.len() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(read.len());
    let mut at = 0;
    for secret in found {
        clean.push_str(&read[at..secret.span.start]);
        clean.push_str("[redacted:");
        clean.push_str(secret.kind.0);
        clean.push(']');
        at = secret.span.end;
    }
    clean.push_str(&read[at..]);
    if end < text.len() {
        clean.push_str("[cut]");
    }
    Cow::Owned(clean)
}

/// Redacts every text of a document, and every field whose name says that it holds a secret.
pub fn redact_json(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_json),
        Value::Object(fields) => {
            for (name, field) in fields {
                if names_a_secret(name) && !field.is_null() {
                    *field = Value::String(BY_NAME.to_owned());
                } else {
                    redact_json(field);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Redacts a command, word by word: a password often stands in a word of its own behind its name.
pub fn redact_words<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    let mut named = false;
    words
        .iter()
        .map(|word| {
            let word = word.as_ref();
            let was_named = std::mem::take(&mut named);
            if was_named && !word.starts_with('-') {
                return BY_NAME.to_owned();
            }
            if let Some(option) = word.strip_prefix("--") {
                match option.split_once('=') {
                    Some((name, _)) if names_a_secret(name) => {
                        return format!("--{name}={BY_NAME}");
                    }
                    Some(_) => {}
                    None => named = names_a_secret(option),
                }
            } else if let Some((name, value)) = word.split_once('=')
                && names_a_secret(name)
                && !value.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            {
                return format!("{name}={BY_NAME}");
            }
            redact(word).into_owned()
        })
        .collect()
}

/// How names of secrets end, without punctuation.
const ENDINGS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secretkey",
    "apikey",
    "accesskey",
    "privatekey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "bearertoken",
    "clientsecret",
    "authorization",
    "credential",
    "credentials",
];

/// Whether a name says that a secret stands behind it. Names of counts and limits do not.
pub fn names_a_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    ENDINGS.iter().any(|ending| plain.ends_with(ending))
        || plain == "token"
        || plain.ends_with("token") && !plain.ends_with("pertoken")
        || plain == "cookie"
        || plain == "setcookie"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    // Put together here so that no scanner takes this file for a leak.
    fn token() -> String {
        format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    }

    #[test]
    fn a_secret_leaves_only_its_kind() {
        let text = format!("push with {} please", token());
        assert_eq!(redact(&text), "push with [redacted:github-token] please");
        assert!(matches!(redact("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_field_is_redacted_for_its_name() {
        let mut value = json!({
            "api_key": "short", "max_tokens": 5, "Authorization": "x", "nested": [{"password": 1}],
            "text": token(), "empty": null, "tokens": 7,
        });
        redact_json(&mut value);
        assert_eq!(
            value,
            json!({
                "api_key": "[redacted]", "max_tokens": 5, "Authorization": "[redacted]",
                "nested": [{"password": "[redacted]"}], "text": "[redacted:github-token]",
                "empty": null, "tokens": 7,
            })
        );
    }

    #[test]
    fn a_command_keeps_its_shape() {
        let words = [
            "curl",
            "--token",
            "abc",
            "--password=x",
            "API_KEY=y",
            "https://u:pw1@h/",
            "-v",
        ];
        assert_eq!(
            redact_words(&words),
            [
                "curl",
                "--token",
                "[redacted]",
                "--password=[redacted]",
                "API_KEY=[redacted]",
                "https://u:[redacted:url-password]@h/",
                "-v"
            ]
        );
    }

    proptest! {
        #[test]
        fn a_secret_is_gone_wherever_it_stands(before in "[ a-z\n]{0,40}", after in "[ .,\n]{0,40}") {
            let text = format!("{before} {} {after}", token());
            prop_assert!(!redact(&text).contains(&token()));
        }

        #[test]
        fn redacting_twice_changes_nothing_more(text in ".{0,200}") {
            let once = redact(&text).into_owned();
            prop_assert_eq!(redact(&once).into_owned(), once);
        }
    }
}
