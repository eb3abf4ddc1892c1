//! What a run asks people, and their answers. An answer is a vote on exactly what was asked: on the
//! record of the run, and void for anything else.

use lula_agents::{Coding, Work};
use lula_graph::{Engine, RunState};
use lula_protocol::{ApprovalId, Code, Decision, Digest, Exit, Interrupt, Principal, Signal};

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

/// What a person chooses where a run waits for a choice: one of those it offers.
pub(crate) fn choose(run: &RunState<Work>, choice: &str) -> Result<Signal, Failure> {
    let name = &run.progress.run;
    let refuse = |message: String| Failure::new(Code::RunRefused, Exit::Usage, message);
    let pending = run.progress.pending.as_ref();
    // What the hands ask is answered there, by `lula approve`.
    let pending = pending.filter(|one| !matches!(one.interrupt, Interrupt::Held { .. }));
    let options = pending
        .map(|one| one.interrupt.options())
        .unwrap_or_default();
    let Some(pending) = pending.filter(|_| !options.is_empty()) else {
        let message = format!("{name} waits for no choice");
        return Err(refuse(message).remedy(format!("`lula resume {name}` goes on with it")));
    };
    if !options.iter().any(|option| option == choice) {
        let message = format!("{choice:?} is nothing {name} offers");
        return Err(refuse(message).remedy(format!("say one of: {}", options.join(", "))));
    }
    Ok(Signal::Answer {
        interrupt: pending.seq,
        choice: choice.to_owned(),
        by: local_principal()?,
        note: String::new(),
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
