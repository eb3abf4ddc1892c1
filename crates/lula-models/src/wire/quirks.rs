//! What servers that call themselves OpenAI-compatible do differently.

use serde::{Deserialize, Serialize};

/// How a server is told to answer in JSON of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JsonOutput {
    /// `response_format: {type: json_schema}` with `strict`.
    ResponseFormat,
    /// `structured_outputs: {json: …}` (vLLM).
    StructuredOutputs,
    /// `grammar: …` (older llama.cpp).
    Grammar,
}

/// The differences of one kind of server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // Each is one independent fact about a server.
pub struct ServerQuirks {
    /// The kind of server.
    pub name: String,
    /// The field that bounds the answer: `max_completion_tokens`, or `max_tokens` everywhere else.
    pub max_completion_tokens: bool,
    /// Takes `stream_options: {include_usage: true}`.
    pub stream_usage: bool,
    /// How JSON is asked for.
    pub json: JsonOutput,
    /// Takes `cache_prompt`, as llama.cpp does.
    pub cache_prompt: bool,
    /// Counts tokens at `/tokenize`, as llama.cpp does.
    pub tokenize: bool,
    /// Takes a `seed` for sampling.
    pub seed: bool,
    /// Takes `reasoning_effort` in a request.
    pub effort: bool,
    /// Wants `usage: {include: true}` before it reports what was spent (`OpenRouter`).
    pub ask_usage: bool,
}

impl ServerQuirks {
    /// The names the table knows.
    pub const KNOWN: [&'static str; 7] = [
        "openai",
        "openai-compatible",
        "llamacpp",
        "vllm",
        "lmstudio",
        "openrouter",
        "digitalocean",
    ];

    /// The row of a server. An unknown name gets the careful row of `openai-compatible`.
    pub fn of(name: &str) -> Self {
        let careful = Self {
            name: name.to_owned(),
            max_completion_tokens: false,
            stream_usage: true,
            json: JsonOutput::ResponseFormat,
            cache_prompt: false,
            tokenize: false,
            seed: true,
            // It is sent only where a person asked for it, and left out once a server refuses it.
            effort: true,
            ask_usage: false,
        };
        match name {
            "openai" => Self {
                max_completion_tokens: true,
                ..careful
            },
            "llamacpp" => Self {
                cache_prompt: true,
                tokenize: true,
                ..careful
            },
            "vllm" => Self {
                json: JsonOutput::StructuredOutputs,
                tokenize: true,
                ..careful
            },
            "openrouter" => Self {
                ask_usage: true,
                ..careful
            },
            "digitalocean" => Self {
                seed: false,
                ..careful
            },
            _ => careful,
        }
    }
}
