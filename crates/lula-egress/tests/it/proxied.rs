//! A way out that leads through a proxy of the operator.

use crate::resolver::TestResolver;
use crate::sandbox::Setup;
use crate::server::Server;
use lula_egress::{EgressRefusal, EgressStage};

#[test]
fn connections_go_through_the_proxy_by_name() {
    let (server, proxy) = (Server::https(), Server::proxy());
    let resolver = TestResolver::default();
    // Known only to the proxy.
    resolver.set("a.example.org", &[]);
    let sandbox = Setup::rules(&["*.example.org:PORT"], server.port)
        .resolver(&resolver)
        .proxy_variables(&[
            (
                "HTTPS_PROXY",
                &format!("http://me:pw@127.0.0.1:{}", proxy.port),
            ),
            ("NO_PROXY", "b.example.org"),
        ])
        .start();
    let answer = sandbox
        .tls("a.example.org", server.port)
        .get("a.example.org", "/", "")
        .unwrap();
    assert!(answer.ends_with("hello from outside\n"));
    let asked = &proxy.seen()[0];
    assert_eq!(asked.target, format!("a.example.org:{}", server.port));
    assert_eq!(asked.header("proxy-authorization"), Some("Basic bWU6cHc="));
    assert_eq!(sandbox.record(EgressStage::Connection).address, None);
    assert!(!format!("{:?}", sandbox.records()).contains("pw@"));
}

#[test]
fn what_is_known_here_of_a_name_still_counts() {
    let (server, proxy) = (Server::https(), Server::proxy());
    let sandbox = Setup::rules(&["a.example.org:PORT"], server.port)
        .proxy_variables(&[("HTTPS_PROXY", &format!("http://127.0.0.1:{}", proxy.port))])
        .start();
    assert!(
        sandbox.resolve("a.example.org").is_err(),
        "it leads to loopback"
    );
    sandbox.refused(EgressRefusal::AddressNotAllowed);
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn opened_connections_use_it_too() {
    let (server, proxy) = (Server::https(), Server::proxy());
    let sandbox = Setup::rules(&["GET a.example.org:PORT/** private"], server.port)
        .proxy_variables(&[("https_proxy", &format!("http://127.0.0.1:{}", proxy.port))])
        .start();
    let answer = sandbox
        .tls("a.example.org", server.port)
        .get(&format!("a.example.org:{}", server.port), "/", "")
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(proxy.seen().len(), 1);
}

#[test]
fn plain_http_names_its_host_to_the_proxy() {
    let proxy = Server::http();
    let resolver = TestResolver::default();
    resolver.set("deb.example.org", &[]);
    let sandbox = Setup::rules(&["http://deb.example.org:PORT"], 80)
        .resolver(&resolver)
        .proxy_variables(&[(
            "HTTP_PROXY",
            &format!("http://me:pw@127.0.0.1:{}", proxy.port),
        )])
        .start();
    let output = sandbox.run("curl", &["-sS", "http://deb.example.org/dists/stable"]);
    assert_eq!(output.stdout, b"hello from outside\n", "{output:?}");
    let asked = &proxy.seen()[0];
    assert_eq!(asked.target, "http://deb.example.org/dists/stable");
    assert_eq!(asked.header("host"), Some("deb.example.org"));
    assert_eq!(asked.header("proxy-authorization"), Some("Basic bWU6cHc="));
}
