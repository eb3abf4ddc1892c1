//! An effect that counts what is done to the world.

use std::cell::Cell;

use lula_gate::approvals::ApprovalTerms;
use lula_gate::rules::{GateVerdict, Ruling, RulingReason};
use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use lula_protocol::{Digest, EffectClass};
use serde::{Deserialize, Serialize};

use crate::service::RunnerService;
use crate::service::before::EffectRollback;
use crate::service::effect::{
    EffectCallerRequest, EffectFailure, EffectLedgerEntry, EffectPermission, EffectPreparation,
    EffectSubject, PerformedEffect, PreparedEffect, RunnerEffect,
};
use crate::service::gate::ShownApproval;
use crate::service::in_process::{effect, person, run, write};
use crate::service::refusal::RequestRefusal;
use crate::service::room::RunnerWorkspace;

/// How a probe that was cut off is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeRollback {
    /// Doing it again leaves the same.
    Repeatable,
    /// By a copy of the workspace.
    Copied,
    /// It cannot be taken back.
    Lost,
}

/// What is said about a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeGateAnswer {
    Free,
    Allowed,
    /// Approvers are asked first.
    Asked,
    /// A rule forbids it.
    Forbidden,
    /// A rule of the runner's own forbids it.
    Stray,
    /// It cannot be tried.
    Settled,
}

impl ProbeGateAnswer {
    pub(super) const fn is_no(self) -> bool {
        matches!(self, Self::Forbidden | Self::Stray)
    }
}

/// What probes do to the world; it outlives every runner.
#[derive(Debug, Default)]
pub(super) struct ProbeWorld {
    performed: Cell<u32>,
}

impl ProbeWorld {
    pub(super) fn performed(&self) -> u32 {
        self.performed.get()
    }
}

/// What is told of a probe: which of all acts it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProbeResult {
    pub(super) act: u32,
}

pub(super) struct ProbeEffect<'a> {
    pub(super) world: &'a ProbeWorld,
    pub(super) room: &'a RunnerWorkspace,
    pub(super) way: ProbeRollback,
    pub(super) saying: ProbeGateAnswer,
    /// Whether the act breaks in its middle.
    pub(super) breaks: bool,
    request: EffectCallerRequest,
}

impl<'a> ProbeEffect<'a> {
    pub(super) fn new(
        service: &RunnerService,
        (world, room): (&'a ProbeWorld, &'a RunnerWorkspace),
        (way, saying): (ProbeRollback, ProbeGateAnswer),
        (epoch, asks): (u64, &str),
    ) -> Self {
        let entry = EffectLedgerEntry {
            effect: effect(1),
            run: run(),
            epoch,
            workspace: room.id.clone(),
            class: EffectClass::Tree,
            runner: service.runner.name().to_owned(),
            request: Digest::of_bytes(asks.as_bytes()),
        };
        Self {
            world,
            room,
            way,
            saying,
            breaks: false,
            request: EffectCallerRequest {
                who: person(),
                tool: "probe",
                entry,
            },
        }
    }

    fn permission(&self) -> EffectPermission {
        let ruling = match self.saying {
            ProbeGateAnswer::Free | ProbeGateAnswer::Settled => return EffectPermission::Free,
            ProbeGateAnswer::Stray => {
                let denial = SandboxDenial {
                    attempt: DeniedAttempt::Call {
                        tool: "probe".to_owned(),
                    },
                    rule: "stray".to_owned(),
                    grant: None,
                    count: 1,
                };
                return EffectPermission::Denied {
                    rule: "stray",
                    denials: vec![denial],
                };
            }
            ProbeGateAnswer::Allowed => Ruling::Allow,
            ProbeGateAnswer::Asked => Ruling::Ask,
            ProbeGateAnswer::Forbidden => Ruling::Deny,
        };
        let because = RulingReason {
            rule: "test".to_owned(),
            ruling,
            reason: "a test says so".to_owned(),
            matched: "probe".to_owned(),
        };
        EffectPermission::Judged {
            rules: Digest::of_bytes(b"rules"),
            verdict: GateVerdict {
                ruling,
                because: vec![because],
                terms: ApprovalTerms::default(),
                beforehand: false,
            },
            shown: ShownApproval {
                rendered: "a probe".to_owned(),
                base_tree: Digest::of_bytes(b"tree"),
            },
            class: EffectClass::Tree,
        }
    }
}

impl RunnerEffect for ProbeEffect<'_> {
    type Output = ProbeResult;
    type Plan = u32;

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        Some(self.room)
    }

    fn prepare(
        &self,
        _: &RunnerService,
    ) -> Result<EffectPreparation<u32, ProbeResult>, RequestRefusal> {
        if self.saying == ProbeGateAnswer::Settled {
            let told = PerformedEffect::done(ProbeResult { act: 0 });
            return Ok(EffectPreparation::Settled(told, EffectSubject::default()));
        }
        let before = match self.way {
            ProbeRollback::Repeatable => EffectRollback::Nothing,
            ProbeRollback::Lost => EffectRollback::Lost,
            ProbeRollback::Copied => {
                let label = format!("{}{}", crate::service::snapshots::OURS, effect(1));
                self.room.workspace().snapshot_within(&label, 1 << 20)?;
                EffectRollback::Snapshot(label)
            }
        };
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission: self.permission(),
            before,
            subject: EffectSubject::default(),
            plan: self.world.performed() + 1,
        }))
    }

    fn perform(
        &mut self,
        _: &RunnerService,
        act: u32,
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<ProbeResult>, EffectFailure> {
        if self.way == ProbeRollback::Copied {
            write(self.room, &format!("traces/{act}"), "done\n");
        }
        if self.breaks {
            // In its middle, and before anything that counts.
            return Err(RequestRefusal::Busy("it broke".to_owned()).into());
        }
        self.world.performed.set(act);
        subject.about = format!("act {act}");
        Ok(PerformedEffect::done(ProbeResult { act }))
    }
}
