//! It is the person's turn: waits for what they choose, and does what of it needs no model.

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, PersonChoice, VisitStop};
use lula_protocol::ToolAction;
use lula_protocol::call::{TakeWorkspaceSnapshot, UndoToSnapshot};
use lula_runner_api::CommittedChangeView;

use super::{context, repositories, shell, tried, workspace};
use crate::chat::{ChatChoice, ChatEvent, ChatState, YOUR_TURN};
use crate::coder;
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::runner_port::Reply;
use crate::team::BEFORE;
use crate::work::{CodingState, RunStateEvent, TestBaseline};

/// Longest output of a command that the model is told.
const OUTPUT: usize = 16_000;

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let Some(chat) = work.chat.as_deref() else {
        return Err(VisitStop::Halt("the run is no chat".to_owned()));
    };
    // What was typed while the model had its turn is said now.
    let notes: Vec<String> = ctx.hear().await?.into_iter().map(|it| it.text).collect();
    if !notes.is_empty() {
        return Ok(says(chat, notes.join("\n\n")));
    }
    let options = ChatChoice::ALL.map(ChatChoice::name);
    loop {
        let PersonChoice { choice, note, .. } = ctx.ask(YOUR_TURN, &options).await?;
        let note = note.trim().to_owned();
        let left = match ChatChoice::from_name(&choice) {
            // Nothing was said: it is still the person's turn.
            None | Some(ChatChoice::Say | ChatChoice::Run | ChatChoice::Model)
                if note.is_empty() =>
            {
                continue;
            }
            None | Some(ChatChoice::Say) => says(chat, note),
            Some(ChatChoice::Run) => run(work, chat, note, ctx).await?,
            Some(ChatChoice::Test) => test(work, chat, ctx).await?,
            Some(ChatChoice::Commit) => commit(work, chat, false, ctx).await?,
            Some(ChatChoice::Deliver) => commit(work, chat, true, ctx).await?,
            Some(ChatChoice::Undo) => {
                go(work, chat, chat.back(), "there is nothing to undo", ctx).await?
            }
            Some(ChatChoice::Redo) => {
                go(work, chat, chat.forward(), "there is nothing to redo", ctx).await?
            }
            Some(ChatChoice::Repair) => repair(work, chat, ctx).await?,
            Some(ChatChoice::Model) => prefer(work, chat, note),
        };
        return Ok(left);
    }
}

/// Leaves with something that happened.
fn with(left: NodeDeparture, chat: &ChatState, what: ChatEvent) -> NodeDeparture {
    let number = chat.number + 1;
    left.with(RunStateEvent::Chat { number, what })
}

fn says(chat: &ChatState, text: String) -> NodeDeparture {
    with(
        NodeExit::by(RunNodeExit::Said),
        chat,
        ChatEvent::Said { text },
    )
}

/// Stays, with something that the person should know.
fn noted(chat: &ChatState, text: impl Into<String>) -> NodeDeparture {
    let text = text.into();
    let what = ChatEvent::Noted { text, told: false };
    with(NodeExit::by(RunNodeExit::More), chat, what)
}

async fn keep(
    work: &CodingState,
    label: &str,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let label = label.to_owned();
    act(
        work,
        ToolAction::Snapshot(TakeWorkspaceSnapshot { label }),
        ctx,
    )
    .await
}

async fn act(
    work: &CodingState,
    action: ToolAction,
    ctx: &mut NodeContext<'_>,
) -> Result<Reply, VisitStop> {
    let effect = RunEffect::Act {
        workspace: workspace(work)?,
        action,
        shown: u32::try_from(OUTPUT).ok(),
    };
    Ok(tried(ctx.effect::<Reply>(effect.request()).await)?.unwrap_or_else(Reply::failed))
}

/// Runs a command of the person in the workspace.
async fn run(
    work: &CodingState,
    chat: &ChatState,
    command: String,
    ctx: &mut NodeContext<'_>,
) -> Result<NodeDeparture, VisitStop> {
    let snapshot = chat.next_point();
    keep(work, &snapshot, ctx).await?;
    let said = act(work, shell(&command, work.task.folder_of(0)), ctx).await?;
    let left = NodeExit::by(RunNodeExit::More).with(RunStateEvent::Chat {
        number: chat.number + 1,
        what: ChatEvent::Kept { snapshot },
    });
    let ran = ChatEvent::Ran {
        command,
        output: said.text,
        failed: said.failed,
    };
    Ok(left.with(RunStateEvent::Chat {
        number: chat.number + 2,
        what: ran,
    }))
}

/// Runs the tests on the change as it is.
async fn test(
    work: &CodingState,
    chat: &ChatState,
    ctx: &mut NodeContext<'_>,
) -> Result<NodeDeparture, VisitStop> {
    let place = workspace(work)?;
    let effect = context::run_tests(work, 0, &place).request();
    let found: Result<TestBaseline, String> = tried(ctx.effect(effect).await)?;
    let (text, told) = match found {
        Ok(now) => (
            coder::tools::tested(&now, work.baseline_of(0), OUTPUT),
            true,
        ),
        Err(why) => (format!("the tests could not be run: {why}"), false),
    };
    let what = ChatEvent::Noted { text, told };
    Ok(with(NodeExit::by(RunNodeExit::More), chat, what))
}

/// What the tests said before anything was changed: found out when it is first needed, in a workspace
/// beside this one, which began as it did.
async fn baseline(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<Result<Option<TestBaseline>, String>, VisitStop> {
    if work.baseline_of(0).is_some() {
        return Ok(Ok(None));
    }
    let effect = context::run_tests(work, 0, &workspace(work)?);
    let effect = repositories::in_repository(BEFORE, effect).request();
    Ok(tried(ctx.effect::<TestBaseline>(effect).await)?.map(Some))
}

/// Has the change verified and delivered.
async fn commit(
    work: &CodingState,
    chat: &ChatState,
    unverified: bool,
    ctx: &mut NodeContext<'_>,
) -> Result<NodeDeparture, VisitStop> {
    let effect = RunEffect::TakeChange {
        workspace: workspace(work)?,
    };
    let taken: Result<CommittedChangeView, String> = tried(ctx.effect(effect.request()).await)?;
    match taken {
        Ok(taken) if taken.files.is_empty() => {
            return Ok(noted(
                chat,
                "nothing was changed, so there is nothing to commit",
            ));
        }
        Ok(_) => {}
        Err(why) => return Ok(noted(chat, format!("the change could not be taken: {why}"))),
    }
    let before = match baseline(work, ctx).await? {
        Ok(before) => before,
        Err(why) => return Ok(noted(chat, format!("the tests could not be run: {why}"))),
    };
    let by = chat.conversation.as_ref().map(|open| open.by.clone());
    let by = by.filter(|by| !by.is_empty());
    let mut left = NodeExit::by(RunNodeExit::Commit);
    if let Some(before) = before {
        left = left.with(context::tested(before));
    }
    // Who made it where a search or the person's own commands did.
    let by = by.or_else(|| work.made.as_ref().map(|(by, _)| by.clone()));
    left = left.with(RunStateEvent::Coded {
        by: by.unwrap_or_else(|| "person".to_owned()),
        summary: chat.made.clone(),
    });
    Ok(with(left, chat, ChatEvent::Committing { unverified }))
}

/// Goes to one of the points that were kept.
async fn go(
    work: &CodingState,
    chat: &ChatState,
    to: Option<usize>,
    nowhere: &str,
    ctx: &mut NodeContext<'_>,
) -> Result<NodeDeparture, VisitStop> {
    let Some((to, label)) = to.and_then(|to| Some((to, chat.points.get(to)?.clone()))) else {
        return Ok(noted(chat, nowhere));
    };
    let tip = chat.at.is_none().then(|| chat.next_point());
    if let Some(tip) = &tip {
        let kept = keep(work, tip, ctx).await?;
        if kept.failed {
            let why = format!("the files as they are could not be kept: {}", kept.text);
            return Ok(noted(chat, why));
        }
    }
    let to_label = UndoToSnapshot { to: Some(label) };
    let said = act(work, ToolAction::Undo(to_label), ctx).await?;
    if said.failed {
        return Ok(noted(chat, said.text));
    }
    let what = ChatEvent::Returned { to, tip };
    Ok(with(NodeExit::by(RunNodeExit::More), chat, what))
}

/// Lets the search mend failing tests.
async fn repair(
    work: &CodingState,
    chat: &ChatState,
    ctx: &mut NodeContext<'_>,
) -> Result<NodeDeparture, VisitStop> {
    let before = match baseline(work, ctx).await? {
        Ok(before) => before,
        Err(why) => return Ok(noted(chat, format!("the tests could not be run: {why}"))),
    };
    let mut left = NodeExit::by(RunNodeExit::Said);
    if let Some(before) = before {
        left = left.with(context::tested(before));
    }
    Ok(with(left, chat, ChatEvent::Repairing))
}

/// Has another of the run's models go on.
fn prefer(work: &CodingState, chat: &ChatState, name: String) -> NodeDeparture {
    let known = work
        .task
        .models
        .iter()
        .find(|model| model.name == name || model.model == name);
    match known {
        Some(model) => {
            let text = format!("{} goes on", model.name);
            let model = model.name.clone();
            noted(chat, text).with(RunStateEvent::Preferring { model })
        }
        None => {
            let names: Vec<&str> = work.task.models.iter().map(|it| it.name.as_str()).collect();
            let known = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            noted(
                chat,
                format!("the chat has no model {name:?}: it has {known}"),
            )
        }
    }
}
