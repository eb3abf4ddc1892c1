//! The table of acts.

use super::*;
use std::collections::BTreeSet;

#[test]
fn a_name_is_one_act() {
    let names: BTreeSet<&str> = ACTS.iter().map(|act| act.name).collect();
    assert_eq!(names.len(), ACTS.len());
    assert_eq!(Act::named("run_tests"), Some(&RUN_TESTS));
    assert_eq!(Act::named("an act of a later version"), None);
}

#[test]
fn a_tool_is_called_as_on_the_wire() {
    let named = |tool: &str, input: Value| {
        let action = serde_json::json!({"tool": tool, "input": input});
        serde_json::from_value::<ToolAction>(action).unwrap()
    };
    let path = || serde_json::json!({"path": "a"});
    for action in [
        named("read_file", path()),
        named("list_files", path()),
        named("outline", path()),
        named("search", serde_json::json!({"pattern": "a"})),
        named("exec", serde_json::json!({"argv": ["a"]})),
        named(
            "job",
            serde_json::json!({"job": "job-1", "action": {"do": "stop"}}),
        ),
        named("undo", serde_json::json!({})),
    ] {
        assert_eq!(tool(&action).name, action.tool());
        let class = tool(&action).class;
        assert_eq!(class != EffectClass::Read, action.mutates(), "{action:?}");
    }
    assert!(APPLY_PATCH.is_asked_as("move_file"));
    assert!(WRITE_FILE.is_asked_as("edit_file") && EXEC.is_asked_as("run"));
    assert!(!EXEC.is_asked_as("edit_file"));
}
