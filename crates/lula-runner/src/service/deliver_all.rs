//! The results of a run in several repositories, delivered to all of them or to none.
//!
//! The names of all branches are in the ledger first, so that after a crash the next runner finds
//! all of them or takes back the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use lula_gate::rules::{GateVerdict, Ruling};
use lula_protocol::digest::DigestDomain;
use lula_protocol::{Digest, EffectId, Principal, RunId, WorkspaceId};
use lula_workspace::Checkout;
use lula_workspace::checkout::{
    self, BranchDelivery, BranchUpdate, CheckoutError, GitChange, RepositoryDelivery,
};
use serde::Serialize;

use super::before::EffectRollback;
use super::branches::message;
use super::checkouts::shown_whole;
use super::deliver::BRANCH;
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

/// What it is called in the audit.
pub(super) const TOOL: &str = "deliver_all";
/// Most repositories of one delivery.
const PARTS: usize = 16;

/// What the ledger and approvals know it by. The epoch says who asks, and is no part of it.
#[derive(Serialize)]
struct DeliveriesRequest<'a> {
    effect: &'a EffectId,
    epoch: u64,
    run: &'a RunId,
    parts: Vec<DeliveryPart<'a>>,
}

#[derive(Serialize)]
struct DeliveryPart<'a> {
    workspace: &'a WorkspaceId,
    tree: Digest,
    branch: &'a str,
    message: &'a str,
    at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a TaskHistory>,
}

impl<'a> DeliveryPart<'a> {
    fn of(delivery: &'a ChangeDelivery) -> Self {
        Self {
            workspace: &delivery.workspace,
            tree: delivery.tree,
            branch: &delivery.branch,
            message: &delivery.message,
            at: delivery.at,
            history: delivery.history.as_ref(),
        }
    }
}

/// A part with all that is known of it.
struct LoadedDelivery<'a> {
    part: &'a ChangeDelivery,
    checkout: Checkout,
    taken: GitChange,
    tasks: Option<TaskCommits>,
    verdict: GateVerdict,
    rules: Digest,
}

/// Judged changes on their way into several repositories, as branches of all of them or of none.
struct DeliverAll<'a> {
    rooms: &'a [Arc<RunnerWorkspace>],
    call: &'a EffectCall<DeliverChanges>,
    request: EffectCallerRequest,
}

impl<'a> RunnerEffect for DeliverAll<'a> {
    type Output = DeliveredChanges;
    type Plan = (Vec<LoadedDelivery<'a>>, Vec<BranchUpdate>);

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        None
    }

    fn prepare(
        &self,
        service: &RunnerService,
    ) -> Result<EffectPreparation<Self::Plan, DeliveredChanges>, RequestRefusal> {
        let mut parts = Vec::new();
        for part in &self.call.order.deliveries {
            let room = self.rooms.iter().find(|room| room.id == part.workspace);
            let gone = || RequestRefusal::NoWorkspace(part.workspace.clone());
            parts.push(service.load(&self.call.run, part, room.ok_or_else(gone)?)?);
        }
        let verdict = strictest(&parts)?;
        let shown = shown(&parts)?;
        let versions: Vec<Digest> = parts.iter().map(|part| part.rules).collect();
        let names = self
            .call
            .order
            .deliveries
            .iter()
            .map(|part| part.branch.as_str());
        let subject = EffectSubject {
            about: names.collect::<Vec<_>>().join(" "),
            diff: Some(shown.base_tree),
        };
        let permission = EffectPermission::Judged {
            rules: Digest::of(DigestDomain::Effect, &versions)
                .map_err(|error| RequestRefusal::Internal(error.to_string()))?,
            verdict,
            shown,
            class: self.request.entry.class,
        };
        // A branch that is in the way stops all of it here.
        let branches = parts.iter().map(|part| {
            let order = BranchDelivery {
                branch: &part.part.branch,
                message: &part.part.message,
                at: part.part.at,
            };
            let (checkout, taken) = (&part.checkout, &part.taken);
            match &part.tasks {
                None => checkout::prepare(&RepositoryDelivery {
                    checkout,
                    taken,
                    order,
                }),
                Some(tasks) => {
                    let last = tasks.line_up(checkout, taken, &order)?;
                    checkout::prepare_commit(checkout, order.branch, last)
                }
            }
        });
        let branches = branches.collect::<Result<Vec<_>, _>>()?;
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission,
            before: EffectRollback::Branches(branches.clone()),
            subject,
            plan: (parts, branches),
        }))
    }

    fn perform(
        &mut self,
        service: &RunnerService,
        (parts, branches): Self::Plan,
        _: &mut EffectSubject,
    ) -> Result<PerformedEffect<DeliveredChanges>, EffectFailure> {
        for (part, branch) in parts.iter().zip(&branches) {
            match &part.tasks {
                None => part.checkout.bring(&branch.commit)?,
                Some(tasks) => tasks.bring(&branch.commit)?,
            }
        }
        checkout::create_all(service.git()?, &branches)?;
        Ok(PerformedEffect::done(delivered(&branches)))
    }
}

impl RunnerService {
    /// Makes the branches of all judged changes, or none of them, if the rules say so.
    pub(super) fn deliver_all(
        &self,
        who: &Principal,
        call: &EffectCall<DeliverChanges>,
    ) -> Result<GatedAct<DeliveredChanges>, RequestRefusal> {
        let deliveries = &call.order.deliveries;
        check(deliveries)?;
        let asked = DeliveriesRequest {
            effect: &call.effect,
            epoch: 0,
            run: &call.run,
            parts: deliveries.iter().map(DeliveryPart::of).collect(),
        };
        let request = Digest::of(DigestDomain::Effect, &(TOOL, &asked)).map_err(|error| {
            RequestRefusal::BadRequest(format!("the request has no digest: {error}"))
        })?;
        // Always in one order, so that two deliveries never wait for each other.
        let ids: BTreeSet<_> = deliveries.iter().map(|part| &part.workspace).collect();
        let rooms = ids.iter().map(|id| self.room(id));
        let rooms = rooms.collect::<Result<Vec<_>, _>>()?;
        let turns = rooms.iter().map(|room| room.turn());
        let _turns = turns.collect::<Result<Vec<_>, _>>()?;
        let first = &deliveries[0].workspace;
        let of_run = (&call.effect, &call.run, call.epoch);
        let request = self.caller_request((who, TOOL), first, of_run, request);
        self.run_effect(&mut DeliverAll {
            rooms: &rooms,
            call,
            request,
        })
    }

    fn load<'a>(
        &self,
        run: &RunId,
        part: &'a ChangeDelivery,
        room: &RunnerWorkspace,
    ) -> Result<LoadedDelivery<'a>, RequestRefusal> {
        let checkout = self.checkout(&part.workspace)?;
        let taken = checkout.take(&room.workspace())?;
        if taken.digest != part.tree {
            let message = format!(
                "{} is not what was judged any more; run the task again",
                part.workspace
            );
            return Err(CheckoutError::Refused(message).into());
        }
        shown_whole(&taken)?;
        let tasks = self.task_commits(run, &checkout, part)?;
        let act = task_history::act(&taken, tasks.as_ref());
        Ok(LoadedDelivery {
            tasks,
            part,
            verdict: gate::judge(&room.rules, &scope::within(act, &room.invariants())),
            rules: gate::version(&room.rules)?,
            checkout,
            taken,
        })
    }
}

fn check(deliveries: &[ChangeDelivery]) -> Result<(), RequestRefusal> {
    let bad = |message: String| Err(RequestRefusal::BadRequest(message));
    if deliveries.is_empty() || deliveries.len() > PARTS {
        return bad(format!("a delivery has 1 to {PARTS} parts"));
    }
    for part in deliveries {
        message(&part.message)?;
        if part.branch.is_empty() || part.branch.len() > BRANCH {
            return bad(format!("a branch has 1 to {BRANCH} bytes"));
        }
        if part.into_files {
            return bad("several changes are delivered as branches".to_owned());
        }
    }
    let ids: BTreeSet<_> = deliveries.iter().map(|part| &part.workspace).collect();
    if ids.len() < deliveries.len() {
        return bad("a workspace is delivered once".to_owned());
    }
    Ok(())
}

/// What all rules say about all parts: the strictest, and everything that any of them asks for.
fn strictest(parts: &[LoadedDelivery<'_>]) -> Result<GateVerdict, RequestRefusal> {
    let mut all = parts[0].verdict.clone();
    let asks = |verdict: &GateVerdict| verdict.ruling == Ruling::Ask;
    let roles: BTreeSet<_> = parts
        .iter()
        .filter(|part| asks(&part.verdict))
        .filter_map(|part| part.verdict.terms.role.clone())
        .collect();
    if roles.len() > 1 {
        let message = "the repositories ask people of different roles: deliver them one by one";
        return Err(CheckoutError::Refused(message.to_owned()).into());
    }
    for part in &parts[1..] {
        let verdict = &part.verdict;
        all.because.extend(verdict.because.iter().cloned());
        all.terms = match (asks(&all), asks(verdict)) {
            (false, true) => verdict.terms.clone(),
            (true, false) => all.terms,
            _ => all.terms.strictest(&verdict.terms),
        };
        all.beforehand &= verdict.beforehand;
        all.ruling = all.ruling.max(verdict.ruling);
    }
    all.because
        .sort_by_key(|because| std::cmp::Reverse(because.ruling));
    Ok(all)
}

/// All changes, as people see them before they agree.
fn shown(parts: &[LoadedDelivery<'_>]) -> Result<ShownApproval, RequestRefusal> {
    let mut rendered = String::new();
    for part in parts {
        let repository = part.checkout.origin().repository.display().to_string();
        let line = format!("# {} in {}\n", part.part.branch, repository.escape_debug());
        rendered.push_str(&line);
        for file in &part.taken.files {
            rendered.push_str(&views::labels(&file.path));
        }
        rendered.push_str(&part.taken.diff);
    }
    let trees: Vec<Digest> = parts.iter().map(|part| part.taken.digest).collect();
    let base_tree = Digest::of(DigestDomain::Effect, &trees)
        .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
    Ok(ShownApproval {
        rendered,
        base_tree,
    })
}

/// What is told of branches that are all there.
pub(super) fn delivered(branches: &[BranchUpdate]) -> DeliveredChanges {
    let view = |branch: &BranchUpdate| DeliveredView {
        branch: Some(
            branch
                .name
                .strip_prefix("refs/heads/")
                .unwrap_or(&branch.name)
                .to_owned(),
        ),
        commit: Some(branch.commit.clone()),
        directory: None,
        workspace: None,
    };
    DeliveredChanges {
        parts: branches.iter().map(view).collect(),
    }
}
