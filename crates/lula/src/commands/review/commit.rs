//! `lula commit`: takes held changes over.

use lula_protocol::{Digest, Exit};
use lula_workspace::{Aside, RelPath, Selection, State};
use serde::Serialize;

use super::flags::CommitFlags;
use super::{aside, changes, inside, left_aside, open, secrets, store};
use crate::failure::Failure;
use crate::session::Session;
use crate::term::{DIM, GOOD, paint, visible};

#[derive(Serialize)]
struct Document<'a> {
    workspace: &'a str,
    digest: &'a Digest,
    committed: &'a [RelPath],
    held_back: &'a [RelPath],
    /// Files that git ignores: they were not committed.
    left_aside: usize,
    state: State,
}

pub(crate) fn run(flags: &CommitFlags, session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    let mut workspace = open(&store(session)?, flags.id.as_deref())?;
    let selection = Selection {
        paths: inside(workspace.record(), &flags.paths)?,
        git_internals: flags.allow_git,
    };
    let diff = workspace.diff()?;
    let aside = if flags.all {
        Aside::none()
    } else {
        aside(session, &workspace, &diff)
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
        return Ok(Exit::Verified);
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
    } else if workspace.record().state == State::Pending {
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
    Ok(Exit::Verified)
}
