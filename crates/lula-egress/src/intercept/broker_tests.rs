use super::*;
use crate::CredentialRule;

const SECRET: &str = "ghp_canary0123456789";

fn credential(toml: &str) -> BrokeredCredential {
    let rule: CredentialRule = toml::from_str(toml).unwrap();
    BrokeredCredential::new(rule, SecretString::from(SECRET)).unwrap()
}

fn token() -> BrokeredCredential {
    credential(
        "name = \"token\"\nsecret = { env = \"TOKEN\" }\nhosts = [\"api.example.org\"]\n\
         methods = [\"GET\"]\npaths = [\"/repos/**\"]",
    )
}

fn ask(
    broker: &Broker,
    host: &str,
    path: &str,
    header: &str,
    value: &str,
) -> Result<(String, Vec<String>), Misuse> {
    asked(broker, host, true, path, header, value)
}

fn asked(
    broker: &Broker,
    host: &str,
    encrypted: bool,
    path: &str,
    header: &str,
    value: &str,
) -> Result<(String, Vec<String>), Misuse> {
    let mut headers = HeaderMap::new();
    let name: HeaderName = header.parse().unwrap();
    headers.insert(name.clone(), value.parse().unwrap());
    let bound = Bound {
        name: &host.parse().unwrap(),
        port: 443,
        encrypted,
        detail: RequestDetail {
            method: "GET",
            path,
        },
    };
    let exchanged = broker.exchange(bound, path, &mut headers)?;
    Ok((headers[name].to_str().unwrap().to_owned(), exchanged.names))
}

#[test]
fn a_placeholder_becomes_the_secret_in_its_header_for_its_host_and_path() {
    let token = token();
    let bearer = format!("Bearer {}", token.placeholder());
    let broker = Broker::new(vec![token]);
    let (value, used) = ask(
        &broker,
        "api.example.org",
        "/repos/a",
        "authorization",
        &bearer,
    )
    .unwrap();
    assert_eq!(value, format!("Bearer {SECRET}"));
    assert_eq!(used, ["token"]);
}

#[test]
fn anywhere_else_it_is_refused_and_named() {
    let token = token();
    let placeholder = token.placeholder().to_owned();
    let bearer = format!("Bearer {placeholder}");
    let broker = Broker::new(vec![token]);
    for (what, answer) in [
        (
            "another host",
            ask(
                &broker,
                "evil.example.org",
                "/repos/a",
                "authorization",
                &bearer,
            ),
        ),
        (
            "another path",
            ask(
                &broker,
                "api.example.org",
                "/user",
                "authorization",
                &bearer,
            ),
        ),
        (
            "another header",
            ask(&broker, "api.example.org", "/repos/a", "cookie", &bearer),
        ),
        (
            "the URL",
            ask(
                &broker,
                "api.example.org",
                &format!("/repos/{placeholder}"),
                "x",
                "y",
            ),
        ),
        (
            "in clear",
            asked(
                &broker,
                "api.example.org",
                false,
                "/repos/a",
                "authorization",
                &bearer,
            ),
        ),
        (
            "twice",
            ask(
                &broker,
                "api.example.org",
                "/repos/a",
                "authorization",
                &format!("{bearer} {bearer}"),
            ),
        ),
        (
            "in basic authentication",
            ask(
                &broker,
                "api.example.org",
                "/repos/a",
                "authorization",
                &format!("Basic {}", STANDARD.encode(format!("a:{placeholder}"))),
            ),
        ),
    ] {
        let misuse = answer.expect_err(what);
        assert_eq!(misuse.credential.as_deref(), Some("token"), "{what}");
        assert!(!misuse.to_string().contains(SECRET), "{what}");
    }
}

#[test]
fn the_placeholder_of_another_sandbox_is_refused_too() {
    let broker = Broker::new(vec![token()]);
    let foreign = format!("Bearer {}", token().placeholder());
    let misuse = ask(
        &broker,
        "api.example.org",
        "/repos/a",
        "authorization",
        &foreign,
    )
    .unwrap_err();
    assert_eq!(misuse.credential, None);
}

#[test]
fn a_password_keeps_its_user() {
    let git = credential(
        "name = \"git\"\nsecret = { env = \"TOKEN\" }\nhosts = [\"git.example.org\"]\nhow = \"basic_password\"",
    );
    let pair = STANDARD.encode(format!("me:{}", git.placeholder()));
    let broker = Broker::new(vec![git]);
    let (value, used) = ask(
        &broker,
        "git.example.org",
        "/a.git",
        "authorization",
        &format!("Basic {pair}"),
    )
    .unwrap();
    assert_eq!(
        value,
        format!("Basic {}", STANDARD.encode(format!("me:{SECRET}")))
    );
    assert_eq!(used, ["git"]);
}

#[test]
fn requests_without_a_placeholder_pass_unchanged() {
    let broker = Broker::new(vec![token()]);
    let (value, used) = ask(
        &broker,
        "other.example.org",
        "/x",
        "authorization",
        "Bearer own",
    )
    .unwrap();
    assert_eq!((value.as_str(), used.len()), ("Bearer own", 0));
}

#[test]
fn neither_a_short_secret_nor_one_that_no_header_holds_is_taken() {
    for bad in ["short", "with a space in it", "line\nbreak-and-more", ""] {
        let rule: CredentialRule =
            toml::from_str("name = \"t\"\nsecret = { env = \"T\" }\nhosts = [\"a.org\"]").unwrap();
        let error = BrokeredCredential::new(rule, SecretString::from(bad)).unwrap_err();
        assert!(bad.is_empty() || !error.to_string().contains(bad));
    }
}

#[test]
fn a_credential_prints_without_its_secret() {
    assert!(!format!("{:?}", token()).contains(SECRET));
}
