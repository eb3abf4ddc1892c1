//! After a crash: what was half done is taken back, and what was done is written down.

use lula_audit::{AuditDecision, AuditEnding, AuditEntry as Recorded, AuditVerdict};
use lula_protocol::Digest;
use lula_workspace::checkout;
use serde::Serialize;

use super::RunnerService;
use super::before::EffectRollback;
use super::clock::now_ms;
use super::commit::COMMIT;
use super::effect::{UnfinishedEffect, UnfinishedEffectFate, in_bytes};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use lula_runner_api::CommittedWorkspace;

impl RunnerService {
    /// After a start: what an earlier runner left half done is taken back, so that it can be done
    /// again, or admitted to be unknown; and the audit gets what it missed.
    pub(super) fn recover(&self) -> Result<(), RequestRefusal> {
        let waiting = self.ledger().unaudited()?;
        for (effect, text, runner) in waiting {
            if self.runner.is_another(&runner) {
                continue;
            }
            self.catch_up(&effect, &text)?;
        }
        let unfinished = self.ledger().unfinished()?;
        for left in unfinished {
            // Not half done: another runner is at it.
            if !self.runner.is_another(&left.runner) && self.claim(&left)? {
                self.close_or_admit(&left, &self.recover_one(&left))?;
            }
        }
        Ok(())
    }

    /// Decides what became of an act whose runner ended, as after a start, for a caller that asks for
    /// it once more. The caller has the turn of `room`, if the act is about one.
    pub(super) fn recover_known(
        &self,
        left: &UnfinishedEffect,
        room: Option<&RunnerWorkspace>,
    ) -> Result<(), RequestRefusal> {
        if !self.claim(left)? {
            return Ok(());
        }
        let read_again = room.map_or(Ok(()), |room| {
            // It may be open since before the act. Opening it puts right what a commit left half
            // done in the user's tree.
            room.replace_workspace(self.store.open(&room.id)?);
            Ok(())
        });
        let before = EffectRollback::read(left.before.as_deref());
        let closed = read_again.and_then(|()| self.close(left, &before, room));
        self.close_or_admit(left, &closed)
    }

    /// Takes over what a runner that ended has left. Of several runners that find it, one does.
    fn claim(&self, left: &UnfinishedEffect) -> Result<bool, RequestRefusal> {
        self.claim_intent(&left.effect, &left.runner)
    }

    /// Writes down what is left to say of an act whose fate may not have been found out.
    fn close_or_admit(
        &self,
        left: &UnfinishedEffect,
        closed: &Result<(), RequestRefusal>,
    ) -> Result<(), RequestRefusal> {
        match closed {
            Ok(()) => Ok(()),
            // A workspace that is gone has nothing to be taken back.
            Err(RequestRefusal::NoWorkspace(_)) => {
                self.close_intent(&left.effect, &UnfinishedEffectFate::Undone)
            }
            // What cannot be put right now is not guessed at later either.
            Err(_) => self.close_intent(&left.effect, &UnfinishedEffectFate::Unknown),
        }
    }

    fn recover_one(&self, left: &UnfinishedEffect) -> Result<(), RequestRefusal> {
        let before = EffectRollback::read(left.before.as_deref());
        // Before any workspace is looked for: the branches are there with it or without it.
        if let EffectRollback::Branches(_) = before {
            return self.close(left, &before, None);
        }
        let room = self.room(&left.workspace)?;
        let _turn = room.turn()?;
        self.close(left, &before, Some(&room))
    }

    fn close(
        &self,
        left: &UnfinishedEffect,
        before: &EffectRollback,
        room: Option<&RunnerWorkspace>,
    ) -> Result<(), RequestRefusal> {
        let fate = self.fate(left, before, room)?;
        self.close_intent(&left.effect, &fate)
    }

    /// What became of an act; what can be taken back of it is.
    fn fate(
        &self,
        left: &UnfinishedEffect,
        before: &EffectRollback,
        room: Option<&RunnerWorkspace>,
    ) -> Result<UnfinishedEffectFate, RequestRefusal> {
        let room_of_it = || {
            room.ok_or_else(|| RequestRefusal::Internal("an effect has no workspace".to_owned()))
        };
        match before {
            EffectRollback::Lost => return Ok(UnfinishedEffectFate::Unknown),
            EffectRollback::Branches(branches) if checkout::all_there(self.git()?, branches) => {
                let done = super::deliver_all::delivered(branches);
                return found_done(left, (super::deliver_all::TOOL, None), &done);
            }
            EffectRollback::Commit(paths) => {
                if let Some(done) = super::commit::after_all(room_of_it()?, paths)? {
                    return found_done(left, (COMMIT, Some(done.digest)), &done);
                }
            }
            EffectRollback::Undo(digest) => {
                let now = room_of_it()?.workspace().diff()?.digest;
                if now != *digest {
                    let done = CommittedWorkspace {
                        digest: now,
                        paths: Vec::new(),
                        held_back: Vec::new(),
                    };
                    return found_done(left, (COMMIT, Some(now)), &done);
                }
            }
            _ => self.take_back(room, before)?,
        }
        Ok(UnfinishedEffectFate::Undone)
    }
}

/// An act that turned out to be done.
fn found_done(
    left: &UnfinishedEffect,
    (tool, diff): (&str, Option<Digest>),
    done: &impl Serialize,
) -> Result<UnfinishedEffectFate, RequestRefusal> {
    let nameless = || RequestRefusal::Internal("the runner's own name is none".to_owned());
    let recorded = Recorded {
        time_ms: now_ms(),
        principal: "lula:recovery".parse().map_err(|_| nameless())?,
        run: None,
        effect: Some(left.effect.clone()),
        tool: tool.to_owned(),
        about: "found done after a crash".to_owned(),
        call: left.request,
        decision: AuditDecision {
            verdict: AuditVerdict::Allowed,
            rule: None,
            approval: None,
        },
        outcome: AuditEnding::Done { status: None },
        receipt: None,
        diff,
    };
    Ok(UnfinishedEffectFate::Done {
        result: in_bytes(done)?,
        recorded: Box::new(recorded),
    })
}
