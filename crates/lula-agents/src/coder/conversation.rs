//! Talking to one model: every question is an effect, and an answer that cannot be used is asked
//! for again, at most twice, with the exact fault.

use lula_graph::{EffectRequest, NodeContext, VisitStop};
use lula_models::REPAIRS;
use lula_models::normal::{MessagePart, MessageRole, ModelMessage, ModelRequest, ModelResponse};
use lula_models::output::{ModelAnswer, ShapedRequest, ask_again, read, shape};
use lula_models::spend::{input_bound, worst_case};

use crate::effects::RunEffect;
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::nodes::tried;
use crate::task::ModelChoice;

/// Tokens are estimated as this many bytes each.
const BYTES_PER_TOKEN: u64 = 3;
/// The context of a model that says nothing of it.
const USUAL_CONTEXT: u64 = 100_000;
/// So many messages at the end stay whole when a conversation gets too long.
const RECENT: usize = 8;

/// Why there is no usable answer.
#[derive(Debug)]
pub(crate) struct ConversationFailure {
    pub(crate) message: String,
    /// Whether the model could not be asked at all.
    pub(crate) unavailable: bool,
}

/// A conversation with one model, and what it used so far.
pub(crate) struct CoderConversation<'a> {
    model: &'a ModelChoice,
    tally: &'a mut VisitModelUsage,
    pub(crate) shaped: ShapedRequest,
    /// The last whole answer, as it came.
    pub(crate) response: Option<ModelResponse>,
}

impl<'a> CoderConversation<'a> {
    pub(crate) fn begin(
        chosen: &ChosenModel<'a>,
        mut request: ModelRequest,
        tally: &'a mut VisitModelUsage,
    ) -> Result<Self, String> {
        let model = chosen.model;
        request.temperature = Some(chosen.temperature());
        let shaped = shape(&request, model.capability).map_err(|error| error.to_string())?;
        Ok(Self {
            model,
            tally,
            shaped,
            response: None,
        })
    }

    /// Asks until the answer can be used.
    pub(crate) async fn ask(
        &mut self,
        ctx: &mut NodeContext<'_>,
    ) -> Result<Result<ModelAnswer, ConversationFailure>, VisitStop> {
        let mut fault = String::new();
        for again in 0..=REPAIRS {
            for note in ctx.hear().await? {
                self.tell(&note.text);
            }
            self.fit();
            self.tally.repairs += u32::from(again > 0);
            let effect = question(self.model, self.shaped.request.clone());
            let response: ModelResponse = match tried(ctx.effect(effect).await)? {
                Ok(response) => response,
                Err(message) => {
                    return Ok(Err(ConversationFailure {
                        message,
                        unavailable: true,
                    }));
                }
            };
            self.tally.usage.add(&response.usage.unwrap_or_default());
            match read(&self.shaped, &response) {
                Ok(answer) => {
                    self.response = Some(response);
                    return Ok(Ok(answer));
                }
                Err(found) => {
                    fault = found.to_string();
                    let repairable = found.is_repairable();
                    self.shaped = ask_again(&self.shaped, &response, &found);
                    self.response = Some(response);
                    if !repairable {
                        break;
                    }
                }
            }
        }
        Ok(Err(ConversationFailure {
            message: format!(
                "{} gave no answer that can be used: {fault}",
                self.model.name
            ),
            unavailable: false,
        }))
    }

    /// Everything that was said, the last answer included.
    pub(crate) fn messages(self) -> Vec<ModelMessage> {
        let mut messages = self.shaped.request.messages;
        messages.extend(self.response.map(|response| response.message()));
        messages
    }

    /// Adds the model's own words and what is said to it.
    pub(crate) fn say(&mut self, reply: ModelMessage) {
        if let Some(response) = self.response.take() {
            self.shaped.request.messages.push(response.message());
        }
        self.shaped.request.messages.push(reply);
    }

    /// Adds what a person wants the model to know, where it is the person's turn.
    fn tell(&mut self, note: &str) {
        let text = format!("A note from the person you work for: {note}");
        let messages = &mut self.shaped.request.messages;
        match messages.last_mut() {
            Some(last) if last.role == MessageRole::User => {
                last.parts.push(MessagePart::Text { text });
            }
            _ => messages.push(ModelMessage::user(text)),
        }
    }

    /// Drops the contents of old tool results when the conversation gets too long for the model.
    fn fit(&mut self) {
        let context = self.model.context.unwrap_or(USUAL_CONTEXT);
        let room = context.saturating_sub(u64::from(self.model.max_tokens));
        let messages = &mut self.shaped.request.messages;
        let long = |messages: &[ModelMessage]| {
            let bytes = serde_json::to_vec(messages).map_or(0, |bytes| bytes.len() as u64);
            bytes / BYTES_PER_TOKEN > room
        };
        if !long(messages) {
            return;
        }
        let old = messages.len().saturating_sub(RECENT);
        for message in messages.iter_mut().take(old) {
            if message.role != MessageRole::User {
                continue;
            }
            for part in &mut message.parts {
                if let MessagePart::Result { content, .. } = part
                    && content.len() > 200
                {
                    "[left out to save space; ask again if needed]".clone_into(content);
                }
            }
        }
    }
}

/// A question to a model as an effect, with the most it may cost held back.
fn question(model: &ModelChoice, request: ModelRequest) -> EffectRequest {
    let body = serde_json::to_vec(&request).unwrap_or_default();
    let bound = input_bound(&body, None);
    // On the wire a request is written otherwise, and may be somewhat longer.
    let bound = bound.saturating_add(bound / 4);
    let bound = model.context.map_or(bound, |context| bound.min(context));
    let worst = worst_case(&model.rates.into(), bound, u64::from(request.max_tokens));
    let effect = RunEffect::Ask {
        model: model.name.clone(),
        request: Box::new(request),
        at_most: worst.clone(),
    };
    effect.request().reserving(worst)
}
