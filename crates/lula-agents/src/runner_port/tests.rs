//! What runs wrote into their logs reads as it did, and is written as it was.

use lula_runner_api::{
    BranchWorkspaceStart, CommittedAgentChangeView, CommittedChangeView, DeliveredView,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{AgentWorkspace, MergeOutcome, Reply};

/// Reads a value of an old log and writes it just so.
fn keeps<T: Serialize + DeserializeOwned>(stored: &Value) -> T {
    let read: T = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), *stored);
    read
}

const WORKSPACE: &str = "ws_00000000000000000000000000";

#[test]
fn a_place_is_kept_flat() {
    let stored = json!({"workspace": WORKSPACE, "commit": "abc", "uncommitted": 2,
        "history": ["one"], "ignored": {"paths": ["target"], "bytes": 7}});
    let place: AgentWorkspace = keeps(&stored);
    assert_eq!(place.origin.uncommitted, 2);
    // Before there was a history, or anything about what git ignores.
    let oldest = json!({"workspace": WORKSPACE, "commit": "abc", "uncommitted": 0});
    let place: AgentWorkspace = serde_json::from_value(oldest).unwrap();
    assert!(place.origin.history.is_empty() && place.origin.ignored.is_none());
    let without = json!({"workspace": WORKSPACE, "commit": "abc", "uncommitted": 0, "history": []});
    keeps::<AgentWorkspace>(&without);
}

#[test]
fn a_delivery_says_what_it_did_not_make() {
    keeps::<DeliveredView>(&json!({"branch": "lula/x", "commit": "abc", "directory": null}));
    keeps::<DeliveredView>(
        &json!({"branch": null, "commit": null, "directory": "/there",
        "workspace": WORKSPACE}),
    );
}

#[test]
fn a_product_is_kept_without_its_files() {
    keeps::<CommittedAgentChangeView>(&json!({"commit": "abc", "outside": ["a.py"]}));
}

#[test]
fn a_change_is_kept_with_its_tree() {
    let tree = lula_protocol::Digest::of_bytes(b"tree");
    keeps::<CommittedChangeView>(&json!({"diff": "", "files": ["a.py"], "tree": tree}));
}

#[test]
fn what_a_workspace_begins_with_is_kept() {
    keeps::<BranchWorkspaceStart>(&json!({"at": "line"}));
    keeps::<BranchWorkspaceStart>(&json!({"at": "merge", "commit": "def"}));
}

#[test]
fn what_came_of_a_merge_is_kept_in_words() {
    keeps::<MergeOutcome>(&json!({"joined": "integrated", "commit": "abc", "tests": null}));
    keeps::<MergeOutcome>(&json!({"joined": "misfit", "said": "no", "files": [],
        "textual": false}));
    keeps::<MergeOutcome>(&json!({"joined": "unclear", "why": "?"}));
}

#[test]
fn a_reply_is_kept_with_the_one_who_refused() {
    keeps::<Reply>(&json!({"text": "it was refused", "failed": true, "refused": "by_rule"}));
    keeps::<Reply>(&json!({"text": "done", "failed": false}));
}
