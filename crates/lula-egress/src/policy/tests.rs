use proptest::prelude::*;

use super::*;

fn policy(toml: &str) -> Result<EgressPolicy, String> {
    toml::from_str::<EgressPolicy>(toml)
        .map_err(|error| error.to_string())
        .and_then(|policy| policy.checked().map_err(|error| error.to_string()))
}

fn rules(texts: &[&str]) -> Vec<EgressRule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn nothing_said_is_nothing_allowed() {
    let rules = Rules::new(policy("").unwrap());
    let name = "pypi.org".parse().unwrap();
    assert!(!rules.allows_name(&name));
    assert_eq!(rules.connection(&name, 443), None);
}

#[test]
fn a_policy_reads_as_people_write_it() {
    let read = policy(
        r#"
        groups = ["pypi"]
        [[rules]]
        domain = "*.example.org"
        [[rules]]
        domain = "api.example.org"
        methods = ["GET"]
        paths = ["/repos/**"]
        [limits]
        connections = 8
        [[credentials]]
        name = "token"
        secret = { command = ["pass", "show", "token"] }
        hosts = ["api.example.org"]
        "#,
    )
    .unwrap();
    assert_eq!(
        read.rules[1].to_string(),
        "GET api.example.org:443/repos/**"
    );
    assert_eq!(read.limits.connections, 8);
    assert_eq!(read.limits.bytes_up, EgressLimits::default().bytes_up);
    assert_eq!(read.ports(), BTreeSet::from([80, 443]));
}

#[test]
fn a_mistake_is_named_and_nothing_of_the_policy_counts() {
    for (toml, said) in [
        ("rules = [{ domain = \"*\" }]", "name what is to be reached"),
        ("rules = [{ domain = \"*.org\" }]", "two labels"),
        (
            "rules = [{ domain = \"a.org\", method = \"GET\" }]",
            "unknown field",
        ),
        ("allow_all = true", "unknown field"),
        ("limits = { connection = 3 }", "unknown field"),
        (
            "rules = [{ domain = \"a.org\", methods = [\"get\"] }]",
            "capitals",
        ),
        (
            "rules = [{ domain = \"a.org\", paths = [\"x\"] }]",
            "begins with /",
        ),
        (
            "credentials = [{ name = \"t\", secret = { env = \"T\" }, hosts = [] }]",
            "names no host",
        ),
        (
            "credentials = [{ name = \"t\", secret = { env = \"T\" }, hosts = [\"*.a.org\"] }]",
            "label",
        ),
        (
            "credentials = [{ name = \"t\", secret = { env = \"T\" }, hosts = [\"a.org\"], header = \"Host\" }]",
            "header",
        ),
        (
            "credentials = [{ name = \"t\", secret = { file = \"rel\" }, hosts = [\"a.org\"] }]",
            "ABSOLUTE",
        ),
        (
            "credentials = [{ name = \"t\", secret = { env = \"T\" }, hosts = [\"a.org\"] }, { name = \"t\", secret = { env = \"U\" }, hosts = [\"b.org\"] }]",
            "twice",
        ),
    ] {
        let error = policy(toml).unwrap_err();
        assert!(error.contains(said), "{toml}: {error}");
    }
}

#[test]
fn a_repository_can_name_no_secret() {
    let given =
        "[[credentials]]\nname = \"t\"\nsecret = { command = [\"sh\"] }\nhosts = [\"a.org\"]";
    assert!(toml::from_str::<EgressNarrowing>(given).is_err());
    assert!(toml::from_str::<EgressNarrowing>("rules = [\"x\"]").is_err());
    assert!(
        toml::from_str::<EgressNarrowing>(
            "rules = [{ domain = \"a.org\" }]\ncredentials = [\"t\"]"
        )
        .is_ok()
    );
}

#[test]
fn groups_bring_their_rules_and_a_missing_one_is_an_error() {
    let groups = EgressGroups(BTreeMap::from([(
        "pypi".to_owned(),
        rules(&["pypi.org", "files.pythonhosted.org"]),
    )]));
    let with = policy("groups = [\"pypi\"]\nrules = [{ domain = \"pypi.org\" }]")
        .unwrap()
        .with_groups(&groups)
        .unwrap();
    assert_eq!(with.rules.len(), 2);
    let error = policy("groups = [\"npm\"]")
        .unwrap()
        .with_groups(&groups)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("npm") && error.contains("known: pypi"),
        "{error}"
    );
}

#[test]
fn the_digest_is_of_what_the_policy_allows() {
    let one = policy("rules = [{ domain = \"PyPI.org\" }]").unwrap();
    let same =
        policy("rules = [{ domain = \"pypi.org\", port = 443, protocol = \"tls\" }]").unwrap();
    let other = policy("rules = [{ domain = \"pypi.org\", private_addresses = true }]").unwrap();
    assert_eq!(one.digest().unwrap(), same.digest().unwrap());
    assert_ne!(one.digest().unwrap(), other.digest().unwrap());
    let narrowed = one.clone().narrow(&EgressNarrowing {
        rules: Some(Vec::new()),
        ..EgressNarrowing::default()
    });
    assert_ne!(one.digest().unwrap(), narrowed.digest().unwrap());
}

#[test]
fn a_narrowing_can_make_a_connection_one_that_is_opened() {
    let wide = policy("rules = [{ domain = \"a.org\", private_addresses = true }]").unwrap();
    let name = "a.org".parse().unwrap();
    let narrowed = wide.narrow(&EgressNarrowing {
        rules: Some(rules(&["GET a.org"])),
        ..EgressNarrowing::default()
    });
    let ruling = Rules::new(narrowed.clone()).connection(&name, 443).unwrap();
    assert!(ruling.intercept && !ruling.private);
    assert_eq!(
        narrowed.explain(&name, 443).unwrap().to_string(),
        "a.org:443 private"
    );
    assert_eq!(narrowed.explain(&name, 80), None);
}

#[test]
fn two_rules_for_a_name_never_add_up_to_more_than_either() {
    let name = "a.org".parse().unwrap();
    let of = |texts: &[&str]| {
        Rules::new(EgressPolicy {
            rules: rules(texts),
            ..EgressPolicy::default()
        })
    };
    let both = of(&["GET a.org/x private", "a.org"])
        .connection(&name, 443)
        .unwrap();
    assert!(!both.intercept && !both.private);
    let opened = of(&["GET a.org/x private", "GET a.org/y"])
        .connection(&name, 443)
        .unwrap();
    assert!(opened.intercept && !opened.private);
    let whole = of(&["GET a.org/x", "a.org private"])
        .connection(&name, 443)
        .unwrap();
    assert!(!whole.intercept && whole.private);
    let mut granted = of(&["GET a.org/x private"]);
    granted.grant(rules(&["a.org"]).remove(0));
    assert!(!granted.connection(&name, 443).unwrap().private);
    granted.grant(rules(&["a.org private"]).remove(0));
    assert!(granted.connection(&name, 443).unwrap().private);
}

#[test]
fn a_bound_credential_opens_connections_to_its_host_alone() {
    let toml = "rules = [{ domain = \"*.example.org\" }]\n[[credentials]]\nname = \"t\"\nsecret = { env = \"T\" }\nhosts = [\"api.example.org\"]";
    let rules = Rules::new(policy(toml).unwrap());
    assert!(
        rules
            .connection(&"api.example.org".parse().unwrap(), 443)
            .unwrap()
            .intercept
    );
    assert!(
        !rules
            .connection(&"www.example.org".parse().unwrap(), 443)
            .unwrap()
            .intercept
    );
}

#[test]
fn a_revoked_rule_of_the_policy_stays_revoked_until_it_is_granted() {
    let mut in_force = Rules::new(policy("rules = [{ domain = \"a.org\" }]").unwrap());
    let (name, rule) = ("a.org".parse().unwrap(), rules(&["a.org"]).remove(0));
    let served = in_force.connection(&name, 443).unwrap();
    assert!(in_force.revoke(&rule) && !in_force.revoke(&rule));
    assert!(!in_force.allows_name(&name) && !in_force.still_allows(&name, 443, &served));
    in_force.grant(rule);
    assert!(in_force.still_allows(&name, 443, &served));
}

fn some_rules() -> impl Strategy<Value = Vec<EgressRule>> {
    let one = (
        prop::sample::select(vec![
            "a.example.org",
            "b.example.org",
            "*.example.org",
            "example.org",
        ]),
        prop::sample::select(vec![80_u16, 443, 22]),
        prop::sample::select(vec!["", "http://", "tcp://"]),
        prop::sample::select(vec!["", "GET ", "GET,POST "]),
        prop::sample::select(vec!["", "/x/**", "/**"]),
        prop::bool::ANY,
    );
    let rule = one.prop_filter_map(
        "tcp has no paths",
        |(domain, port, scheme, methods, path, private)| {
            let private = if private { " private" } else { "" };
            format!("{methods}{scheme}{domain}:{port}{path}{private}")
                .parse()
                .ok()
        },
    );
    prop::collection::vec(rule, 0..5)
}

proptest! {
    /// The heart of it: whatever a repository says, nothing is allowed that was not.
    #[test]
    fn a_repository_can_only_narrow(
        own in some_rules(),
        theirs in prop::option::of(some_rules()),
        more in prop::option::of(some_rules()),
        connections in prop::option::of(0..2000_u32),
    ) {
        let policy = EgressPolicy { rules: own, ..EgressPolicy::default() };
        let wide = Rules::new(policy.clone());
        let limits = EgressNarrowingLimits { connections, ..EgressNarrowingLimits::default() };
        let once = policy.clone().narrow(&EgressNarrowing { rules: theirs, limits, ..EgressNarrowing::default() });
        let twice = once.clone().narrow(&EgressNarrowing { rules: more, ..EgressNarrowing::default() });
        prop_assert!(once.limits.connections <= policy.limits.connections);
        let (once, twice) = (Rules::new(once), Rules::new(twice));
        for (before, after) in [(&wide, &once), (&once, &twice)] {
            for name in ["a.example.org", "b.example.org", "c.example.org", "example.org", "a.b.example.org"] {
                let name: DomainName = name.parse().unwrap();
                prop_assert!(before.allows_name(&name) || !after.allows_name(&name));
                prop_assert!(before.name_may_be_private(&name) || !after.name_may_be_private(&name));
                for port in [22, 80, 443] {
                    if let Some(ruling) = after.connection(&name, port) {
                        let was = before.connection(&name, port);
                        prop_assert!(was.is_some());
                        let was = was.unwrap();
                        prop_assert_eq!(was.protocol, ruling.protocol);
                        prop_assert!(was.private || !ruling.private);
                        prop_assert!(ruling.intercept || !was.intercept);
                    }
                    for (method, path) in [("GET", "/x/y"), ("POST", "/x"), ("GET", "/"), ("DELETE", "/x/y")] {
                        let detail = RequestDetail { method, path };
                        prop_assert!(
                            before.request(&name, port, detail).is_some() || after.request(&name, port, detail).is_none()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_policy_reads_back_from_what_it_writes(own in some_rules(), theirs in prop::option::of(some_rules())) {
        let policy = EgressPolicy { rules: own, ..EgressPolicy::default() };
        let policy = policy.narrow(&EgressNarrowing { rules: theirs, ..EgressNarrowing::default() });
        let json = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(serde_json::from_str::<EgressPolicy>(&json).unwrap(), policy);
    }
}
