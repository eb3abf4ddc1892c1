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
use crate::term::{DIM, paint, visible};

pub(in crate::commands) fn undo(run: &RunId, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let refuse = |message: String| {
            Failure::new(Code::RunRefused, Exit::Failed, message)
                .remedy("`lula show` tells what the run delivered")
        };
        let work = &known.state;
        let own = work
            .delivered
            .iter()
            .map(|one| (Path::new(&work.task.repository), one));
        let others = work.sites.iter();
        let others =
            others.filter_map(|site| Some((Path::new(&site.repository), site.delivered.as_ref()?)));
        let delivered: Vec<_> = own.chain(others).collect();
        let Some((_, first)) = delivered.first() else {
            return Err(refuse(format!("{run} delivered nothing")));
        };
        let screen = &session.screen;
        if let Some(id) = &first.workspace {
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
        let undone = hands::undo(&git, &delivered).map_err(|error| refuse(error.to_string()))?;
        labels::was_undone(run, session)?;
        if screen.is_json() {
            match undone.as_slice() {
                [one] => screen.document(one)?,
                several => screen.document(&several)?,
            }
        }
        for ((repository, _), one) in delivered.iter().zip(&undone) {
            if screen.is_json() {
                break;
            }
            screen.note(&format!("the branch {} is gone", one.branch));
            let back = format!(
                "git -C {} branch {} {}   brings it back",
                visible(&repository.display().to_string()),
                one.branch,
                one.kept_as
            );
            screen.note(&paint(DIM, back));
        }
        Ok(Exit::Verified)
    })
}
