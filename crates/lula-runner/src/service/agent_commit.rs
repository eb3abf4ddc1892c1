//! An agent's change as a commit, which is kept beside the integration branch.

use lula_protocol::Principal;
use lula_workspace::checkout::{BranchDelivery, GitChange};
use lula_workspace::integration_branch::StepName;
use lula_workspace::{Checkout, IntegrationBranch};

use super::before::EffectRollback;
use super::branches::{message, refused, request_on, step};
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::{RunnerService, scope};
use lula_runner_api::{CommitAgentChange, CommittedAgentChangeView, EffectCall};

/// A commit of what an agent changed, kept beside its integration branch.
struct CommitAgentChangeEffect<'a> {
    room: &'a RunnerWorkspace,
    branch: &'a IntegrationBranch,
    step: &'a StepName,
    order: &'a CommitAgentChange,
    request: EffectCallerRequest,
}

impl RunnerEffect for CommitAgentChangeEffect<'_> {
    type Output = CommittedAgentChangeView;
    type Plan = (Checkout, GitChange);

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        Some(self.room)
    }

    fn prepare(
        &self,
        service: &RunnerService,
    ) -> Result<EffectPreparation<Self::Plan, CommittedAgentChangeView>, RequestRefusal> {
        let checkout = service.checkout(&self.request.entry.workspace)?;
        let taken = checkout.take(&self.room.workspace())?;
        if taken.digest != self.order.tree {
            let problem = "the workspace is not what was judged any more; judge it again";
            return Err(refused(problem));
        }
        if let Some(path) = unresolved(&checkout, &taken) {
            return Err(refused(format!(
                "{path} still has the markers of a conflict"
            )));
        }
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission: EffectPermission::Free,
            // Doing it again makes the same commit.
            before: EffectRollback::Nothing,
            subject: EffectSubject {
                about: String::new(),
                diff: Some(taken.digest),
            },
            plan: (checkout, taken),
        }))
    }

    fn perform(
        &mut self,
        _: &RunnerService,
        (checkout, taken): (Checkout, GitChange),
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<CommittedAgentChangeView>, EffectFailure> {
        let files: Vec<String> = taken.files.iter().map(|file| file.path.clone()).collect();
        let outside = scope::outside(&self.room.invariants(), &files);
        let order = BranchDelivery {
            branch: "",
            message: &self.order.message,
            at: self.order.at,
        };
        let stray = !outside.is_empty();
        let commit = self
            .branch
            .commit_change(self.step, &checkout, &taken, &order, stray)?;
        subject.about = format!("{} {commit} {}", self.order.step, files.join(" "));
        Ok(PerformedEffect::done(CommittedAgentChangeView {
            commit,
            files,
            outside,
        }))
    }
}

impl RunnerService {
    /// Makes a commit of what an agent changed, and keeps it.
    pub fn commit_agent_change(
        &self,
        who: &Principal,
        call: &EffectCall<CommitAgentChange>,
    ) -> Result<CommittedAgentChangeView, RequestRefusal> {
        let order = &call.order;
        message(&order.message)?;
        let step = step(&order.step)?;
        let branch = self.branch_of(&call.run, &order.branch)?;
        let id = &order.workspace;
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let digest = request_on(branch.name(), call)?;
        let of_run = (&call.effect, &call.run, call.epoch);
        let request = self.caller_request((who, "commit_agent_change"), id, of_run, digest);
        let mut effect = CommitAgentChangeEffect {
            room: &room,
            branch: &branch,
            step: &step,
            order,
            request,
        };
        self.run_effect(&mut effect)?.free()
    }
}

/// A file in which the markers of the conflict that the workspace began with still stand.
fn unresolved(checkout: &Checkout, taken: &GitChange) -> Option<String> {
    let origin = checkout.origin();
    let (marker, other) = (
        format!("<<<<<<< {}", origin.commit),
        format!(">>>>>>> {}", origin.with.as_deref()?),
    );
    let holds = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().any(|line| line == marker || line == other)
    };
    let mut files = taken.files.iter();
    let found = files.find(|file| file.after.as_deref().is_some_and(holds))?;
    Some(found.path.clone())
}
