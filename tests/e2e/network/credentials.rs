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

/// Processes that have the secret in their arguments or variables, but for the stage and the program that it
/// starts, which were told it.
fn holders(stage: u32) -> Vec<u32> {
    let shows = |pid: u32, name: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        bytes
            .windows(SECRET.len())
            .any(|window| window == SECRET.as_bytes())
    };
    let all = super::kills::family(stage);
    assert!(all.len() > 4, "{all:?}");
    assert!(shows(stage, "environ"), "the control");
    let holds = |(pid, parent): &(u32, u32)| {
        let told = *pid == stage || *parent == stage;
        shows(*pid, "cmdline") || (!told && shows(*pid, "environ"))
    };
    let holders = all.into_iter().filter(holds);
    holders.map(|(pid, _)| pid).collect()
}

#[test]
fn after_a_whole_session_the_secret_is_nowhere() {
    let stage = Stage::new();
    stage.rules(RULES);
    let log = stage.directory.path().join("log");
    let log = log.to_str().unwrap();
    // Requests that are allowed, refused and said back; a program that crashes with the placeholder in its
    // memory; caches, and files of every kind inside.
    let line = "ulimit -c unlimited; mkdir -p $HOME/.cache/x && echo $API_TOKEN > $HOME/.cache/x/y; \
                curl -sS --max-time 10 -v -H \"Authorization: Bearer $API_TOKEN\" https://api.example.org/echo; \
                curl -sS --max-time 10 -H \"Authorization: Bearer $API_TOKEN\" https://other.example.org/no; \
                python3 -c 'import os; t = os.environ[\"API_TOKEN\"]; os.abort()'; \
                env > env.txt; cp /etc/lula/certificates.pem .; ls -a . /tmp; touch done; \
                for i in $(seq 100); do test -e go && break; sleep 0.1; done; \
                find / -xdev -type f -size -1000k -exec grep -l s3cr3t-canary {} + 2>/dev/null; true";
    let arguments = [
        "exec",
        "-vv",
        "--write",
        "direct",
        "--receipt",
        "receipt.json",
        "--net",
        "api.example.org",
        "--net",
        "other.example.org",
        "--",
        "sh",
        "-c",
        line,
    ];
    let variables = [("API_SECRET", SECRET), ("LULA_LOG", "trace")];
    let child = stage
        .command(&variables, &arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::fs::File::create(log).unwrap())
        .spawn()
        .unwrap();
    let work = stage.world.work();
    crate::support::wait_until("the requests", || work.join("done").exists());
    assert_eq!(holders(child.id()), Vec::<u32>::new());
    std::fs::write(work.join("go"), "").unwrap();
    let ran = crate::support::Ran::from(child.wait_with_output().unwrap()).exits(0);
    assert!(stage.heard().contains(SECRET), "the server got it");
    assert!(ran.stdout.contains("you sent Bearer"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
    let logged = std::fs::read_to_string(log).unwrap();
    assert!(logged.contains("api.example.org"), "{logged}");
    assert!(!logged.contains(SECRET), "{logged}");
    for line in [&["audit", "show", "--json"][..], &["net", "log", "--json"]] {
        let shown = stage.world.run(line).exits(0);
        assert!(!shown.stdout.contains(SECRET), "{line:?}");
    }
    // Receipt, core, logs, audit, caches, journals: every file of the home, the state and the workspace.
    for place in [stage.world.home(), stage.world.work(), stage.state()] {
        assert_eq!(is_written_in(&place, SECRET), None);
    }
    assert!(is_written_in(&work, "lula-placeholder-").is_some());
}

#[test]
fn a_secret_comes_from_the_keyring_of_the_person() {
    let stage = Stage::new();
    stage.rules(&RULES.replace(
        "{ env = \"API_SECRET\" }",
        "{ keyring = { service = \"api\", account = \"me\" } }",
    ));
    // The program that asks the keyring, as the desktop has it.
    let programs = stage.directory.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let tool = programs.join("secret-tool");
    let text =
        format!("#!/bin/sh\n[ \"$*\" = 'lookup service api account me' ] && echo {SECRET}\n");
    std::fs::write(&tool, text).unwrap();
    let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&tool, runs).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let line = "curl -sS --max-time 10 -H \"Authorization: Bearer $API_TOKEN\" https://api.example.org/echo";
    let arguments = ["exec", "--net", "api.example.org", "--", "sh", "-c", line];
    let ran = stage.run_with(&[("PATH", &path)], &arguments).exits(0);
    assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
    let heard = stage.heard();
    assert!(heard.contains(&format!("/echo Bearer {SECRET}")), "{heard}");
}
