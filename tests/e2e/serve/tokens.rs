//! Tokens of an issuer elsewhere.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use super::RunningServer;
use super::approvals::key;
use crate::support::{FIX, LulaEnv, Repo};

const ISSUER: &str = "https://id.example.org";

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token of an issuer for a person in a group.
fn token(issuer: &SigningKey, header: &Value, who: &str, group: &str) -> String {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims =
        json!({"iss": ISSUER, "aud": "lula", "sub": who, "exp": now + 600, "groups": [group]});
    let signed = format!("{}.{}", part(header), part(&claims));
    let signature = issuer.sign(signed.as_bytes()).to_bytes();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn people_of_an_issuer_begin_and_approve_in_the_roles_of_their_groups() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let issuer = SigningKey::from_bytes(&[7; 32]);
    let public = URL_SAFE_NO_PAD.encode(issuer.verifying_key().to_bytes());
    let keys = world.home().join("keys.json");
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": public, "kid": "one", "use": "sig"});
    std::fs::write(&keys, json!({"keys": [jwk]}).to_string()).unwrap();
    let flags = [
        "--server-auth=jwt",
        "--server-jwt-issuer=https://id.example.org",
        "--server-jwt-audience=lula",
        &format!("--server-jwt-keys={}", keys.display()),
        "--server-jwt-roles-claim=groups",
        "--server-jwt-roles=devs=operator,leads=approver",
    ];
    let mut server = RunningServer::start(&world, &flags);
    let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": "one"});
    let ada = token(&issuer, &header, "ada", "devs");
    let bob = token(&issuer, &header, "bob", "leads");
    let run = server
        .with_token(&ada)
        .begin(&json!({"task": FIX, "consent": "always"}));
    let question = server.question(&run);
    server.answer(&question, "approve").is(403);
    server
        .with_token(&bob)
        .post("/v1/runs", &json!({"task": FIX}))
        .is(403);
    let agreed = server.answer(&question, "approve").is(200).json();
    assert_eq!(agreed["by"], "bob");
    server.until(&run, "verified");
    assert_eq!(repo.branches().len(), 1);

    // A group that stands for no role lets do nothing.
    let eve = token(&issuer, &header, "eve", "cooks");
    assert_eq!(
        server.with_token(&eve).get("/v1/runs").is(403).code(),
        "L1011"
    );
    let (signed, _) = ada.rsplit_once('.').unwrap();
    let (_, claims) = signed.split_once('.').unwrap();
    let none = part(&json!({"alg": "none", "typ": "JWT", "kid": "one"}));
    let stranger = SigningKey::from_bytes(&[8; 32]);
    for forged in [
        format!("{none}.{claims}."),
        format!("{signed}."),
        token(&stranger, &header, "ada", "devs"),
        token(&issuer, &header, "local:0", "devs"),
        // A key of this server is none of the issuer's.
        key(&world, "root", &["--role", "admin"]),
    ] {
        let refused = server.with_token(&forged).get("/v1/runs").is(401);
        assert_eq!(refused.code(), "L1011");
    }
}
