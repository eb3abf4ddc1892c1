//! Embeddings: texts in, vectors out.

use lula_protocol::canonical;
use serde_json::{Value, json};

use super::{WireError, WireProtocol, malformed};
use crate::normal::TokenUsage;

/// The path that embeds.
pub const fn embedding_path(wire: WireProtocol) -> Result<&'static str, WireError> {
    match wire {
        WireProtocol::Chat | WireProtocol::Responses => Ok("/v1/embeddings"),
        WireProtocol::Ollama => Ok("/api/embed"),
        WireProtocol::Messages => Err(WireError::Unsupported {
            wire,
            what: "embeddings",
        }),
    }
}

/// The body of a request for embeddings.
pub fn embedding_body(
    wire: WireProtocol,
    model: &str,
    texts: &[&str],
) -> Result<Vec<u8>, WireError> {
    embedding_path(wire)?;
    let mut body = json!({"model": model, "input": texts});
    if let (WireProtocol::Chat | WireProtocol::Responses, Value::Object(fields)) = (wire, &mut body)
    {
        fields.insert("encoding_format".into(), "float".into());
    }
    Ok(canonical::to_vec(&body)?)
}

/// What embedding used, where the server says so.
pub fn embedding_usage(body: &[u8]) -> Option<TokenUsage> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let counted = value
        .pointer("/usage/prompt_tokens")
        .or_else(|| value.get("prompt_eval_count"))?;
    Some(TokenUsage {
        input: counted.as_u64()?,
        ..TokenUsage::default()
    })
}

/// The vectors, one for each text, all of one length.
pub fn read_embeddings(
    wire: WireProtocol,
    body: &[u8],
    texts: usize,
) -> Result<Vec<Vec<f32>>, WireError> {
    let value: Value = serde_json::from_slice(body).map_err(malformed)?;
    let vectors: Vec<Vec<f32>> = if wire == WireProtocol::Ollama {
        let rows = list(&value, "embeddings")?;
        rows.iter().map(vector).collect::<Result<_, _>>()?
    } else {
        let mut rows = list(&value, "data")?
            .iter()
            .enumerate()
            .map(|(place, row)| {
                let index = row.get("index").and_then(Value::as_u64);
                let index = index.unwrap_or(place as u64);
                Ok((index, vector(row.get("embedding").unwrap_or(&Value::Null))?))
            })
            .collect::<Result<Vec<_>, WireError>>()?;
        rows.sort_by_key(|(index, _)| *index);
        rows.into_iter().map(|(_, vector)| vector).collect()
    };
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.len() != texts || (texts > 0 && length == 0) {
        return Err(malformed(format!(
            "{} vectors for {texts} texts",
            vectors.len()
        )));
    }
    if vectors.iter().any(|vector| vector.len() != length) {
        return Err(malformed("vectors of different lengths"));
    }
    Ok(vectors)
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, WireError> {
    value
        .get(key)
        .and_then(Value::as_array)
        .ok_or_else(|| malformed(format!("no {key}")))
}

fn vector(value: &Value) -> Result<Vec<f32>, WireError> {
    let numbers = value
        .as_array()
        .ok_or_else(|| malformed("a vector that is no list"))?;
    numbers
        .iter()
        .map(|number| {
            #[allow(clippy::cast_possible_truncation)] // Vectors are kept in single precision.
            let number = number.as_f64().map(|number| number as f32);
            number
                .filter(|number| number.is_finite())
                .ok_or_else(|| malformed("a vector with something that is no number"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_back_in_the_order_of_the_texts() {
        let body = br#"{"data":[{"index":1,"embedding":[0.5]},{"index":0,"embedding":[0.25]}]}"#;
        assert_eq!(
            read_embeddings(WireProtocol::Chat, body, 2).unwrap(),
            [[0.25], [0.5]]
        );
        let body = br#"{"embeddings":[[1,2],[3,4]]}"#;
        assert_eq!(
            read_embeddings(WireProtocol::Ollama, body, 2)
                .unwrap()
                .len(),
            2
        );
    }

    #[test]
    fn vectors_that_do_not_fit_the_texts_are_refused() {
        for body in [
            r#"{"data":[{"embedding":[1]}]}"#,
            r#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#,
            r#"{"data":[{"embedding":[]},{"embedding":[]}]}"#,
            r#"{"data":[{"embedding":["x"]},{"embedding":[2]}]}"#,
            "[]",
        ] {
            assert!(
                read_embeddings(WireProtocol::Chat, body.as_bytes(), 2).is_err(),
                "{body}"
            );
        }
        assert!(embedding_body(WireProtocol::Messages, "m", &["a"]).is_err());
    }
}
