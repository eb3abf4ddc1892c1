//! What a run asks people, and their answers. An answer is a vote on exactly what was asked: on the
//! record of the run, and void for anything else.

use lula_agents::{Coding, Work};
use lula_graph::{Engine, RunState};
use lula_protocol::{ApprovalId, Decision, Digest, Interrupt, Principal, Signal};

use crate::failure::Failure;
use crate::record::local_principal;

/// The role of whoever runs the program on their own machine.
const OWNER: &str = "owner";

/// A question that a run waits with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// Its id.
    pub(crate) approval: ApprovalId,
    /// What it is bound to.
    pub(crate) digest: Digest,
    /// Why it is asked.
    pub(crate) reason: String,
    /// In which role an answer counts.
    role: String,
    /// Whether this person answered it already.
    pub(crate) answered: bool,
}

/// What a run waits with, where it is a question to people.
pub(crate) fn question(run: &RunState<Work>, by: &Principal) -> Option<Question> {
    let pending = run.progress.pending.as_ref()?;
    let Interrupt::Approval {
        approval,
        digest,
        rule,
        reason,
        ..
    } = &pending.interrupt
    else {
        return None;
    };
    let asked = run.progress.approvals.get(approval)?;
    Some(Question {
        approval: approval.clone(),
        digest: *digest,
        reason: reason.clone(),
        role: rule.roles.first().map_or(OWNER, String::as_str).to_owned(),
        answered: asked.votes.contains_key(by),
    })
}

/// Answers a question.
pub(crate) async fn answer(
    engine: &Engine<Coding>,
    run: &RunState<Work>,
    question: &Question,
    decision: Decision,
) -> Result<(), Failure> {
    let vote = Signal::Vote {
        approval: question.approval.clone(),
        digest: question.digest,
        by: local_principal()?,
        role: question.role.clone(),
        decision,
    };
    Ok(engine.send(&run.progress.run, &vote).await?)
}
