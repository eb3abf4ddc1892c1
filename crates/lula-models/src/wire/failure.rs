//! What a refusing server means, from its status and its words.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// Most characters kept of a server's own words.
const MAX_WORDS: usize = 300;

/// What a failure calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerFailureKind {
    /// Too many requests or tokens: wait.
    RateLimited,
    /// The server is overloaded or broken: try again.
    Overloaded,
    /// The prompt does not fit the model: compact it.
    ContextOverflow,
    /// The key is missing, wrong or may not do this.
    Unauthorized,
    /// No such model or no such address.
    NotFound,
    /// There is no money left at the provider.
    Unpaid,
    /// The provider's filter refused.
    Filtered,
    /// The request is wrong.
    BadRequest,
}

impl ServerFailureKind {
    /// Whether the same request may succeed later.
    pub const fn is_passing(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded)
    }

    const fn words(self) -> &'static str {
        match self {
            Self::RateLimited => "too many requests",
            Self::Overloaded => "the server is overloaded or broken",
            Self::ContextOverflow => "the prompt is longer than the model's context",
            Self::Unauthorized => "the key is missing, wrong or not allowed to do this",
            Self::NotFound => "no such model or address",
            Self::Unpaid => "the account has no credit left",
            Self::Filtered => "refused by the provider's content filter",
            Self::BadRequest => "the server refuses the request as wrong",
        }
    }
}

/// The failure that a server answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFailure {
    /// What it calls for.
    pub kind: ServerFailureKind,
    /// The status; 200 where it came inside a stream.
    pub status: u16,
    /// What the server said, without control characters and shortened.
    pub said: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.kind.words(), self.status)?;
        if self.said.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.said)
        }
    }
}

/// Reads an answer whose status is no success.
pub fn read_failure(status: u16, headers: &[(String, String)], body: &[u8]) -> ServerFailure {
    let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let (said, code) = words(&value)
        .unwrap_or_else(|| (String::from_utf8_lossy(body).into_owned(), String::new()));
    ServerFailure {
        kind: kind(status, &said, &code),
        status,
        said: tidy(&said),
        retry_after: retry_after(headers),
    }
}

/// The failure a body or an event reports although its status was a success.
pub(crate) fn reported(value: &Value) -> Option<ServerFailure> {
    let (said, code) = words(value)?;
    Some(ServerFailure {
        kind: kind(200, &said, &code),
        status: 200,
        said: tidy(&said),
        retry_after: None,
    })
}

/// The message and the type or code, as each provider nests them.
fn words(value: &Value) -> Option<(String, String)> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    if let Value::String(said) = error {
        return Some((said.clone(), String::new()));
    }
    let said = error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let code = ["type", "code", "status"]
        .into_iter()
        .filter_map(|key| error.get(key))
        .map(|code| {
            code.as_str()
                .map_or_else(|| code.to_string(), str::to_owned)
        })
        .collect::<Vec<_>>()
        .join(" ");
    Some((said.to_owned(), code))
}

fn kind(status: u16, said: &str, code: &str) -> ServerFailureKind {
    let all = format!("{said} {code}").to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| all.contains(word));
    if says(&[
        "context_length_exceeded",
        "exceed_context_size",
        "maximum context length",
        "context length",
        "context window",
        "context size",
        "prompt is too long",
        "input is too long",
        "exceeds the available context",
    ]) {
        return ServerFailureKind::ContextOverflow;
    }
    if says(&[
        "content_filter",
        "content_policy",
        "content management policy",
    ]) {
        return ServerFailureKind::Filtered;
    }
    if status == 402 || says(&["insufficient_quota", "credit balance", "billing"]) {
        return ServerFailureKind::Unpaid;
    }
    match status {
        401 | 403 => ServerFailureKind::Unauthorized,
        404 => ServerFailureKind::NotFound,
        429 => ServerFailureKind::RateLimited,
        200 if says(&["rate_limit"]) => ServerFailureKind::RateLimited,
        200 if says(&[
            "invalid_request",
            "not_found",
            "authentication",
            "permission",
        ]) =>
        {
            ServerFailureKind::BadRequest
        }
        200 | 408 | 409 | 425 | 500..=599 => ServerFailureKind::Overloaded,
        _ => ServerFailureKind::BadRequest,
    }
}

/// `retry-after-ms`, or `retry-after` in seconds. A date is ignored: our own wait is then used.
fn retry_after(headers: &[(String, String)]) -> Option<Duration> {
    let header = |wanted: &str| {
        headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim())
    };
    if let Some(ms) = header("retry-after-ms").and_then(|value| value.parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let seconds: f64 = header("retry-after")?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn tidy(said: &str) -> String {
    said.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_WORDS)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(status: u16, body: &str) -> ServerFailureKind {
        read_failure(status, &[], body.as_bytes()).kind
    }

    #[test]
    fn every_provider_says_context_overflow_in_its_own_words() {
        for body in [
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            r#"{"error":"input length exceeds the context length"}"#,
        ] {
            assert_eq!(
                kind_of(400, body),
                ServerFailureKind::ContextOverflow,
                "{body}"
            );
        }
    }

    #[test]
    fn statuses_decide_where_words_do_not() {
        for (status, kind) in [
            (401, ServerFailureKind::Unauthorized),
            (402, ServerFailureKind::Unpaid),
            (403, ServerFailureKind::Unauthorized),
            (404, ServerFailureKind::NotFound),
            (408, ServerFailureKind::Overloaded),
            (422, ServerFailureKind::BadRequest),
            (429, ServerFailureKind::RateLimited),
            (500, ServerFailureKind::Overloaded),
            (529, ServerFailureKind::Overloaded),
        ] {
            assert_eq!(kind_of(status, "<html>"), kind);
        }
        let broke =
            r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
        assert_eq!(kind_of(429, broke), ServerFailureKind::Unpaid);
    }

    #[test]
    fn the_servers_wait_is_read_in_both_spellings() {
        let after = |name: &str, value: &str| {
            read_failure(429, &[(name.into(), value.into())], b"").retry_after
        };
        assert_eq!(after("Retry-After", "2"), Some(Duration::from_secs(2)));
        assert_eq!(
            after("retry-after-ms", "150"),
            Some(Duration::from_millis(150))
        );
        for nonsense in ["-1", "NaN", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(after("retry-after", nonsense), None);
        }
    }

    #[test]
    fn a_servers_words_cannot_paint_the_terminal_or_fill_it() {
        let body = format!(r#"{{"error":"a\u001b[2J{}"}}"#, "x".repeat(9999));
        let failure = read_failure(500, &[], body.as_bytes());
        assert!(failure.said.chars().count() <= MAX_WORDS);
        assert!(!failure.to_string().contains('\u{1b}'));
    }
}
