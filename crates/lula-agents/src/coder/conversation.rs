//! Talking to one model: every question is an effect, and an answer that cannot be used is asked
//! for again, at most twice, with the exact fault. A conversation only grows at its end, which is what
//! prompt caches keep, until it is too long for the model: then it is compacted (`compaction`).

mod compaction;

use lula_graph::{EffectRequest, NodeContext, VisitStop};
use lula_models::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, ModelResponse, ThinkingEffort,
};
use lula_models::output::{ModelAnswer, ShapedRequest, ask_again, read, shape};
use lula_models::spend::{input_bound, worst_case};
use lula_models::{BROKE_OFF, CONTEXT_OVERFLOW, REPAIRS, normal::OutputShape};

use crate::effects::RunEffect;
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::nodes::tried;
use crate::task::ModelChoice;
use compaction::{SummaryFault, checked, condensed, estimate, has_older, shortened};

/// The context of a model that says nothing of it.
const USUAL_CONTEXT: u64 = 100_000;
/// A conversation is never longer, whatever the model takes: what is further back is read worse and paid
/// for with each question, beyond here at a higher price by some providers.
const MOST_CONTEXT: u64 = 200_000;
/// A conversation that takes more than this part of its room is made shorter, in percent: there must be
/// room left for the question after it.
const FULL: u64 = 85;
/// Where what is left out of old results brings a conversation below this part of its room, in percent,
/// nothing else is done.
const ENOUGH: u64 = 70;
/// So often a model is asked for a summary.
const SUMMARIES: u32 = 2;
/// Before a note of the person, wherever it comes.
pub(super) const NOTE: &str = "A note from the person you work for: ";

/// What a model is asked when its conversation is too long.
const SUMMARISE: &str = "\
This conversation becomes too long. Do not call a tool now: answer in words with a summary from which \
you can go on without the messages before it. In at most 6,000 characters, with these headings:
Task: what was asked for, in its own terms.
Done: what you changed, file by file, and why.
Learned: facts you rely on: how the code works, what tests and commands said, what did not work.
Files: those you read or changed, each with what it is for.
Left: what is still to be done, in order.";

/// Why there is no usable answer.
#[derive(Debug)]
pub(crate) struct ConversationFailure {
    pub(crate) message: String,
    /// Whether the model could not be asked at all.
    pub(crate) unavailable: bool,
}

/// What a provider counted of a conversation.
#[derive(Debug, Clone, Copy)]
struct CountedPrompt {
    /// So many messages from its beginning, the answer included.
    messages: usize,
    tokens: u64,
}

/// A conversation with one model, and what it used so far.
pub(crate) struct CoderConversation<'a> {
    model: &'a ModelChoice,
    task: &'a str,
    tally: &'a mut VisitModelUsage,
    pub(crate) shaped: ShapedRequest,
    /// The last whole answer, as it came.
    pub(crate) response: Option<ModelResponse>,
    counted: Option<CountedPrompt>,
}

impl<'a> CoderConversation<'a> {
    pub(crate) fn begin(
        chosen: &ChosenModel<'a>,
        mut request: ModelRequest,
        tally: &'a mut VisitModelUsage,
    ) -> Result<Self, String> {
        let model = chosen.model;
        request.temperature = Some(chosen.temperature());
        if request.effort == ThinkingEffort::Off {
            request.effort = model.settings.effort;
        }
        let shaped = shape(&request, model.capability).map_err(|error| error.to_string())?;
        Ok(Self {
            model,
            task: chosen.task,
            tally,
            shaped,
            response: None,
            counted: None,
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
            self.tally.repairs += u32::from(again > 0);
            let response = match self.put(ctx).await? {
                Ok(response) => response,
                Err(message) => {
                    return Ok(Err(ConversationFailure {
                        message,
                        unavailable: true,
                    }));
                }
            };
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

    /// How many pictures there are in what was said.
    pub(crate) fn pictures(&self) -> usize {
        self.shaped.request.pictures().count()
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
        noted(&mut self.shaped.request.messages, note);
    }

    /// Puts the conversation to the model, as long as the model takes it.
    async fn put(
        &mut self,
        ctx: &mut NodeContext<'_>,
    ) -> Result<Result<ModelResponse, String>, VisitStop> {
        if self.used() > self.room() / 100 * FULL {
            self.compact(ctx).await?;
        }
        let mut answered = self.put_once(ctx).await?;
        // What a provider counts can be more than what was estimated, and its limit lower than what is
        // known of it.
        if answered
            .as_ref()
            .is_err_and(|why| why.contains(CONTEXT_OVERFLOW))
        {
            self.compact(ctx).await?;
            answered = self.put_once(ctx).await?;
        }
        Ok(answered)
    }

    async fn put_once(
        &mut self,
        ctx: &mut NodeContext<'_>,
    ) -> Result<Result<ModelResponse, String>, VisitStop> {
        let messages = &mut self.shaped.request.messages;
        // What was said so far is said again with the next question.
        if let Some(last) = messages.last_mut() {
            last.cache_here = true;
        }
        let sent = messages.len();
        let request = &self.shaped.request;
        let mut answered = asked(self.model, request, ctx).await?;
        // What was lost is charged all the same; another call is another effect with its own worst case.
        if answered
            .as_ref()
            .is_err_and(|why| why.starts_with(BROKE_OFF))
        {
            answered = asked(self.model, request, ctx).await?;
        }
        if let Ok(response) = &answered {
            self.tally.usage.add(&response.usage.unwrap_or_default());
            self.counted = response.usage.map(|usage| CountedPrompt {
                messages: sent + 1,
                tokens: usage.input.saturating_add(usage.output),
            });
        }
        Ok(answered)
    }

    /// How many tokens the next question has: as the provider counted the last one, and an estimate of
    /// what was said since.
    fn used(&self) -> u64 {
        let request = &self.shaped.request;
        match self.counted {
            Some(counted) if counted.messages <= request.messages.len() => {
                let since = &request.messages[counted.messages..];
                counted.tokens.saturating_add(estimate(&since, since))
            }
            _ => estimate(request, &request.messages),
        }
    }

    /// How many tokens it may have.
    fn room(&self) -> u64 {
        let context = self
            .model
            .context
            .unwrap_or(USUAL_CONTEXT)
            .min(MOST_CONTEXT);
        let answer = u64::from(self.model.max_tokens);
        // Where answers may take all of it, half is for what was said.
        context.saturating_sub(answer).max(context / 2)
    }

    /// Makes the conversation shorter. Rules, task and the last messages stay as they are: what is
    /// between them loses the middle of long results, and where that is not enough, gives way to a
    /// summary that the model writes itself. Either begins a new prefix for caches.
    async fn compact(&mut self, ctx: &mut NodeContext<'_>) -> Result<(), VisitStop> {
        let (used, room) = (self.used(), self.room());
        let (short, saved) = shortened(&self.shaped.request.messages);
        if used.saturating_sub(saved) <= room / 100 * ENOUGH {
            self.shaped.request.messages = short;
            self.counted = None;
            return Ok(());
        }
        let mut summary = None;
        if has_older(&self.shaped.request.messages) {
            // A question that is too long already is not asked.
            let whole = self.shaped.request.messages.clone();
            let asked = if used > room { short } else { whole };
            summary = self.summary(asked, ctx).await?;
        }
        let messages = &self.shaped.request.messages;
        self.shaped.request.messages = condensed(messages, summary, room);
        self.counted = None;
        Ok(())
    }

    /// The summary of a conversation by its own model; nothing where it gave none that can be used.
    async fn summary(
        &mut self,
        messages: Vec<ModelMessage>,
        ctx: &mut NodeContext<'_>,
    ) -> Result<Option<String>, VisitStop> {
        let mut request = self.shaped.request.clone();
        request.messages = messages;
        request.output = OutputShape::Text;
        request.messages.push(ModelMessage::user(SUMMARISE));
        self.tally.summaries += 1;
        for _ in 0..SUMMARIES {
            let effect = question(self.model, request.clone());
            let answered: Result<ModelResponse, String> = tried(ctx.effect(effect).await)?;
            let Ok(response) = answered else {
                return Ok(None);
            };
            self.tally.usage.add(&response.usage.unwrap_or_default());
            match checked(&response, self.task) {
                Ok(summary) => return Ok(Some(summary)),
                Err(SummaryFault(why)) => {
                    let again = format!("{SUMMARISE}\nYour last summary could not be used: {why}.");
                    request.messages.pop();
                    request.messages.push(ModelMessage::user(&again));
                }
            }
        }
        Ok(None)
    }
}

/// Adds a note of a person at the end of what was said.
fn noted(messages: &mut Vec<ModelMessage>, note: &str) {
    let text = format!("{NOTE}{note}");
    match messages.last_mut() {
        Some(last) if last.role == MessageRole::User => {
            // Some providers join the texts of a message as they are.
            let apart = match last.parts.last() {
                Some(MessagePart::Text { .. }) => "\n\n",
                _ => "",
            };
            last.parts.push(MessagePart::text(format!("{apart}{text}")));
        }
        _ => messages.push(ModelMessage::user(text)),
    }
}

/// Puts one question to a model.
async fn asked(
    model: &ModelChoice,
    request: &ModelRequest,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<ModelResponse, String>, VisitStop> {
    tried(ctx.effect(question(model, request.clone())).await)
}

/// A question to a model as an effect, with the most it may cost held back.
fn question(model: &ModelChoice, request: ModelRequest) -> EffectRequest {
    let body = serde_json::to_vec(&request).unwrap_or_default();
    let bound = input_bound(&body, request.pictures(), None);
    // On the wire a request is written otherwise, and may be somewhat longer.
    let bound = bound.saturating_add(bound / 4);
    let bound = model.context.map_or(bound, |context| bound.min(context));
    let worst = worst_case(&model.price(), bound, u64::from(request.max_tokens));
    let effect = RunEffect::Ask {
        model: model.name.clone(),
        request: Box::new(request),
        at_most: worst.clone(),
    };
    effect.request().reserving(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_stands_apart_from_what_was_said_before_it() {
        let mut messages = vec![ModelMessage::user("What was seen.")];
        noted(&mut messages, "use tabs");
        assert_eq!(
            messages[0].words(),
            "What was seen.\n\nA note from the person you work for: use tabs"
        );
    }
}
