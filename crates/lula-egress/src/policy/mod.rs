//! What a sandbox may reach, as data.
//!
//! A policy is validated as it is read, so what exists can be enforced. It has a digest, takes in named
//! groups of rules that its caller found out, and can be narrowed by a repository: a narrowing is one more
//! list of rules that has to agree, so that it can add nothing.

mod credential;
mod domain;
mod http;
mod limits;
mod rule;
mod ruling;

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::canonical::CanonicalError;
use lula_protocol::digest::{Digest, DigestDomain};
use serde::{Deserialize, Serialize};

pub use credential::{CredentialRule, CredentialSource};
pub use domain::{DomainName, DomainPattern};
pub use http::{MethodName, PathGlob};
pub use limits::{EgressLimits, EgressNarrowingLimits};
pub use rule::{EgressProtocol, EgressRule, RequestDetail};
pub(crate) use ruling::{ConnectionRuling, Rules};

/// Most rules of a policy, groups included.
const MOST_RULES: usize = 4096;

/// Why a part of a policy is refused: what it is, what was written, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {given:?}: {why}")]
pub struct InvalidEgress {
    what: &'static str,
    given: String,
    why: String,
}

impl InvalidEgress {
    pub(crate) fn new(what: &'static str, given: &str, why: &str) -> Self {
        Self {
            what,
            given: given.chars().take(80).collect(),
            why: why.to_owned(),
        }
    }
}

/// What a sandbox may reach: rules, credentials that it may have used, and limits. The default reaches
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressPolicy {
    /// Named groups whose rules count too, once [`EgressPolicy::with_groups`] has taken them in.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<EgressRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<CredentialRule>,
    #[serde(default)]
    pub limits: EgressLimits,
    /// Rules that have to allow a connection as well, a list for each narrowing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    narrowed: Vec<Vec<EgressRule>>,
}

/// What a repository may say: less. It can name no secret, and what it allows counts only where the
/// operator's policy allows it too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressNarrowing {
    /// The only rules that count; left out, all of them do.
    pub rules: Option<Vec<EgressRule>>,
    /// The only credentials that may be used; left out, all of them may.
    pub credentials: Option<BTreeSet<String>>,
    pub limits: EgressNarrowingLimits,
}

/// Groups of rules by name (`pypi`, `npm`), as the tools of this machine were asked for them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EgressGroups(pub BTreeMap<String, Vec<EgressRule>>);

impl EgressPolicy {
    /// The digest that receipts and records carry.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Digest::of(DigestDomain::Policy, self)
    }

    /// The policy with the rules of its groups among its own. A group that is not there is an error:
    /// a policy that was asked for is never silently another one.
    pub fn with_groups(mut self, groups: &EgressGroups) -> Result<Self, InvalidEgress> {
        for name in &self.groups {
            let rules = groups.0.get(name).ok_or_else(|| {
                let known: Vec<&str> = groups.0.keys().map(String::as_str).collect();
                InvalidEgress::new(
                    "group",
                    name,
                    &format!("there is none; known: {}", known.join(", ")),
                )
            })?;
            self.rules.extend(
                rules
                    .iter()
                    .filter(|rule| !self.rules.contains(rule))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
        }
        self.checked()
    }

    /// The policy, narrowed: what the repository's rules do not allow as well is refused.
    #[must_use]
    pub fn narrow(mut self, repository: &EgressNarrowing) -> Self {
        if let Some(rules) = &repository.rules {
            self.narrowed.push(rules.clone());
        }
        if let Some(kept) = &repository.credentials {
            self.credentials
                .retain(|credential| kept.contains(credential.name()));
        }
        self.limits = self.limits.narrowed(&repository.limits);
        self
    }

    /// The policy, once what no part of it can say alone is right: numbers, and names that are unique.
    /// [`crate::Egress::start`] asks this again.
    pub fn checked(self) -> Result<Self, InvalidEgress> {
        let many = self.rules.len() + self.narrowed.iter().map(Vec::len).sum::<usize>();
        if many > MOST_RULES {
            return Err(InvalidEgress::new(
                "policy",
                &many.to_string(),
                "it has at most 4096 rules",
            ));
        }
        let mut names = BTreeSet::new();
        for credential in &self.credentials {
            if !names.insert(credential.name()) {
                return Err(InvalidEgress::new(
                    "credential",
                    credential.name(),
                    "the name is given twice",
                ));
            }
        }
        Ok(self)
    }

    /// The TCP ports that a sandbox needs listeners on for this policy. 80 and 443 are always among them:
    /// a refusal there is explained, elsewhere a connection is just refused. Those of other sandboxes are not:
    /// they are answered once such a name was asked for, so that a server here can have them.
    pub fn ports(&self) -> BTreeSet<u16> {
        let outside = self.rules.iter().filter(|rule| !rule.is_of_sandbox());
        let named = outside.map(EgressRule::port);
        named.chain([80, 443]).collect()
    }

    /// The rule that allows connections to a name on a port, if all lists agree: what `lula net explain`
    /// tells.
    pub fn explain(&self, name: &DomainName, port: u16) -> Option<&EgressRule> {
        let agreed =
            |rules: &Vec<EgressRule>| rules.iter().any(|rule| rule.allows_connection(name, port));
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.allows_connection(name, port))?;
        self.narrowed.iter().all(agreed).then_some(rule)
    }
}

#[cfg(test)]
mod tests;
