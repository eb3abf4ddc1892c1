//! Asking a person before a change leaves the run, where the task says so.

use lula_graph::{ApprovalAnswer, ApprovalAsk, EffectRequest, NodeContext, VisitStop};
use lula_protocol::Digest;
use lula_protocol::digest::DigestDomain;
use lula_protocol::interrupt::ApprovalRule;

use crate::effects::RunEffect;
use crate::guidelines::broken;
use crate::work::CodingState;

/// How long a question stands.
const DAYS: u64 = 7;

/// What a person said.
pub(super) enum ConsentAnswer {
    /// It may be done, once, exactly like this.
    Given(EffectRequest),
    /// It may not.
    Refused(String),
}

/// Waits for a person's agreement to a delivery, where one is wanted. The question is bound to the
/// order and to the change it delivers.
pub(super) async fn ask(
    work: &CodingState,
    deed: &RunEffect,
    ctx: &mut NodeContext<'_>,
) -> Result<ConsentAnswer, VisitStop> {
    let Some(reason) = reason(work) else {
        return Ok(ConsentAnswer::Given(deed.effect()));
    };
    let diff = work.produced.as_ref().map(|made| &made.diff);
    let digest = Digest::of(DigestDomain::Approval, &(deed, diff))
        .map_err(|error| VisitStop::Halt(error.to_string()))?;
    let now_ms = ctx.now().await?;
    let rule = ApprovalRule {
        quorum: 1,
        roles: Vec::new(),
        requester: None,
        four_eyes: false,
        expires_ms: now_ms + DAYS * 24 * 60 * 60 * 1000,
    };
    let asked = ctx.approval(ApprovalAsk {
        digest,
        rule,
        reason,
    });
    Ok(match asked.await? {
        ApprovalAnswer::Approved(approval) => {
            ConsentAnswer::Given(deed.effect().approved(approval, digest))
        }
        ApprovalAnswer::Rejected(why) => {
            ConsentAnswer::Refused(format!("the change was not delivered: {why}"))
        }
    })
}

/// Why a person is asked, where one is. Confidence decides only this.
fn reason(work: &CodingState) -> Option<String> {
    let confidence = work.confidence.as_ref();
    let sure = confidence.map_or_else(String::new, |known| {
        format!("; confidence {}", known.spoken())
    });
    if work.task.ask_first {
        return Some(format!("the change is ready to be delivered{sure}"));
    }
    let broken: Vec<&str> = broken(work).iter().map(|score| score.id.as_str()).collect();
    if !broken.is_empty() {
        let broken = broken.join(", ");
        return Some(format!(
            "the change breaks what must be kept: {broken}{sure}"
        ));
    }
    let unsure = work.task.guidance.ask_unless_sure
        && !confidence.is_some_and(crate::guidelines::ChangeConfidence::is_sure);
    unsure.then(|| format!("the run is not sure of its change{sure}"))
}
