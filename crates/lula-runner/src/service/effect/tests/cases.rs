//! Requests under one id, and the ends of the runners that get them, drawn at random.

use proptest::prelude::*;

use super::probe::{ProbeGateAnswer, ProbeRollback};
use crate::service::effect::steps::EffectStep;

/// Every place where a runner can end.
pub(super) const STEPS: [EffectStep; 11] = [
    EffectStep::Known,
    EffectStep::Prepared,
    EffectStep::Judged,
    EffectStep::Intended,
    EffectStep::Performed,
    EffectStep::Stored,
    EffectStep::Audited,
    EffectStep::Closed,
    EffectStep::TakenBack,
    EffectStep::Refused,
    EffectStep::RefusalRecorded,
];

/// How one request is sent, and what happens to its runner.
#[derive(Debug, Clone)]
pub(super) struct EffectTestAttempt {
    pub(super) kill: Option<EffectStep>,
    /// Who sends it: the worker that has the run, one that was replaced, or the next one.
    pub(super) worker: EffectTestWorker,
    /// Whether another request is sent under the same id.
    pub(super) other: bool,
    /// Whether the act breaks.
    pub(super) breaks: bool,
    /// Whether people agree before it, where they were asked.
    pub(super) agree: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EffectTestWorker {
    Same,
    Replaced,
    Next,
}

#[derive(Debug, Clone)]
pub(super) struct EffectTestCase {
    pub(super) way: ProbeRollback,
    pub(super) saying: ProbeGateAnswer,
    pub(super) attempts: Vec<EffectTestAttempt>,
}

fn attempts() -> impl Strategy<Value = EffectTestAttempt> {
    let worker = prop_oneof![
        6 => Just(EffectTestWorker::Same),
        1 => Just(EffectTestWorker::Replaced),
        2 => Just(EffectTestWorker::Next),
    ];
    let kill = prop_oneof![
        1 => Just(None),
        3 => prop::sample::select(STEPS.to_vec()).prop_map(Some),
        // Where an approval, or an act without its result, could be lost.
        3 => prop::sample::select(vec![EffectStep::Judged, EffectStep::Performed]).prop_map(Some),
    ];
    let (other, breaks, agree) = (
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.8),
    );
    (kill, worker, other, breaks, agree).prop_map(|(kill, worker, other, breaks, agree)| {
        EffectTestAttempt {
            kill,
            worker,
            other,
            breaks,
            agree,
        }
    })
}

pub(super) fn cases() -> impl Strategy<Value = EffectTestCase> {
    let way = prop::sample::select(vec![
        ProbeRollback::Repeatable,
        ProbeRollback::Copied,
        ProbeRollback::Lost,
    ]);
    let saying = prop_oneof![
        1 => Just(ProbeGateAnswer::Free),
        2 => Just(ProbeGateAnswer::Allowed),
        4 => Just(ProbeGateAnswer::Asked),
        1 => Just(ProbeGateAnswer::Forbidden),
        1 => Just(ProbeGateAnswer::Stray),
        1 => Just(ProbeGateAnswer::Settled),
    ];
    (way, saying, prop::collection::vec(attempts(), 1..7)).prop_map(|(way, saying, attempts)| {
        EffectTestCase {
            way,
            saying,
            attempts,
        }
    })
}
