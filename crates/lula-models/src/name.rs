//! Names of models as people write them, and the servers they mean.
//!
//! `anthropic/claude-sonnet-4-5`, `ollama/qwen2.5-coder:7b`, and with an address of one's own
//! `openai-compatible@http://host:8000/v1/org/model`.

use std::fmt;
use std::str::FromStr;

use crate::normal::ModelRequest;
use crate::output::OutputCapability;
use crate::secret::{ModelKeyReference, SecretKey};
use crate::spend::ModelPrice;
use crate::transport::{HttpMethod, WireRequest};
use crate::wire::{ServerQuirks, WireProtocol};

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderKind {
    /// Its name, as people write it.
    pub name: &'static str,
    pub wire: WireProtocol,
    /// Where it is; `None` where an address must be given.
    pub base: Option<&'static str>,
    /// The variable its key is in, where it wants one.
    pub key: Option<&'static str>,
}

/// Every kind that a name can begin with.
pub const KINDS: [ProviderKind; 10] = [
    kind(
        "anthropic",
        WireProtocol::Messages,
        Some("https://api.anthropic.com"),
        Some("ANTHROPIC_API_KEY"),
    ),
    kind(
        "openai",
        WireProtocol::Responses,
        Some("https://api.openai.com"),
        Some("OPENAI_API_KEY"),
    ),
    kind(
        "openai-chat",
        WireProtocol::Chat,
        Some("https://api.openai.com"),
        Some("OPENAI_API_KEY"),
    ),
    kind(
        "openrouter",
        WireProtocol::Chat,
        Some("https://openrouter.ai/api"),
        Some("OPENROUTER_API_KEY"),
    ),
    kind(
        "digitalocean",
        WireProtocol::Chat,
        Some("https://inference.do-ai.run"),
        Some("DIGITALOCEAN_INFERENCE_KEY"),
    ),
    kind(
        "ollama",
        WireProtocol::Ollama,
        Some("http://127.0.0.1:11434"),
        None,
    ),
    kind(
        "llamacpp",
        WireProtocol::Chat,
        Some("http://127.0.0.1:8080"),
        None,
    ),
    kind(
        "lmstudio",
        WireProtocol::Chat,
        Some("http://127.0.0.1:1234"),
        None,
    ),
    kind(
        "vllm",
        WireProtocol::Chat,
        Some("http://127.0.0.1:8000"),
        None,
    ),
    kind("openai-compatible", WireProtocol::Chat, None, None),
];

const fn kind(
    name: &'static str,
    wire: WireProtocol,
    base: Option<&'static str>,
    key: Option<&'static str>,
) -> ProviderKind {
    ProviderKind {
        name,
        wire,
        base,
        key,
    }
}

/// A model with its provider, as `PROVIDER/MODEL` or `PROVIDER@URL/MODEL` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The kind of provider.
    pub kind: ProviderKind,
    /// The server's address, without `/v1`.
    pub base: String,
    /// The provider's own name of the model.
    pub model: String,
    given_base: bool,
}

/// Why a name means no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelNameError {
    /// The text is not of the form `PROVIDER/MODEL`.
    #[error(
        "{0:?} is not the name of a model: write PROVIDER/MODEL or PROVIDER@URL/MODEL, as in ollama/qwen2.5-coder"
    )]
    Form(String),
    /// No provider is called like that.
    #[error("{given:?} is not a provider: there are {known}")]
    Provider {
        given: String,
        /// The kinds there are.
        known: String,
    },
    /// The address is missing.
    #[error("{0} has no address of its own: write {0}@http://HOST:PORT/MODEL")]
    NoAddress(&'static str),
    /// The address is none.
    #[error(
        "{0:?} is not an address: it must begin with http:// or https:// and hold no user or password"
    )]
    Address(String),
}

impl FromStr for ModelName {
    type Err = ModelNameError;
    fn from_str(given: &str) -> Result<Self, ModelNameError> {
        let form = || ModelNameError::Form(given.chars().take(100).collect());
        let at = given.find(['@', '/']).ok_or_else(form)?;
        let (name, rest) = (&given[..at], &given[at + 1..]);
        let kind = KINDS
            .into_iter()
            .find(|kind| kind.name == name)
            .ok_or_else(|| ModelNameError::Provider {
                given: name.to_owned(),
                known: KINDS.map(|kind| kind.name).join(", "),
            })?;
        let (base, model) = if given.as_bytes()[at] == b'@' {
            let (base, model) = split_address(rest).ok_or_else(form)?;
            (Some(base), model)
        } else {
            (None, rest)
        };
        if model.is_empty() || model.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(form());
        }
        let given_base = base.is_some();
        let base = match base {
            Some(base) => checked_address(base)?,
            None => kind
                .base
                .ok_or(ModelNameError::NoAddress(kind.name))?
                .to_owned(),
        };
        Ok(Self {
            kind,
            base,
            model: model.to_owned(),
            given_base,
        })
    }
}

/// The address reaches up to `/v1`, or else to the first slash behind the host.
fn split_address(rest: &str) -> Option<(&str, &str)> {
    let host = rest.find("://")? + 3;
    if let Some(version) = rest[host..].find("/v1/") {
        let end = host + version;
        return Some((&rest[..end], &rest[end + 4..]));
    }
    let slash = host + rest[host..].find('/')?;
    Some((&rest[..slash], &rest[slash + 1..]))
}

fn checked_address(base: &str) -> Result<String, ModelNameError> {
    let wrong =
        || ModelNameError::Address(base.split('@').next_back().unwrap_or_default().to_owned());
    let host = base
        .strip_prefix("http://")
        .or_else(|| base.strip_prefix("https://"))
        .ok_or_else(wrong)?;
    if host.is_empty() || host.starts_with('/') || host.contains(['@', '?', '#', '\\']) {
        return Err(wrong());
    }
    Ok(base.trim_end_matches('/').to_owned())
}

/// Whether an address is one of this machine's own.
fn is_loopback(base: &str) -> bool {
    let host = base.split("://").nth(1).unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.given_base {
            write!(f, "{}@{}/v1/{}", self.kind.name, self.base, self.model)
        } else {
            write!(f, "{}/{}", self.kind.name, self.model)
        }
    }
}

impl ModelName {
    /// The name prices and statistics are kept under.
    pub fn priced_as(&self) -> String {
        let provider = if self.kind.name == "openai-chat" {
            "openai"
        } else {
            self.kind.name
        };
        format!("{provider}/{}", self.model)
    }

    /// Whether it is served by this machine itself. A provider's own kind behind an address of this machine
    /// is that provider's, whatever passes it on.
    pub fn is_local(&self) -> bool {
        let own = matches!(
            self.kind.name,
            "ollama" | "llamacpp" | "lmstudio" | "vllm" | "openai-compatible"
        );
        own && is_loopback(&self.base)
    }

    /// Where the key is, unless configured otherwise.
    pub fn usual_key(&self) -> Option<ModelKeyReference> {
        // A key of a provider goes to that provider's own address, never to another one.
        self.kind
            .key
            .filter(|_| !self.given_base)
            .map(|variable| ModelKeyReference::Env(variable.to_owned()))
    }

    /// The server with everything a call needs.
    pub fn endpoint(&self, key: Option<SecretKey>, price: ModelPrice) -> ModelEndpoint {
        let quirks = ServerQuirks::of(if self.kind.name == "openai-chat" {
            "openai"
        } else {
            self.kind.name
        });
        ModelEndpoint {
            name: self.to_string(),
            base: self.base.clone(),
            wire: self.kind.wire,
            capability: OutputCapability::presumed(self.kind.wire, &quirks),
            quirks,
            key,
            price,
            context: None,
        }
    }
}

/// A server with everything a call needs.
#[derive(Debug, Clone)]
pub struct ModelEndpoint {
    /// The model's name, for people, breakers and statistics.
    pub name: String,
    /// The server's address, without `/v1`.
    pub base: String,
    pub wire: WireProtocol,
    /// What it does differently.
    pub quirks: ServerQuirks,
    /// What the model can be trusted with.
    pub capability: OutputCapability,
    /// The key; `None` where the server wants none.
    pub key: Option<SecretKey>,
    pub price: ModelPrice,
    /// The model's context in tokens, where known.
    pub context: Option<u64>,
}

impl ModelEndpoint {
    /// A request to a path of this server.
    pub fn request(&self, method: HttpMethod, path: &str, body: Vec<u8>) -> WireRequest {
        let (header, before) = self.wire.key_header();
        WireRequest {
            method,
            base: self.base.clone(),
            path: path.to_owned(),
            headers: self
                .wire
                .headers()
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            key: self.key.clone().map(|key| (header, before, key)),
            body,
        }
    }

    /// The bucket all its models share.
    pub(crate) fn provider(&self) -> &str {
        &self.base
    }

    /// The request with the context this server must be told.
    pub(crate) fn fit(&self, request: &ModelRequest) -> ModelRequest {
        let mut request = request.clone();
        if request.context.is_none() {
            request.context = self.context.and_then(|context| u32::try_from(context).ok());
        }
        request
    }

    /// Text without the key.
    pub(crate) fn scrub(&self, text: &str) -> String {
        self.key
            .as_ref()
            .map_or_else(|| text.to_owned(), |key| key.scrub(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_servers() {
        for (given, base, model, wire) in [
            (
                "anthropic/claude-x",
                "https://api.anthropic.com",
                "claude-x",
                WireProtocol::Messages,
            ),
            (
                "ollama/qwen2.5-coder:7b",
                "http://127.0.0.1:11434",
                "qwen2.5-coder:7b",
                WireProtocol::Ollama,
            ),
            (
                "openrouter/meta/llama",
                "https://openrouter.ai/api",
                "meta/llama",
                WireProtocol::Chat,
            ),
            (
                "openai-compatible@http://h:8000/v1/org/m",
                "http://h:8000",
                "org/m",
                WireProtocol::Chat,
            ),
            (
                "openai-compatible@https://h/sub/v1/m",
                "https://h/sub",
                "m",
                WireProtocol::Chat,
            ),
            (
                "llamacpp@http://127.0.0.1:8081/qwen",
                "http://127.0.0.1:8081",
                "qwen",
                WireProtocol::Chat,
            ),
        ] {
            let name: ModelName = given.parse().unwrap();
            assert_eq!(
                (name.base.as_str(), name.model.as_str(), name.kind.wire),
                (base, model, wire)
            );
            assert_eq!(
                name.to_string().parse::<ModelName>().unwrap(),
                name,
                "{given}"
            );
        }
    }

    #[test]
    fn nonsense_says_what_to_write() {
        for (given, said) in [
            ("gpt-5", "write PROVIDER/MODEL"),
            ("openai/", "write PROVIDER/MODEL"),
            ("acme/x", "is not a provider"),
            ("openai-compatible/x", "has no address"),
            ("openai-compatible@h:8000/x", "write PROVIDER/MODEL"),
            ("openai-compatible@ftp://h/x", "is not an address"),
            ("openai/a b", "write PROVIDER/MODEL"),
        ] {
            let error = given.parse::<ModelName>().unwrap_err().to_string();
            assert!(error.contains(said), "{given}: {error}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_repeated() {
        let error = "vllm@http://ada:canary@h/v1/m"
            .parse::<ModelName>()
            .unwrap_err()
            .to_string();
        assert!(!error.contains("canary"), "{error}");
    }

    #[test]
    fn a_providers_key_goes_to_no_other_address() {
        let own: ModelName = "anthropic/m".parse().unwrap();
        assert_eq!(
            own.usual_key(),
            Some(ModelKeyReference::Env("ANTHROPIC_API_KEY".into()))
        );
        let other: ModelName = "anthropic@http://127.0.0.1:9/v1/m".parse().unwrap();
        assert_eq!(other.usual_key(), None);
    }
}
