//! Connections that are relayed as they are.

use std::io::{Read, Write};

use lula_egress::{EgressRefusal, EgressStage, EgressVerdict, Relay};
use rustls::crypto::hpke::Hpke as _;

use crate::resolver::TestResolver;
use crate::sandbox::Setup;
use crate::server::Server;

#[test]
fn a_program_speaks_tls_with_the_server_itself() {
    let server = Server::https();
    let sandbox = Setup::rules(&["files.example.org:PORT private"], server.port).start();
    let answer = sandbox
        .tls("files.example.org", server.port)
        .get("files.example.org", "/", "")
        .unwrap();
    assert!(answer.ends_with("hello from outside\n"), "{answer}");
    let record = sandbox.record(EgressStage::Connection);
    assert_eq!(record.verdict, EgressVerdict::Allowed);
    assert_eq!(record.relay, Some(Relay::Spliced));
    assert_eq!(record.name.as_deref(), Some("files.example.org"));
    assert_eq!(record.address, Some([127, 0, 0, 1].into()));
    assert_eq!(
        record.rule.unwrap(),
        format!("files.example.org:{} private", server.port)
    );
    assert!(record.bytes_up > 200 && record.bytes_down > 500);
}

#[test]
fn an_address_that_no_name_led_to_is_refused() {
    let server = Server::https();
    let sandbox = Setup::rules(&["files.example.org:PORT private"], server.port).start();
    for address in ["127.0.0.1", "1.1.1.1", "198.18.0.99", "169.254.169.254"] {
        let mut stream = sandbox.dial(address, server.port).unwrap();
        let mut alert = Vec::new();
        stream.read_to_end(&mut alert).unwrap();
        assert_eq!(alert, [21, 3, 3, 0, 2, 2, 49], "{address}");
    }
    let record = sandbox.refused(EgressRefusal::AddressWithoutName);
    assert_eq!(record.dialled, Some([127, 0, 0, 1].into()));
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_server_name_other_than_the_name_asked_for_is_refused() {
    let server = Server::https();
    let sandbox = Setup::rules(&["*.example.org:PORT private"], server.port).start();
    let said = sandbox
        .tls_as("a.example.org", "b.example.org", server.port, &[])
        .get("b.example.org", "/", "");
    assert!(said.unwrap_err().contains("AccessDenied"));
    sandbox.refused(EgressRefusal::ServerNameMismatch);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_hello_without_a_server_name_is_refused() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT private"], server.port).start();
    let mut config = sandbox.client_config();
    config.enable_sni = false;
    let name = "a.example.org".to_owned().try_into().unwrap();
    let said = sandbox
        .tls_with("a.example.org", name, server.port, config)
        .get("a.example.org", "/", "");
    assert!(said.is_err());
    sandbox.refused(EgressRefusal::NoServerName);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_proxy_request_to_a_tls_port_is_refused() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT private"], server.port).start();
    let mut stream = sandbox.connect("a.example.org", server.port);
    stream
        .write_all(b"CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, 49]);
    sandbox.refused(EgressRefusal::WrongProtocol);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_hidden_hello_goes_no_further_than_its_outer_name() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT private"], server.port).start();
    let provider = rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
    let (public, _) = provider.generate_key_pair().unwrap();
    let grease = rustls::client::EchGreaseConfig::new(provider, public);
    let crypto = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(pem(sandbox.engine().ca_certificate_pem()))
        .unwrap();
    let config = rustls::ClientConfig::builder_with_provider(crypto)
        .with_ech(rustls::client::EchMode::Grease(grease))
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // It trusts the engine's authority alone: were it spliced, it would refuse the server.
    let name = "a.example.org".to_owned().try_into().unwrap();
    let host = format!("a.example.org:{}", server.port);
    let answer = sandbox
        .tls_with("a.example.org", name, server.port, config)
        .get(&host, "/", "")
        .unwrap();
    assert!(answer.ends_with("hello from outside\n"));
    assert_eq!(
        sandbox.record(EgressStage::Connection).relay,
        Some(Relay::Intercepted)
    );
}

fn pem(text: &str) -> rustls::pki_types::CertificateDer<'static> {
    use rustls::pki_types::pem::PemObject;
    rustls::pki_types::CertificateDer::from_pem_slice(text.as_bytes()).unwrap()
}

#[test]
fn a_name_that_is_made_to_lead_elsewhere_is_judged_again_when_it_is_dialled() {
    let server = Server::https();
    let resolver = TestResolver::default();
    resolver.set("a.example.org", &["1.1.1.1"]);
    let sandbox = Setup::rules(&["a.example.org:PORT"], server.port)
        .resolver(&resolver)
        .start();
    let address = sandbox.resolve("a.example.org").unwrap();
    for rebound in ["127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "::1"] {
        resolver.set("a.example.org", &[rebound]);
        let mut stream = sandbox.dial(&address.to_string(), server.port).unwrap();
        stream.write_all(&hello_to("a.example.org")).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, [21, 3, 3, 0, 2, 2, 49], "{rebound}");
    }
    let record = sandbox.record_where(|record| {
        record.stage == EgressStage::Connection && record.verdict == EgressVerdict::Denied
    });
    assert_eq!(
        record.denial.unwrap().reason,
        EgressRefusal::AddressNotAllowed
    );
    assert_eq!(server.connections(), 0);
}

/// The first message of a TLS client.
fn hello_to(name: &str) -> Vec<u8> {
    let config = rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_root_certificates(rustls::RootCertStore::empty())
    .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_hello_may_come_byte_by_byte() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT private"], server.port).start();
    let mut stream = sandbox.connect("a.example.org", server.port);
    for byte in hello_to("a.example.org") {
        stream.write_all(&[byte]).unwrap();
    }
    let mut first = [0; 3];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(first[..2], [22, 3], "the server's own handshake");
}

#[test]
fn a_port_without_a_rule_is_refused_although_the_name_is_allowed() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:444 private"], server.port).start();
    let mut stream = sandbox.connect("a.example.org", server.port);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 7);
    let denial = sandbox
        .refused(EgressRefusal::PortNotAllowed)
        .denial
        .unwrap();
    assert_eq!(
        denial.grant.unwrap(),
        format!("a.example.org:{}", server.port)
    );
}

#[test]
fn a_port_that_nothing_serves_is_refused_at_once() {
    let sandbox = Setup::rules(&["a.example.org:444 private"], 8443).start();
    assert!(
        sandbox
            .dial("198.18.0.16", 25)
            .unwrap_err()
            .contains("refused")
    );
}

#[test]
fn another_protocol_is_relayed_where_a_rule_says_so() {
    let server = Server::echo();
    let sandbox = Setup::rules(&["tcp://db.example.org:PORT private"], server.port).start();
    let mut stream = sandbox.connect("db.example.org", server.port);
    let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut from = stream.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut got = Vec::new();
        from.read_to_end(&mut got).unwrap();
        got
    });
    stream.write_all(&sent).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(
        reading.join().unwrap() == sent,
        "every byte comes back in order"
    );
    let record = sandbox.record(EgressStage::Connection);
    assert_eq!((record.bytes_up, record.bytes_down), (3_000_000, 3_000_000));
}

#[test]
fn what_is_revoked_is_cut() {
    let server = Server::echo();
    let sandbox = Setup::rules(
        &[
            "tcp://db.example.org:PORT private",
            "tcp://kept.example.org:PORT private",
        ],
        server.port,
    )
    .start();
    let mut cut = sandbox.connect("db.example.org", server.port);
    let mut kept = sandbox.connect("kept.example.org", server.port);
    for stream in [&mut cut, &mut kept] {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    }
    let rule = format!("tcp://db.example.org:{} private", server.port)
        .parse()
        .unwrap();
    assert!(sandbox.engine().revoke(&rule).unwrap());
    assert_eq!(cut.read(&mut [0]).unwrap_or(0), 0);
    sandbox.refused(EgressRefusal::Revoked);
    kept.write_all(b"y").unwrap();
    kept.read_exact(&mut [0]).unwrap();
    assert!(sandbox.resolve("db.example.org").is_err());
    assert!(!sandbox.engine().revoke(&rule).unwrap());
}

#[test]
fn a_grant_opens_a_way_without_a_new_sandbox_and_can_be_taken_back() {
    let server = Server::https();
    let sandbox = Setup::rules(&[], server.port).start();
    assert!(sandbox.resolve("a.example.org").is_err());
    let rule: lula_egress::EgressRule = format!("a.example.org:{} private", server.port)
        .parse()
        .unwrap();
    sandbox.engine().grant(rule.clone()).unwrap();
    assert!(
        sandbox
            .tls("a.example.org", server.port)
            .get("a.example.org", "/", "")
            .is_ok()
    );
    assert_eq!(sandbox.engine().granted(), std::slice::from_ref(&rule));
    assert!(sandbox.engine().revoke(&rule).unwrap());
    assert!(sandbox.resolve("a.example.org").is_err());
}

#[test]
fn a_stopped_engine_lets_nothing_out() {
    let server = Server::echo();
    let mut sandbox = Setup::rules(&["tcp://db.example.org:PORT private"], server.port).start();
    let mut open = sandbox.connect("db.example.org", server.port);
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    sandbox.stop_engine();
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0);
    assert!(
        sandbox
            .dial("198.18.0.16", server.port)
            .unwrap_err()
            .contains("refused")
    );
    let record = sandbox.record(EgressStage::Connection);
    assert_eq!((record.bytes_up, record.bytes_down), (1, 1));
}

#[test]
fn an_address_in_the_clothes_of_ipv6_is_the_same_address() {
    let server = Server::echo();
    let sandbox = Setup::rules(&["tcp://db.example.org:PORT private"], server.port).start();
    let address = sandbox.resolve("db.example.org").unwrap();
    let mut stream = sandbox
        .dial(&format!("::ffff:{address}"), server.port)
        .unwrap();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    for other in ["::ffff:1.1.1.1", "2606:4700::1111", "fd00:ec2::254", "::1"] {
        let mut stream = sandbox.dial(other, server.port).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), 7, "{other}");
    }
    sandbox.refused(EgressRefusal::AddressWithoutName);
    assert_eq!(server.connections(), 1);
}
