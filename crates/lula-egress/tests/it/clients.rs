//! Programs as people run them, which know nothing of any of this.

use lula_egress::{EgressStage, Relay};

use crate::sandbox::{Sandbox, Setup};
use crate::server::Server;

/// Runs a program against a spliced and an opened name; both must see the server's answer.
fn both_ways(arguments: impl Fn(&str) -> (&'static str, Vec<String>)) {
    let server = Server::https();
    let rules = [
        "spliced.example.org:PORT private",
        "opened.example.org:PORT/** private",
    ];
    for (name, relay) in [
        ("spliced.example.org", Relay::Spliced),
        ("opened.example.org", Relay::Intercepted),
    ] {
        let sandbox: Sandbox = Setup::rules(&rules, server.port).start();
        let (program, arguments) = arguments(&format!("https://{name}:{}/", server.port));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = sandbox.run(program, &arguments);
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("hello from outside"),
            "{name}: {output:?}"
        );
        assert_eq!(sandbox.record(EgressStage::Connection).relay, Some(relay));
    }
}

#[test]
fn curl() {
    both_ways(|url| ("curl", vec!["-sS".to_owned(), url.to_owned()]));
}

#[test]
fn pythons_own_library() {
    both_ways(|url| {
        let script =
            format!("import urllib.request as r; print(r.urlopen('{url}').read().decode())");
        ("python3", vec!["-c".to_owned(), script])
    });
}

#[test]
fn openssl() {
    both_ways(|url| {
        let host = url
            .trim_start_matches("https://")
            .trim_end_matches('/')
            .to_owned();
        let name = host.split(':').next().unwrap().to_owned();
        let script = format!(
            "printf 'GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -servername {name} -connect {host} -CAfile $SSL_CERT_FILE"
        );
        ("sh", vec!["-c".to_owned(), script])
    });
}
