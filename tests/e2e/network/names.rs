//! What is reached, what is not, and what is said about it.

use super::Stage;

const CURL: &str = "curl -sS --max-time 10";

#[test]
fn a_name_that_is_granted_is_reached_and_no_other() {
    let stage = Stage::new();
    let line =
        format!("{CURL} https://pkg.example.org/one && ! {CURL} https://other.example.org/two");
    let ran = stage.exec(&["pkg.example.org"], &line).exits(0);
    assert_eq!(ran.stdout, "GET /one says pkg.example.org\n");
    let ran = ran.says("Could not resolve host: other.example.org");
    ran.says("--net other.example.org:443 would allow it");
    // Nothing was heard of the other: no connection, and no packet that asks for its name.
    assert_eq!(stage.heard(), "GET pkg.example.org /one - \n");
    let both = ["pkg.example.org", "other.example.org"];
    let ran = stage.exec(&both, &line.replace("! ", "")).exits(0);
    assert!(
        ran.stdout.contains("GET /two says other.example.org"),
        "{}",
        ran.stdout
    );
}

#[test]
fn without_a_grant_there_is_no_network_at_all() {
    let stage = Stage::new();
    let ran = stage
        .exec(&[], &format!("{CURL} https://pkg.example.org/"))
        .exits(6);
    ran.says("Could not resolve host");
    assert_eq!(stage.heard(), "");
}

#[test]
fn an_address_leads_nowhere_whatever_name_is_said() {
    let stage = Stage::new();
    for line in [
        // The address itself, and with a name that is allowed.
        "curl -sSk --max-time 10 https://93.184.216.34/direct",
        "curl -sSk --max-time 10 --resolve pkg.example.org:443:93.184.216.34 https://pkg.example.org/pinned",
        "curl -sSk --max-time 10 https://169.254.169.254/latest",
        "curl -sSk --max-time 10 https://[::ffff:93.184.216.34]/mapped",
        "curl -sSk --max-time 10 https://[2001:db8::1]/six",
        "curl -sSf --max-time 10 http://93.184.216.34/clear",
        // Other ports, and other protocols than the one that is answered.
        "curl -sSk --max-time 10 https://pkg.example.org:8443/port",
        "curl -sS --max-time 10 telnet://pkg.example.org:22",
        "curl -sS --max-time 10 telnet://93.184.216.34:5432",
        "curl -sS --max-time 10 --doh-url https://93.184.216.34/dns-query https://other.example.org/doh",
        // Another name in TLS, or in HTTP, than the one that was asked for.
        "curl -sSk --max-time 10 --connect-to other.example.org:443:pkg.example.org:443 https://other.example.org/front",
        "curl -sSf --max-time 10 -H 'Host: other.example.org' http://cdn.example.org/host",
    ] {
        let ran = stage.exec(&["pkg.example.org", "http://cdn.example.org"], line);
        assert_ne!(ran.status, 0, "{line}: {}", ran.stdout);
        assert_eq!(stage.heard(), "", "{line}: {}", ran.stderr);
    }
    // The same client does reach what is granted.
    let line = format!("{CURL} https://pkg.example.org/a && {CURL} http://cdn.example.org/b");
    stage
        .exec(&["pkg.example.org", "http://cdn.example.org"], &line)
        .exits(0);
    assert_eq!(stage.heard().lines().count(), 2);
}

#[test]
fn datagrams_go_nowhere_and_a_name_is_no_message() {
    let stage = Stage::new();
    let script = "
import socket
for port in (53, 443, 853, 5432):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(2)
    s.sendto(b'canary', ('93.184.216.34', port))
    try: s.recv(100)
    except OSError: pass
for name in ('canary.other.example.org', 'canary.pkg.example.org'):
    try: socket.getaddrinfo(name, 443)
    except OSError as error: print(error.errno == socket.EAI_NONAME)
";
    let ran = stage.run(&[
        "exec",
        "--net",
        "pkg.example.org",
        "--",
        "python3",
        "-c",
        script,
    ]);
    let ran = ran.exits(0);
    assert_eq!(ran.stdout, "True\nTrue\n");
    assert_eq!(stage.heard(), "");
}

#[test]
fn a_redirect_to_a_name_that_is_not_granted_ends_there() {
    let stage = Stage::new();
    let ran = stage.exec(
        &["pkg.example.org"],
        &format!("{CURL} -L https://pkg.example.org/redirect"),
    );
    ran.exits(6)
        .says("--net other.example.org:443 would allow it");
    assert_eq!(stage.heard(), "GET pkg.example.org /redirect - \n");
}

#[test]
fn a_name_that_leads_inside_is_refused_unless_that_is_granted() {
    let stage = Stage::new();
    for (name, private) in [
        ("intranet.example.org", true),
        ("rebound.example.org", true),
        ("metadata.example.org", false),
    ] {
        let line = format!("{CURL} https://{name}/");
        let ran = stage.exec(&[name], &line);
        assert_ne!(ran.status, 0, "{name}");
        assert_eq!(stage.heard(), "", "{name}");
        let ran = stage.exec(&[&format!("{name} private")], &line);
        assert_eq!(ran.status == 0, private, "{name}: {}", ran.stderr);
    }
}

#[test]
fn a_request_is_held_to_its_method_and_path() {
    let stage = Stage::new();
    let line = format!(
        "{CURL} https://api.example.org/repos/a && ! {CURL} -f -d x https://api.example.org/repos/a && \
         ! {CURL} -f https://api.example.org/user"
    );
    let ran = stage.exec(&["GET api.example.org/repos/*"], &line).exits(0);
    assert_eq!(ran.stdout, "GET /repos/a says api.example.org\n");
    assert_eq!(stage.heard(), "GET api.example.org /repos/a - \n");
}

#[test]
fn the_receipt_says_how_the_network_stood() {
    let stage = Stage::new();
    let ran = stage.run(&["exec", "--json", "--net", "pkg.example.org", "--", "true"]);
    let document = ran.exits(0).json();
    let layers = document["receipt"]["layers"].as_array().unwrap().clone();
    let layer = layers
        .iter()
        .find(|layer| layer["layer"] == "egress")
        .unwrap();
    assert_eq!(layer["interfaces"], serde_json::json!(["lo"]));
    assert_eq!(layer["routes"][0], "local 0.0.0.0/0 dev lo table local");
    assert!(
        layer["listening"].to_string().contains("tcp 0.0.0.0:443"),
        "{layer}"
    );
    // Another allowlist is another digest.
    let other = stage
        .run(&["exec", "--json", "--net", "api.example.org", "--", "true"])
        .exits(0);
    let other = other.json()["receipt"]["layers"].to_string();
    assert!(!other.contains(layer["policy"].as_str().unwrap()));
}

#[test]
fn the_hosts_network_is_loud() {
    let stage = Stage::new();
    let line = format!("{CURL} --cacert /dev/null -k https://pkg.example.org/all");
    let ran = stage
        .run(&["exec", "--json", "--net-host", "--", "sh", "-c", &line])
        .exits(0);
    assert!(ran.stderr.contains("host's network"), "{}", ran.stderr);
    let receipt = ran.json()["receipt"]["not_applied"].to_string();
    assert!(receipt.contains("every host"), "{receipt}");
    stage
        .run(&[
            "exec",
            "--net-host",
            "--net",
            "pkg.example.org",
            "--",
            "true",
        ])
        .exits(2)
        .says("leave one of the two out");
    // No file gives it.
    let policy = stage.world.home().join("policy.toml");
    std::fs::write(&policy, "network = \"host\"\n").unwrap();
    let policy = policy.to_str().unwrap();
    let ran = stage
        .run(&["exec", "--policy", policy, "--", "true"])
        .exits(2);
    ran.says("--net-host");
}

#[test]
fn what_is_no_rule_stops_before_anything_runs() {
    let stage = Stage::new();
    for (word, says) in [
        ("*", "L0305"),
        ("10.1.2.3", "L0305"),
        ("*.com", "L0305"),
        ("pypy", "known are"),
        ("pkg.example.org:53", "53"),
    ] {
        let ran = stage
            .world
            .run(&["exec", "--net", word, "--", "touch", "ran"])
            .exits(2);
        ran.says(says);
        assert!(!stage.world.work().join("ran").exists());
    }
}

#[test]
fn a_repository_takes_names_away_and_gives_none() {
    let stage = Stage::new();
    let file = stage.world.work().join(".lula-network.toml");
    let line = format!("{CURL} https://pkg.example.org/one");
    std::fs::write(&file, "allow = [\"other.example.org\"]\n").unwrap();
    let ran = stage.exec(&["pkg.example.org"], &line);
    assert_ne!(ran.status, 0);
    let ran = stage.exec(&["pkg.example.org"], &line.replace("pkg", "other"));
    assert_ne!(ran.status, 0);
    assert_eq!(stage.heard(), "");
    std::fs::write(&file, "allow = [\"pkg.example.org\"]\n").unwrap();
    stage.exec(&["pkg.example.org"], &line).exits(0);
    // A link could lead anywhere.
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
    stage
        .exec(&["pkg.example.org"], &line)
        .exits(125)
        .says(".lula-network.toml");
    // And its configuration grants nothing.
    std::fs::remove_file(&file).unwrap();
    stage
        .world
        .repository_config("[network]\nallow = [\"pkg.example.org\"]\n");
    let ran = stage.exec(&[], &line);
    assert_ne!(ran.status, 0);
}

#[test]
fn a_command_is_learned_from_and_the_log_tells_what_it_asked_for() {
    let stage = Stage::new();
    let line = format!("{CURL} https://pkg.example.org/; {CURL} https://api.example.org/; true");
    let ran = stage
        .run(&["net", "learn", "--", "sh", "-c", &line])
        .exits(0);
    let ran = ran.says("lula exec --net api.example.org:443 --net pkg.example.org:443");
    drop(ran);
    assert_eq!(stage.heard(), "");
    stage.exec(&["pkg.example.org"], &line).exits(0);
    let log = stage.world.run(&["net", "log"]).exits(0);
    for text in [
        "pkg.example.org:443",
        "api.example.org",
        "denied",
        "allowed",
    ] {
        assert!(log.stdout.contains(text), "{text}: {}", log.stdout);
    }
    let denied = stage
        .world
        .run(&["net", "log", "--denied", "--json"])
        .exits(0)
        .json();
    let denied = denied.as_array().unwrap();
    assert!(!denied.is_empty());
    assert!(
        denied
            .iter()
            .all(|entry| entry["record"]["verdict"] == "denied")
    );
    let explained = stage
        .world
        .run(&["net", "explain", "pkg.example.org"])
        .exits(1);
    explained.says("--net pkg.example.org:443 would allow it");
    let explained = stage.world.run(&[
        "net",
        "explain",
        "pkg.example.org",
        "--net",
        "pkg.example.org",
    ]);
    explained.exits(0).says("pkg.example.org:443 is reached");
}
