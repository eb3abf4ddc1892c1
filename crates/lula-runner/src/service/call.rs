//! Tool calls: what a model asks of a workspace.

use lula_gate::approvals;
use lula_gate::rules::{GateAct, Ruling};
use lula_protocol::{
    Code, Digest, EffectClass, Principal, SandboxReceipt, TextOrigin, ToolAction, ToolCall,
    ToolOutcome, ToolOutput, ToolOutputDetails, ToolResult,
};
use lula_sandbox::policy::{Network, SandboxPolicy};

use super::before::EffectRollback;
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectLedgerEntry, EffectPermission, EffectPreparation,
    EffectSubject, PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::exec;
use super::gate::{self, ShownApproval};
use super::proposal::{plan, shown};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::snapshots::snapshot_named;
use super::{RunnerService, git, jobs, result, scope, strays};
use crate::halt::CommandStopper;

/// How far an act can reach: a command that may use the network is not held by its workspace.
fn reach(action: &ToolAction, policy: &SandboxPolicy) -> EffectClass {
    match action {
        ToolAction::Exec(_) | ToolAction::Job(_) if policy.network != Network::None => {
            EffectClass::External
        }
        _ => EffectClass::Tree,
    }
}

/// Whether a call is written down. Reading is not: doing it again changes nothing.
const fn is_effect(action: &ToolAction) -> bool {
    action.mutates() || matches!(action, ToolAction::Snapshot(_))
}

/// A call as an effect.
pub(super) struct ToolCallEffect<'a> {
    room: &'a RunnerWorkspace,
    asked: &'a ToolCall,
    request: EffectCallerRequest,
}

impl<'a> ToolCallEffect<'a> {
    pub(super) fn new(
        service: &RunnerService,
        room: &'a RunnerWorkspace,
        who: &Principal,
        call: &'a ToolCall,
    ) -> Result<Self, RequestRefusal> {
        let entry = EffectLedgerEntry {
            effect: call.effect.clone(),
            run: call.run.clone(),
            epoch: call.epoch,
            workspace: call.workspace.clone(),
            class: EffectClass::Tree,
            runner: service.runner.name().to_owned(),
            request: digest(call)?,
        };
        let request = EffectCallerRequest {
            who: who.clone(),
            tool: call.action.tool(),
            entry,
        };
        Ok(Self {
            room,
            asked: call,
            request,
        })
    }

    pub(super) fn in_room(&self) -> &'a RunnerWorkspace {
        self.room
    }

    /// An outcome as the ledger and the caller get it.
    pub(super) fn performed(
        &self,
        mut outcome: ToolOutcome,
        receipt: Option<SandboxReceipt>,
    ) -> PerformedEffect<ToolResult> {
        if let ToolOutcome::Done { output } = &mut outcome {
            gate::label(output);
        }
        PerformedEffect {
            outcome: gate::ended(&outcome),
            receipt: gate::receipt_digest(receipt.as_ref()),
            output: result(self.asked, outcome, receipt),
        }
    }
}

impl RunnerEffect for ToolCallEffect<'_> {
    type Output = ToolResult;
    /// Digest of what it changes.
    type Plan = Option<Digest>;

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        Some(self.room)
    }

    fn prepare(
        &self,
        service: &RunnerService,
    ) -> Result<EffectPreparation<Self::Plan, ToolResult>, RequestRefusal> {
        let (room, call) = (self.room, self.asked);
        // What it would change is recorded of an act alone, not of one that is held back.
        let subject = EffectSubject {
            about: about(&call.action),
            diff: None,
        };
        let plan = match plan(room, call)? {
            Ok(plan) => plan,
            Err(outcome) => {
                return Ok(EffectPreparation::Settled(
                    self.performed(outcome, None),
                    subject,
                ));
            }
        };
        let before = |path: &str| plan.as_ref().and_then(|plan| plan.text_before(path));
        let judged = jobs::judged(room, &call.action);
        let action = judged.as_ref().unwrap_or(&call.action);
        let mut act = scope::within(GateAct::over(action, before), &room.invariants());
        if let Some(plan) = &plan {
            act = act.writing(plan.images.iter().map(|image| image.path.clone()));
        }
        let verdict = gate::judge(&room.rules, &act);
        let shown = match verdict.ruling {
            Ruling::Ask => match shown(room, call, plan.as_ref())? {
                Ok(shown) => shown,
                Err(outcome) => return Ok(EffectPreparation::Unjudged(outcome)),
            },
            Ruling::Allow | Ruling::Deny => ShownApproval {
                rendered: String::new(),
                base_tree: Digest::of_bytes(b""),
            },
        };
        let rules = gate::version(&room.rules)?;
        // A copy before a command is taken only for one that may happen.
        let before = if verdict.ruling == Ruling::Deny {
            EffectRollback::Nothing
        } else {
            EffectRollback::of(room, call, plan.as_ref())
        };
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission: EffectPermission::Judged {
                rules,
                verdict,
                shown,
                class: reach(&call.action, &service.setup.policy),
            },
            before,
            subject,
            plan: plan.map(|plan| Digest::of_bytes(plan.diff.as_bytes())),
        }))
    }

    fn perform(
        &mut self,
        service: &RunnerService,
        diff: Option<Digest>,
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<ToolResult>, EffectFailure> {
        subject.diff = diff;
        let under_way = service.halts.begin(&self.asked.effect);
        let (mut outcome, receipt) = perform(service, self.room, self.asked, &under_way.halt)?;
        if matches!(self.asked.action, ToolAction::Exec(_)) {
            strays::put_back(service, self.room, &mut outcome);
        }
        Ok(self.performed(outcome, receipt))
    }
}

impl RunnerService {
    /// Does what a call asks, once.
    pub fn execute(&self, who: &Principal, call: &ToolCall) -> Result<ToolResult, RequestRefusal> {
        digest(call)?;
        let room = self.room(&call.workspace)?;
        if !is_effect(&call.action) {
            let act = scope::within(GateAct::of(&call.action), &room.invariants());
            let verdict = gate::judge(&room.rules, &act);
            if verdict.ruling == Ruling::Allow {
                let mut outcome = match &call.action {
                    ToolAction::Job(job) => jobs::act(self, &room, &call.effect, job)?,
                    action => super::read(&room, action)?,
                };
                if let ToolOutcome::Done { output } = &mut outcome {
                    gate::label(output);
                }
                return Ok(result(call, outcome, None));
            }
        }
        let _turn = room.turn()?;
        let mut call = ToolCallEffect::new(self, &room, who, call)?;
        Ok(self.run_effect(&mut call)?.into_result())
    }
}

/// The digest of a call. A number that JSON readers could round has none.
fn digest(call: &ToolCall) -> Result<Digest, RequestRefusal> {
    call.digest()
        .map_err(|error| RequestRefusal::BadRequest(format!("the call has no digest: {error}")))
}

/// What an act is about, for the record.
fn about(action: &ToolAction) -> String {
    match action {
        ToolAction::Exec(exec) => lula_gate::redact::redact_words(&exec.argv).join(" "),
        ToolAction::Job(job) => job.job.clone(),
        ToolAction::WriteFile(write) => write.path.clone(),
        ToolAction::ApplyPatch(_) => GateAct::of(action).writes().join(" "),
        ToolAction::Snapshot(snapshot) => snapshot.label.clone(),
        ToolAction::Undo(undo) => undo.to.clone().unwrap_or_default(),
        _ => String::new(),
    }
}

fn perform(
    service: &RunnerService,
    room: &RunnerWorkspace,
    call: &ToolCall,
    halt: &CommandStopper,
) -> Result<(ToolOutcome, Option<SandboxReceipt>), RequestRefusal> {
    match &call.action {
        ToolAction::Exec(asked) if asked.background => {
            if halt.is_set() {
                let message = "it was stopped before it began";
                return Ok((exec::failed(Code::CommandNotStarted, message), None));
            }
            Ok((jobs::start(service, room, call, asked)?, None))
        }
        ToolAction::Job(asked) => Ok((jobs::act(service, room, &call.effect, asked)?, None)),
        ToolAction::Exec(asked) => exec::run(asked, &*room.live()?, halt),
        ToolAction::Git(asked) => git::run(asked, &*room.live()?),
        ToolAction::Snapshot(asked) => {
            room.workspace().snapshot(&asked.label)?;
            Ok((remembered("remembered as", &asked.label), None))
        }
        ToolAction::Undo(asked) => {
            let label = snapshot_named(room, asked.to.as_deref()).unwrap_or_default();
            room.restore(&label)?;
            Ok((remembered("returned to", &label), None))
        }
        action => Ok((super::read(room, action)?, None)),
    }
}

fn remembered(what: &str, label: &str) -> ToolOutcome {
    let details = ToolOutputDetails::Snapshot {
        id: label.to_owned(),
    };
    ToolOutcome::Done {
        output: ToolOutput::new(format!("{what} {label}\n"), TextOrigin::Lula).with(details),
    }
}

impl From<approvals::ApprovalsError> for RequestRefusal {
    fn from(error: approvals::ApprovalsError) -> Self {
        Self::Approval(error)
    }
}
