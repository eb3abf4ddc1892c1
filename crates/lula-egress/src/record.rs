//! What is told about every name, connection and request of a sandbox.

use std::net::{IpAddr, SocketAddr};

use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use serde::{Deserialize, Serialize};

use crate::EgressRule;

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressStage {
    /// A name that was asked for. Told once for each name, verdict and exec while it is remembered.
    Name,
    /// A connection, when it is over.
    Connection,
    /// A request on a connection that was opened, when its answer is over.
    Request,
    /// A connection from outside to a published port, when it is over.
    Published,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    Allowed,
    Denied,
    /// Allowed, but the name did not resolve, the server did not answer, or the connection broke.
    Failed,
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionSide {
    /// The program in the sandbox.
    Inside,
    /// The server, or the client of a published port.
    Outside,
}

/// How the bytes of a connection were relayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relay {
    /// As they were, encrypted between the sandbox's program and the server.
    Spliced,
    /// Opened, each request judged.
    Intercepted,
}

/// Why something was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressRefusal {
    /// No rule allows the name, on any port.
    NameNotAllowed,
    /// Rules allow the name, on other ports.
    PortNotAllowed,
    /// The address was dialled without asking for a name.
    AddressWithoutName,
    /// The name leads to an address that rules do not allow.
    AddressNotAllowed,
    /// The TLS hello has no server name.
    NoServerName,
    /// The server name of TLS is another than the name that was asked for.
    ServerNameMismatch,
    /// `Host` or `:authority` is another than the name that was asked for.
    HostMismatch,
    /// What was sent is not what the rule says is spoken there.
    WrongProtocol,
    /// No rule allows the method and path.
    RequestNotAllowed,
    /// A placeholder stood where its credential is not for.
    PlaceholderMisused,
    /// A limit of the policy was reached.
    LimitReached,
    /// Nothing was said in time.
    TooSlow,
    /// The grant was revoked while the connection was open.
    Revoked,
}

/// A refusal, in words for a model and a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressDenial {
    pub reason: EgressRefusal,
    /// What happened, to what, and what to do.
    pub text: String,
    /// The smallest rule that would allow it, in its short form, where one would.
    pub grant: Option<String>,
}

/// One name, connection or request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionRecord {
    pub stage: EgressStage,
    /// Counts up within one engine; the requests of a connection have its number.
    pub connection: u64,
    /// Which exec it belongs to, as the caller said with [`crate::EgressHandle::attribute`].
    pub attribution: Option<String>,
    /// Where in the sandbox it came from.
    pub client: Option<SocketAddr>,
    /// The name, where one is known: asked for, or said in the first bytes.
    pub name: Option<String>,
    /// The address that the sandbox dialled.
    pub dialled: Option<IpAddr>,
    /// The address that was reached for it.
    pub address: Option<IpAddr>,
    pub port: u16,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub verdict: EgressVerdict,
    /// The rule that allowed it, in its short form.
    pub rule: Option<String>,
    pub denial: Option<EgressDenial>,
    /// What failed, if it was allowed and failed.
    pub failure: Option<String>,
    /// The client of the connection, where it dropped it before the end. That is no failure: programs close
    /// what they no longer need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_by: Option<ConnectionSide>,
    pub duration_ms: u64,
    pub relay: Option<Relay>,
    /// Method and path of a request, without its query.
    pub request: Option<String>,
    /// Status of the answer to a request.
    pub status: Option<u16>,
    /// Names of the credentials that were used.
    pub credentials: Vec<String>,
    /// Whether the answer showed a secret, which was taken out.
    pub redacted: bool,
}

impl ConnectionRecord {
    /// The refusal as receipts carry it.
    pub fn sandbox_denial(&self) -> Option<SandboxDenial> {
        let denial = self.denial.as_ref()?;
        let host = match (&self.name, self.dialled) {
            (Some(name), _) => name.clone(),
            (None, Some(address)) => address.to_string(),
            (None, None) => return None,
        };
        let granted = || denial.grant.as_deref()?.parse::<EgressRule>().ok();
        let port = match self.stage {
            // Names are asked for on port 53; what was meant is a connection.
            EgressStage::Name => granted().map_or(443, |rule| rule.port()),
            EgressStage::Connection | EgressStage::Request | EgressStage::Published => self.port,
        };
        Some(SandboxDenial {
            attempt: DeniedAttempt::Connect { host, port },
            rule: format!("egress: {}", denial.text),
            grant: denial.grant.clone(),
            count: 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(stage: EgressStage, port: u16, grant: &str) -> Option<SandboxDenial> {
        let mut record = ConnectionRecord::begun(stage, 1, None);
        record.name = Some("pypi.org".to_owned());
        record.port = port;
        record.deny(
            EgressRefusal::NameNotAllowed,
            "no".to_owned(),
            Some(grant.to_owned()),
        );
        record.sandbox_denial()
    }

    #[test]
    fn a_denied_name_is_a_denied_connection_to_it() {
        let denial = denied(EgressStage::Name, 53, "pypi.org:8443").unwrap();
        let meant = DeniedAttempt::Connect {
            host: "pypi.org".to_owned(),
            port: 8443,
        };
        assert_eq!(denial.attempt, meant);
        assert_eq!(denial.grant.as_deref(), Some("pypi.org:8443"));
        let denial = denied(EgressStage::Connection, 80, "pypi.org:80").unwrap();
        assert!(matches!(
            denial.attempt,
            DeniedAttempt::Connect { port: 80, .. }
        ));
    }

    #[test]
    fn what_was_allowed_is_no_denial() {
        assert_eq!(
            ConnectionRecord::begun(EgressStage::Name, 1, None).sandbox_denial(),
            None
        );
    }
}
