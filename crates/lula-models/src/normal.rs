//! The normal form: one request and one response, whatever the provider speaks.

use lula_protocol::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::WireProtocol;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// Rules and facts the model is to work under.
    System,
    /// The task, and the results of calls.
    User,
    /// What the model answered before.
    Assistant,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum MessagePart {
    Text {
        text: String,
    },
    Image {
        /// The format of the picture: `image/png`, `image/jpeg`, …
        media_type: String,
        /// The bytes in base64.
        base64: String,
    },
    /// The model asks for a tool. Only whole calls are ever built.
    Call(ModelToolCall),
    /// The model asked for a tool in a way that cannot be understood. Never acted on.
    Broken {
        name: String,
        /// What is wrong with its arguments.
        why: String,
    },
    /// What a tool answered.
    Result {
        /// The id of the call it answers.
        id: String,
        /// The name of the tool.
        name: String,
        /// What the tool said.
        content: String,
        /// Whether the tool failed.
        failed: bool,
    },
    /// The model's own notes. Providers demand them back unchanged, so the raw block is kept.
    Reasoning {
        /// The protocol whose block this is; other protocols never see it.
        wire: WireProtocol,
        /// The readable part, if any.
        text: String,
        /// The block, byte for byte as values.
        raw: Value,
    },
}

impl MessagePart {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// A whole call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelToolCall {
    /// The provider's id, or one made from the call's place.
    pub id: String,
    pub name: String,
    /// Its arguments: always an object.
    pub arguments: Value,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelMessage {
    pub role: MessageRole,
    pub parts: Vec<MessagePart>,
    /// Whether everything up to here is worth caching.
    #[serde(default)]
    pub cache_here: bool,
}

impl ModelMessage {
    /// A message of words.
    pub fn new(role: MessageRole, text: impl Into<String>) -> Self {
        Self {
            role,
            parts: vec![MessagePart::text(text)],
            cache_here: false,
        }
    }

    /// A message of the system: rules and facts the model is to work under.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(MessageRole::System, text)
    }

    /// A message of the user: the task.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, text)
    }

    /// What the model said.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(MessageRole::Assistant, text)
    }

    /// The same, with a seam of the prompt cache behind it.
    #[must_use]
    pub fn cached(mut self) -> Self {
        self.cache_here = true;
        self
    }

    /// All words of the message.
    pub fn words(&self) -> String {
        words(&self.parts)
    }

    /// The pictures of the message, each as its bytes in base64.
    pub fn pictures(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            MessagePart::Image { base64, .. } => Some(base64.as_str()),
            _ => None,
        })
    }
}

/// A tool the model may ask for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelTool {
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

/// What kind of answer is wanted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum OutputShape {
    /// Words, and calls where tools are given.
    #[default]
    Text,
    /// One JSON value of this schema.
    Json {
        /// A short name for it.
        name: String,
        schema: Value,
    },
    /// Text of this grammar (GBNF), for servers that constrain by grammar only.
    Grammar {
        /// The grammar in the notation of llama.cpp.
        gbnf: String,
    },
    /// Edits of files, written in this format.
    Edits {
        /// How they are written.
        format: lula_edit::EditFormat,
    },
}

/// How much the model is to think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingEffort {
    /// Nothing about reasoning is sent.
    #[default]
    Off,
    Low,
    Medium,
    High,
}

impl ThinkingEffort {
    /// Whether nothing is sent.
    pub const fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    /// The effort of that name: `low`, `medium` or `high`, or `default` for what the provider takes.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::Off),
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }
}

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The provider's name of the model.
    pub model: String,
    /// The conversation, oldest first.
    pub messages: Vec<ModelMessage>,
    /// Tools it may ask for. They are sent sorted by name, so that the prompt's prefix is stable.
    #[serde(default)]
    pub tools: Vec<ModelTool>,
    /// The kind of answer.
    #[serde(default)]
    pub output: OutputShape,
    /// Most tokens it may write, its reasoning included. The spend cap rests on it.
    pub max_tokens: u32,
    /// Sampling temperature; `None` leaves it to the server.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Sampling seed, where the provider takes one.
    #[serde(default)]
    pub seed: Option<u32>,
    /// How much reasoning is asked for.
    #[serde(default)]
    pub effort: ThinkingEffort,
    /// Context to reserve, where the server must be told (Ollama).
    #[serde(default)]
    pub context: Option<u32>,
}

impl ModelRequest {
    /// A question with nothing but messages.
    pub fn new(model: impl Into<String>, messages: Vec<ModelMessage>, max_tokens: u32) -> Self {
        Self {
            model: model.into(),
            messages,
            tools: Vec::new(),
            output: OutputShape::Text,
            max_tokens,
            temperature: None,
            seed: None,
            effort: ThinkingEffort::Off,
            context: None,
        }
    }

    /// The same with tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<ModelTool>) -> Self {
        self.tools = tools;
        self
    }

    /// The same with another kind of answer.
    #[must_use]
    pub fn with_output(mut self, output: OutputShape) -> Self {
        self.output = output;
        self
    }

    /// The pictures of all messages.
    pub fn pictures(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(ModelMessage::pictures)
    }

    /// The tools in the order they are sent.
    pub(crate) fn sorted_tools(&self) -> Vec<&ModelTool> {
        let mut tools: Vec<_> = self.tools.iter().collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelStopReason {
    /// It said what it had to say.
    End,
    /// It waits for the results of its calls.
    Calls,
    /// It reached the most tokens it may write: what it wrote is not whole.
    Length,
    /// The provider's filter stopped it.
    Filter,
    /// The model declined to answer.
    Refusal,
    /// Something this crate does not know.
    Other(String),
}

/// What a call used, as the provider counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All tokens read, cached ones included.
    pub input: u64,
    /// All tokens written, reasoning included.
    pub output: u64,
    /// Of `input`: read from the prompt cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Of `input`: written to the prompt cache.
    #[serde(default)]
    pub cache_write: u64,
    /// Of `output`: spent on reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl TokenUsage {
    /// Adds what another call used.
    pub const fn add(&mut self, more: &Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
        self.reasoning = self.reasoning.saturating_add(more.reasoning);
    }
}

/// A whole answer. A cut or unfinished stream never becomes one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResponse {
    /// What the model said, in order.
    pub parts: Vec<MessagePart>,
    pub stop: ModelStopReason,
    /// What it used; `None` where the server did not say.
    pub usage: Option<TokenUsage>,
    /// The digest of the answer's raw bytes.
    pub raw: Digest,
}

impl ModelResponse {
    /// The words of the answer, without calls and reasoning.
    pub fn words(&self) -> String {
        words(&self.parts)
    }

    pub fn calls(&self) -> impl Iterator<Item = &ModelToolCall> {
        self.parts.iter().filter_map(|part| match part {
            MessagePart::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The answer as a message of the conversation, to be sent back.
    pub fn message(&self) -> ModelMessage {
        ModelMessage {
            role: MessageRole::Assistant,
            parts: self.parts.clone(),
            cache_here: false,
        }
    }
}

fn words(parts: &[MessagePart]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
