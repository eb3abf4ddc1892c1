//! What is done with tokens, and every way we know to forge one.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, encode};
use lula_host::record::now_ms;
use serde_json::json;

use super::*;

const ISSUER: &str = "https://id.example.org";
const AUDIENCE: &str = "lula";

/// An issuer with a key pair, and the check that believes it.
struct Issuer {
    key: EncodingKey,
    check: TokenCheck,
    file: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

fn pair() -> (EncodingKey, serde_json::Value) {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).unwrap();
    // PKCS#8 of an Ed25519 key: a fixed head, and the seed.
    let mut der = vec![
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    der.extend(seed);
    let key = EncodingKey::from_ed_der(&der);
    let jwk = Jwk::from_encoding_key(&key, Algorithm::EdDSA).unwrap();
    let mut jwk = serde_json::to_value(jwk).unwrap();
    jwk["kid"] = json!("one");
    jwk["use"] = json!("sig");
    (key, jwk)
}

impl Issuer {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keys.json");
        let (key, jwk) = pair();
        std::fs::write(&file, json!({"keys": [jwk]}).to_string()).unwrap();
        let keys = KeySet::open(KeySource::File(file.clone())).await.unwrap();
        let rules = TokenRules {
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            algorithms: vec![Algorithm::EdDSA, Algorithm::RS256],
            roles_claim: "groups".to_owned(),
            roles: BTreeMap::from([("dev".to_owned(), ServerRole::Operator)]),
        };
        Self {
            key,
            check: TokenCheck { rules, keys },
            file,
            _directory: directory,
        }
    }

    fn header() -> Header {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some("one".to_owned());
        header
    }

    fn claims() -> Value {
        let now = now_ms() / 1000;
        json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now + 300, "nbf": now,
               "groups": ["dev", "cooks"]})
    }

    fn token(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).unwrap()
    }

    async fn status(&self, token: &str) -> u16 {
        match self.check.identify(token).await {
            Ok(_) => 200,
            Err(refusal) => refusal.status(),
        }
    }
}

#[tokio::test]
async fn a_token_of_the_issuer_says_who_and_in_which_role() {
    let issuer = Issuer::new().await;
    let token = issuer.token(&Issuer::header(), &Issuer::claims());
    let who = issuer.check.identify(&token).await.unwrap();
    assert_eq!(who.principal.as_str(), "ada");
    // A group that is not mapped gives no role.
    assert_eq!(who.roles, BTreeSet::from([ServerRole::Operator]));
}

#[tokio::test]
async fn claims_that_are_not_ours_are_refused() {
    let issuer = Issuer::new().await;
    let now = now_ms() / 1000;
    for (claim, value) in [
        ("iss", json!("https://elsewhere.example.org")),
        ("iss", Value::Null),
        ("aud", json!("other")),
        ("aud", Value::Null),
        ("exp", json!(now - 120)),
        ("exp", Value::Null),
        ("nbf", json!(now + 120)),
        ("sub", Value::Null),
        ("sub", json!("ada\nroot")),
        ("sub", json!("")),
    ] {
        let mut claims = Issuer::claims();
        match &value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(claim)),
            value => claims[claim] = value.clone(),
        }
        let token = issuer.token(&Issuer::header(), &claims);
        assert_eq!(issuer.status(&token).await, 401, "{claim} = {value}");
    }
}

#[tokio::test]
async fn headers_that_choose_their_own_key_or_method_are_refused() {
    let issuer = Issuer::new().await;
    let changed = |change: &dyn Fn(&mut Header)| {
        let mut header = Issuer::header();
        change(&mut header);
        issuer.token(&header, &Issuer::claims())
    };
    let place = || Some("https://evil.example.org/keys".to_owned());
    for token in [
        changed(&|header| header.kid = None),
        changed(&|header| header.kid = Some("two".to_owned())),
        changed(&|header| header.kid = Some("../../etc/passwd".to_owned())),
        changed(&|header| header.kid = Some("one' OR '1'='1".to_owned())),
        changed(&|header| header.jku = place()),
        changed(&|header| header.x5u = place()),
        changed(&|header| header.x5c = Some(vec!["AAAA".to_owned()])),
        changed(&|header| header.crit = Some(vec!["exp".to_owned()])),
        changed(&|header| header.typ = Some("logout+jwt".to_owned())),
    ] {
        assert_eq!(issuer.status(&token).await, 401, "{token}");
    }
}

#[tokio::test]
async fn forged_signatures_are_refused() {
    let issuer = Issuer::new().await;
    let good = issuer.token(&Issuer::header(), &Issuer::claims());
    let parts: Vec<&str> = good.split('.').collect();
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let none = |alg: &str| {
        let header = json!({"alg": alg, "typ": "JWT", "kid": "one"});
        format!("{}.{}.", part(&header), parts[1])
    };
    // The public key as a shared secret: what a check that believes `alg` would take.
    let public = std::fs::read_to_string(&issuer.file).unwrap();
    let shared = EncodingKey::from_secret(public.as_bytes());
    let mut confused = Header::new(Algorithm::HS256);
    confused.kid = Some("one".to_owned());
    let confused = encode(&confused, &Issuer::claims(), &shared).unwrap();
    let (stranger, _) = pair();
    let stranger = encode(&Issuer::header(), &Issuer::claims(), &stranger).unwrap();
    let mut other = Issuer::claims();
    other["sub"] = json!("root");
    let mut rs = Issuer::header();
    rs.alg = Algorithm::RS256;
    let wrong_family = format!(
        "{}.{}.{}",
        part(&json!({"alg": "RS256", "typ": "JWT", "kid": "one"})),
        parts[1],
        parts[2]
    );
    for token in [
        none("none"),
        none("None"),
        none("nOnE"),
        none("EdDSA"),
        confused,
        stranger,
        wrong_family,
        format!("{}.{}.{}", parts[0], part(&other), parts[2]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}.x"),
        format!("{good}x"),
        "a.b.c".to_owned(),
        "..".to_owned(),
    ] {
        assert_eq!(issuer.status(&token).await, 401, "{token}");
    }
}

#[tokio::test]
async fn a_new_key_is_found_and_an_old_one_forgotten() {
    let mut issuer = Issuer::new().await;
    let old = issuer.token(&Issuer::header(), &Issuer::claims());
    let (key, mut jwk) = pair();
    jwk["kid"] = json!("two");
    std::fs::write(&issuer.file, json!({"keys": [jwk]}).to_string()).unwrap();
    issuer.key = key;
    let mut header = Issuer::header();
    header.kid = Some("two".to_owned());
    let new = issuer.token(&header, &Issuer::claims());
    assert_eq!(issuer.status(&new).await, 200);
    assert_eq!(issuer.status(&old).await, 401);
}

#[tokio::test]
async fn keys_that_could_not_be_read_for_long_let_nobody_in() {
    let issuer = Issuer::new().await;
    let token = issuer.token(&Issuer::header(), &Issuer::claims());
    std::fs::remove_file(&issuer.file).unwrap();
    assert_eq!(issuer.status(&token).await, 200);
    issuer.check.keys.age(Duration::from_mins(16));
    assert_eq!(issuer.status(&token).await, 503);
}

#[tokio::test]
async fn a_key_that_is_shared_or_named_twice_signs_nothing() {
    let issuer = Issuer::new().await;
    let (key, jwk) = pair();
    let secret = json!({"kty": "oct", "kid": "one", "k": URL_SAFE_NO_PAD.encode("secret")});
    std::fs::write(&issuer.file, json!({"keys": [secret]}).to_string()).unwrap();
    issuer.check.keys.look_again().await;
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("one".to_owned());
    let shared = EncodingKey::from_secret(b"secret");
    let token = encode(&header, &Issuer::claims(), &shared).unwrap();
    assert_eq!(issuer.status(&token).await, 401);
    let keys: Vec<Jwk> = vec![
        serde_json::from_value(jwk.clone()).unwrap(),
        serde_json::from_value(jwk).unwrap(),
    ];
    assert!(fitting(&keys, &Issuer::header()).is_none());
    assert!(fitting(&keys[..1], &Issuer::header()).is_some());
    drop(key);
}
