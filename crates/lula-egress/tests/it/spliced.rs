//! Connections that are relayed as they are.

use std::io::{Read, Write};

use lula_egress::{EgressRefusal, EgressStage, EgressVerdict, Relay};

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
