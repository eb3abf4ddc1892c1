//! The names of attributes, in one place: OpenTelemetry's conventions for generative AI, which are still
//! being worked on, those that three receivers know beside them, and our own.

/// The conventions whose names these are.
pub(super) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.38.0";

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const WORKFLOW: &str = "gen_ai.workflow.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const AGENT_ID: &str = "gen_ai.agent.id";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const TEMPERATURE: &str = "gen_ai.request.temperature";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(super) const EVALUATION: &str = "gen_ai.evaluation.name";
pub(super) const EVALUATION_LABEL: &str = "gen_ai.evaluation.score.label";
pub(super) const ERROR_TYPE: &str = "error.type";

pub(super) const RUN: &str = "lula.run";
pub(super) const EXIT: &str = "lula.exit";
pub(super) const EVENT: &str = "lula.event";
pub(super) const NODE: &str = "lula.node";
pub(super) const VISIT: &str = "lula.visit";
pub(super) const OUTCOME: &str = "lula.outcome";
pub(super) const EFFECT_CLASS: &str = "lula.effect.class";
pub(super) const COST: &str = "lula.cost.micro_usd";
pub(super) const WAITS: &str = "lula.waits";
/// What was asked for, and what came of it: only where content is exported.
pub(super) const INPUT: &str = "input.value";
pub(super) const OUTPUT: &str = "output.value";
