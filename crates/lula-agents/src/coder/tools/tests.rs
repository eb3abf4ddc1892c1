//! What an agent may not touch, and how much it is shown.

use lula_models::output::OutputCapability;
use lula_protocol::{BudgetAmounts, RunId};
use lula_runner_api::BranchWorkspaceStart;
use serde_json::json;

use super::*;
use crate::coder::submission::SUBMIT;
use crate::plan::{PathScope, StepId};
use crate::task::{ModelRates, ModelSettings, RunTask};
use crate::team::{AgentHandoff, AgentRoles, RunAuthority};

fn agent_for(scope: &[&str]) -> CodingState {
    let role = AgentRoles::built_in().get("coder").unwrap().clone();
    let patterns: Vec<String> = scope.iter().map(|pattern| (*pattern).to_owned()).collect();
    // One that may propose asks the runner, which knows what it was granted.
    let tools = role.tools.iter().filter(|tool| *tool != PROPOSE);
    let authority = RunAuthority {
        tools: tools.cloned().collect(),
        models: std::collections::BTreeSet::new(),
        scope: PathScope::new(&patterns).unwrap(),
        budget: BudgetAmounts::none(),
    };
    let handoff = AgentHandoff {
        parent: RunId::from_parts(1, [1; 10]),
        step: StepId::new("a").unwrap(),
        base: String::new(),
        start: BranchWorkspaceStart::Branch,
        contains: Vec::new(),
        inputs: Vec::new(),
        role,
        role_name: "coder".to_owned(),
        authority: authority.clone(),
        of: authority,
        baseline: None,
        whole: None,
        notes: Vec::new(),
    };
    CodingState::begin(RunTask {
        handoff: Some(Box::new(handoff)),
        ..RunTask::new("do it", "/r")
    })
}

fn asks(name: &str, arguments: Value) -> ModelToolCall {
    ModelToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

#[test]
fn an_agent_writes_moves_and_deletes_only_in_its_scope() {
    let work = agent_for(&["src/**"]);
    let patch = |other: &str| {
        json!({"patch": format!("*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n{other}\
            *** End Patch\n")})
    };
    for allowed in [
        asks(
            "edit_file",
            json!({"path": "src/a.py", "old": "x", "new": "y"}),
        ),
        asks("apply_patch", patch("")),
        asks("move_file", json!({"from": "src/a.py", "to": "src/b.py"})),
        asks("delete_file", json!({"path": "src/a.py"})),
        asks("run", json!({"command": "rm docs/a.md"})),
        asks("todo", json!({"items": []})),
    ] {
        assert_eq!(forbidden(&work, &allowed), None, "{allowed:?}");
    }
    for (refused, path) in [
        (
            asks("write_file", json!({"path": "docs/a.md", "content": ""})),
            "docs/a.md",
        ),
        (
            asks("apply_patch", patch("*** Delete File: docs/a.md\n")),
            "docs/a.md",
        ),
        (
            asks("apply_patch", patch("*** Add File: setup.py\n+x\n")),
            "setup.py",
        ),
        (
            asks(
                "apply_patch",
                patch("*** Update File: src/b.py\n*** Move to: b.py\n"),
            ),
            "b.py",
        ),
        (
            asks(
                "apply_patch",
                json!({"patch": "--- a/setup.py\n+++ b/setup.py\n@@\n-x\n+y\n"}),
            ),
            "setup.py",
        ),
        (
            asks("move_file", json!({"from": "src/a.py", "to": "a.py"})),
            "a.py",
        ),
        (
            asks("move_file", json!({"from": "a.py", "to": "src/a.py"})),
            "a.py",
        ),
        (asks("delete_file", json!({"path": "a.py"})), "a.py"),
    ] {
        let why = forbidden(&work, &refused).unwrap_or_default();
        assert!(
            why.contains(path) && why.contains("only src/** are"),
            "{refused:?}: {why}"
        );
    }
    let around = json!({"path": "src/../a.py", "old": "", "new": ""});
    let why = forbidden(&work, &asks("edit_file", around)).unwrap();
    assert!(
        why.contains("is not written as a path below the top"),
        "{why}"
    );
    let unreadable = asks("apply_patch", json!({"patch": "what"}));
    assert!(forbidden(&work, &unreadable).is_some());
}

#[test]
fn an_answer_takes_a_part_of_the_context() {
    let model = |context| ModelChoice {
        name: "a/b".to_owned(),
        model: "b".to_owned(),
        capability: OutputCapability::ToolCalls,
        rates: ModelRates {
            input: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
        },
        context,
        max_tokens: 1000,
        settings: ModelSettings::default(),
    };
    assert_eq!(room(&model(Some(8_000))), 4_000);
    assert_eq!(room(&model(Some(32_000))), 12_000);
    assert_eq!(room(&model(None)), 37_500);
    assert_eq!(room(&model(Some(1_000_000))), 48_000);
    let text = (0..5000)
        .map(|number| format!("line {number}\n"))
        .collect::<Vec<_>>()
        .concat();
    let shown = shown(&text, 4_000);
    assert!(shown.starts_with("line 0\n") && shown.ends_with("line 4999\n"));
    assert!(shown.contains(" bytes left out …]"), "{shown}");
}

#[test]
fn every_tool_that_is_offered_is_known_to_a_role_and_has_an_act() {
    let roles = AgentRoles::built_in();
    let coder = roles.get("coder").unwrap();
    let work = CodingState::begin(RunTask::new("do it", "/r"));
    for tool in given(&work) {
        if tool.name == SUBMIT {
            continue;
        }
        assert!(coder.tools.contains(&tool.name), "{}", tool.name);
        let own = matches!(tool.name.as_str(), "diff" | "test" | "todo");
        let call = asks(&tool.name, json!({}));
        let known = arguments::action(&call, 1000).err().unwrap_or_default();
        assert!(
            own || !known.contains("there is no tool"),
            "{}: {known}",
            tool.name
        );
    }
}
