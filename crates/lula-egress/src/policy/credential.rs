//! Credentials as a policy names them: where each may go, and where its secret is found. Never the secret.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::http::RequestScope;
use super::{DomainName, InvalidEgress, MethodName, PathGlob, RequestDetail};
use crate::CredentialUse;

/// Most bytes of the name of a credential, and of a header.
const LONGEST_WORD: usize = 64;
/// Headers that carry the connection itself: none of them is one for a secret.
const CONNECTION_HEADERS: &[&str] = &[
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "proxy-connection",
    "content-encoding",
    "accept-encoding",
    "expect",
];

/// Where a secret is found. The caller of this crate looks it up; a repository can never say this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CredentialSource {
    /// A variable of the process that serves the sandbox.
    Env(String),
    /// A file that no other user may read.
    File(PathBuf),
    /// A program and its arguments; the secret is the first line that it prints.
    Command(Vec<String>),
    /// The keyring of the person's session.
    Keyring {
        service: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
    },
}

/// A credential: the header that it stands in, and the requests that may carry it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenCredential", into = "WrittenCredential")]
pub struct CredentialRule {
    name: String,
    secret: CredentialSource,
    hosts: BTreeSet<DomainName>,
    port: u16,
    header: String,
    how: CredentialUse,
    requests: RequestScope,
}

/// A credential as a file has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCredential {
    name: String,
    secret: CredentialSource,
    hosts: BTreeSet<DomainName>,
    #[serde(default = "usual_port")]
    port: u16,
    #[serde(default = "usual_header")]
    header: String,
    #[serde(default)]
    how: CredentialUse,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    methods: BTreeSet<MethodName>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    paths: BTreeSet<PathGlob>,
}

const fn usual_port() -> u16 {
    443
}

fn usual_header() -> String {
    "authorization".to_owned()
}

impl CredentialRule {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its secret is found.
    pub fn source(&self) -> &CredentialSource {
        &self.secret
    }

    /// The header that it may stand in, in lower case.
    pub fn header(&self) -> &str {
        &self.header
    }

    pub fn how(&self) -> CredentialUse {
        self.how
    }

    /// The hosts that may see it.
    pub fn hosts(&self) -> impl Iterator<Item = &DomainName> {
        self.hosts.iter()
    }

    /// The port of those hosts.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn binds(&self, name: &DomainName, port: u16) -> bool {
        self.port == port && self.hosts.contains(name)
    }

    pub(crate) fn allows_request(
        &self,
        name: &DomainName,
        port: u16,
        detail: RequestDetail<'_>,
    ) -> bool {
        self.binds(name, port) && self.requests.allows(detail)
    }
}

impl TryFrom<WrittenCredential> for CredentialRule {
    type Error = InvalidEgress;
    fn try_from(written: WrittenCredential) -> Result<Self, InvalidEgress> {
        let word = |text: &str, more: &[u8]| {
            !text.is_empty()
                && text.len() <= LONGEST_WORD
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
        };
        let invalid = |why: &str| InvalidEgress::new("credential", &written.name, why);
        if !word(&written.name, b"-_.") {
            return Err(invalid("its name has 1 to 64 letters, digits, -, _ and ."));
        }
        let header = written.header.to_ascii_lowercase();
        if !word(&header, b"-_") || CONNECTION_HEADERS.contains(&header.as_str()) {
            return Err(invalid(
                "its header is one that a secret can stand in, as authorization or x-api-key",
            ));
        }
        if written.how == CredentialUse::BasicPassword && header != "authorization" {
            return Err(invalid(
                "a password of basic authentication stands in the header authorization",
            ));
        }
        if written.hosts.is_empty() {
            return Err(invalid("it names no host that may see it"));
        }
        if written.port == 0 || written.port == 53 {
            return Err(invalid("the port is 1 to 65535, and not 53"));
        }
        let named = match &written.secret {
            CredentialSource::Env(name) => !name.is_empty(),
            CredentialSource::File(path) => path.is_absolute(),
            CredentialSource::Command(words) => words.first().is_some_and(|word| !word.is_empty()),
            CredentialSource::Keyring { service, account } => {
                !service.is_empty() && account.as_ref().is_none_or(|account| !account.is_empty())
            }
        };
        if !named {
            return Err(invalid(
                "its secret is { env = NAME }, { file = ABSOLUTE PATH }, { command = [PROGRAM, …] } or \
                 { keyring = { service = NAME } }",
            ));
        }
        let requests =
            RequestScope::new("credential", &written.name, written.methods, written.paths)?;
        Ok(Self {
            name: written.name,
            secret: written.secret,
            hosts: written.hosts,
            port: written.port,
            header,
            how: written.how,
            requests,
        })
    }
}

impl From<CredentialRule> for WrittenCredential {
    fn from(rule: CredentialRule) -> Self {
        let (methods, paths) = rule.requests.into_parts();
        Self {
            name: rule.name,
            secret: rule.secret,
            hosts: rule.hosts,
            port: rule.port,
            header: rule.header,
            how: rule.how,
            methods,
            paths,
        }
    }
}
