//! A workspace that is made to hold what a line holds.

use lula_protocol::Principal;
use lula_workspace::{Checkout, IntegrationBranch};

use super::RunnerService;
use super::before::EffectRollback;
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::lines::{refused, request_on};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use lula_runner_api::{FillWorkspaceFromBranch, FilledWorkspaceView, START};

/// What a line holds, in a workspace of its first commit.
struct Lay<'a> {
    room: &'a RunnerWorkspace,
    line: &'a IntegrationBranch,
    request: EffectCallerRequest,
}

impl RunnerEffect for Lay<'_> {
    type Output = FilledWorkspaceView;
    type Plan = Checkout;

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        Some(self.room)
    }

    fn prepare(
        &self,
        hands: &RunnerService,
    ) -> Result<EffectPreparation<Checkout, FilledWorkspaceView>, RequestRefusal> {
        let checkout = hands.checkout(&self.request.entry.workspace)?;
        let (origin, line) = (checkout.origin(), self.line);
        if origin.commit != line.base() || origin.repository != line.repository() {
            return Err(refused(format!(
                "the workspace is not one of {}, with which the line began",
                line.base()
            )));
        }
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission: EffectPermission::Free,
            // Cut off, it returns to the beginning; done again, it begins there too.
            before: EffectRollback::Restoring(START.to_owned()),
            subject: EffectSubject::default(),
            plan: checkout,
        }))
    }

    fn perform(
        &mut self,
        _: &RunnerService,
        checkout: Checkout,
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<FilledWorkspaceView>, EffectFailure> {
        let line = self.line;
        let commit = line.commit()?;
        let pieces = line.pieces(line.base(), &commit)?;
        self.room.restore(START)?;
        self.room.lay(&pieces)?;
        let taken = checkout.take(&self.room.workspace())?;
        subject.about = format!("{} {commit}", line.name());
        subject.diff = Some(taken.digest);
        Ok(PerformedEffect::done(FilledWorkspaceView {
            commit,
            tree: taken.digest,
            files: taken.files.into_iter().map(|file| file.path).collect(),
        }))
    }
}

impl RunnerService {
    /// Makes a workspace of the line's first commit hold what the line holds now.
    pub fn lay(
        &self,
        who: &Principal,
        name: &str,
        asked: &FillWorkspaceFromBranch,
    ) -> Result<FilledWorkspaceView, RequestRefusal> {
        let line = self.line_of(name, &asked.run)?;
        let id = &asked.workspace;
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let plain = FillWorkspaceFromBranch {
            epoch: 0,
            ..asked.clone()
        };
        let call = request_on(line.name(), &plain)?;
        let request = EffectCallerRequest {
            who: who.clone(),
            tool: "lay_line",
            entry: self.entry_of(id, &asked.effect, (&asked.run, asked.epoch), call),
        };
        let mut lay = Lay {
            room: &room,
            line: &line,
            request,
        };
        self.run_effect(&mut lay)?.free()
    }
}
