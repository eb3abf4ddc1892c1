//! What a person sees: the whole output of commands, compared with what it was before.
//!
//! Ids, digests, times, sizes and places differ between two runs and are replaced. `INSTA_UPDATE=always`
//! rewrites the snapshots; read the difference before you commit it.

use std::fmt::Write;

use crate::support::{FIX, LulaEnv, Ran, Repo};

/// What differs between two runs or two machines, and what stands in its place.
const FILTERS: [(&str, &str); 23] = [
    (r"\b(run|eff|apr|ws|key)_[0-9A-Za-z]{16,}\b", "${1}_[ID]"),
    (r"\bb3:[0-9a-f]{8,}…?", "b3:[DIGEST]"),
    (r"\bed25519:[0-9A-Za-z+/=_-]+", "ed25519:[KEY]"),
    (r"\b[0-9a-f]{64}\b", "[KEY]"),
    (r"\b[0-9a-f]{40}\b", "[COMMIT]"),
    (r"\bbase +[0-9a-f]{7,}\b", "base [COMMIT]"),
    (r"\b[0-9a-f]{7}\b", "[COMMIT]"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "[TIME]"),
    (r"\b\d\d:\d\d:\d\d\b", "[CLOCK]"),
    (r"\b\d+ min \d+ s\b", "[DURATION]"),
    (r"\b\d+(\.\d+)? (ms|s|min|h|d)\b", "[DURATION]"),
    (r"\b\d+(\.\d+)? (B|KiB|MiB|GiB)\b", "[SIZE]"),
    (
        r#""(\w*_?ms|bytes|pid|events|at)": \d+"#,
        "\"$1\": [NUMBER]",
    ),
    (r"(?m)^ +\[DURATION\]", "[DURATION]"),
    (r"[█░]+", "[BAR]"),
    (r"\blocal:\d+\b", "local:[USER]"),
    // Which python is found, and how many lanes search at once, is the machine's.
    (r#"Python \d+\.\d+\.\d+ at [^\s",]+"#, "[PYTHON]"),
    (r"\\n[ ~^]+\\n", "\\n"),
    // Nothing is said of what took no time.
    (r" *\(\[DURATION\]\)", ""),
    (
        r"\d+ files read, \d+ parsed",
        "[NUMBER] files read, [NUMBER] parsed",
    ),
    (r"after \d+ candidates", "after [NUMBER] candidates"),
    (r"(?m)^\d+ .*candidates.*\n", ""),
    (r"(?m)^\d+ more pass the tests too.*\n", ""),
];

/// A command, its exit status and everything it said.
fn shown(env: &LulaEnv, line: &[&str], ran: &Ran) -> String {
    let quoted = |word: &&str| {
        if word.contains(' ') {
            format!("'{word}'")
        } else {
            (*word).to_owned()
        }
    };
    let words: Vec<String> = line.iter().map(quoted).collect();
    let mut text = format!("$ lula {}\nexit status {}\n", words.join(" "), ran.status);
    for (name, said) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        let said = match (name, line[0]) {
            ("stdout", _) if line.contains(&"--json") => said.clone(),
            ("stderr", "run" | "resume") if ran.status != 2 => in_order(said),
            _ => unwrapped(said),
        };
        if !said.is_empty() {
            let _ = writeln!(text, "--- {name}\n{}", said.trim_end());
        }
    }
    for (place, name) in [(env.home(), "[HOME]"), (env.work(), "[WORK]")] {
        let real = place.canonicalize().unwrap_or_else(|_| place.clone());
        text = text.replace(real.to_str().unwrap(), name);
        text = text.replace(place.to_str().unwrap(), name);
    }
    for run in known_runs(env) {
        text = text.replace(&run, "run_[ID]");
        text = text.replace(&run[run.len() - 10..], "[SHORT]");
    }
    text
}

/// The ids of all runs: they are named by the ends of their ids too.
fn known_runs(env: &LulaEnv) -> Vec<String> {
    if !env.home().join(".local/state/lula/runs").exists() {
        return Vec::new();
    }
    let runs = env.run(&["runs", "--json", "--quiet"]);
    let runs: serde_json::Value = serde_json::from_str(&runs.stdout).unwrap_or_default();
    let runs = runs.as_array().cloned().unwrap_or_default();
    let ids = runs.iter().filter_map(|run| run["run"].as_str());
    ids.map(str::to_owned).collect()
}

/// What a run says at once comes before what is read from its log: how they meet is a matter of time.
fn in_order(said: &str) -> String {
    let (at_once, logged): (Vec<&str>, Vec<&str>) =
        said.lines().partition(|line| line.starts_with("  "));
    [at_once, logged].concat().join("\n")
}

/// Lines as they would be on a terminal of any width: where a cell is wrapped depends on how long the
/// names of directories are.
fn unwrapped(said: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in said.lines() {
        let rest = line.trim_start();
        match lines.last_mut() {
            Some(last) if line.len() - rest.len() >= 12 && !rest.is_empty() => {
                last.push(' ');
                last.push_str(rest);
            }
            _ => lines.push(spaced(line)),
        }
    }
    lines.join("\n")
}

/// A line with two blanks between its cells, however wide they are.
fn spaced(line: &str) -> String {
    let rest = line.trim_start();
    let cells = rest
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty());
    let cells: Vec<&str> = cells.collect();
    format!("{}{}", &line[..line.len() - rest.len()], cells.join("  "))
}

macro_rules! seen {
    ($env:expr, $name:literal, $line:expr) => {{
        let line: &[&str] = $line;
        let ran = $env.run(line);
        let text = shown(&$env, line, &ran);
        insta::with_settings!({filters => FILTERS, omit_expression => true}, {
            insta::assert_snapshot!($name, text);
        });
        ran
    }};
}

#[test]
fn a_run_and_everything_that_is_known_of_it_afterwards() {
    let env = LulaEnv::new();
    Repo::buggy(&env);
    seen!(env, "runs_before_the_first", &["runs"]);
    seen!(env, "run", &["run", FIX, "--deliver", "branch"]);
    seen!(env, "runs", &["runs"]);
    seen!(env, "show", &["show", "last"]);
    seen!(env, "logs", &["logs", "last"]);
    seen!(env, "trace", &["trace", "last"]);
    seen!(env, "diff_of_a_run", &["diff", "last"]);
    seen!(env, "replay", &["replay", "last", "--verify"]);
    seen!(env, "audit_verify", &["audit", "verify"]);
    seen!(env, "store_check", &["store", "check"]);
    seen!(env, "undo_of_a_run", &["undo", "last"]);
    seen!(env, "cancel_of_a_run_that_is_over", &["cancel", "last"]);
    seen!(
        env,
        "guidelines_explain_a_run",
        &["guidelines", "explain", "last"]
    );
}

#[test]
fn a_run_for_programs() {
    let env = LulaEnv::new();
    Repo::buggy(&env);
    seen!(env, "run_json", &["run", FIX, "--json", "--quiet"]);
}

#[test]
fn a_question_and_its_answer() {
    let env = LulaEnv::new();
    Repo::buggy(&env);
    seen!(env, "approvals_where_nothing_waits", &["approvals"]);
    seen!(env, "run_that_asks", &["run", FIX, "--approve", "ask"]);
    seen!(env, "approvals", &["approvals"]);
    seen!(env, "approvals_show", &["approvals", "show", "last"]);
    seen!(env, "approve_without_a_terminal", &["approve", "last"]);
    seen!(env, "approve", &["approve", "last", "--yes"]);
    seen!(env, "resume", &["resume", "last"]);
}

#[test]
fn a_command_in_the_sandbox_and_the_decision_about_its_changes() {
    let env = LulaEnv::new();
    std::fs::write(env.work().join("kept.txt"), "one\n").unwrap();
    let script = "echo two >> kept.txt; echo new > added.txt; echo said";
    seen!(env, "exec", &["exec", "--", "sh", "-c", script]);
    seen!(env, "workspaces", &["workspaces"]);
    seen!(env, "diff", &["diff"]);
    seen!(env, "diff_stat", &["diff", "--stat"]);
    seen!(env, "commit", &["commit"]);
    seen!(env, "undo", &["undo"]);
    seen!(env, "redo", &["redo"]);
    seen!(env, "audit_show", &["audit", "show"]);
    seen!(
        env,
        "exec_of_no_command",
        &["exec", "--", "no-such-command"]
    );
}

#[test]
fn the_tests_of_a_project() {
    let env = LulaEnv::new();
    Repo::buggy(&env);
    seen!(env, "detect", &["detect"]);
    seen!(env, "repair", &["repair"]);
    seen!(env, "index_symbols", &["index", "symbols", "last"]);
    seen!(env, "index_map", &["index", "map", "--tokens", "200"]);
}

#[test]
fn rules_guidelines_and_lessons() {
    let env = LulaEnv::new();
    Repo::buggy(&env);
    seen!(
        env,
        "policy_check",
        &["policy", "check", "--", "git", "push", "--force"]
    );
    seen!(
        env,
        "policy_check_of_a_harmless_command",
        &["policy", "check", "--", "ls"]
    );
    seen!(env, "policy_show", &["policy", "show"]);
    seen!(env, "policy_test", &["policy", "test"]);
    seen!(env, "guidelines_list", &["guidelines", "list"]);
    seen!(env, "lessons_list", &["lessons", "list"]);
}

#[test]
fn the_configuration_and_models() {
    let env = LulaEnv::new();
    // No server of this machine is found.
    let models = "[models]\nlocal_urls = []\nollama_url = \"http://127.0.0.1:9\"\n";
    env.user_config(&format!("[sandbox]\ntimeout = \"90s\"\n{models}"));
    seen!(env, "config_list", &["config", "list"]);
    seen!(
        env,
        "config_explain",
        &["config", "explain", "sandbox.timeout"]
    );
    seen!(
        env,
        "config_set",
        &["config", "set", "output.color", "never"]
    );
    seen!(env, "models_list", &["models", "list"]);
    seen!(env, "explain", &["explain", "L0101"]);
}

#[test]
fn errors_say_what_happened_where_and_what_to_do() {
    let env = LulaEnv::new();
    seen!(env, "error_unknown_command", &["runn"]);
    seen!(env, "error_unknown_flag", &["run", "--modle", "x"]);
    seen!(env, "error_no_such_run", &["show", "last"]);
    seen!(env, "error_no_repository", &["run", FIX]);
    seen!(env, "error_no_such_workspace", &["diff"]);
    seen!(env, "error_json", &["show", "last", "--json"]);
    seen!(env, "error_unknown_code", &["explain", "L9999"]);
    env.user_config("[sandbox]\ntimeuot = \"90s\"\n");
    seen!(env, "error_in_the_configuration", &["runs"]);
}

/// What a machine has differs; the shape of what is said does not.
#[test]
fn the_doctor_names_tiers_machine_and_models() {
    let env = LulaEnv::new();
    let ran = env.run(&["doctor"]);
    let heads: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| !line.starts_with(' ') && !line.is_empty())
        .collect();
    insta::assert_snapshot!("doctor_headings", heads[..heads.len() - 1].join("\n"));
}
