//! What an agent made for its line: a commit that is kept beside it.

use lula_protocol::Principal;
use lula_workspace::checkout::{BranchDelivery, GitChange};
use lula_workspace::integration_branch::AgentTaskName;
use lula_workspace::{Checkout, IntegrationBranch};

use super::before::EffectRollback;
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::lines::{message, refused, request_on, task};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::{RunnerService, scope};
use lula_runner_api::{CommitAgentChange, CommittedAgentChangeView};

/// A commit of what an agent changed, kept beside its line.
struct Produce<'a> {
    room: &'a RunnerWorkspace,
    line: &'a IntegrationBranch,
    task: &'a AgentTaskName,
    asked: &'a CommitAgentChange,
    request: EffectCallerRequest,
}

impl RunnerEffect for Produce<'_> {
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
        hands: &RunnerService,
    ) -> Result<EffectPreparation<Self::Plan, CommittedAgentChangeView>, RequestRefusal> {
        let checkout = hands.checkout(&self.request.entry.workspace)?;
        let taken = checkout.take(&self.room.workspace())?;
        if taken.digest != self.asked.tree {
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
        let outside = scope::outside(&self.room.invariants, &files);
        let order = BranchDelivery {
            branch: "",
            message: &self.asked.message,
            at: self.asked.at,
        };
        let stray = !outside.is_empty();
        let commit = self
            .line
            .keep(self.task, &checkout, &taken, &order, stray)?;
        subject.about = format!("{} {commit} {}", self.asked.task, files.join(" "));
        Ok(PerformedEffect::done(CommittedAgentChangeView {
            commit,
            files,
            outside,
        }))
    }
}

impl RunnerService {
    /// Makes a commit of what an agent changed, and keeps it.
    pub fn produce(
        &self,
        who: &Principal,
        name: &str,
        asked: &CommitAgentChange,
    ) -> Result<CommittedAgentChangeView, RequestRefusal> {
        message(&asked.message)?;
        let task = task(&asked.task)?;
        let line = self.line_of(name, &asked.run)?;
        let id = &asked.workspace;
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let plain = CommitAgentChange {
            epoch: 0,
            ..asked.clone()
        };
        let call = request_on(line.name(), &plain)?;
        let request = EffectCallerRequest {
            who: who.clone(),
            tool: "produce_change",
            entry: self.entry_of(id, &asked.effect, (&asked.run, asked.epoch), call),
        };
        let mut produce = Produce {
            room: &room,
            line: &line,
            task: &task,
            asked,
            request,
        };
        self.run_effect(&mut produce)?.free()
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
