//! Secrets that a sandbox uses without having them.

use super::{Stage, is_written_in};

const SECRET: &str = "s3cr3t-canary-0123456789";

const RULES: &str = r#"
[[credentials]]
name = "api"
secret = { env = "API_SECRET" }
hosts = ["api.example.org"]

[variables]
API_TOKEN = "api"
"#;

fn run(stage: &Stage, line: &str) -> crate::support::Ran {
    let net = [
        "exec",
        "--net",
        "api.example.org",
        "--net",
        "other.example.org",
    ];
    let arguments: Vec<&str> = net.into_iter().chain(["--", "sh", "-c", line]).collect();
    stage.run_with(&[("API_SECRET", SECRET)], &arguments)
}

#[test]
fn the_server_gets_the_secret_and_the_sandbox_never_does() {
    let stage = Stage::new();
    stage.rules(RULES);
    let line = "echo \"$API_TOKEN\"; env; cat /proc/self/environ | tr '\\0' '\\n'; \
                curl -sS --max-time 10 -H \"Authorization: Bearer $API_TOKEN\" https://api.example.org/echo; \
                find / -xdev -type f -size -100k -newer /proc/1 -exec grep -l canary {} + 2>/dev/null; true";
    let ran = run(&stage, line).exits(0);
    assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
    assert!(ran.stdout.contains("lula-placeholder-"), "{}", ran.stdout);
    // The server said it back; what came back inside says so no more.
    assert!(ran.stdout.contains("you sent Bearer"), "{}", ran.stdout);
    assert!(
        stage.heard().contains(&format!("/echo Bearer {SECRET}")),
        "{}",
        stage.heard()
    );
    assert_eq!(is_written_in(&stage.state(), SECRET), None);
    assert_eq!(is_written_in(&stage.world.work(), SECRET), None);
}

#[test]
fn a_placeholder_is_worth_nothing_elsewhere() {
    let stage = Stage::new();
    stage.rules(RULES);
    for line in [
        "curl -sS --max-time 10 -H \"Authorization: Bearer $API_TOKEN\" https://other.example.org/elsewhere",
        "curl -sS --max-time 10 -H \"X-Other: $API_TOKEN\" https://api.example.org/header",
        "curl -sS --max-time 10 \"https://api.example.org/q?token=$API_TOKEN\"",
        "curl -sS --max-time 10 -d \"token=$API_TOKEN\" https://api.example.org/body",
    ] {
        let ran = run(&stage, line);
        assert!(!stage.heard().contains(SECRET), "{line}: {}", stage.heard());
        assert!(!ran.stdout.contains(SECRET), "{line}: {}", ran.stdout);
    }
}

#[test]
fn a_secret_that_cannot_be_found_stops_before_anything_runs() {
    let stage = Stage::new();
    stage.rules(RULES);
    let arguments = ["exec", "--net", "api.example.org", "--", "touch", "ran"];
    stage.run(&arguments).exits(125).says("API_SECRET");
    // Where nothing that it is for may be reached, it is not looked for.
    stage
        .run(&["exec", "--net", "pkg.example.org", "--", "true"])
        .exits(0);
}
