//! Judged changes on their way into the repositories they are for: one change as a branch or into the
//! files of its checkout; several as branches of all their repositories or of none
//! (`deliver_all.rs`). Rules judge what they change like a commit, since commands in the sandbox
//! write files without asking the gate.

use lula_protocol::{Digest, EffectId, Principal, RunId};
use lula_workspace::checkout::{self, BranchDelivery, CheckoutError, GitChange};
use lula_workspace::{Checkout, WorkspaceError};
use serde::Serialize;

use super::before::EffectRollback;
use super::checkouts::{MESSAGE, shown_whole};
use super::commit::request;
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    GatedAct, PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::gate::{self, ShownApproval};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::task_history::{self, TaskCommits};
use super::{RunnerService, scope, views};
use lula_runner_api::{
    ChangeDelivery, DeliverChanges, DeliveredChanges, DeliveredView, EffectCall, TaskHistory,
};

/// What a delivery is called in the audit.
const TOOL: &str = "deliver_change";
/// Longest name of a branch, in bytes.
pub(super) const BRANCH: usize = 200;

/// What the ledger and approvals know a delivery by. The epoch says who asks, and is no part of it.
#[derive(Serialize)]
struct DeliveryRequest<'a> {
    effect: &'a EffectId,
    epoch: u64,
    run: &'a RunId,
    tree: Digest,
    branch: &'a str,
    message: &'a str,
    at: u64,
    into_files: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a TaskHistory>,
}

/// A judged change on its way into its repository, as a branch or into the files of its checkout.
struct Deliver<'a> {
    room: &'a RunnerWorkspace,
    call: &'a EffectCall<DeliverChanges>,
    delivery: &'a ChangeDelivery,
    request: EffectCallerRequest,
}

impl RunnerEffect for Deliver<'_> {
    type Output = DeliveredView;
    type Plan = (Checkout, GitChange, Option<TaskCommits>);

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        Some(self.room)
    }

    fn prepare(
        &self,
        service: &RunnerService,
    ) -> Result<EffectPreparation<Self::Plan, DeliveredView>, RequestRefusal> {
        let room = self.room;
        let checkout = service.checkout(&self.request.entry.workspace)?;
        let taken = checkout.take(&room.workspace())?;
        if taken.digest != self.delivery.tree {
            let message = "the workspace is not what was judged any more; run the task again";
            return Err(CheckoutError::Refused(message.to_owned()).into());
        }
        shown_whole(&taken)?;
        let paths: Vec<String> = taken.files.iter().map(|file| file.path.clone()).collect();
        let tasks = service.task_commits(&self.call.run, &checkout, self.delivery)?;
        let act = task_history::act(&taken, tasks.as_ref());
        let labels: String = paths.iter().map(|path| views::labels(path)).collect();
        let permission = EffectPermission::Judged {
            rules: gate::version(&room.rules)?,
            verdict: gate::judge(&room.rules, &scope::within(act, &room.invariants())),
            shown: ShownApproval {
                rendered: format!("{labels}{}", taken.diff),
                base_tree: taken.digest,
            },
            class: self.request.entry.class,
        };
        let subject = EffectSubject {
            about: format!("{} {}", self.delivery.branch, paths.join(" ")),
            diff: Some(taken.digest),
        };
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission,
            // Doing it again makes the same branch.
            before: EffectRollback::Nothing,
            subject,
            plan: (checkout, taken, tasks),
        }))
    }

    fn perform(
        &mut self,
        service: &RunnerService,
        (checkout, taken, tasks): Self::Plan,
        _: &mut EffectSubject,
    ) -> Result<PerformedEffect<DeliveredView>, EffectFailure> {
        if self.delivery.into_files {
            let delivered = service.put_into_files(&checkout, &taken, &self.call.run)?;
            return Ok(PerformedEffect::done(delivered));
        }
        let order = BranchDelivery {
            branch: &self.delivery.branch,
            message: &self.delivery.message,
            at: self.delivery.at,
        };
        let done = match tasks {
            None => checkout::delivered(&checkout, &taken, &order)?,
            Some(tasks) => {
                let last = tasks.line_up(&checkout, &taken, &order)?;
                checkout::name_commit(&checkout, order.branch, last, &|commit| tasks.bring(commit))?
            }
        };
        Ok(PerformedEffect::done(DeliveredView {
            branch: Some(self.delivery.branch.clone()),
            commit: Some(done.commit),
            directory: None,
            workspace: None,
        }))
    }
}

impl RunnerService {
    /// Puts exactly the judged changes into their repositories, if the rules say so: all of them or
    /// none.
    pub fn deliver(
        &self,
        who: &Principal,
        call: &EffectCall<DeliverChanges>,
    ) -> Result<GatedAct<DeliveredChanges>, RequestRefusal> {
        let [delivery] = call.order.deliveries.as_slice() else {
            return self.deliver_all(who, call);
        };
        Ok(match self.deliver_one(who, call, delivery)? {
            GatedAct::Done(delivered) => GatedAct::Done(DeliveredChanges {
                parts: vec![delivered],
            }),
            GatedAct::Held(result) => GatedAct::Held(result),
        })
    }

    fn deliver_one(
        &self,
        who: &Principal,
        call: &EffectCall<DeliverChanges>,
        delivery: &ChangeDelivery,
    ) -> Result<GatedAct<DeliveredView>, RequestRefusal> {
        let (branch, message) = (&delivery.branch, &delivery.message);
        if branch.is_empty() || branch.len() > BRANCH || message.len() > MESSAGE {
            let message =
                format!("a branch has 1 to {BRANCH} bytes, its message at most {MESSAGE}");
            return Err(RequestRefusal::BadRequest(message));
        }
        let id = &delivery.workspace;
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let asked = DeliveryRequest {
            effect: &call.effect,
            epoch: 0,
            run: &call.run,
            tree: delivery.tree,
            branch,
            message,
            at: delivery.at,
            into_files: delivery.into_files,
            history: delivery.history.as_ref(),
        };
        let of_run = (&call.effect, &call.run, call.epoch);
        let request = self.caller_request((who, TOOL), id, of_run, request(id, &asked)?);
        self.run_effect(&mut Deliver {
            room: &room,
            call,
            delivery,
            request,
        })
    }

    /// Changes the files of the checkout in one journaled step, or finds that done already.
    fn put_into_files(
        &self,
        checkout: &Checkout,
        taken: &GitChange,
        run: &RunId,
    ) -> Result<DeliveredView, RequestRefusal> {
        let repository = &checkout.origin().repository;
        let title = format!("lula run {run}");
        let workspace = if let Some(there) = self.store.was_put(repository, &title)? {
            there
        } else {
            let pieces = checkout.pieces(taken)?;
            let put = self.store.put(repository, &title, &pieces);
            put.map_err(|error| match error {
                WorkspaceError::Conflicts(paths) => {
                    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
                    let message = format!(
                        "your checkout has other content in {}, and nothing in it was changed; \
                         the change is in the record: `lula diff RUN | git apply --3way` merges it",
                        paths.join(", ")
                    );
                    RequestRefusal::from(CheckoutError::Refused(message))
                }
                other => other.into(),
            })?
            .0
        };
        Ok(DeliveredView {
            branch: None,
            commit: None,
            directory: Some(repository.display().to_string()),
            workspace: Some(workspace),
        })
    }
}
