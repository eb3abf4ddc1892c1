//! `lula chat`

pub(crate) mod flags;

use std::io::{self, IsTerminal};

use lula_agents::chat::ChatTerms;
use lula_agents::{CoderChoice, RunTask};
use lula_chat::ChatSetup;
use lula_host::HostError;
use lula_host::chat::{DriverNews, serve};
use lula_host::models::ThinkingEffort;
use lula_host::runs;
use lula_host::task::{ApprovalMode, TaskRequest};
use lula_protocol::{Code, FailureReport, RunExit};

use super::background;
use super::run::limits;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use flags::ChatFlags;

/// What a chat is about in which nothing was said yet.
const SILENT: &str = "a chat";

pub(super) fn run(flags: &ChatFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    if let Some(run) = &flags.drive {
        return Ok(drive(run, session));
    }
    let json = session.screen.is_json();
    if !json && (!io::stdin().is_terminal() || !io::stdout().is_terminal()) {
        return Err(CommandFailure::new(
            Code::BadCommandLine,
            RunExit::Usage,
            "a chat needs a terminal",
        )
        .remedy(
            "`lula chat --json` talks over standard input and output, `lula run TASK` works alone",
        ));
    }
    let git = lula_host::repository::find_git(&session.host)?;
    let (repository, _) = lula_host::repository::around(flags.repo.as_deref(), &git)?;
    let task = |words: &str| task(words, flags, session);
    let setup = ChatSetup {
        installation: &session.host,
        task: &task,
        limits: limits(&flags.limits),
        flags: background::settings_given(session),
        run: flags.run.clone(),
        words: flags.say.clone(),
        repository,
        colour: session.screen.has_colour(),
    };
    Ok(if json {
        lula_chat::converse_in_json(&setup)?
    } else {
        lula_chat::converse(&setup)?
    })
}

/// Drives the run of a chat for the process that started this one, which hears why it could not.
fn drive(run: &str, session: &CliSession) -> RunExit {
    let served = runs::block_on(serve(run, &session.host));
    let Err(error) = served else {
        return RunExit::Verified;
    };
    let failure = CommandFailure::from(error);
    let exit = failure.exit;
    DriverNews::Failed {
        error: FailureReport::from(&failure),
    }
    .tell();
    exit
}

/// The task of a chat, from what is said first.
fn task(words: &str, flags: &ChatFlags, session: &CliSession) -> Result<RunTask, HostError> {
    let silent = words.trim().is_empty();
    let request = TaskRequest {
        text: if silent { SILENT } else { words }.to_owned(),
        repositories: flags.repo.iter().cloned().collect(),
        repair: false,
        tests: flags.tests.clone(),
        accept: flags.accept.clone(),
        finish: flags.finish.clone(),
        models: flags.model.clone(),
        effort: flags.effort.as_deref().and_then(ThinkingEffort::from_name),
        judges: Vec::new(),
        lane: None,
        team: None,
        best_of: None,
        coder: CoderChoice::Model,
        deliver: flags.deliver.mode(),
        approval: ApprovalMode::ByRules,
        max_loops: 3,
        max_turns: flags.max_turns,
        search: std::time::Duration::from_mins(2),
        traceparent: std::env::var("TRACEPARENT").ok(),
    };
    let task = request.task(&session.host)?;
    Ok(task.talked_about(ChatTerms { silent }))
}
