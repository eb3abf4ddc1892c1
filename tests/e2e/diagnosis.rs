//! The diagnostic log: `LULA_LOG` and `-v`

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{FIX, LulaEnv, Models, Ran, Repo, edit};

const DEBUG: (&str, &str) = ("LULA_LOG", "debug");

fn runner_log(world: &LulaEnv) -> PathBuf {
    world.home().join(".local/state/lula/logs/runner.log")
}

/// The lines of the log among what a command said.
fn lines(text: &str) -> Vec<&str> {
    let levels = [" TRACE ", " DEBUG ", " INFO ", " WARN ", " ERROR "];
    text.lines()
        .filter(|line| levels.iter().any(|level| line.contains(level)))
        .collect()
}

/// The id that begins with a word in a line.
fn id<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let at = line.find(prefix)?;
    let id = &line[at..];
    let end = id.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    Some(&id[..end.unwrap_or(id.len())])
}

fn run_id(world: &LulaEnv) -> String {
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    runs[0]["run"].as_str().unwrap().to_owned()
}

#[test]
fn the_log_of_driver_and_runner_names_run_and_effect_on_each_line() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let ran = world.run_with(&[DEBUG], &["run", FIX]).exits(0);
    let run = run_id(&world);
    let driver = lines(&ran.stderr);
    assert!(driver.iter().any(|line| line.contains("node entered")));
    let begun = driver.iter().filter(|line| line.contains("effect begins"));
    let effects: Vec<&str> = begun
        .map(|line| {
            assert!(line.contains(&format!("run{{id={run}")), "{line}");
            id(line, "eff_").unwrap_or_else(|| panic!("{line}"))
        })
        .collect();
    assert!(effects.len() > 3, "{}", ran.stderr);

    let log = std::fs::read_to_string(runner_log(&world)).unwrap();
    let runner = lines(&log);
    for what in ["sandbox starts", "test run begins", "request answered"] {
        let mut about = runner.iter().filter(|line| line.contains(what));
        let known = about.any(|line| {
            line.contains(&run) && id(line, "eff_").is_some_and(|id| effects.contains(&id))
        });
        assert!(known, "{what}: {log}");
    }
    let tier = runner.iter().any(|line| line.contains("tier="));
    assert!(tier, "{log}");
    let mode = std::fs::metadata(runner_log(&world)).unwrap().permissions();
    assert_eq!(mode.mode() & 0o077, 0);
}

#[test]
fn without_being_asked_for_there_is_no_log() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    for variables in [&[][..], &[("LULA_LOG", "off")], &[("LULA_LOG", "")]] {
        let ran = world.run_with(variables, &["run", FIX]).exits(0);
        assert_eq!(lines(&ran.stderr), Vec::<&str>::new());
        assert!(!runner_log(&world).exists());
    }
    let ran = world.run(&["exec", "--", "/bin/true"]).exits(0);
    assert_eq!(lines(&ran.stderr), Vec::<&str>::new());
}

#[test]
fn each_further_v_logs_more() {
    let world = LulaEnv::new();
    let counted = |flags: &[&str]| {
        let line = [&["exec"][..], flags, &["--", "/bin/true"]].concat();
        let ran = world.run(&line).exits(0);
        lines(&ran.stderr).len()
    };
    assert_eq!(counted(&[]), 0);
    assert_eq!(counted(&["-q"]), 0);
    assert!(counted(&["-vv"]) > counted(&["-v"]));
}

#[test]
fn a_detached_driver_logs_beside_its_report() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    world.run_with(&[DEBUG], &["run", FIX, "--detach"]).exits(0);
    world.run(&["logs", "-f", "last"]).exits(0);
    let run = run_id(&world);
    let directory = world.home().join(".local/state/lula/background");
    let log = std::fs::read_to_string(directory.join(format!("{run}.log"))).unwrap();
    assert!(log.contains("effect begins") && log.contains(&run), "{log}");
}

#[test]
fn a_filter_that_is_none_is_refused_before_anything_is_done() {
    let world = LulaEnv::new();
    let loud = [("LULA_LOG", "loud")];
    let ran: Ran = world.run_with(&loud, &["exec", "--", "/bin/true"]);
    ran.exits(2).says("error[L0102]").says("LULA_LOG");
}

#[test]
fn no_secret_reaches_the_log() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    // Put together here so that no scanner takes this file for a leak.
    let token = format!("ghp_{}", "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3h2");
    let variable = "canary-of-the-environment";
    let key = "canary-of-the-model-key";
    std::fs::write(world.home().join("key"), key).unwrap();
    private(&world.home().join("key"));
    let script = ModelScript::default()
        .then_call(
            "run",
            json!({"command": format!("echo {token} {variable}")}),
        )
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": token}));
    let server = MockModelServer::start(script).unwrap();
    let model = Models::strong(&server);
    let keys = format!(
        "{}=file:{}",
        model
            .rsplit_once("/strong")
            .unwrap()
            .0
            .split_once('@')
            .unwrap()
            .1,
        world.home().join("key").display()
    );
    let task = format!("{FIX}, the token is {token}");
    let variables = [
        ("LULA_LOG", "trace"),
        ("CANARY_API_KEY", variable),
        ("LULA_MODELS_KEYS", &keys),
    ];
    let line = ["run", &task, "--model", &model, "--coder", "model"];
    let ran = world.run_with(&variables, &line);
    let log = lines(&ran.stderr).join("\n");
    let runner = std::fs::read_to_string(runner_log(&world)).unwrap();
    assert!(log.contains("model asked"), "{}", ran.stderr);
    for (whose, text) in [("driver", &log), ("runner", &runner)] {
        assert!(!lines(text).is_empty(), "{whose} logs nothing");
        for canary in [&token[..], variable, key, "return items"] {
            assert!(!text.contains(canary), "{whose}: {canary} in\n{text}");
        }
    }
}

fn private(path: &std::path::Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
