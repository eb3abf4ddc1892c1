//! `lula undo RUN`

use std::path::Path;

use lula_protocol::{Code, Exit, RunId};
use lula_store::SecretGuard;
use serde_json::json;

use crate::commands::review;
use crate::commands::run::find_git;
use crate::failure::Failure;
use crate::hands;
use crate::runs::{self, labels, store};
use crate::session::Session;
use crate::term::{DIM, paint};

pub(in crate::commands) fn undo(run: &RunId, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let refuse = |message: String| {
            Failure::new(Code::RunRefused, Exit::Failed, message)
                .remedy("`lula show` tells what the run delivered")
        };
        let Some(delivered) = &known.state.delivered else {
            return Err(refuse(format!("{run} delivered nothing")));
        };
        let screen = &session.screen;
        if let Some(id) = &delivered.workspace {
            let files = review::store(session)?.open(id)?.undo()?;
            labels::was_undone(run, session)?;
            let files: Vec<String> = files.iter().map(ToString::to_string).collect();
            if screen.is_json() {
                screen.document(&json!({"workspace": id, "files": files}))?;
            } else {
                let text = format!("{} as before the run", files.join(", "));
                screen.note(&text);
                screen.note(&paint(
                    DIM,
                    format!("lula redo {id}   brings the change back"),
                ));
            }
            return Ok(Exit::Verified);
        }
        let git = find_git(session)?;
        let repository = Path::new(&known.state.task.repository);
        let undone = hands::undo(&git, repository, delivered);
        let undone = undone.map_err(|error| refuse(error.to_string()))?;
        labels::was_undone(run, session)?;
        if screen.is_json() {
            screen.document(&undone)?;
        } else {
            screen.note(&format!("the branch {} is gone", undone.branch));
            let back = format!(
                "git branch {} {}   brings it back",
                undone.branch, undone.kept_as
            );
            screen.note(&paint(DIM, back));
        }
        Ok(Exit::Verified)
    })
}
