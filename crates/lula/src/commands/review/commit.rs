//! `lula commit`: takes held changes over.

use lula_host::secrets;
use lula_host::workspaces::{aside, inside, open};
use lula_protocol::{Digest, RunExit};
use lula_workspace::{ChangeSelection, ExcludedChanges, WorkspacePath, WorkspaceStatus};
use serde::Serialize;

use super::flags::CommitFlags;
use super::{changes, left_aside, store};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, GOOD, paint, visible};

#[derive(Serialize)]
struct Document<'a> {
    workspace: &'a str,
    digest: &'a Digest,
    committed: &'a [WorkspacePath],
    held_back: &'a [WorkspacePath],
    /// Files that git ignores: they were not committed.
    left_aside: usize,
    state: WorkspaceStatus,
}

pub(crate) fn run(flags: &CommitFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let mut workspace = open(&store(session)?, flags.id.as_deref())?;
    let selection = ChangeSelection {
        paths: inside(workspace.record(), &flags.paths)?,
        git_internals: flags.allow_git,
    };
    let diff = workspace.diff()?;
    let aside = if flags.all {
        ExcludedChanges::none()
    } else {
        aside(&session.host, &workspace, &diff)
    };
    if !flags.allow_secrets {
        secrets::refuse(&workspace, &selection, (&diff, &aside))?;
    }
    // What is committed is what was looked at.
    let digest = flags.digest.unwrap_or(diff.digest);
    let committed = workspace.commit_leaving(&selection, Some(&digest), &aside)?;
    if screen.is_json() {
        screen.document(&Document {
            workspace: workspace.id().as_str(),
            digest: &committed.digest,
            committed: &committed.paths,
            held_back: &committed.held_back,
            left_aside: aside.files(),
            state: workspace.record().state,
        })?;
        return Ok(RunExit::Verified);
    }
    let count = committed.paths.len();
    let place = workspace.record().base();
    screen.line(paint(
        GOOD,
        format!("committed {} to {}", changes(count), place.display()),
    ))?;
    if let Some(first) = committed.held_back.first() {
        let more = committed.held_back.len() - 1;
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let first = visible(&first.to_string());
        screen.warn(&format!(
            "held back: {first}{more}; `lula diff --stat` says why"
        ));
    } else if workspace.record().state == WorkspaceStatus::Pending {
        screen.note(&paint(
            DIM,
            format!("{} more wait: lula diff", workspace.record().changes),
        ));
    }
    if aside.files() > 0 {
        let told = format!("{}; take them too: lula commit --all", left_aside(&aside));
        screen.note(&paint(DIM, told));
    }
    screen.note(&paint(DIM, "take back: lula undo"));
    Ok(RunExit::Verified)
}
