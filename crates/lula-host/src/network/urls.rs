//! From the addresses that tools are configured with to rules.

use std::net::{IpAddr, ToSocketAddrs};

use lula_egress::EgressRule;

/// An address a tool is configured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolUrl {
    /// The rule that allows it.
    pub(super) rule: EgressRule,
    /// The address without what it says about who asks.
    pub(super) without_secrets: String,
}

/// Reads `https://user:secret@host:port/path`, `ssh://…` and `git@host:path`. Nothing for a path, an
/// address of numbers or anything else that no rule can name.
pub(super) fn read(text: &str) -> Option<ToolUrl> {
    let text = text.trim();
    let text = text.strip_prefix("sparse+").unwrap_or(text);
    let text = text.strip_prefix("registry+").unwrap_or(text);
    let text = text.strip_prefix("git+").unwrap_or(text);
    let Some((scheme, rest)) = text.split_once("://") else {
        return of_shell(text);
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let short = match scheme {
        "https" => host.to_owned(),
        "http" => format!("http://{host}"),
        "ssh" if host.contains(':') => format!("tcp://{host}"),
        "ssh" => format!("tcp://{host}:22"),
        _ => return None,
    };
    Some(ToolUrl {
        rule: short.parse().ok()?,
        without_secrets: format!("{scheme}://{host}{path}"),
    })
}

/// `git@host:path`, as git writes it.
fn of_shell(text: &str) -> Option<ToolUrl> {
    let (user, rest) = text.split_once('@')?;
    let (host, path) = rest.split_once(':')?;
    if user.contains('/') || host.contains('/') {
        return None;
    }
    Some(ToolUrl {
        rule: format!("tcp://{host}:22").parse().ok()?,
        without_secrets: format!("ssh://{user}@{host}/{path}"),
    })
}

/// The rule, with private addresses allowed where the name leads to one now: the tools of this machine are
/// configured with it, so a mirror in a private network is meant.
pub(super) fn where_it_leads(rule: EgressRule) -> EgressRule {
    let name = rule.domain().to_string();
    let addresses = (name.as_str(), rule.port()).to_socket_addrs();
    let private = addresses.is_ok_and(|mut all| all.any(|address| is_private(address.ip())));
    if private {
        rule.with_private_addresses()
    } else {
        rule
    }
}

fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(four) => {
            let [first, second, ..] = four.octets();
            let shared = first == 100 && (64..128).contains(&second);
            four.is_private() || four.is_loopback() || four.is_documentation() || shared
        }
        IpAddr::V6(six) => six.is_loopback() || six.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_a_rule_and_loses_its_secrets() {
        for (text, rule, clean) in [
            (
                "https://me:secret@pkg.example.org/simple",
                "pkg.example.org:443",
                "https://pkg.example.org/simple",
            ),
            (
                "sparse+https://index.example.org:8443/a/",
                "index.example.org:8443",
                "https://index.example.org:8443/a/",
            ),
            (
                "http://deb.example.org/debian",
                "deb.example.org:80",
                "http://deb.example.org/debian",
            ),
            (
                "git@git.example.org:a/b.git",
                "tcp://git.example.org:22",
                "ssh://git@git.example.org/a/b.git",
            ),
            (
                "ssh://git@git.example.org:2222/a",
                "tcp://git.example.org:2222",
                "ssh://git.example.org:2222/a",
            ),
        ] {
            let read = read(text).unwrap();
            assert_eq!(read.rule.to_string(), rule, "{text}");
            assert_eq!(read.without_secrets, clean, "{text}");
        }
        for none in [
            "/srv/mirror",
            "file:///srv",
            "https://10.0.0.1/x",
            "direct",
            "",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
