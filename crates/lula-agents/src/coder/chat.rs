//! A turn of a chat: the model works until it answers in words, and the person reads.

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_models::normal::{MessagePart, MessageRole, ModelMessage, ModelRequest, ModelToolCall};
use lula_models::output::OutputCapability;
use lula_protocol::ToolAction;
use lula_protocol::call::TakeWorkspaceSnapshot;

use super::conversation::CoderConversation;
use super::submission::{SUBMIT, Submission, SubmissionStatus};
use super::tools::{self, AnswerRoom};
use super::{asked, prompt, repairer};
use crate::chat::{ChatEvent, ChatState, ChatTurn, STOPPED, TurnEnd};
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, RunNodeExit};
use crate::model_choice::{ChosenModel, ModelRole, VisitModelUsage};
use crate::nodes::{tried, workspace};
use crate::runner_port::{Reply, ToolRefusal};
use crate::task::ModelChoice;
use crate::work::{CodingState, OpenConversation, RunStateEvent};

/// The answer that stands for words of the person.
const OTHERWISE: &str = "something else";
/// What is missing where no model is configured.
const NO_MODEL: &str =
    "no model is configured: name one with --model PROVIDER/MODEL, or set models.use";

pub(super) async fn visit(
    work: &CodingState,
    chat: &ChatState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let kept = keep(work, chat, ctx).await?;
    let mut number = chat.number;
    let mut said = |what: ChatEvent| {
        number += 1;
        RunStateEvent::Chat { number, what }
    };
    let kept = said(ChatEvent::Kept { snapshot: kept });
    if chat.repairing {
        return Ok(repairer::write(work, ctx).await?.with(kept));
    }
    let model = work.task.models.first();
    let chosen = model.and_then(|model| ChosenModel::going_on(work, ModelRole::Coder, &model.name));
    let mut tally = VisitModelUsage::default();
    let turn = match &chosen {
        None => Err(NO_MODEL.to_owned()),
        Some(chosen) if chosen.model.capability != OutputCapability::ToolCalls => Err(format!(
            "{} does not call tools, and a chat needs a model that does",
            chosen.model.name
        )),
        Some(chosen) => turn(work, chat, chosen, &mut tally, ctx).await?,
    };
    let turn = turn.unwrap_or_else(|why| unasked(chat, why));
    let mut left = NodeExit::by(RunNodeExit::Turn);
    // A turn that changed nothing is nothing to take back.
    if turn.changed {
        left = left.with(kept);
    }
    let left = left.with(said(ChatEvent::TurnEnded {
        turn: Box::new(turn),
    }));
    Ok(match &chosen {
        Some(chosen) => asked(left, work, chosen, tally),
        None => left,
    })
}

/// Keeps the files as they are before the turn, so that it can be taken back.
async fn keep(
    work: &CodingState,
    chat: &ChatState,
    ctx: &mut NodeContext<'_>,
) -> Result<String, VisitStop> {
    let label = chat.next_point();
    let effect = RunEffect::Act {
        workspace: workspace(work)?,
        action: ToolAction::Snapshot(TakeWorkspaceSnapshot {
            label: label.clone(),
        }),
        shown: None,
    };
    // One that cannot be taken back goes on all the same: `undo` says so when it is asked for.
    let _ = tried(ctx.effect::<Reply>(effect.request()).await)?;
    Ok(label)
}

/// A turn in which the model could not be asked: what was said stays for the next one.
fn unasked(chat: &ChatState, why: String) -> ChatTurn {
    let mut conversation = chat.conversation.clone().map_or_else(
        || OpenConversation {
            by: String::new(),
            messages: Vec::new(),
            untold: Vec::new(),
            submitted: None,
        },
        |open| *open,
    );
    let untold = chat.untold.iter().map(MessagePart::text);
    conversation.untold.extend(untold);
    ChatTurn {
        conversation,
        words: String::new(),
        ended: TurnEnd::Failed { why },
        changed: false,
    }
}

/// How the conversation begins.
fn begin(work: &CodingState) -> Vec<ModelMessage> {
    // What stays the same comes first: a prompt cache keeps it over turns.
    let mut words = prompt::project(work);
    words.push_str(&prompt::task(work));
    vec![
        ModelMessage::system(prompt::rules(work, prompt::IN_CHAT)).cached(),
        ModelMessage::user(words).cached(),
    ]
}

async fn turn(
    work: &CodingState,
    chat: &ChatState,
    chosen: &ChosenModel<'_>,
    tally: &mut VisitModelUsage,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<ChatTurn, String>, VisitStop> {
    let model = chosen.model;
    let begun = chat
        .conversation
        .as_ref()
        .is_some_and(|open| !open.messages.is_empty());
    let mut messages = chat.messages(|| begin(work));
    if !begun && chat.conversation.is_some() {
        // The model could not be asked before: it is told now what it missed.
        let missed = messages;
        messages = begin(work);
        messages.extend(missed);
    }
    let request = ModelRequest::new(&model.model, messages, model.max_tokens)
        .with_tools(tools::given(work, model.settings.pictures));
    let mut talk = match CoderConversation::begin(chosen, request, tally) {
        Ok(talk) => talk,
        Err(why) => return Ok(Err(why)),
    };
    let mut changed = false;
    let mut steps = work.task.max_turns;
    let (words, ended, untold, submitted) = loop {
        let answer = match talk.ask(ctx).await? {
            Ok(answer) => answer,
            Err(trouble) => {
                // What was asked last has no answer.
                talk.response = None;
                let ended = if trouble.message.contains(STOPPED) {
                    TurnEnd::Stopped
                } else {
                    TurnEnd::Failed {
                        why: trouble.message,
                    }
                };
                break (String::new(), ended, Vec::new(), None);
            }
        };
        steps = steps.saturating_sub(1);
        if answer.calls.is_empty() {
            break (answer.words, TurnEnd::Answered, Vec::new(), None);
        }
        let pictures = talk.pictures();
        let taken = take_turn(work, (model, pictures), &answer.calls, &mut changed, ctx).await?;
        let mut results = taken.results;
        if taken.refused {
            break (answer.words, TurnEnd::Refused, results, None);
        }
        if let Some(submission) = taken.submitted {
            match decision(&submission, ctx).await? {
                None => {
                    let words = [answer.words, submission.summary];
                    let words: Vec<String> =
                        words.into_iter().filter(|text| !text.is_empty()).collect();
                    let id = Some(submission.call).filter(|id| !id.is_empty());
                    break (words.join("\n\n"), TurnEnd::Answered, results, id);
                }
                Some(choice) => results.push(MessagePart::Result {
                    id: submission.call,
                    name: SUBMIT.to_owned(),
                    content: choice,
                    failed: false,
                }),
            }
        }
        if steps == 0 {
            break (answer.words, TurnEnd::OutOfSteps, results, None);
        }
        talk.say(ModelMessage {
            role: MessageRole::User,
            parts: results,
            cache_here: false,
        });
    };
    Ok(Ok(ChatTurn {
        conversation: OpenConversation {
            by: model.name.clone(),
            messages: talk.messages(),
            untold,
            submitted,
        },
        words,
        ended,
        changed,
    }))
}

/// What became of the calls of one answer.
struct TakenCalls {
    results: Vec<MessagePart>,
    submitted: Option<Submission>,
    /// Whether the person said no to one of them.
    refused: bool,
}

async fn take_turn(
    work: &CodingState,
    (model, pictures): (&ModelChoice, usize),
    calls: &[ModelToolCall],
    changed: &mut bool,
    ctx: &mut NodeContext<'_>,
) -> Result<TakenCalls, VisitStop> {
    let place = workspace(work)?;
    let (mut results, mut submitted, mut refused) = (Vec::new(), None, false);
    let mut shown = Vec::new();
    for call in calls {
        let (content, failed) = if call.name == SUBMIT && submitted.is_none() {
            submitted = Some(Submission::of(call));
            continue;
        } else if call.name == SUBMIT {
            ("you handed in already".to_owned(), true)
        } else if refused {
            let why = "not done: the person you work for refused the call before it";
            (why.to_owned(), true)
        } else {
            let room = AnswerRoom::of(model, pictures + shown.len() / 2);
            let mut said = tools::call(work, &place, call, room, changed, ctx).await?;
            refused = said.refused == Some(ToolRefusal::ByPeople);
            shown.extend(tools::shown_parts(&mut said));
            (tools::shown(&said.text, room.bytes), said.failed)
        };
        results.push(MessagePart::Result {
            id: call.id.clone(),
            name: call.name.clone(),
            content,
            failed,
        });
    }
    results.extend(shown);
    if refused && let Some(submission) = submitted.take() {
        results.push(MessagePart::Result {
            id: submission.call,
            name: SUBMIT.to_owned(),
            content: "not taken: the person you work for refused a call before it".to_owned(),
            failed: true,
        });
    }
    Ok(TakenCalls {
        results,
        submitted,
        refused,
    })
}

/// Has the person decide, where the model offers answers to choose from.
async fn decision(
    submission: &Submission,
    ctx: &mut NodeContext<'_>,
) -> Result<Option<String>, VisitStop> {
    let SubmissionStatus::NeedsDecision { options } = &submission.status else {
        return Ok(None);
    };
    if options.is_empty() {
        return Ok(None);
    }
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.push(OTHERWISE);
    let chosen = ctx.ask(&submission.summary, &options).await?;
    Ok(Some(match (chosen.choice.as_str(), chosen.note.as_str()) {
        (OTHERWISE, note) => format!("The person you work for says: {note}"),
        (choice, "") => format!("The person you work for decided: {choice}"),
        (choice, note) => {
            format!("The person you work for decided: {choice}\nThey add: {note}")
        }
    }))
}
