//! What earlier versions wrote into logs is read, and written just so.

use serde_json::json;

use super::*;

const RUN: &str = "run_00000000000000000000000000";
const WORKSPACE: &str = "ws_00000000000000000000000000";

/// Reads what a log holds, and writes it byte for byte.
fn keeps(logged: &Value) -> RunEffect {
    let effect = read(logged.clone()).unwrap_or_else(|error| panic!("{error}: {logged}"));
    assert_eq!(serde_json::to_value(effect.logged()).unwrap(), *logged);
    effect
}

fn line() -> Value {
    json!({"run": RUN, "repository": "/there", "base": "abc"})
}

fn tree() -> Value {
    json!(lula_protocol::Digest::of_bytes(b"tree"))
}

#[test]
fn effects_in_a_workspace_are_kept() {
    keeps(&json!({"deed": "open", "repository": "/there"}));
    keeps(&json!({"deed": "fence", "repository": "/there", "workspace": WORKSPACE}));
    keeps(&json!({"deed": "fetch", "workspace": WORKSPACE, "path": "a.py"}));
    keeps(&json!({"deed": "reset", "workspace": WORKSPACE}));
    keeps(
        &json!({"deed": "judge", "workspace": WORKSPACE, "acts": [{"kind": "deliver"},
        {"kind": "call", "action": {"tool": "exec", "input": {"argv": ["make"],
        "cwd": "", "env": {}}}}]}),
    );
    let read = json!({"tool": "read_file", "input": {"path": "a.py"}});
    keeps(&json!({"deed": "act", "workspace": WORKSPACE, "action": read}));
    keeps(&json!({"deed": "act", "workspace": WORKSPACE, "action": read, "shown": 4000}));
    keeps(&json!({"deed": "todo", "items": [{"text": "look", "done": true}]}));
    let tests = keeps(
        &json!({"deed": "examine", "workspace": WORKSPACE, "tests": null,
        "tests_ms": 7}),
    );
    assert_eq!(tests.name(), "run_tests");
    keeps(
        &json!({"deed": "examine", "workspace": WORKSPACE, "tests": "make test",
        "folder": "web", "accept": ["true"], "tests_ms": 7}),
    );
    keeps(&json!({"deed": "repair", "workspace": WORKSPACE, "tests": null, "search_ms": 7}));
    keeps(&json!({"deed": "change", "workspace": WORKSPACE}));
    keeps(&json!({"deed": "await", "agents": [RUN]}));
    keeps(&json!({"deed": "dismiss", "agents": [RUN]}));
    keeps(&json!({"deed": "propose", "job": "parser", "arguments": {"job": 1}}));
}

#[test]
fn the_name_in_the_log_is_that_of_the_time() {
    let verify = keeps(
        &json!({"deed": "weigh", "workspace": WORKSPACE, "tests": null,
        "before": {"looked": "no_tests", "command": null, "messages": [], "unfixable": []},
        "accept": [], "tests_ms": 1}),
    );
    assert_eq!((verify.name(), verify.act().logged), ("verify", "weigh"));
}

#[test]
fn effects_on_the_integration_branch_are_kept() {
    keeps(
        &json!({"deed": "open_over", "wanted": {"line": line(), "workspace": WORKSPACE,
        "scope": ["src/**"], "contains": [], "footing": {"at": "merge", "commit": "def"}}}),
    );
    keeps(
        &json!({"deed": "open_over", "wanted": {"line": line(), "workspace": WORKSPACE,
        "scope": [], "contains": ["abc"], "footing": {"at": "line"}}}),
    );
    keeps(
        &json!({"deed": "harvest", "order": {"line": line(), "job": "parser",
        "workspace": WORKSPACE, "tree": tree(), "message": "m", "at": 3}}),
    );
    let order = json!({"line": line(), "job": "parser", "commit": "abc", "tests": null,
        "before": null, "accept": [], "tests_ms": 5, "message": "m", "at": 3});
    keeps(&json!({"deed": "join", "order": order}));
    let order = json!({"line": line(), "job": "parser", "commit": "abc", "tests": "make test",
        "folder": "web", "before": null, "accept": ["true"], "tests_ms": 5, "message": "m",
        "at": 3});
    keeps(&json!({"deed": "join", "order": order}));
    keeps(&json!({"deed": "lay", "line": line(), "workspace": WORKSPACE}));
}

#[test]
fn deliveries_are_kept_of_one_repository_and_of_several() {
    let order = |mode: &str| {
        json!({"workspace": WORKSPACE, "deliver": mode, "branch": "lula/x", "message": "m",
            "at": 3, "tree": tree()})
    };
    for mode in ["branch", "worktree"] {
        let effect = keeps(&json!({"deed": "deliver", "order": order(mode)}));
        let RunEffect::Deliver { parts, several } = effect else {
            panic!("{effect:?}");
        };
        assert_eq!((parts[0].repo, several), (0, false));
        assert_eq!(parts[0].delivery.into_files, mode == "worktree");
    }
    let part = |site: usize| json!({"site": site, "order": order("branch")});
    keeps(&json!({"deed": "deliver_all", "parts": [part(0), part(2)]}));
    keeps(&json!({"deed": "deliver_all", "parts": [part(0)]}));
}

#[test]
fn effects_in_other_repositories_are_kept() {
    let inner = json!({"deed": "change", "workspace": WORKSPACE});
    let effect = keeps(&json!({"deed": "elsewhere", "site": 2, "act": inner}));
    assert!(matches!(effect, RunEffect::InRepository { repo: 2, .. }));
    let inner = json!({"deed": "lay", "line": line(), "workspace": WORKSPACE});
    keeps(&json!({"deed": "elsewhere", "site": 1, "act": inner}));
}

#[test]
fn a_name_is_one_kind() {
    use std::collections::BTreeSet;
    let ours: BTreeSet<_> = KINDS.iter().map(|(ours, _)| ours).collect();
    let logged: BTreeSet<_> = KINDS.iter().map(|(_, logged)| logged).collect();
    assert_eq!((ours.len(), logged.len()), (KINDS.len(), KINDS.len()));
}
