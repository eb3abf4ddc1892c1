//! After a crash: what was half done is taken back, and what was done is written down.

use lula_audit::{Decided, Entry as Recorded};
use lula_protocol::Digest;
use lula_workspace::checkout;
use serde::Serialize;

use super::Hands;
use super::before::Before;
use super::clock::now_ms;
use super::ledger::Unfinished;
use super::refusal::Refusal;

impl Hands {
    /// After a start: what an earlier runner left half done is taken back, so that it can be done
    /// again, or admitted to be unknown; and the audit gets what it missed.
    pub(super) fn recover(&self) -> Result<(), Refusal> {
        let waiting = self.ledger().unaudited()?;
        for (effect, text, runner) in waiting {
            if self.runner.is_another(&runner) {
                continue;
            }
            if let Ok(entry) = serde_json::from_str(&text) {
                self.gate.record(&entry)?;
            }
            self.ledger().audited(&effect)?;
        }
        let unfinished = self.ledger().unfinished()?;
        for left in unfinished {
            // Not half done: somebody else is at it.
            if self.runner.is_another(&left.runner) {
                continue;
            }
            match self.recover_one(&left) {
                Ok(()) => {}
                // A workspace that is gone has nothing to be taken back.
                Err(Refusal::NoWorkspace(_)) => self.ledger().forget(&left.effect)?,
                // What cannot be put right now is not guessed at later either.
                Err(_) => self.ledger().give_up(&left.effect)?,
            }
        }
        Ok(())
    }

    fn recover_one(&self, left: &Unfinished) -> Result<(), Refusal> {
        let before = Before::read(left.before.as_deref());
        // Before any workspace is looked for: the branches are there with it or without it.
        if let Before::Branches(branches) = &before {
            if checkout::all_there(self.git()?, branches) {
                let done = super::together::delivered(branches);
                return self.store_recovered(left, (super::together::TOOL, None), &done);
            }
            checkout::take_back(self.git()?, branches)?;
            return Ok(self.ledger().forget(&left.effect)?);
        }
        let room = self.room(&left.workspace)?;
        let _turn = room.turn()?;
        match &before {
            Before::Lost => return Ok(self.ledger().give_up(&left.effect)?),
            Before::Commit(paths) => {
                if let Some(done) = super::commit::after_all(&room, paths)? {
                    let about = ("commit_workspace", Some(done.digest));
                    return self.store_recovered(left, about, &done);
                }
            }
            Before::Undo(digest) => {
                let now = room.workspace().diff()?.digest;
                if now != *digest {
                    let done = crate::api::Committed {
                        digest: now,
                        paths: Vec::new(),
                        held_back: Vec::new(),
                    };
                    return self.store_recovered(left, ("commit_workspace", Some(now)), &done);
                }
            }
            _ => self.take_back(Some(&room), &before)?,
        }
        Ok(self.ledger().forget(&left.effect)?)
    }

    fn store_recovered(
        &self,
        left: &Unfinished,
        (tool, diff): (&str, Option<Digest>),
        done: &impl Serialize,
    ) -> Result<(), Refusal> {
        let nobody = || Refusal::Internal("the runner's own name is none".to_owned());
        let recorded = Recorded {
            time_ms: now_ms(),
            principal: "lula:recovery".parse().map_err(|_| nobody())?,
            run: None,
            effect: Some(left.effect.clone()),
            tool: tool.to_owned(),
            about: "found done after a crash".to_owned(),
            call: left.request,
            decision: Decided {
                verdict: lula_audit::Verdict::Allowed,
                rule: None,
                approval: None,
            },
            outcome: lula_audit::Ended::Done { status: None },
            receipt: None,
            diff,
        };
        self.store_result(&left.effect, done, &recorded)
    }
}
