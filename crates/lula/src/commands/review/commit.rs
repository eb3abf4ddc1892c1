//! `lula commit`: takes held changes over.

use lula_protocol::{Digest, Exit};
use lula_workspace::{RelPath, Selection, State};
use serde::Serialize;

use super::flags::CommitFlags;
use super::{changes, inside, open, secrets, store};
use crate::failure::Failure;
use crate::session::Session;
use crate::term::{DIM, GOOD, paint, visible};

#[derive(Serialize)]
struct Document<'a> {
    workspace: &'a str,
    digest: &'a Digest,
    committed: &'a [RelPath],
    held_back: &'a [RelPath],
    state: State,
}

pub(crate) fn run(flags: &CommitFlags, session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    let mut workspace = open(&store(session)?, flags.id.as_deref())?;
    let selection = Selection {
        paths: inside(workspace.record(), &flags.paths)?,
        git_internals: flags.allow_git,
    };
    let mut digest = flags.digest;
    if !flags.allow_secrets {
        // What is committed is what was looked at.
        digest = digest.or(Some(secrets::refuse(&workspace, &selection)?));
    }
    let committed = workspace.commit(&selection, digest.as_ref())?;
    if screen.is_json() {
        screen.document(&Document {
            workspace: workspace.id().as_str(),
            digest: &committed.digest,
            committed: &committed.paths,
            held_back: &committed.held_back,
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
    screen.note(&paint(DIM, "take back: lula undo"));
    Ok(Exit::Verified)
}
