//! The way out: how names are resolved, whom servers are verified with, and a proxy on the way.

use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};

use crate::{DomainName, EgressError, SandboxNeighbours};

/// What `getaddrinfo` says of a name that has no address. The number behind it does not reach us.
const NO_SUCH_NAME: &[&str] = &[
    "Name or service not known",
    "No address associated with hostname",
    "Name does not resolve",
];

/// Resolves a name, blocking. What it answers is checked by the engine, each time.
pub trait NameResolver: Send + Sync + 'static {
    /// The addresses of a name; an empty list if it has none.
    fn resolve(&self, name: &DomainName) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the machine: `getaddrinfo`, so `/etc/hosts` and `nsswitch.conf` count.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve(&self, name: &DomainName) -> io::Result<Vec<IpAddr>> {
        match (name.as_str(), 0).to_socket_addrs() {
            Ok(addresses) => Ok(addresses.map(|address| address.ip()).collect()),
            Err(error)
                if NO_SUCH_NAME
                    .iter()
                    .any(|said| error.to_string().contains(said)) =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

/// What lies between the engine and the servers.
#[derive(Clone)]
pub struct Outside {
    pub resolver: Arc<dyn NameResolver>,
    /// How long addresses that were found may be used again. They are judged each time all the same.
    pub resolutions_live: Duration,
    pub proxy: UpstreamProxy,
    /// Root certificates in PEM beside those of the system, for servers of an own authority.
    pub extra_roots_pem: Vec<String>,
    /// The other sandboxes that may be reached by name, where rules name them too.
    pub neighbours: Option<Arc<dyn SandboxNeighbours>>,
}

impl Default for Outside {
    /// The system's resolver and roots, and no proxy.
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            resolutions_live: Duration::from_secs(30),
            proxy: UpstreamProxy::default(),
            extra_roots_pem: Vec::new(),
            neighbours: None,
        }
    }
}

/// The proxy through which this machine reaches the network, as the conventional variables name it.
#[derive(Debug, Clone, Default)]
pub struct UpstreamProxy {
    for_tls: Option<ProxyAddress>,
    for_http: Option<ProxyAddress>,
    /// Names, and suffixes of names, that are reached without it; `*` for all.
    without: Vec<String>,
}

/// Where a proxy listens, and what it asks for.
#[derive(Clone)]
pub(crate) struct ProxyAddress {
    host: String,
    port: u16,
    /// User and password, as basic authentication encodes them.
    basic: Option<SecretString>,
}

impl UpstreamProxy {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in either case, from variables that
    /// the caller chose to hand in. None of them set means a direct way.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, EgressError> {
        let (mut https, mut http, mut all, mut without) = (None, None, None, Vec::new());
        for (name, value) in variables {
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            match name.to_ascii_lowercase().as_str() {
                "https_proxy" => https = Some(ProxyAddress::read(value)?),
                "http_proxy" => http = Some(ProxyAddress::read(value)?),
                "all_proxy" => all = Some(ProxyAddress::read(value)?),
                "no_proxy" => without.extend(
                    value
                        .split([',', ' '])
                        .map(|one| {
                            one.trim()
                                .trim_start_matches("*.")
                                .trim_start_matches('.')
                                .to_ascii_lowercase()
                        })
                        .filter(|one| !one.is_empty()),
                ),
                _ => {}
            }
        }
        Ok(Self {
            for_tls: https.or_else(|| all.clone()),
            for_http: http.or(all),
            without,
        })
    }

    /// Whether names are reached without it: the name itself, or a name above it, is on its list.
    fn is_without(&self, name: &DomainName) -> bool {
        self.without.iter().any(|one| {
            one == "*"
                || name
                    .as_str()
                    .strip_suffix(one.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    /// The proxy that is asked for a tunnel to a name.
    pub(crate) fn for_connection(&self, name: &DomainName) -> Option<ProxyAddress> {
        self.for_tls.clone().filter(|_| !self.is_without(name))
    }

    /// The proxy that is asked for plain HTTP of a name.
    pub(crate) fn for_http(&self, name: &DomainName) -> Option<ProxyAddress> {
        self.for_http.clone().filter(|_| !self.is_without(name))
    }
}

impl ProxyAddress {
    /// `http://[USER:PASSWORD@]HOST[:PORT]`, or without its scheme.
    fn read(given: &str) -> Result<Self, EgressError> {
        // A password may stand in it: what is said of it leaves that out.
        let shown = given.rsplit_once('@').map_or(given, |(_, behind)| behind);
        let invalid = |why| EgressError::Proxy {
            given: shown.chars().take(80).collect(),
            why,
        };
        let rest = match given.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => {
                return Err(invalid(
                    "only proxies that are spoken to in plain HTTP are supported",
                ));
            }
            None => given,
        };
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, authority) = match rest.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, rest),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(':') && !port.contains(']') => (
                host,
                port.parse().map_err(|_| invalid("its port is no number"))?,
            ),
            _ => (authority, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty()
            || !host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte))
        {
            return Err(invalid("it names no host"));
        }
        let basic = match user {
            None => None,
            Some(user) => {
                let user = percent_decoded(user)
                    .ok_or_else(|| invalid("its user or password is malformed"))?;
                Some(SecretString::from(STANDARD.encode(user)))
            }
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            basic,
        })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The value of `Proxy-Authorization`. It goes to the proxy alone.
    pub(crate) fn authorization(&self) -> Option<String> {
        self.basic
            .as_ref()
            .map(|basic| format!("Basic {}", basic.expose_secret()))
    }

    pub(crate) fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let value = digit()? * 16 + digit()?;
            decoded.push(u8::try_from(value).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(variables: &[(&str, &str)]) -> UpstreamProxy {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        UpstreamProxy::from_variables(variables).unwrap()
    }

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn the_conventional_variables_are_read_in_either_case() {
        let proxy = proxy(&[
            ("https_proxy", "http://proxy.corp:3128/"),
            ("NO_PROXY", "localhost, .corp.example"),
        ]);
        let found = proxy.for_connection(&name("pypi.org")).unwrap();
        assert_eq!(found.shown(), "proxy.corp:3128");
        assert!(proxy.for_http(&name("pypi.org")).is_none());
        for direct in ["git.corp.example", "corp.example"] {
            assert!(proxy.for_connection(&name(direct)).is_none(), "{direct}");
        }
        assert!(proxy.for_connection(&name("notcorp.example")).is_some());
    }

    #[test]
    fn its_password_is_sent_and_not_shown() {
        let proxy = proxy(&[("ALL_PROXY", "http://me:p%40ss@proxy.corp:3128")]);
        let found = proxy.for_connection(&name("pypi.org")).unwrap();
        assert_eq!(found.authorization().unwrap(), "Basic bWU6cEBzcw==");
        assert!(!format!("{proxy:?}").contains("ss"));
        let bad = UpstreamProxy::from_variables([(
            "HTTP_PROXY".to_owned(),
            "socks5://me:hush@h:1".to_owned(),
        )]);
        let said = bad.unwrap_err().to_string();
        assert!(
            !said.contains("hush") && said.contains("http://HOST:PORT"),
            "{said}"
        );
    }

    #[test]
    fn a_proxy_without_a_port_listens_on_80() {
        let found = proxy(&[("HTTP_PROXY", "[::1]:8080"), ("HTTPS_PROXY", "proxy")]);
        assert_eq!(found.for_http(&name("a.org")).unwrap().shown(), "::1:8080");
        assert_eq!(
            found.for_connection(&name("a.org")).unwrap().shown(),
            "proxy:80"
        );
    }
}
