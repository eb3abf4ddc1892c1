//! Talking to one model: every question is an effect, and an answer that cannot be used is asked
//! for again, at most twice, with the exact fault.

use lula_graph::{Ctx, Stop};
use lula_models::REPAIRS;
use lula_models::normal::{Message, ModelRequest, ModelResponse, Part, Role};
use lula_models::output::{Answer, Shaped, ask_again, read, shape};

use crate::choose::{Chosen, Tally};
use crate::deeds;
use crate::nodes::tried;
use crate::task::Mind;

/// Tokens are estimated as this many bytes each.
const BYTES_PER_TOKEN: u64 = 3;
/// The context of a model that says nothing of it.
const USUAL_CONTEXT: u64 = 100_000;
/// So many messages at the end stay whole when a conversation gets too long.
const RECENT: usize = 8;

/// Why there is no usable answer.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) message: String,
    /// Whether the model could not be asked at all.
    pub(crate) unavailable: bool,
}

/// A conversation.
pub(crate) struct Talk<'a> {
    mind: &'a Mind,
    tally: &'a mut Tally,
    pub(crate) shaped: Shaped,
    /// The last whole answer, as it came.
    pub(crate) response: Option<ModelResponse>,
}

impl<'a> Talk<'a> {
    pub(crate) fn begin(
        chosen: &Chosen<'a>,
        mut request: ModelRequest,
        tally: &'a mut Tally,
    ) -> Result<Self, String> {
        let mind = chosen.mind;
        request.temperature = Some(chosen.temperature());
        let shaped = shape(&request, mind.capability).map_err(|error| error.to_string())?;
        Ok(Self {
            mind,
            tally,
            shaped,
            response: None,
        })
    }

    /// Asks until the answer can be used.
    pub(crate) async fn ask(&mut self, ctx: &mut Ctx<'_>) -> Result<Result<Answer, Trouble>, Stop> {
        let mut fault = String::new();
        for again in 0..=REPAIRS {
            for note in ctx.hear().await? {
                self.tell(&note.text);
            }
            self.fit();
            self.tally.repairs += u32::from(again > 0);
            let effect = deeds::ask(self.mind, self.shaped.request.clone());
            let response: ModelResponse = match tried(ctx.effect(effect).await)? {
                Ok(response) => response,
                Err(message) => {
                    return Ok(Err(Trouble {
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
        Ok(Err(Trouble {
            message: format!(
                "{} gave no answer that can be used: {fault}",
                self.mind.name
            ),
            unavailable: false,
        }))
    }

    /// Adds the model's own words and what is said to it.
    pub(crate) fn say(&mut self, reply: Message) {
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
            Some(last) if last.role == Role::User => last.parts.push(Part::Text { text }),
            _ => messages.push(Message::user(text)),
        }
    }

    /// Drops the contents of old tool results when the conversation gets too long for the model.
    fn fit(&mut self) {
        let context = self.mind.context.unwrap_or(USUAL_CONTEXT);
        let room = context.saturating_sub(u64::from(self.mind.max_tokens));
        let messages = &mut self.shaped.request.messages;
        let long = |messages: &[Message]| {
            let bytes = serde_json::to_vec(messages).map_or(0, |bytes| bytes.len() as u64);
            bytes / BYTES_PER_TOKEN > room
        };
        if !long(messages) {
            return;
        }
        let old = messages.len().saturating_sub(RECENT);
        for message in messages.iter_mut().take(old) {
            if message.role != Role::User {
                continue;
            }
            for part in &mut message.parts {
                if let Part::Result { content, .. } = part
                    && content.len() > 200
                {
                    "[left out to save space; ask again if needed]".clone_into(content);
                }
            }
        }
    }
}
