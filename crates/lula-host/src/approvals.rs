//! Questions of the runner on this machine: where they are kept, as data, and signed answers.

use std::path::Path;

use lula_gate::approvals::keys::OWNER_ROLE;
use lula_gate::approvals::{
    ApprovalDesk, ApprovalKeyError, ApprovalKeyring, ApprovalStanding, LocalApprovalDesk,
    StoredApproval,
};
use lula_protocol::{ApprovalChallenge, ApprovalDecision, ApprovalToken, Principal};
use serde_json::{Value, json};

use crate::error::HostError;
use crate::installation::Installation;
use crate::record::{local_principal, now_ms};

/// The database of the runner, in the state directory.
const DATABASE: &str = "hands.db";

/// The questions of this machine. Nothing was ever asked where there is no database.
pub fn local_desk(installation: &Installation) -> Result<Option<LocalApprovalDesk>, HostError> {
    let state = installation.state_directory()?;
    let database = state.join(DATABASE);
    if !database.exists() {
        return Ok(None);
    }
    Ok(Some(LocalApprovalDesk::open(
        &database,
        ApprovalKeyring::open(&state)?,
    )?))
}

/// A question for programs.
pub fn document(stored: &StoredApproval, now: u64) -> Value {
    json!({
        "id": stored.id(),
        "digest": stored.challenge.digest,
        "subject": stored.subject,
        "class": stored.approval.class,
        "reason": stored.challenge.reason,
        "requester": stored.approval.requester,
        "asked_ms": stored.asked_ms,
        "expires_ms": stored.challenge.expires_ms,
        "terms": stored.approval.terms,
        "votes": stored.approval.votes,
        "standing": stored.standing(now),
        "rendered": String::from_utf8_lossy(&stored.rendered),
    })
}

/// Signs with a key that was handed out, as the person it is for.
pub fn sign(
    file: &Path,
    challenge: &ApprovalChallenge,
    role: Option<&str>,
    decision: ApprovalDecision,
) -> Result<ApprovalToken, HostError> {
    let ring = ApprovalKeyring::from_file(file)?;
    let held = ring.listed();
    let holder = held
        .iter()
        .rev()
        .find_map(|key| Some((key.principal.clone()?, key.roles.first()?.clone())));
    let Some((who, first)) = holder else {
        let reason = "none of its keys names a principal".to_owned();
        return Err(ApprovalKeyError::Damaged {
            path: file.to_owned(),
            reason,
        }
        .into());
    };
    Ok(ring.sign(challenge, &who, role.unwrap_or(&first), decision)?)
}

/// Signs with this installation's own key, as the person who runs this process.
pub fn sign_here(
    desk: &LocalApprovalDesk,
    stored: &StoredApproval,
    decision: ApprovalDecision,
) -> Result<ApprovalToken, HostError> {
    let role = stored.approval.terms.role.as_deref();
    let role = role.unwrap_or(OWNER_ROLE);
    let who = local_principal()?;
    Ok(desk.keys().sign(&stored.challenge, &who, role, decision)?)
}

/// Answers a question of this machine for a person in a role, both of an identity that this process
/// verified. Their first answer gives them a key of their own, which this installation keeps.
pub fn answer_as(
    stored: &StoredApproval,
    decision: ApprovalDecision,
    (who, role): (&Principal, &str),
    installation: &Installation,
) -> Result<ApprovalStanding, HostError> {
    let state = installation.state_directory()?;
    let mut ring = ApprovalKeyring::open(&state)?;
    let token = match ring.sign(&stored.challenge, who, role, decision) {
        Err(ApprovalKeyError::NoKeyFor { .. }) => {
            ring.add_for(who.clone(), vec![role.to_owned()])?;
            ring.sign(&stored.challenge, who, role, decision)?
        }
        signed => signed?,
    };
    let mut desk = LocalApprovalDesk::open(&state.join(DATABASE), ring)?;
    Ok(desk.vote(&token, now_ms())?)
}
