//! What receivers want beside the conventions, as further attributes on the same spans.

use super::names;
use super::span::{RunSpan, SpanAttributes, SpanWork};

/// A receiver with names of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtlpDialect {
    GenAi,
    /// Phoenix and others that know `OpenInference`.
    OpenInference,
    Langfuse,
    LangSmith,
}

impl OtlpDialect {
    pub(super) fn named(name: &str) -> Self {
        match name {
            "openinference" => Self::OpenInference,
            "langfuse" => Self::Langfuse,
            "langsmith" => Self::LangSmith,
            _ => Self::GenAi,
        }
    }

    /// The attributes of a span with those of the receiver.
    pub(super) fn spoken(self, span: &RunSpan, session: &str) -> SpanAttributes {
        let mut all = span.attributes.clone();
        let copied = |all: &mut SpanAttributes, from: &str, to: &'static str| {
            if let Some(value) = all.get(from).cloned() {
                all.put(to, value);
            }
        };
        match self {
            Self::GenAi => {}
            Self::OpenInference => {
                all.put("session.id", session);
                all.put(
                    "openinference.span.kind",
                    match span.work {
                        SpanWork::Chat => "LLM",
                        SpanWork::Tool => "TOOL",
                        SpanWork::Agent => "AGENT",
                        SpanWork::Workflow | SpanWork::Node | SpanWork::Wait => "CHAIN",
                    },
                );
                copied(&mut all, names::REQUEST_MODEL, "llm.model_name");
                copied(&mut all, names::INPUT_TOKENS, "llm.token_count.prompt");
                copied(&mut all, names::OUTPUT_TOKENS, "llm.token_count.completion");
                copied(&mut all, names::TOOL_NAME, "tool.name");
            }
            Self::Langfuse => {
                all.put("session.id", session);
                if span.work == SpanWork::Workflow {
                    all.put("langfuse.trace.name", "lula");
                }
                let level = if span.failed { "ERROR" } else { "DEFAULT" };
                all.put("langfuse.observation.level", level);
                copied(&mut all, names::INPUT, "langfuse.observation.input");
                copied(&mut all, names::OUTPUT, "langfuse.observation.output");
            }
            Self::LangSmith => {
                all.put("langsmith.trace.session_id", session);
                all.put(
                    "langsmith.span.kind",
                    match span.work {
                        SpanWork::Chat => "llm",
                        SpanWork::Tool => "tool",
                        _ => "chain",
                    },
                );
                copied(&mut all, names::PROVIDER, "gen_ai.system");
            }
        }
        all
    }
}
