//! TLS of the server's own, as a client meets it that checks certificates.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::RunningServer;
use crate::support::{LulaEnv, Repo};

/// A certificate for this machine, and its key, beside each other.
fn certificate(directory: &Path) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    (text(&cert), text(&key))
}

#[test]
fn the_server_speaks_tls_to_those_who_trust_its_certificate() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let (cert, key) = certificate(&world.home());
    let flags = ["--server-tls-cert", &cert, "--server-tls-key", &key];
    let server = RunningServer::start(&world, &flags);
    let port = server.url().rsplit_once(':').unwrap().1.to_owned();
    let url = format!("https://localhost:{port}");
    let visitor = LulaEnv::new();
    let trusted = [("SSL_CERT_FILE", cert.as_str())];
    let runs = ["runs", "--json", "--server", &url];
    assert_eq!(
        visitor.run_with(&trusted, &runs).exits(0).json(),
        serde_json::json!([])
    );
    // Neither to those who do not, nor under another name, nor in clear.
    visitor.run(&runs).exits(6).says("L0604");
    let other = ["runs", "--server", &format!("https://127.0.0.1:{port}")];
    visitor.run_with(&trusted, &other).exits(6).says("L0604");
    let clear = ["runs", "--server", &format!("http://localhost:{port}")];
    visitor.run_with(&trusted, &clear).exits(6).says("L0604");
}

#[test]
fn a_certificate_or_a_key_that_cannot_be_used_is_refused_by_its_name() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let (cert, key) = certificate(&world.home());
    let serve = |cert: &str, key: &str| {
        let flags = ["--server-tls-cert", cert, "--server-tls-key", key];
        world.run(&[&["serve", "--server-listen", "127.0.0.1:0"], &flags[..]].concat())
    };
    serve("", &key).exits(2).says("server.tls_cert");
    serve(&cert, "").exits(2).says("server.tls_key");
    serve(&key, &key).exits(2).says("server.tls_cert");
    serve(&cert, &cert).exits(2).says("server.tls_key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    serve(&cert, &key).exits(2).says("server.tls_key");
}
