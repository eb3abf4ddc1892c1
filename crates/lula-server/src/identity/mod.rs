//! Who sends a request, and what they may. Every request is identified before anything of it is looked at.

mod bearer;
mod jwks;
mod jwt;
pub mod keys;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use lula_config::keys as settings;
use lula_host::record::local_principal;
use lula_host::{HostError, Installation};
use lula_protocol::Principal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::{ApiRefusal, ApiResult};
use bearer::BearerKeys;
pub(crate) use jwt::TokenCheck;

/// Longest token that is looked at, in bytes.
const LONGEST: usize = 16 << 10;

/// What a person may do here.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ServerRole {
    /// Looks at runs and what they ask.
    Viewer,
    /// Begins, steers and ends runs, and looks at them.
    Operator,
    /// Answers what runs ask, and looks at them.
    Approver,
    /// May do everything there is to do.
    Admin,
}

impl ServerRole {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Approver, Self::Admin];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Approver => "approver",
            Self::Admin => "admin",
        }
    }

    /// Whether the role lets do it.
    pub const fn may(self, permission: RoutePermission) -> bool {
        match permission {
            RoutePermission::Open | RoutePermission::Read => true,
            RoutePermission::Operate => matches!(self, Self::Operator | Self::Admin),
            RoutePermission::Approve => matches!(self, Self::Approver | Self::Admin),
            RoutePermission::Administer => matches!(self, Self::Admin),
        }
    }
}

/// A text that names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a role is one of viewer, operator, approver, admin")]
pub struct NoSuchRole;

impl FromStr for ServerRole {
    type Err = NoSuchRole;
    fn from_str(given: &str) -> Result<Self, NoSuchRole> {
        let found = Self::ALL.into_iter().find(|role| role.name() == given);
        found.ok_or(NoSuchRole)
    }
}

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutePermission {
    /// Nothing: it tells nothing of any run.
    Open,
    /// To look at runs.
    Read,
    /// To begin, steer and end them.
    Operate,
    /// To answer what they ask.
    Approve,
    /// To look after the server.
    Administer,
}

/// A person or a program that was identified.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) principal: Principal,
    pub(crate) roles: BTreeSet<ServerRole>,
    /// The roles of approval rules in which they answer.
    pub(crate) votes_as: BTreeSet<String>,
    /// The repositories they may see; all where nothing is said.
    pub(crate) repositories: Option<BTreeSet<String>>,
    /// Whether every request is taken for this person's.
    pub(crate) is_alone: bool,
}

impl Identity {
    pub(crate) fn may(&self, permission: RoutePermission) -> bool {
        permission == RoutePermission::Open || self.roles.iter().any(|role| role.may(permission))
    }

    pub(crate) fn sees(&self, repository: &str) -> bool {
        let only = self.repositories.as_ref();
        only.is_none_or(|names| names.contains(repository))
    }

    /// The role in which they answer a question for which these roles count.
    pub(crate) fn votes<'a>(&self, wanted: &'a [String], otherwise: &'a str) -> Option<&'a str> {
        if wanted.is_empty() {
            return Some(otherwise);
        }
        let theirs = |role: &&String| self.is_alone || self.votes_as.contains(*role);
        wanted.iter().find(theirs).map(String::as_str)
    }
}

/// Where identities come from.
pub(crate) struct IdentityCheck {
    alone: Option<Principal>,
    bearer: Option<BearerKeys>,
    jwt: Option<Arc<TokenCheck>>,
}

/// Why the server cannot find out who its callers are.
#[derive(Debug, thiserror::Error)]
pub enum IdentitySetupError {
    /// What is needed to check tokens is not configured.
    #[error("server.auth is {mode}, and {key} is not set")]
    Missing { mode: String, key: &'static str },
    /// A value of the configuration cannot be used.
    #[error("{key}: {why}")]
    BadSetting { key: &'static str, why: String },
    /// The host does not say who runs this process, or where state is kept.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl IdentityCheck {
    /// As the configuration says.
    pub(crate) async fn of(installation: &Installation) -> Result<Self, IdentitySetupError> {
        let mode = installation.config.get(&settings::SERVER_AUTH);
        let bearer = mode.split('+').any(|one| one == "bearer");
        let jwt = mode.split('+').any(|one| one == "jwt");
        Ok(Self {
            alone: (mode == "off").then(local_principal).transpose()?,
            bearer: if bearer {
                Some(BearerKeys::at(&installation.state_directory()?))
            } else {
                None
            },
            jwt: if jwt {
                Some(TokenCheck::of(&installation.config).await?)
            } else {
                None
            },
        })
    }

    /// Who sends a request. Refused where that is not known.
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> ApiResult<Identity> {
        if let Some(principal) = &self.alone {
            return Ok(Identity {
                principal: principal.clone(),
                roles: BTreeSet::from([ServerRole::Admin]),
                votes_as: BTreeSet::new(),
                repositories: None,
                is_alone: true,
            });
        }
        let token = token(headers)?;
        let identity = if token.starts_with(keys::PREFIX) {
            let bearer = self.bearer.as_ref();
            let bearer = bearer.ok_or_else(|| unknown("bearer keys are not taken here"))?;
            bearer.identify(token)?
        } else {
            let jwt = self.jwt.as_ref();
            let jwt = jwt.ok_or_else(|| unknown("the token is none of this server"))?;
            jwt.identify(token).await?
        };
        // Nobody from outside is the operator of this machine.
        if identity.principal.as_str().starts_with("local:") {
            return Err(unknown("the token names a user of this machine"));
        }
        Ok(identity)
    }
}

/// The one token of a request.
fn token(headers: &HeaderMap) -> ApiResult<&str> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(first), None) = (given.next(), given.next()) else {
        return Err(unknown("the request has no bearer token, or several"));
    };
    let text = first
        .to_str()
        .map_err(|_| unknown("the token is no text"))?;
    let token = text
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .ok_or_else(|| unknown("the request has no bearer token"))?;
    if token.is_empty() || token.len() > LONGEST {
        return Err(unknown("the token is empty or too long"));
    }
    Ok(token)
}

/// Says nothing of the token.
fn unknown(why: &str) -> ApiRefusal {
    ApiRefusal::unauthenticated(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_request_has_one_bearer_token() {
        assert_eq!(token(&headers(&["Bearer abc"])).unwrap(), "abc");
        assert_eq!(token(&headers(&["bearer  abc"])).unwrap(), "abc");
        let long = format!("Bearer {}", "x".repeat(LONGEST + 1));
        for bad in [
            &[][..],
            &["abc"],
            &["Bearer "],
            &["Basic abc"],
            &["Bearer a", "Bearer b"],
            &[&long],
        ] {
            assert_eq!(token(&headers(bad)).unwrap_err().status(), 401, "{bad:?}");
        }
    }

    #[test]
    fn operators_do_not_approve_and_approvers_do_not_operate() {
        use RoutePermission::{Administer, Approve, Operate, Read};
        let may = |role: ServerRole| {
            [Read, Operate, Approve, Administer].map(|permission| role.may(permission))
        };
        assert_eq!(may(ServerRole::Viewer), [true, false, false, false]);
        assert_eq!(may(ServerRole::Operator), [true, true, false, false]);
        assert_eq!(may(ServerRole::Approver), [true, false, true, false]);
        assert_eq!(may(ServerRole::Admin), [true; 4]);
    }
}
