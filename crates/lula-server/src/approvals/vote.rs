//! Answers to questions.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use lula_gate::approvals::ApprovalStanding;
use lula_host::approvals::answer_as;
use lula_host::drive::consent;
use lula_protocol::{ApprovalDecision, Code};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{OpenQuestion, QuestionOfRun};
use crate::audit::{ServerAct, record};
use crate::http::call::RouteCall;
use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;
use crate::text::json;

/// What is answered: exactly what this digest names.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalVoteBody {
    /// The digest that the question shows.
    digest: String,
}

/// An answer that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VotedView {
    id: String,
    run: String,
    /// The answer: `approve` or `reject`.
    decision: String,
    by: String,
    /// The role in which it counts.
    role: String,
}

pub(super) const fn word(decision: ApprovalDecision) -> &'static str {
    match decision {
        ApprovalDecision::Approve => "approve",
        ApprovalDecision::Reject => "reject",
    }
}

/// The handler of `POST /v1/approvals/{approval}/approve`.
pub(crate) async fn approve(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    vote(state, call, ApprovalDecision::Approve).await
}

/// The handler of `POST /v1/approvals/{approval}/reject`.
pub(crate) async fn reject(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    vote(state, call, ApprovalDecision::Reject).await
}

async fn vote(
    state: Arc<ServerState>,
    call: RouteCall,
    decision: ApprovalDecision,
) -> ApiResult<Response<Body>> {
    let body: ApprovalVoteBody = call.json()?;
    let asked = QuestionOfRun::named(&call.name, &call.identity, &state).await?;
    if body.digest != asked.digest() {
        let detail = "the digest is not that of the question: what you saw is not what it asks";
        return Err(ApiRefusal::new(409, Code::ChangedSinceReview, detail)
            .remedy("look at the question again, and answer with the digest it has now"));
    }
    let by = &call.identity.principal;
    let role = match (asked.role_of(&call.identity, &state), decision) {
        (Ok(role), _) => role,
        // To say no is everybody's who may answer at all, also to what they asked for themselves.
        (Err(_), ApprovalDecision::Reject) => {
            let roles = asked.roles();
            roles
                .first()
                .cloned()
                .unwrap_or_else(|| consent::OWNER.to_owned())
        }
        (Err(why), ApprovalDecision::Approve) => {
            return Err(ApiRefusal::forbidden(why));
        }
    };
    let act = ServerAct {
        tool: "server.vote",
        about: format!(
            "asked to {} {} of {}",
            word(decision),
            call.name,
            asked.row.run
        ),
        run: Some(&asked.row.run),
    };
    record(&act, &call.digestible("vote"), &call.identity, &state).await?;
    match &asked.question {
        OpenQuestion::Run(question) => {
            if question.answered {
                let detail = format!("{by} has answered already");
                return Err(ApiRefusal::new(409, Code::VoteRefused, detail));
            }
            let voter = (by, role.as_str());
            consent::answer_as(&state.reader, &asked.known, question, decision, voter).await?;
        }
        OpenQuestion::Held(held) => {
            let stored = held.stored.clone();
            let (who, signs_as) = (by.clone(), role.clone());
            let installation = Arc::clone(&state.installation);
            let standing = tokio::task::spawn_blocking(move || {
                answer_as(&stored, decision, (&who, &signs_as), &installation)
            });
            let standing = standing
                .await
                .map_err(|error| ApiRefusal::internal(&error))??;
            tracing::debug!(?standing, "an effect was answered");
            if matches!(standing, ApprovalStanding::Pending { .. }) {
                // Others have to agree before it is worth asking the runner again.
                state.metrics.approval_answered(word(decision));
                return told(&asked, &call, decision, role);
            }
        }
    }
    state.metrics.approval_answered(word(decision));
    let repository = state.summaries.repository(&asked.row, &state).await;
    let requester = asked.requester.as_ref().unwrap_or(by);
    state
        .records
        .adopt(&asked.row.run, requester, &repository.unwrap_or_default())?;
    state.drivers.drive(&asked.row.run);
    told(&asked, &call, decision, role)
}

fn told(
    asked: &QuestionOfRun,
    call: &RouteCall,
    decision: ApprovalDecision,
    role: String,
) -> ApiResult<Response<Body>> {
    json(&VotedView {
        id: call.name.clone(),
        run: asked.row.run.to_string(),
        decision: word(decision).to_owned(),
        by: call.identity.principal.to_string(),
        role,
    })
}
