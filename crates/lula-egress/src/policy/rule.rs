//! One rule: a name and a port, and where it is narrower, methods and paths.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::http::RequestScope;
use super::{DomainName, DomainPattern, InvalidEgress, MethodName, PathGlob};

/// The port of a rule that names none.
const USUAL_PORT: u16 = 443;

/// What is spoken on a connection, and so what its first bytes are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressProtocol {
    /// TLS. The server name must be the name that was asked for.
    Tls,
    /// HTTP without TLS. The `Host` of each request must be the name that was asked for.
    Http,
    /// Anything: ssh, a database. Only the name that was asked for and the port are known.
    Tcp,
}

impl EgressProtocol {
    /// What a port carries unless a rule says otherwise.
    pub const fn usual(port: u16) -> Self {
        if port == 80 { Self::Http } else { Self::Tls }
    }
}

/// What a rule says of a request: everything that matters is known once it was opened.
#[derive(Debug, Clone, Copy)]
pub struct RequestDetail<'a> {
    pub method: &'a str,
    /// The path without its query.
    pub path: &'a str,
}

/// A name that may be reached on a port.
///
/// Its short form is what people type and what denials propose:
/// `[METHOD,METHOD ][http://|tcp://]DOMAIN[:PORT][/PATH] [private]`.
///
/// ```
/// use lula_egress::EgressRule;
/// let rule: EgressRule = "GET,HEAD api.example.org/repos/*".parse().unwrap();
/// assert_eq!(rule.to_string(), "GET,HEAD api.example.org:443/repos/*");
/// assert!("*".parse::<EgressRule>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "WrittenRule", into = "WrittenRule")]
pub struct EgressRule {
    domain: DomainPattern,
    port: u16,
    protocol: EgressProtocol,
    requests: RequestScope,
    private_addresses: bool,
}

/// A rule as a file has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    domain: DomainPattern,
    #[serde(default = "usual_port")]
    port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<EgressProtocol>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    methods: BTreeSet<MethodName>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    paths: BTreeSet<PathGlob>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    private_addresses: bool,
}

const fn usual_port() -> u16 {
    USUAL_PORT
}

impl EgressRule {
    /// Every request to the names on the port, in what that port usually carries.
    pub fn new(domain: DomainPattern, port: u16) -> Result<Self, InvalidEgress> {
        Self::try_from(WrittenRule {
            domain,
            port,
            protocol: None,
            methods: BTreeSet::new(),
            paths: BTreeSet::new(),
            private_addresses: false,
        })
    }

    /// The same rule for requests with one method and path alone.
    pub(crate) fn only(mut self, method: MethodName, path: PathGlob) -> Self {
        self.requests = RequestScope::only(method, path);
        self
    }

    /// The same rule for names with addresses of a private network.
    #[must_use]
    pub fn with_private_addresses(mut self) -> Self {
        self.private_addresses = true;
        self
    }

    /// The same rule for what is spoken on another kind of connection.
    #[must_use]
    pub(crate) fn speaking(mut self, protocol: EgressProtocol) -> Self {
        self.protocol = protocol;
        self
    }

    pub fn domain(&self) -> &DomainPattern {
        &self.domain
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn protocol(&self) -> EgressProtocol {
        self.protocol
    }

    /// Whether it allows addresses of a private network: loopback, RFC 1918, unique local, carrier-grade
    /// NAT. Link-local (so every metadata service), multicast and reserved addresses no rule allows.
    pub fn private_addresses(&self) -> bool {
        self.private_addresses
    }

    /// Whether it can only be held to once the requests are seen.
    pub fn needs_requests(&self) -> bool {
        !self.requests.is_everything()
    }

    /// Whether it is about another sandbox.
    pub(crate) fn is_of_sandbox(&self) -> bool {
        match &self.domain {
            DomainPattern::Exact(name) => name.is_of_sandbox(),
            DomainPattern::Below(_) => false,
        }
    }

    pub(crate) fn allows_name(&self, name: &DomainName) -> bool {
        self.domain.matches(name)
    }

    pub(crate) fn allows_connection(&self, name: &DomainName, port: u16) -> bool {
        self.port == port && self.domain.matches(name)
    }

    pub(crate) fn allows_request(
        &self,
        name: &DomainName,
        port: u16,
        detail: RequestDetail<'_>,
    ) -> bool {
        self.allows_connection(name, port) && self.requests.allows(detail)
    }
}

impl TryFrom<WrittenRule> for EgressRule {
    type Error = InvalidEgress;
    fn try_from(written: WrittenRule) -> Result<Self, InvalidEgress> {
        let domain = written.domain.to_string();
        let invalid = |why: &str| InvalidEgress::new("rule", &domain, why);
        if written.port == 0 || written.port == 53 {
            return Err(invalid(
                "the port is 1 to 65535, and not 53, where names are answered",
            ));
        }
        let protocol = written
            .protocol
            .unwrap_or(EgressProtocol::usual(written.port));
        let requests = RequestScope::new("rule", &domain, written.methods, written.paths)?;
        if protocol == EgressProtocol::Tcp && !requests.is_everything() {
            return Err(invalid(
                "methods and paths belong to HTTP: leave them out, or the protocol tcp",
            ));
        }
        Ok(Self {
            domain: written.domain,
            port: written.port,
            protocol,
            requests,
            private_addresses: written.private_addresses,
        })
    }
}

impl From<EgressRule> for WrittenRule {
    fn from(rule: EgressRule) -> Self {
        let (methods, paths) = rule.requests.into_parts();
        Self {
            protocol: (rule.protocol != EgressProtocol::usual(rule.port)).then_some(rule.protocol),
            domain: rule.domain,
            port: rule.port,
            methods,
            paths,
            private_addresses: rule.private_addresses,
        }
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (methods, paths) = (self.requests.methods(), self.requests.paths());
        for (at, method) in methods.iter().enumerate() {
            write!(f, "{}{method}", if at == 0 { "" } else { "," })?;
        }
        if !methods.is_empty() {
            f.write_str(" ")?;
        }
        f.write_str(match (self.protocol, EgressProtocol::usual(self.port)) {
            (given, usual) if given == usual => "",
            (EgressProtocol::Tls, _) => "https://",
            (EgressProtocol::Http, _) => "http://",
            (EgressProtocol::Tcp, _) => "tcp://",
        })?;
        write!(f, "{}:{}", self.domain, self.port)?;
        for (at, path) in paths.iter().enumerate() {
            write!(f, "{}{path}", if at == 0 { "" } else { "," })?;
        }
        f.write_str(if self.private_addresses {
            " private"
        } else {
            ""
        })
    }
}

impl FromStr for EgressRule {
    type Err = InvalidEgress;
    fn from_str(given: &str) -> Result<Self, InvalidEgress> {
        let invalid = |why: &str| InvalidEgress::new("rule", given, why);
        let (rest, private_addresses) = match given.strip_suffix(" private") {
            Some(rest) => (rest, true),
            None => (given, false),
        };
        let (methods, target) = match rest.split_once(' ') {
            Some((methods, target)) => (
                methods
                    .split(',')
                    .map(str::parse)
                    .collect::<Result<_, _>>()?,
                target,
            ),
            None => (BTreeSet::new(), rest),
        };
        let (protocol, target) = match target.split_once("://") {
            Some(("https", target)) => (Some(EgressProtocol::Tls), target),
            Some(("http", target)) => (Some(EgressProtocol::Http), target),
            Some(("tcp", target)) => (Some(EgressProtocol::Tcp), target),
            Some(_) => return Err(invalid("before :// stands https, http or tcp")),
            None => (None, target),
        };
        let (host, paths) = match target.find('/') {
            Some(at) => (
                &target[..at],
                target[at..]
                    .split(',')
                    .map(str::parse)
                    .collect::<Result<_, _>>()?,
            ),
            None => (target, BTreeSet::new()),
        };
        let (domain, port) = match host.rsplit_once(':') {
            Some((domain, port)) => (
                domain,
                port.parse()
                    .map_err(|_| invalid("behind the colon stands a port, as in pypi.org:443"))?,
            ),
            None => (
                host,
                if protocol == Some(EgressProtocol::Http) {
                    80
                } else {
                    USUAL_PORT
                },
            ),
        };
        Self::try_from(WrittenRule {
            domain: domain.parse()?,
            port,
            protocol,
            methods,
            paths,
            private_addresses,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(text: &str) -> EgressRule {
        text.parse().unwrap()
    }

    #[test]
    fn a_bare_name_is_https() {
        let plain = rule("pypi.org");
        assert_eq!((plain.port(), plain.protocol()), (443, EgressProtocol::Tls));
        let http = rule("http://deb.example.org");
        assert_eq!((http.port(), http.protocol()), (80, EgressProtocol::Http));
        assert_eq!(
            rule("tcp://git.example.org:22").protocol(),
            EgressProtocol::Tcp
        );
        assert_eq!(
            rule("intranet.example.org:8443 private").to_string(),
            "intranet.example.org:8443 private"
        );
    }

    #[test]
    fn methods_and_paths_narrow() {
        let rule = rule("GET api.example.org/repos/**");
        let name = "api.example.org".parse().unwrap();
        let get = |path| {
            rule.allows_request(
                &name,
                443,
                RequestDetail {
                    method: "GET",
                    path,
                },
            )
        };
        assert!(get("/repos/a/b") && !get("/user"));
        assert!(!rule.allows_request(
            &name,
            443,
            RequestDetail {
                method: "POST",
                path: "/repos/a"
            }
        ));
        assert!(!rule.allows_request(
            &name,
            80,
            RequestDetail {
                method: "GET",
                path: "/repos/a"
            }
        ));
    }

    #[test]
    fn a_file_with_an_unknown_key_is_refused() {
        let read =
            |text: &str| toml::from_str::<EgressRule>(text).map_err(|error| error.to_string());
        assert!(read("domain = \"pypi.org\"").is_ok());
        for bad in [
            "domain = \"pypi.org\"\nskip_checks = true",
            "domain = \"*\"",
            "domain = \"pypi.org\"\nport = 53",
            "domain = \"pypi.org\"\nport = 0",
            "domain = \"pypi.org\"\nprotocol = \"tcp\"\npaths = [\"/x\"]",
            "domain = \"10.0.0.1\"",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn the_short_form_reads_back(
            star: bool, port in 1_u16.., protocol in 0..3_usize, methods in 0..3_usize, paths in 0..3_usize, private: bool,
        ) {
            let protocol = [EgressProtocol::Tls, EgressProtocol::Http, EgressProtocol::Tcp][protocol];
            let detailed = protocol != EgressProtocol::Tcp;
            let written = WrittenRule {
                domain: (if star { "*.example.org" } else { "example.org" }).parse().unwrap(),
                port: if port == 53 { 443 } else { port },
                protocol: Some(protocol),
                methods: ["GET", "POST"].iter().take(if detailed { methods } else { 0 })
                    .map(|text| text.parse().unwrap()).collect(),
                paths: ["/a/**", "/b"].iter().take(if detailed { paths } else { 0 })
                    .map(|text| text.parse().unwrap()).collect(),
                private_addresses: private,
            };
            let rule = EgressRule::try_from(written).unwrap();
            prop_assert_eq!(rule.to_string().parse::<EgressRule>().unwrap(), rule.clone());
            let json = serde_json::to_string(&rule).unwrap();
            prop_assert_eq!(serde_json::from_str::<EgressRule>(&json).unwrap(), rule);
        }

        #[test]
        fn hostile_text_never_panics(text in ".{0,80}") {
            let _ = text.parse::<EgressRule>();
        }
    }
}
