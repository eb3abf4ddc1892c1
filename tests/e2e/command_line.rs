//! Help, errors, colours, completions.

use std::process::Stdio;

use crate::support::LulaEnv;

#[test]
fn help_shows_the_commands_with_examples() {
    let ran = LulaEnv::new().run(&["--help"]).exits(0);
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn nothing_asked_prints_help_and_is_a_usage_error() {
    LulaEnv::new().run(&[]).exits(2).says("Usage: lula");
}

#[test]
fn an_unknown_command_is_a_usage_error_in_text_and_json() {
    let world = LulaEnv::new();
    world
        .run(&["fix"])
        .exits(2)
        .says("unrecognized subcommand 'fix'");
    let error = world.run(&["fix", "--json"]).exits(2).json();
    assert_eq!(error["error"]["code"], "L0001");
}

#[test]
fn a_task_is_given_as_an_argument_or_by_its_flag_but_not_twice() {
    let world = LulaEnv::new();
    world
        .run(&["run", "fix the tests", "--task", "fix the tests"])
        .exits(2)
        .says("the argument '[TASK]' cannot be used with '--task <TEXT>'");
    world.run(&["run"]).exits(2).says("<TASK>");
    world
        .run(&["run", " "])
        .exits(2)
        .says("lula run 'fix the failing tests'");
}

#[test]
fn results_go_to_standard_output_and_errors_to_standard_error() {
    let world = LulaEnv::new();
    let good = world.run(&["config", "get", "sandbox.timeout"]).exits(0);
    assert_eq!((good.stdout.as_str(), good.stderr.as_str()), ("10m\n", ""));
    let bad = world.run(&["config", "get", "nothing"]).exits(2);
    assert_eq!(bad.stdout, "");
    assert!(bad.stderr.starts_with("error[L0101]:"), "{}", bad.stderr);
}

#[test]
fn colours_appear_only_where_they_are_wanted() {
    let world = LulaEnv::new();
    let list = ["config", "list"];
    assert!(!world.run(&list).stdout.contains('\x1b'), "not a terminal");
    let always = ["config", "list", "--output-color", "always"];
    assert!(world.run(&always).stdout.contains('\x1b'), "asked for");
    let forced = world.run_with(&[("CLICOLOR_FORCE", "1")], &list);
    assert!(forced.stdout.contains('\x1b'), "forced by the environment");
    let both = world.run_with(
        &[("CLICOLOR_FORCE", "1")],
        &["config", "list", "--output-color", "never"],
    );
    assert!(!both.stdout.contains('\x1b'), "our own setting is stronger");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let world = LulaEnv::new();
    let mut child = world
        .command(&["config", "reference"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn every_error_code_is_explained() {
    let world = LulaEnv::new();
    world.run(&["explain", "L0101"]).exits(0).says("What to do");
    world
        .run(&["explain", "L9999"])
        .exits(2)
        .says("error[L0002]");
    let pages = world.run(&["explain", "--json"]).exits(0).json();
    assert!(pages.as_array().unwrap().len() > 10);
}

#[test]
fn explain_works_although_the_configuration_is_broken() {
    let world = LulaEnv::new();
    world.user_config("[output\n");
    world.run(&["doctor"]).exits(2).says("lula explain L0103");
    world
        .run(&["explain", "L0103"])
        .exits(0)
        .says("is not TOML");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let world = LulaEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        world.run(&["completions", shell]).exits(0).says("doctor");
    }
    let pages = world.work().join("man");
    world
        .run(&["man", "--dir", pages.to_str().unwrap()])
        .exits(0);
    assert!(pages.join("lula.1").is_file());
    assert!(pages.join("lula-config-explain.1").is_file());
}
