//! What runs ask people, and answers to it. A question is of a run (whether its change is delivered) or of
//! the runner (whether an effect happens). Both are bound to a digest, which an answer has to name: what
//! was not shown is not approved. Who answers, and in which role, comes from the verified identity alone.

mod held;
mod vote;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use lula_agents::CodingState;
use lula_graph::RunState;
use lula_host::drive::consent::{self, RunApprovalQuestion};
use lula_protocol::{ApprovalId, Code, Principal, RunInterrupt};
use lula_store::{RunFilter, RunRow, RunStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::call::RouteCall;
use crate::identity::{Identity, RoutePermission};
use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;
use crate::text::json;
use held::HeldQuestion;
pub(crate) use vote::{ApprovalVoteBody, VotedView, approve, reject};

/// The answer of one person.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CastVote {
    by: String,
    /// The role in which they answered.
    role: String,
    /// The answer: `approve` or `reject`.
    decision: String,
}

/// A question that is open.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PendingApproval {
    id: String,
    run: String,
    /// `run`: whether the change is delivered. `effect`: whether the runner does something.
    kind: String,
    /// What an answer is bound to, and has to name.
    digest: String,
    reason: String,
    task: String,
    /// Who began the run, where it was begun here.
    requester: Option<String>,
    /// How many people have to agree.
    needed: u32,
    /// The roles in which an answer counts; any where there is none.
    roles: Vec<String>,
    votes: Vec<CastVote>,
    /// Unix time in milliseconds after which the answer is no.
    expires_ms: u64,
    /// Whether the sender of this request may approve it.
    may_approve: bool,
    /// Why the sender may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    /// Exactly what would be done; left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    rendered: Option<String>,
}

/// Questions that are open.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalPage {
    approvals: Vec<PendingApproval>,
}

/// What a run waits with.
pub(super) enum OpenQuestion {
    /// Asked by the run.
    Run(RunApprovalQuestion),
    /// Asked by the runner that works for it.
    Held(Box<HeldQuestion>),
}

/// A question with the run it belongs to.
pub(super) struct QuestionOfRun {
    pub(super) row: RunRow,
    pub(super) known: RunState<CodingState>,
    pub(super) question: OpenQuestion,
    /// Who began the run here.
    pub(super) requester: Option<Principal>,
}

impl QuestionOfRun {
    /// What a run waits with, where it is a question to people.
    async fn of(row: RunRow, by: &Identity, state: &Arc<ServerState>) -> ApiResult<Option<Self>> {
        let repository = state.summaries.repository(&row, state).await;
        if !repository.is_some_and(|name| by.sees(&name)) {
            return Ok(None);
        }
        let known = state.reader.show(&row.run, None).await?;
        if known.progress.ended.is_some() {
            return Ok(None);
        }
        let pending = known.progress.pending.as_ref();
        let question = match pending.map(|pending| &pending.interrupt) {
            Some(RunInterrupt::Approval { .. }) => {
                consent::question(&known, &by.principal).map(OpenQuestion::Run)
            }
            Some(RunInterrupt::Held { approval, .. }) => {
                let held = HeldQuestion::load(approval, state).await?;
                held.map(|held| OpenQuestion::Held(Box::new(held)))
            }
            _ => None,
        };
        let requester = state.records.begun_by(&row.run)?;
        Ok(question.map(|question| Self {
            row,
            known,
            question,
            requester,
        }))
    }

    /// Every question that a person may see.
    async fn all(by: &Identity, state: &Arc<ServerState>) -> ApiResult<Vec<Self>> {
        let filter = RunFilter {
            status: Some(RunStatus::Suspended),
            ..RunFilter::default()
        };
        let mut all = Vec::new();
        for row in state.store.runs(&filter).await? {
            all.extend(Self::of(row, by, state).await?);
        }
        Ok(all)
    }

    /// The one of that id.
    pub(super) async fn named(
        id: &str,
        by: &Identity,
        state: &Arc<ServerState>,
    ) -> ApiResult<Self> {
        let detail = "no question of that id is open";
        let none = || ApiRefusal::new(404, Code::UnknownApproval, detail);
        let id = id.parse::<ApprovalId>().map_err(|_| none())?;
        let all = Self::all(by, state).await?;
        all.into_iter().find(|one| one.id() == &id).ok_or_else(none)
    }

    fn id(&self) -> &ApprovalId {
        match &self.question {
            OpenQuestion::Run(question) => &question.approval,
            OpenQuestion::Held(held) => held.stored.id(),
        }
    }

    /// What an answer has to name.
    pub(super) fn digest(&self) -> String {
        match &self.question {
            OpenQuestion::Run(question) => question.digest.to_string(),
            OpenQuestion::Held(held) => held.stored.challenge.digest.to_string(),
        }
    }

    fn roles(&self) -> Vec<String> {
        match &self.question {
            OpenQuestion::Run(question) => question.roles.clone(),
            OpenQuestion::Held(held) => held
                .stored
                .approval
                .terms
                .role
                .clone()
                .into_iter()
                .collect(),
        }
    }

    /// The role in which a person approves it, or why they may not.
    pub(super) fn role_of(&self, by: &Identity, state: &ServerState) -> Result<String, String> {
        if !by.may(RoutePermission::Approve) {
            return Err("your roles do not let you answer questions".to_owned());
        }
        let strict = match &self.question {
            OpenQuestion::Run(_) => false,
            OpenQuestion::Held(held) => held.stored.approval.terms.four_eyes,
        };
        let own = self.requester.as_ref() == Some(&by.principal);
        if own && (strict || (state.four_eyes && !by.is_alone)) {
            return Err("you began the run: another person has to approve it".to_owned());
        }
        let roles = self.roles();
        let role = by.votes(&roles, consent::OWNER);
        let missing = || format!("only {} may approve it", roles.join(" or "));
        role.map(str::to_owned).ok_or_else(missing)
    }

    fn view(&self, by: &Identity, whole: bool, state: &ServerState) -> PendingApproval {
        let why_not = self.role_of(by, state).err();
        let (kind, reason, needed, expires_ms) = match &self.question {
            OpenQuestion::Run(question) => {
                let asked = self.known.progress.approvals.get(&question.approval);
                let rule = asked.map(|asked| &asked.rule);
                (
                    "run",
                    &question.reason,
                    rule.map_or(1, |rule| rule.quorum.max(1)),
                    rule.map_or(0, |rule| rule.expires_ms),
                )
            }
            OpenQuestion::Held(held) => (
                "effect",
                &held.stored.challenge.reason,
                held.stored.approval.terms.quorum.get(),
                held.stored.challenge.expires_ms,
            ),
        };
        PendingApproval {
            id: self.id().to_string(),
            run: self.row.run.to_string(),
            kind: kind.to_owned(),
            digest: self.digest(),
            reason: reason.clone(),
            task: self.known.state.task.text.clone(),
            requester: self.requester.as_ref().map(ToString::to_string),
            needed,
            roles: self.roles(),
            votes: self.votes(),
            expires_ms,
            may_approve: why_not.is_none(),
            why_not,
            rendered: whole.then(|| self.rendered()),
        }
    }

    fn rendered(&self) -> String {
        match &self.question {
            OpenQuestion::Run(_) => {
                let proposal = self.known.state.proposal.as_ref();
                proposal.map(|made| made.diff.clone()).unwrap_or_default()
            }
            OpenQuestion::Held(held) => String::from_utf8_lossy(&held.stored.rendered).into_owned(),
        }
    }

    fn votes(&self) -> Vec<CastVote> {
        let cast =
            |by: &Principal, role: &str, decision: lula_protocol::ApprovalDecision| CastVote {
                by: by.to_string(),
                role: role.to_owned(),
                decision: vote::word(decision).to_owned(),
            };
        match &self.question {
            OpenQuestion::Run(question) => {
                let asked = self.known.progress.approvals.get(&question.approval);
                let votes = asked.iter().flat_map(|asked| &asked.votes);
                votes
                    .map(|(by, vote)| cast(by, &vote.role, vote.decision))
                    .collect()
            }
            OpenQuestion::Held(held) => {
                let votes = held.stored.approval.votes.iter();
                votes
                    .map(|vote| cast(&vote.approver, &vote.role, vote.decision))
                    .collect()
            }
        }
    }
}

/// The handler of `GET /v1/approvals`.
pub(crate) async fn list(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let all = QuestionOfRun::all(&call.identity, &state).await?;
    let views = all
        .iter()
        .map(|one| one.view(&call.identity, false, &state));
    json(&ApprovalPage {
        approvals: views.collect(),
    })
}

/// The handler of `GET /v1/approvals/{approval}`.
pub(crate) async fn get(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let one = QuestionOfRun::named(&call.name, &call.identity, &state).await?;
    json(&one.view(&call.identity, true, &state))
}
