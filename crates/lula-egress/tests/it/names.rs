//! What a sandbox is told about names.

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use lula_egress::{EgressRefusal, EgressStage, EgressVerdict};

use crate::resolver::TestResolver;
use crate::sandbox::Setup;

const PORT: u16 = 8443;

#[test]
fn an_allowed_name_has_an_address_that_stands_for_it_alone() {
    let sandbox = Setup::rules(&["*.example.org:PORT private"], PORT).start();
    let first = sandbox.resolve("a.example.org").unwrap();
    let second = sandbox.resolve("b.example.org").unwrap();
    assert_ne!(first, second);
    assert_eq!(sandbox.resolve("A.Example.org").unwrap(), first);
    assert_eq!(first.octets()[..2], [198, 18]);
}

#[test]
fn a_denied_name_does_not_exist_and_no_one_outside_is_asked() {
    let sandbox = Setup::rules(&["pypi.example.org:PORT private"], PORT).start();
    let message = "c2vjcmv0igrhdge.evil.example.com";
    assert_eq!(sandbox.resolve(message), Err(ResponseCode::NXDomain));
    assert_eq!(
        sandbox.ask(message, RecordType::TXT).metadata.response_code,
        ResponseCode::NXDomain
    );
    assert_eq!(
        sandbox
            .ask_over_tcp(message, RecordType::A)
            .metadata
            .response_code,
        ResponseCode::NXDomain
    );
    assert!(sandbox.resolver.asked().is_empty());
    let record = sandbox.refused(EgressRefusal::NameNotAllowed);
    assert_eq!(record.stage, EgressStage::Name);
    assert_eq!(
        record.denial.unwrap().grant.unwrap(),
        format!("{message}:443")
    );
}

#[test]
fn names_are_answered_over_tcp_too() {
    let sandbox = Setup::rules(&["a.example.org:PORT private"], PORT).start();
    assert_eq!(
        sandbox
            .ask_over_tcp("a.example.org", RecordType::A)
            .answers
            .len(),
        1
    );
}

#[test]
fn an_allowed_name_has_no_records_but_its_address() {
    let sandbox = Setup::rules(&["a.example.org:PORT private"], PORT).start();
    for kind in [
        RecordType::AAAA,
        RecordType::TXT,
        RecordType::MX,
        RecordType::HTTPS,
        RecordType::NULL,
    ] {
        let answer = sandbox.ask("a.example.org", kind);
        assert_eq!(
            (answer.metadata.response_code, answer.answers.len()),
            (ResponseCode::NoError, 0),
            "{kind}"
        );
    }
    assert!(sandbox.resolver.asked().is_empty());
}

#[test]
fn a_name_that_leads_into_a_private_network_is_refused_unless_a_rule_says_so() {
    let resolver = TestResolver::default();
    let sandbox = Setup::rules(&["a.example.org:PORT"], PORT)
        .resolver(&resolver)
        .start();
    for private in [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "::1",
        "fd12::1",
        "::ffff:127.0.0.1",
        "64:ff9b::a00:1",
    ] {
        resolver.set("a.example.org", &[private]);
        assert_eq!(
            sandbox.resolve("a.example.org"),
            Err(ResponseCode::NXDomain),
            "{private}"
        );
    }
    let denial = sandbox
        .refused(EgressRefusal::AddressNotAllowed)
        .denial
        .unwrap();
    assert_eq!(denial.grant.as_deref(), Some("a.example.org:8443 private"));
    resolver.set("a.example.org", &["10.0.0.1", "1.1.1.1"]);
    assert!(sandbox.resolve("a.example.org").is_ok());
}

#[test]
fn no_rule_opens_the_way_to_a_metadata_service() {
    let resolver = TestResolver::default();
    let sandbox = Setup::rules(&["a.example.org:PORT private"], PORT)
        .resolver(&resolver)
        .start();
    for never in [
        "169.254.169.254",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "224.0.0.1",
        "0.0.0.0",
        "fe80::1",
    ] {
        resolver.set("a.example.org", &[never]);
        assert_eq!(
            sandbox.resolve("a.example.org"),
            Err(ResponseCode::NXDomain),
            "{never}"
        );
    }
    assert_eq!(
        sandbox
            .refused(EgressRefusal::AddressNotAllowed)
            .denial
            .unwrap()
            .grant,
        None
    );
}

#[test]
fn a_name_without_addresses_does_not_exist_and_that_is_no_denial() {
    let resolver = TestResolver::default();
    resolver.set("a.example.org", &[]);
    let sandbox = Setup::rules(&["a.example.org:PORT private"], PORT)
        .resolver(&resolver)
        .start();
    assert_eq!(
        sandbox.resolve("a.example.org"),
        Err(ResponseCode::NXDomain)
    );
    let record = sandbox.record(EgressStage::Name);
    assert_eq!(
        (record.verdict, record.denial),
        (EgressVerdict::Failed, None)
    );
}

#[test]
fn a_name_is_told_once_however_often_it_is_asked() {
    let sandbox = Setup::rules(&["a.example.org:PORT private"], PORT).start();
    for _ in 0..5 {
        sandbox.resolve("a.example.org").unwrap();
        sandbox.resolve("denied.example.org").unwrap_err();
    }
    assert_eq!(sandbox.records().len(), 2);
}

#[test]
fn an_exec_is_named_in_what_it_did() {
    let sandbox = Setup::rules(&["a.example.org:PORT private"], PORT).start();
    sandbox.engine().attribute(Some("exec-7".to_owned()));
    sandbox.resolve("a.example.org").unwrap();
    assert_eq!(
        sandbox.record(EgressStage::Name).attribution.as_deref(),
        Some("exec-7")
    );
}

#[test]
fn a_resolver_that_hangs_holds_up_neither_other_names_nor_the_end() {
    let resolver = TestResolver::default();
    let hanging = resolver.hang("slow.example.org");
    let mut sandbox = Setup::rules(&["*.example.org:PORT private"], PORT)
        .resolver(&resolver)
        .start();
    sandbox.ask_and_go("slow.example.org");
    assert!(sandbox.resolve("quick.example.org").is_ok());
    sandbox.stop_engine();
    assert!(resolver.asked().contains(&"slow.example.org".to_owned()));
    drop(hanging);
}

#[test]
fn a_service_of_an_allowed_name_does_not_exist_and_is_no_denial() {
    let sandbox = Setup::rules(&["deb.example.org:1 private"], 1).start();
    let answer = sandbox.ask("_https._tcp.deb.example.org", RecordType::SRV);
    assert_eq!(answer.metadata.response_code, ResponseCode::NXDomain);
    let answer = sandbox.ask("_https._tcp.other.example.org", RecordType::SRV);
    assert_eq!(answer.metadata.response_code, ResponseCode::NXDomain);
    sandbox.refused(EgressRefusal::NameNotAllowed);
    let denied: Vec<_> = sandbox
        .records()
        .into_iter()
        .filter_map(|record| record.denial.and(record.name))
        .collect();
    assert_eq!(denied, ["_https._tcp.other.example.org"]);
    assert!(sandbox.resolver.asked().is_empty());
}
