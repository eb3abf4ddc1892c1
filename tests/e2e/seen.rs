//! What a person sees: the whole output of commands, compared with what it was before.
//!
//! Ids, digests, times, sizes and places differ between two runs and are replaced. `INSTA_UPDATE=always`
//! rewrites the snapshots; read the difference before you commit it.

use crate::support::{FIX, LulaEnv, Ran, Repo};

/// What differs between two runs, and what stands in its place.
const FILTERS: [(&str, &str); 16] = [
    (
        r"\b(run|eff|apr|ws|key|wish)_[0-9A-Za-z]{16,}\b",
        "${1}_[ID]",
    ),
    (r"\blula/[0-9A-Za-z]{6,}\b", "lula/[RUN]"),
    (r"\bb3:[0-9a-f]{8,}…?", "b3:[DIGEST]"),
    (r"\bed25519:[0-9A-Za-z+/=_-]+", "ed25519:[KEY]"),
    (r"\b[0-9a-f]{40}\b", "[COMMIT]"),
    (r"\b[0-9a-f]{7}\b", "[COMMIT]"),
    (r"\b[0-9A-HJKMNP-TV-Z]{8}\b", "[SHORT]"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "[TIME]"),
    (r"\b\d\d:\d\d:\d\d\b", "[CLOCK]"),
    (r"\b\d+ min \d+ s\b", "[DURATION]"),
    (r"\b\d+(\.\d+)? (ms|s|min|h|d)\b", "[DURATION]"),
    (r"\b\d+(\.\d+)? (B|KiB|MiB|GiB)\b", "[SIZE]"),
    (
        r#""(\w*_?ms|bytes|pid|events|at)": \d+"#,
        "\"$1\": [NUMBER]",
    ),
    (r"[ ]*[█░]+[ ]*", " [BAR] "),
    (r"\blocal:\d+\b", "local:[USER]"),
    (r"[ ]{2,}\[(DURATION|SIZE)\]", " [$1]"),
];

/// A command, its exit status and everything it said.
fn shown(env: &LulaEnv, line: &[&str], ran: &Ran) -> String {
    let words: Vec<String> = line
        .iter()
        .map(|word| match word.contains(' ') {
            true => format!("'{word}'"),
            false => (*word).to_owned(),
        })
        .collect();
    let mut text = format!("$ lula {}\nexit status {}\n", words.join(" "), ran.status);
    for (name, said) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        if !said.is_empty() {
            text.push_str(&format!("--- {name}\n{}\n", said.trim_end()));
        }
    }
    for (place, name) in [(env.home(), "[HOME]"), (env.work(), "[WORK]")] {
        let real = place.canonicalize().unwrap_or_else(|_| place.clone());
        text = text.replace(real.to_str().unwrap(), name);
        text = text.replace(place.to_str().unwrap(), name);
    }
    text
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
    env.user_config("[sandbox]\ntimeout = \"90s\"\n");
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
