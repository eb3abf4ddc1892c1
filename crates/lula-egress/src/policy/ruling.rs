//! What the rules say about a name, a connection and a request. Pure.

use std::collections::BTreeSet;

use super::{DomainName, EgressPolicy, EgressProtocol, EgressRule, RequestDetail};

/// The rules in force: a policy, and what a person has granted since. A grant is a person's word, so a
/// narrowing of the repository does not bind it.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    policy: EgressPolicy,
    granted: Vec<EgressRule>,
    revoked: Vec<EgressRule>,
}

/// How an allowed connection is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionRuling {
    /// The rule that allows it, in its short form.
    pub(crate) rule: String,
    pub(crate) protocol: EgressProtocol,
    /// Whether its requests have to be seen.
    pub(crate) intercept: bool,
    /// Whether the name may have addresses of a private network.
    pub(crate) private: bool,
}

impl ConnectionRuling {
    fn is_whole_and_private(&self) -> bool {
        !self.intercept && self.private
    }
}

impl Rules {
    pub(crate) fn new(policy: EgressPolicy) -> Self {
        Self {
            policy,
            granted: Vec::new(),
            revoked: Vec::new(),
        }
    }

    pub(crate) fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    pub(crate) fn granted(&self) -> &[EgressRule] {
        &self.granted
    }

    pub(crate) fn grant(&mut self, rule: EgressRule) {
        self.revoked.retain(|revoked| *revoked != rule);
        if !self.granted.contains(&rule) && !self.policy.rules.contains(&rule) {
            self.granted.push(rule);
        }
    }

    /// Takes back a rule, granted or of the policy; whether it was in force.
    pub(crate) fn revoke(&mut self, rule: &EgressRule) -> bool {
        let before = self.granted.len();
        self.granted.retain(|granted| granted != rule);
        let mut was = self.granted.len() != before;
        if self.policy.rules.contains(rule) && !self.revoked.contains(rule) {
            self.revoked.push(rule.clone());
            was = true;
        }
        was
    }

    /// The lists of rules one of which suffices wholly: what a person granted, or the policy with all its
    /// narrowings.
    fn layers(&self) -> [Vec<Vec<&EgressRule>>; 2] {
        let own = self
            .policy
            .rules
            .iter()
            .filter(|rule| !self.revoked.contains(rule))
            .collect();
        let mut policy = vec![own];
        policy.extend(
            self.policy
                .narrowed
                .iter()
                .map(|rules| rules.iter().collect()),
        );
        [vec![self.granted.iter().collect()], policy]
    }

    pub(crate) fn allows_name(&self, name: &DomainName) -> bool {
        self.layers().iter().any(|layers| {
            layers
                .iter()
                .all(|rules| rules.iter().any(|rule| rule.allows_name(name)))
        })
    }

    /// A port on which rules mean the name: what is proposed where only the name is known.
    pub(crate) fn port_of(&self, name: &DomainName) -> Option<u16> {
        let rules = self.granted.iter().chain(&self.policy.rules);
        rules
            .filter(|rule| rule.allows_name(name))
            .map(EgressRule::port)
            .next()
    }

    /// The ports on which rules mean the name.
    pub(crate) fn ports_of(&self, name: &DomainName) -> BTreeSet<u16> {
        let rules = self.granted.iter().chain(&self.policy.rules);
        let rules = rules.filter(|rule| rule.allows_name(name));
        rules.map(EgressRule::port).collect()
    }

    /// Whether the name may have private addresses on some port: what its answer is decided by.
    pub(crate) fn name_may_be_private(&self, name: &DomainName) -> bool {
        let private = |rule: &&EgressRule| rule.allows_name(name) && rule.private_addresses();
        self.layers()
            .iter()
            .any(|layers| layers.iter().all(|rules| rules.iter().any(private)))
    }

    pub(crate) fn connection(&self, name: &DomainName, port: u16) -> Option<ConnectionRuling> {
        let brokered = self
            .policy
            .credentials
            .iter()
            .any(|credential| credential.binds(name, port));
        let mut found: Option<ConnectionRuling> = None;
        for layers in self.layers() {
            let Some(ruling) = agreed(&layers, name, port) else {
                continue;
            };
            match &mut found {
                // A person's grant and the policy both allow it. What one says of requests and the other of
                // addresses must not add up to more than either.
                Some(found) => {
                    if found.protocol == ruling.protocol {
                        let whole_and_private =
                            found.is_whole_and_private() || ruling.is_whole_and_private();
                        found.private = whole_and_private || (found.private && ruling.private);
                        found.intercept &= ruling.intercept;
                    }
                }
                None => found = Some(ruling),
            }
        }
        found.map(|mut ruling| {
            ruling.intercept |= brokered && ruling.protocol != EgressProtocol::Tcp;
            ruling.intercept |= ruling.protocol == EgressProtocol::Http;
            ruling
        })
    }

    /// The rule that allows a request on a connection that was opened.
    pub(crate) fn request(
        &self,
        name: &DomainName,
        port: u16,
        detail: RequestDetail<'_>,
    ) -> Option<String> {
        self.layers().iter().find_map(|layers| {
            let first = layers
                .first()?
                .iter()
                .find(|rule| rule.allows_request(name, port, detail))?;
            let all = layers.iter().all(|rules| {
                rules
                    .iter()
                    .any(|rule| rule.allows_request(name, port, detail))
            });
            all.then(|| first.to_string())
        })
    }

    /// Whether a connection that is open may stay so.
    pub(crate) fn still_allows(
        &self,
        name: &DomainName,
        port: u16,
        served: &ConnectionRuling,
    ) -> bool {
        self.connection(name, port).is_some_and(|now| {
            now.protocol == served.protocol
                && (served.intercept || !now.intercept)
                && (now.private || !served.private)
        })
    }
}

/// What lists of rules that all have to allow a connection make of it. They have to mean the same
/// protocol; each narrows what is seen and which addresses are taken. Where rules of one list differ about
/// private addresses, those are taken only if a rule for all requests says so.
fn agreed(layers: &[Vec<&EgressRule>], name: &DomainName, port: u16) -> Option<ConnectionRuling> {
    let mut ruling: Option<ConnectionRuling> = None;
    for rules in layers {
        let matching = || {
            rules
                .iter()
                .filter(|rule| rule.allows_connection(name, port))
        };
        let protocol = match &ruling {
            Some(ruling) => ruling.protocol,
            None => matching().next()?.protocol(),
        };
        let same = || matching().filter(|rule| rule.protocol() == protocol);
        let first = same().next()?;
        let whole = same().any(|rule| !rule.needs_requests());
        let private = same().any(|rule| !rule.needs_requests() && rule.private_addresses())
            || same().all(|rule| rule.private_addresses());
        match &mut ruling {
            Some(ruling) => {
                ruling.intercept |= !whole;
                ruling.private &= private;
            }
            None => {
                ruling = Some(ConnectionRuling {
                    rule: first.to_string(),
                    protocol,
                    intercept: !whole,
                    private,
                });
            }
        }
    }
    ruling
}
