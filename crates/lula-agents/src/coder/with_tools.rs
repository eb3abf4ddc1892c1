//! A model with tools: a conversation in which every call is an effect, until it hands its change in.

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_models::normal::{MessagePart, MessageRole, ModelMessage, ModelRequest, ModelToolCall};

use super::conversation::CoderConversation;
use super::submission::{SUBMIT, Submission, SubmissionStatus};
use super::tools::{self, AnswerRoom};
use super::{gave_up, prompt};
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::nodes::workspace;
use crate::recovery::{AttemptFailureClass, tries_left};
use crate::runner_port::ToolRefusal;
use crate::task::ModelChoice;
use crate::work::{CodingState, EarlyEnd, OpenConversation, ResearchAnswer, RunStateEvent};

/// A model is told when it has so few turns left.
const FEW_TURNS: u32 = 3;

pub(super) async fn write(
    work: &CodingState,
    chosen: &ChosenModel<'_>,
    tally: &mut VisitModelUsage,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let model = chosen.model;
    let request = ModelRequest::new(&model.model, messages(work, model), model.max_tokens)
        .with_tools(tools::given(work, model.settings.pictures));
    let mut talk = match CoderConversation::begin(chosen, request, tally) {
        Ok(talk) => talk,
        Err(why) => {
            let class = AttemptFailureClass::Malformed;
            return Ok(gave_up(class, why, &[], &model.name));
        }
    };
    // What an earlier attempt of the same conversation changed is there.
    let mut changed = work.goes_on_with(&model.name).is_some();
    let mut turns = work.task.max_turns;
    let (untold, submission) = loop {
        let answer = match talk.ask(ctx).await? {
            Ok(answer) => answer,
            // What was handed in stays handed in, where only evidence for it was wanted.
            Err(_) if only_evidence_is_wanted(work, model) => {
                let summary = work.made.as_ref().map(|(_, summary)| summary.clone());
                break (Vec::new(), stopped(summary.unwrap_or_default()));
            }
            Err(trouble) => {
                let class = if trouble.unavailable {
                    AttemptFailureClass::ModelUnavailable
                } else {
                    AttemptFailureClass::Malformed
                };
                return Ok(gave_up(class, trouble.message, &[], &model.name));
            }
        };
        turns = turns.saturating_sub(1);
        if answer.calls.is_empty() {
            // Words without a call are a report, and the tree is judged in any case.
            break (Vec::new(), stopped(answer.words));
        }
        let (mut results, submitted) = match take_turn(
            work,
            (model, talk.pictures()),
            &answer.calls,
            &mut changed,
            ctx,
        )
        .await?
        {
            ModelTurn::Taken(results, submitted) => (results, submitted),
            ModelTurn::Refused(left) => return Ok(*left),
        };
        match submitted {
            Some(submission) => match decision(work, &submission, ctx).await? {
                None => break (results, submission),
                Some(choice) => {
                    results.push(MessagePart::Result {
                        id: submission.call,
                        name: SUBMIT.to_owned(),
                        content: choice,
                        failed: false,
                    });
                }
            },
            None if turns == 0 => break (results, stopped("the turns ran out".to_owned())),
            None => {}
        }
        if turns <= FEW_TURNS {
            let note = format!("[turns left before your work is judged as it is: {turns}]");
            results.push(MessagePart::text(note));
        }
        talk.say(ModelMessage {
            role: MessageRole::User,
            parts: results,
            cache_here: false,
        });
    };
    Ok(leave(work, model, talk, changed, untold, submission))
}

/// How the conversation begins, or goes on where an earlier attempt handed in.
fn messages(work: &CodingState, model: &ModelChoice) -> Vec<ModelMessage> {
    if let Some((open, failure)) = work.goes_on_with(&model.name) {
        let left = tries_left(&work.failures, work.task.max_loops);
        return open.answered(failure, left);
    }
    // What stays the same comes first: a prompt cache keeps it over attempts.
    let mut words = prompt::project(work);
    words.push_str(&prompt::task(work));
    let rules = if writes(work) {
        prompt::WITH_TOOLS
    } else {
        prompt::ONLY_LOOKS
    };
    vec![
        ModelMessage::system(prompt::rules(work, rules)).cached(),
        ModelMessage::user(words).cached(),
    ]
}

/// Whether the attempt goes on with a change that nothing speaks against.
fn only_evidence_is_wanted(work: &CodingState, model: &ModelChoice) -> bool {
    let class = work
        .goes_on_with(&model.name)
        .map(|(_, failure)| failure.class);
    class == Some(AttemptFailureClass::NoEvidence)
}

/// A model that stopped without handing in.
const fn stopped(summary: String) -> Submission {
    Submission {
        call: String::new(),
        status: SubmissionStatus::Done,
        summary,
        approve: None,
    }
}

/// What became of the calls of one answer.
enum ModelTurn {
    /// The results of calls, and what the model said if it handed in.
    Taken(Vec<MessagePart>, Option<Submission>),
    /// A person said no to one of them: that is for the planner. A rule can be worked around.
    Refused(Box<NodeDeparture>),
}

async fn take_turn(
    work: &CodingState,
    (model, pictures): (&ModelChoice, usize),
    calls: &[ModelToolCall],
    changed: &mut bool,
    ctx: &mut NodeContext<'_>,
) -> Result<ModelTurn, VisitStop> {
    let place = workspace(work)?;
    let (mut results, mut submitted) = (Vec::new(), None);
    let mut shown = Vec::new();
    for call in calls {
        let (content, failed) = if call.name != SUBMIT {
            let room = AnswerRoom::of(model, pictures + shown.len() / 2);
            let mut said = tools::call(work, &place, call, room, changed, ctx).await?;
            if said.refused == Some(ToolRefusal::ByPeople) {
                let class = AttemptFailureClass::ApprovalRejected;
                let left = gave_up(
                    class,
                    said.text,
                    std::slice::from_ref(&call.name),
                    &model.name,
                );
                return Ok(ModelTurn::Refused(Box::new(left)));
            }
            shown.extend(tools::shown_parts(&mut said));
            (tools::shown(&said.text, room.bytes), said.failed)
        } else if submitted.is_none() {
            submitted = Some(Submission::of(call));
            continue;
        } else {
            ("you handed in already".to_owned(), true)
        };
        results.push(MessagePart::Result {
            id: call.id.clone(),
            name: call.name.clone(),
            content,
            failed,
        });
    }
    results.extend(shown);
    Ok(ModelTurn::Taken(results, submitted))
}

/// Has a person decide, where the model asks for that and a person can be asked; what was chosen.
async fn decision(
    work: &CodingState,
    submission: &Submission,
    ctx: &mut NodeContext<'_>,
) -> Result<Option<String>, VisitStop> {
    let SubmissionStatus::NeedsDecision { options } = &submission.status else {
        return Ok(None);
    };
    // An agent's question goes to the run that leads it, with its summary.
    if work.task.handoff.is_some() || options.is_empty() {
        return Ok(None);
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let chosen = ctx.ask(&submission.summary, &options).await?;
    let mut text = format!("The person you work for decided: {}", chosen.choice);
    if !chosen.note.is_empty() {
        text.push_str("\nThey add: ");
        text.push_str(&chosen.note);
    }
    Ok(Some(text))
}

/// Ends the visit with what was handed in, and keeps the conversation.
fn leave(
    work: &CodingState,
    model: &ModelChoice,
    talk: CoderConversation<'_>,
    changed: bool,
    untold: Vec<MessagePart>,
    submission: Submission,
) -> NodeDeparture {
    let by = model.name.clone();
    let Submission {
        call,
        status,
        summary,
        approve,
    } = submission;
    if !writes(work) {
        let answer = ResearchAnswer {
            by,
            text: summary.chars().take(4000).collect(),
            approve,
        };
        return NodeExit::by(RunNodeExit::Answered).with(RunStateEvent::Answered { answer });
    }
    if status != SubmissionStatus::Done {
        let end = EarlyEnd::Blocked { by, why: summary };
        return NodeExit::by(RunNodeExit::Blocked).with(RunStateEvent::Ending { end });
    }
    let way = if changed {
        RunNodeExit::Edits
    } else {
        RunNodeExit::NoOp
    };
    let conversation = OpenConversation {
        by: by.clone(),
        messages: talk.messages(),
        untold,
        submitted: Some(call).filter(|id| !id.is_empty()),
    };
    NodeExit::by(way)
        .with(RunStateEvent::Coded { by, summary })
        .with(RunStateEvent::HandedIn {
            conversation: Box::new(conversation),
        })
}

/// Whether the coder that works on it may change files.
fn writes(work: &CodingState) -> bool {
    let handoff = work.task.handoff.as_ref();
    handoff.is_none_or(|handoff| handoff.role.writes)
}
