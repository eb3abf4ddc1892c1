//! What an effect says of itself on its way: who asks, whether it may happen, what came of it.

use lula_audit::AuditEnding;
use lula_gate::rules;
use lula_protocol::denial::SandboxDenial;
use lula_protocol::{
    Digest, EffectClass, EffectId, Principal, ProtocolVersion, ToolOutcome, ToolResult,
};

use super::ledger::EffectLedgerEntry;
use crate::service::before::EffectRollback;
use crate::service::gate::ShownApproval;
use crate::service::refusal::RequestRefusal;

/// Who asks for what.
pub(in crate::service) struct EffectCallerRequest {
    pub(in crate::service) who: Principal,
    /// What it is called in the audit.
    pub(in crate::service) tool: &'static str,
    pub(in crate::service) entry: EffectLedgerEntry,
}

/// What an effect is about, for the record.
#[derive(Default)]
pub(in crate::service) struct EffectSubject {
    pub(in crate::service) about: String,
    pub(in crate::service) diff: Option<Digest>,
}

/// By whose word an effect happens.
pub(in crate::service) enum EffectPermission {
    /// No word is needed: nothing of it leaves the state directory, or the caller takes back what was
    /// judged before.
    Free,
    /// The rules', and people's where the rules say so.
    Judged {
        rules: Digest,
        verdict: rules::GateVerdict,
        shown: ShownApproval,
        class: EffectClass,
    },
    /// Never, by a rule of the runner's own.
    Denied {
        rule: &'static str,
        denials: Vec<SandboxDenial>,
    },
}

/// An effect that could happen.
pub(in crate::service) struct PreparedEffect<P> {
    pub(in crate::service) permission: EffectPermission,
    pub(in crate::service) before: EffectRollback,
    pub(in crate::service) subject: EffectSubject,
    /// What the act needs of what was looked at: just that is done which was judged.
    pub(in crate::service) plan: P,
}

/// What came of looking at an effect.
pub(in crate::service) enum EffectPreparation<P, T> {
    /// It can be judged.
    Ready(PreparedEffect<P>),
    /// It cannot even be tried, and this is what is told of it, now and later.
    Settled(PerformedEffect<T>, EffectSubject),
    /// It cannot be judged; nothing of it is written down.
    Unjudged(ToolOutcome),
}

/// What came of an act.
pub(in crate::service) struct PerformedEffect<T> {
    pub(in crate::service) output: T,
    pub(in crate::service) outcome: AuditEnding,
    pub(in crate::service) receipt: Option<Digest>,
}

impl<T> PerformedEffect<T> {
    pub(in crate::service) fn done(output: T) -> Self {
        Self {
            output,
            outcome: AuditEnding::Done { status: None },
            receipt: None,
        }
    }
}

/// Why an act has nothing to be told of.
pub(in crate::service) enum EffectFailure {
    /// It left nothing that is not taken back as it was prepared for.
    Undone(RequestRefusal),
    /// It was done, and what came of it cannot be found out. Its intent stays, for the next runner to
    /// find out.
    Untold(RequestRefusal),
}

impl<E: Into<RequestRefusal>> From<E> for EffectFailure {
    fn from(error: E) -> Self {
        Self::Undone(error.into())
    }
}

/// Something that rules can hold back.
#[derive(Debug)]
pub enum GatedAct<T> {
    /// It was let through and done.
    Done(T),
    /// It was not: a rule forbids it, or people are asked first.
    Held(Box<ToolResult>),
}

impl<T> GatedAct<T> {
    /// It was not done, for this reason.
    pub(super) fn held(effect: &EffectId, outcome: ToolOutcome) -> Self {
        Self::Held(Box::new(ToolResult {
            protocol: ProtocolVersion,
            effect: effect.clone(),
            outcome,
            receipt: None,
        }))
    }

    /// What was done, where no rule can hold it back.
    pub(in crate::service) fn free(self) -> Result<T, RequestRefusal> {
        match self {
            Self::Done(output) => Ok(output),
            Self::Held(_) => Err(RequestRefusal::Internal("it was held back".to_owned())),
        }
    }
}

impl GatedAct<ToolResult> {
    /// The result of a call, performed or held.
    pub(in crate::service) fn into_result(self) -> ToolResult {
        match self {
            Self::Done(result) => result,
            Self::Held(result) => *result,
        }
    }
}
