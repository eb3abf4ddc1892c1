//! What a run asks people, and their answers. An answer is a vote on exactly what was asked: on the
//! record of the run, and void for anything else.

use std::sync::Arc;

use lula_agents::{CodingGraph, CodingState};
use lula_graph::{GraphEngine, RunState};
use lula_protocol::{
    ApprovalDecision, ApprovalId, Digest, Principal, RunId, RunInterrupt, RunSignal,
};
use lula_store::{ApprovalState, RunStore};

use crate::error::HostError;
use crate::record::local_principal;
use crate::runs::reader;

/// The role of the operator who runs the program on their own machine.
pub const OWNER: &str = "owner";

/// A question that a run waits with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunApprovalQuestion {
    pub approval: ApprovalId,
    /// What it is bound to.
    pub digest: Digest,
    /// Why it is asked.
    pub reason: String,
    /// In which role an answer counts.
    role: String,
    /// The roles whose answers count; any where there is none.
    pub roles: Vec<String>,
    /// Who asked for the change, where their own answer does not count.
    pub excluded: Option<Principal>,
    /// Whether this person answered it already.
    pub answered: bool,
}

/// What a run waits with, where it is a question to people.
pub fn question(run: &RunState<CodingState>, by: &Principal) -> Option<RunApprovalQuestion> {
    let pending = run.progress.pending.as_ref()?;
    let RunInterrupt::Approval {
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
    Some(RunApprovalQuestion {
        approval: approval.clone(),
        digest: *digest,
        reason: reason.clone(),
        role: rule.roles.first().map_or(OWNER, String::as_str).to_owned(),
        roles: rule.roles.clone(),
        excluded: rule.requester.clone().filter(|_| rule.four_eyes),
        answered: asked.votes.contains_key(by),
    })
}

/// What a person chooses where a run waits for a choice: one of those it offers.
pub fn choose(
    run: &RunState<CodingState>,
    choice: &str,
    by: &Principal,
) -> Result<RunSignal, HostError> {
    let name = &run.progress.run;
    let pending = run.progress.pending.as_ref();
    // What the runner asks is answered there, by `lula approve`.
    let pending = pending.filter(|one| !matches!(one.interrupt, RunInterrupt::Held { .. }));
    let options = pending
        .map(|one| one.interrupt.options())
        .unwrap_or_default();
    let Some(pending) = pending.filter(|_| !options.is_empty()) else {
        return Err(HostError::NoChoice(name.clone()));
    };
    if !options.iter().any(|option| option == choice) {
        return Err(HostError::NotOffered {
            run: name.clone(),
            choice: choice.to_owned(),
            options: options.iter().map(ToString::to_string).collect(),
        });
    }
    Ok(RunSignal::Answer {
        interrupt: pending.seq,
        choice: choice.to_owned(),
        by: by.clone(),
        note: String::new(),
    })
}

/// What runs wait with, of those that the store says ask something.
pub async fn open_questions(
    store: Arc<dyn RunStore>,
) -> Result<Vec<(RunId, RunApprovalQuestion)>, HostError> {
    let reader = reader(Arc::clone(&store))?;
    let by = local_principal()?;
    let mut found = Vec::new();
    for asked in store.approvals_in(ApprovalState::Open).await? {
        let known = reader.show(&asked.run, None).await?;
        if let Some(question) = question(&known, &by)
            && question.approval == asked.approval
            && known.progress.ended.is_none()
        {
            found.push((asked.run, question));
        }
    }
    Ok(found)
}

/// Answers a question of a run for the operator.
pub async fn answer(
    engine: &GraphEngine<CodingGraph>,
    run: &RunState<CodingState>,
    question: &RunApprovalQuestion,
    decision: ApprovalDecision,
) -> Result<(), HostError> {
    let by = local_principal()?;
    answer_as(engine, run, question, decision, (&by, &question.role)).await
}

/// Answers it for a person in a role, both of a verified identity.
pub async fn answer_as(
    engine: &GraphEngine<CodingGraph>,
    run: &RunState<CodingState>,
    question: &RunApprovalQuestion,
    decision: ApprovalDecision,
    (by, role): (&Principal, &str),
) -> Result<(), HostError> {
    let vote = RunSignal::Vote {
        approval: question.approval.clone(),
        digest: question.digest,
        by: by.clone(),
        role: role.to_owned(),
        decision,
    };
    Ok(engine.send(&run.progress.run, &vote).await?)
}
