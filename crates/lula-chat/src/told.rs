//! What the program itself tells the person.

use std::path::Path;

use lula_agents::RunTask;
use lula_host::chat::ChatView;
use lula_host::story::facts::spend;
use lula_host::text::{plain, visible};

use crate::commands::COMMANDS;
use crate::style::{DIM, NAME, STRONG, WARN, paint, wrapped};

/// How a conversation begins.
pub(crate) fn greeting(repository: &Path, task: Option<&RunTask>, columns: usize) -> Vec<String> {
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    let model = task.and_then(|task| task.models.first());
    let mut rows = vec![format!(
        "{} {}",
        paint(STRONG, "lula"),
        paint(NAME, visible(&name))
    )];
    match model {
        Some(model) => rows.extend(wrapped(
            DIM,
            &format!(
                "{} works in a private copy, in the sandbox. Nothing reaches your files before /commit. \
                 /help lists the commands.",
                visible(&model.name)
            ),
            columns,
        )),
        None => rows.extend(without_model(columns)),
    }
    rows
}

/// What can be done without a model, and how to get one.
pub(crate) fn without_model(columns: usize) -> Vec<String> {
    let mut rows = wrapped(
        WARN,
        "No model is configured. Without one you can:",
        columns,
    );
    for (what, about) in [
        ("/repair", "search for a fix of failing tests"),
        ("/test", "run the project's tests in the sandbox"),
        (
            "!COMMAND",
            "run a command in the sandbox; its changes are held",
        ),
        (
            "/diff, /commit",
            "review what was changed, verify and deliver it",
        ),
    ] {
        rows.push(format!(
            "  {} {}",
            paint(STRONG, format!("{what:<15}")),
            about
        ));
    }
    rows.extend(wrapped(
        DIM,
        "With a key in the environment: lula chat --model anthropic/claude-sonnet-4-5. On this machine: \
         lula chat --model ollama/qwen3-coder. `lula models use NAME` remembers it, `lula doctor` shows \
         what is there.",
        columns,
    ));
    rows
}

pub(crate) fn help() -> Vec<String> {
    let mut rows: Vec<String> = COMMANDS
        .iter()
        .map(|one| {
            let name = format!("{} {}", one.name, one.arguments);
            format!(
                "  {} {}",
                paint(STRONG, format!("{:<22}", name.trim())),
                one.about
            )
        })
        .collect();
    for (what, about) in [
        (
            "!COMMAND",
            "run a command in the sandbox; the model is told what it printed",
        ),
        ("@FILE", "name a file (Tab completes)"),
        ("Alt-Enter, Ctrl-J, \\", "another line"),
        ("Ctrl-R", "search the history"),
        (
            "Esc",
            "while the model works: stop its step; twice: end its turn",
        ),
        (
            "words, Enter",
            "while the model works: a note it hears with its next step",
        ),
    ] {
        rows.push(format!(
            "  {} {about}",
            paint(STRONG, format!("{what:<22}"))
        ));
    }
    rows
}

pub(crate) fn cost(view: &ChatView) -> Vec<String> {
    let report = view.report();
    let mut rows = vec![spend(&report.spent).unwrap_or_else(|| "nothing was spent".to_owned())];
    for (dimension, amount) in report.spent.iter() {
        rows.push(paint(DIM, format!("  {dimension}: {amount}")));
    }
    rows
}

/// What fills the model's context.
pub(crate) fn context(view: &ChatView) -> Vec<String> {
    let state = &view.known.state;
    let Some(chat) = &state.chat else {
        return Vec::new();
    };
    let Some(open) = &chat.conversation else {
        return vec!["nothing was said yet".to_owned()];
    };
    let part = |messages: &[_]| serde_json::to_vec(messages).map_or(0, |bytes| bytes.len() / 4);
    let first = open.messages.len().min(2);
    let (begin, rest) = open.messages.split_at(first);
    let model = state.task.models.first();
    let room = model.and_then(|model| model.context);
    let mut rows = vec![
        format!("rules, project and task: about {} tokens", part(begin)),
        format!("{} messages since: about {} tokens", rest.len(), part(rest)),
        format!("to be told with the next turn: {}", chat.untold.len()),
    ];
    if let Some(room) = room {
        rows.push(paint(
            DIM,
            format!("the model takes {room} tokens; older parts are summed up before"),
        ));
    }
    rows
}

/// The models of a chat.
pub(crate) fn models(task: &RunTask) -> Vec<String> {
    if task.models.is_empty() {
        return vec!["no model is configured".to_owned()];
    }
    let rows = task.models.iter().enumerate().map(|(at, model)| {
        let mark = if at == 0 { "›" } else { " " };
        format!("{mark} {}", plain(&model.name, 100))
    });
    rows.collect()
}
