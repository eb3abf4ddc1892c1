//! A workspace that is filled from the integration branch.

use lula_protocol::Principal;
use lula_workspace::{Checkout, IntegrationBranch};

use super::RunnerService;
use super::before::EffectRollback;
use super::branches::{refused, request_on};
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use lula_runner_api::{EffectCall, FillWorkspaceFromBranch, FilledWorkspaceView, START};

/// What an integration branch holds, in a workspace of its first commit.
struct FillWorkspace<'a> {
    room: &'a RunnerWorkspace,
    branch: &'a IntegrationBranch,
    request: EffectCallerRequest,
}

impl RunnerEffect for FillWorkspace<'_> {
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
        service: &RunnerService,
    ) -> Result<EffectPreparation<Checkout, FilledWorkspaceView>, RequestRefusal> {
        let checkout = service.checkout(&self.request.entry.workspace)?;
        let (origin, branch) = (checkout.origin(), self.branch);
        if origin.commit != branch.base() || origin.repository != branch.repository() {
            return Err(refused(format!(
                "the workspace is not one of {}, with which the integration branch began",
                branch.base()
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
        let branch = self.branch;
        let commit = branch.commit()?;
        let pieces = branch.pieces(branch.base(), &commit)?;
        self.room.restore(START)?;
        self.room.lay(&pieces)?;
        let taken = checkout.take(&self.room.workspace())?;
        subject.about = format!("{} {commit}", branch.name());
        subject.diff = Some(taken.digest);
        Ok(PerformedEffect::done(FilledWorkspaceView {
            commit,
            tree: taken.digest,
            files: taken.files.into_iter().map(|file| file.path).collect(),
        }))
    }
}

impl RunnerService {
    /// Makes a workspace of the branch's first commit hold what the branch holds now.
    pub fn fill(
        &self,
        who: &Principal,
        call: &EffectCall<FillWorkspaceFromBranch>,
    ) -> Result<FilledWorkspaceView, RequestRefusal> {
        let branch = self.branch_of(&call.run, &call.order.branch)?;
        let id = &call.order.workspace;
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let digest = request_on(branch.name(), call)?;
        let of_run = (&call.effect, &call.run, call.epoch);
        let request = self.caller_request((who, "fill_workspace"), id, of_run, digest);
        let mut fill = FillWorkspace {
            room: &room,
            branch: &branch,
            request,
        };
        self.run_effect(&mut fill)?.free()
    }
}
