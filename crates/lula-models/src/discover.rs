//! Finding model providers.

use std::io::Read;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Most bytes read from a server's list of models.
const MAX_ANSWER: u64 = 1 << 20;
/// Most model names reported.
const MAX_MODELS: usize = 20;

/// Providers with a key of their own: name, then the variable that holds the key.
const KEYS: [(&str, &str); 4] = [
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("openai", "OPENAI_API_KEY"),
    ("openrouter", "OPENROUTER_API_KEY"),
    ("digitalocean", "DIGITALOCEAN_INFERENCE_KEY"),
];

/// A place that may serve a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiscoveredProvider {
    /// `anthropic`, `ollama`, `openai-compatible`, …
    pub name: &'static str,
    /// The variable that holds the key, or the address of the server.
    pub place: String,
    /// Whether it can be used as far as this looked.
    pub found: bool,
    /// What was seen there.
    pub detail: String,
    pub models: Vec<String>,
}

/// Providers whose key is in the environment. Only the presence of a key is looked at.
pub fn keys(is_set: impl Fn(&str) -> bool) -> Vec<DiscoveredProvider> {
    KEYS.into_iter()
        .map(|(name, variable)| {
            let found = is_set(variable);
            DiscoveredProvider {
                name,
                place: format!("${variable}"),
                found,
                detail: if found {
                    "key is set, not tried"
                } else {
                    "not set"
                }
                .to_owned(),
                models: Vec::new(),
            }
        })
        .collect()
}

/// Asks Ollama for its models.
pub fn ollama(url: &str, timeout: Duration) -> DiscoveredProvider {
    #[derive(Deserialize)]
    struct Tags {
        models: Vec<Tag>,
    }
    #[derive(Deserialize)]
    struct Tag {
        name: String,
    }
    let names = ask(url, "/api/tags", timeout)
        .and_then(|body| parse::<Tags>(&body))
        .map(|tags| tags.models.into_iter().map(|tag| tag.name).collect());
    served("ollama", url, names)
}

/// Asks an OpenAI-compatible server for its models.
pub fn openai_compatible(url: &str, timeout: Duration) -> DiscoveredProvider {
    #[derive(Deserialize)]
    struct List {
        data: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
    }
    let names = ask(url, "/v1/models", timeout)
        .and_then(|body| parse::<List>(&body))
        .map(|list| list.data.into_iter().map(|entry| entry.id).collect());
    served("openai-compatible", url, names)
}

fn served(name: &'static str, url: &str, names: Result<Vec<String>, String>) -> DiscoveredProvider {
    let (found, detail, models) = match names {
        Ok(names) if names.is_empty() => (false, "answers, but has no model".to_owned(), names),
        Ok(names) => (true, format!("serves {}", count(names.len())), names),
        Err(reason) => (false, reason, Vec::new()),
    };
    let models = models
        .into_iter()
        .take(MAX_MODELS)
        .map(|name| printable(&name))
        .collect();
    DiscoveredProvider {
        name,
        place: url.to_owned(),
        found,
        detail,
        models,
    }
}

fn count(models: usize) -> String {
    if models == 1 {
        "1 model".to_owned()
    } else {
        format!("{models} models")
    }
}

/// A server's words go to a terminal: no control characters, no endless names.
fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

fn ask(url: &str, path: &str, timeout: Duration) -> Result<Vec<u8>, String> {
    // No proxy and no redirect: the address that was configured, or nothing.
    let client = reqwest::blocking::Client::builder()
        .timeout(timeout)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| error.to_string())?;
    let address = format!("{}{path}", url.trim_end_matches('/'));
    let response = client.get(address).send().map_err(|error| {
        if error.is_timeout() {
            "no answer in time".to_owned()
        } else if error.is_connect() {
            "nothing listens there".to_owned()
        } else {
            "the answer is not HTTP".to_owned()
        }
    })?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("answers, but with status {}", status.as_u16()));
    }
    let mut body = Vec::new();
    response
        .take(MAX_ANSWER)
        .read_to_end(&mut body)
        .map_err(|_| "the answer broke off".to_owned())?;
    Ok(body)
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|_| "answers, but not with a list of models".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    const PATIENT: Duration = Duration::from_secs(20);

    /// A server that answers one request with these bytes.
    fn server(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer);
        });
        url
    }

    #[test]
    fn ollama_lists_its_models() {
        let url = server(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"models\":[{\"name\":\"qwen2.5-coder:1.5b\"}]}");
        let provider = ollama(&url, PATIENT);
        assert!(provider.found, "{provider:?}");
        assert_eq!(provider.models, ["qwen2.5-coder:1.5b"]);
    }

    #[test]
    fn a_compatible_server_lists_its_models() {
        let url = server(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"data\":[{\"id\":\"a\"},{\"id\":\"b\"}]}");
        let provider = openai_compatible(&url, PATIENT);
        assert_eq!(provider.detail, "serves 2 models");
    }

    #[test]
    fn a_server_that_is_something_else_is_not_a_provider() {
        for (answer, reason) in [
            (
                &b"HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n"[..],
                "status 404",
            ),
            (
                b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>",
                "not with a list",
            ),
            (
                b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\r\n",
                "status 302",
            ),
            (b"SSH-2.0-OpenSSH\r\n", "not HTTP"),
        ] {
            let provider = openai_compatible(&server(answer), PATIENT);
            assert!(!provider.found);
            assert!(provider.detail.contains(reason), "{}", provider.detail);
        }
    }

    #[test]
    fn a_hostile_model_name_cannot_paint_the_terminal() {
        let url = server(
            b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"data\":[{\"id\":\"a\\u001b[2Jb\"}]}",
        );
        assert_eq!(openai_compatible(&url, PATIENT).models, ["a[2Jb"]);
    }

    #[test]
    fn a_key_is_reported_by_name_only() {
        let providers = keys(|variable| variable == "OPENAI_API_KEY");
        let found: Vec<_> = providers.iter().filter(|provider| provider.found).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "$OPENAI_API_KEY");
    }
}
