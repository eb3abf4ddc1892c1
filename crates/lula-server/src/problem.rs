//! Why a request is not answered as it asks: problem documents (RFC 9457) with the codes of the command
//! line.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use lula_gate::redact::redact;
use lula_graph::EngineError;
use lula_graph::bundle::BundleError;
use lula_host::{HostError, pages};
use lula_protocol::{Code, FailureReport};
use lula_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// What of a problem is written into the document.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Where the code is explained, below this server.
    #[serde(rename = "type")]
    kind: String,
    /// What the code means.
    title: String,
    /// The status of the answer.
    status: u16,
    /// What happened, to what.
    detail: String,
    /// The stable code, the same as on the command line.
    code: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// A request that is refused, or that failed.
#[derive(Debug)]
pub(crate) struct ApiRefusal {
    status: u16,
    code: Code,
    detail: String,
    remedy: Option<String>,
    /// After so many seconds it may be tried again.
    retry_after: Option<u64>,
    /// The methods that are taken instead.
    allow: Option<String>,
}

pub(crate) type ApiResult<T> = Result<T, ApiRefusal>;

impl ApiRefusal {
    pub(crate) fn new(status: u16, code: Code, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            remedy: None,
            retry_after: None,
            allow: None,
        }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(crate) fn allowing(mut self, methods: String) -> Self {
        self.allow = Some(methods);
        self
    }

    /// The request does not say what it has to.
    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(400, Code::BadRequest, detail)
            .remedy("compare it with `GET /v1/openapi.json`; unknown fields are refused")
    }

    /// There is nothing of that name, or nothing that this caller may see.
    pub(crate) fn nowhere(what: impl Into<String>) -> Self {
        Self::new(404, Code::NothingThere, what)
    }

    /// The caller may not do that.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(403, Code::NotAllowed, detail)
    }

    /// The server cannot take it now.
    pub(crate) fn busy(status: u16, detail: impl Into<String>, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds.max(1)),
            ..Self::new(status, Code::Busy, detail).remedy("send it again after Retry-After")
        }
    }

    pub(crate) fn internal(error: &dyn std::fmt::Display) -> Self {
        Self::new(500, Code::Internal, error.to_string())
    }

    /// Who sends it is not known.
    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(401, Code::NotAllowed, detail)
            .remedy("send `Authorization: Bearer TOKEN`; `lula server keys add` makes one")
    }

    #[cfg(test)]
    pub(crate) const fn status(&self) -> u16 {
        self.status
    }

    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    /// As it is sent.
    pub(crate) fn answer(self) -> Response<Body> {
        let problem = Problem {
            kind: format!("/v1/errors/{}", self.code),
            title: pages::title(self.code).to_owned(),
            status: self.status,
            detail: redact(&self.detail).into_owned(),
            code: self.code.to_string(),
            remedy: self.remedy,
        };
        let bytes = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(bytes));
        let status = StatusCode::from_u16(self.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(CONTENT_TYPE, kind);
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.status == 401 {
            let challenge = HeaderValue::from_static("Bearer realm=\"lula\"");
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(methods) = self.allow.and_then(|methods| methods.parse().ok()) {
            headers.insert(axum::http::header::ALLOW, methods);
        }
        response
    }
}

/// The status that fits a code.
const fn status_of(code: Code) -> u16 {
    match code {
        Code::NoSuchRun
        | Code::UnknownApproval
        | Code::NothingThere
        | Code::NoSuchWorkspace
        | Code::UnknownCode => 404,
        Code::RunRefused
        | Code::RunBusy
        | Code::VoteRefused
        | Code::WorkspaceConflict
        | Code::ChangedSinceReview
        | Code::ChangedMeanwhile
        | Code::HeldBack
        | Code::ApprovalsUnusable => 409,
        Code::BadCommandLine
        | Code::BadValue
        | Code::BadModelName
        | Code::OverLimit
        | Code::NotARepository
        | Code::EmptyRepository
        | Code::NothingToRepair
        | Code::BadPattern => 422,
        Code::NotAllowed => 403,
        Code::BadRequest => 400,
        Code::Busy | Code::StoreUnusable | Code::AuditUnusable => 503,
        _ => 500,
    }
}

impl From<HostError> for ApiRefusal {
    fn from(error: HostError) -> Self {
        let code = error.code();
        Self {
            remedy: error.remedy(),
            retry_after: (status_of(code) == 503).then_some(5),
            ..Self::new(status_of(code), code, error.message())
        }
    }
}

impl From<StoreError> for ApiRefusal {
    fn from(error: StoreError) -> Self {
        HostError::from(error).into()
    }
}

impl From<EngineError> for ApiRefusal {
    fn from(error: EngineError) -> Self {
        HostError::from(error).into()
    }
}

impl From<BundleError> for ApiRefusal {
    fn from(error: BundleError) -> Self {
        HostError::from(error).into()
    }
}

/// What a driver reported before it ended.
impl From<FailureReport> for ApiRefusal {
    fn from(report: FailureReport) -> Self {
        Self {
            remedy: report.remedy,
            ..Self::new(status_of(report.code), report.code, report.message)
        }
    }
}
