//! Where an agent said it would write.

use lula_protocol::{SandboxDenial, ToolOutcome};
use lula_runner_api::client::RunnerClientError;
use serde_json::json;

use super::{Scene, refusal, text};

fn scoped(patterns: &[&str]) -> Scene {
    let mut scene = Scene::new(&[("src/a.py", "x = 1\n"), ("docs/b.md", "b\n")]);
    let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
    let tree = scene.tree();
    let opened = scene
        .client()
        .open_within(tree.to_str().unwrap(), "", &patterns);
    scene.workspace = scene.wait(opened).unwrap().id;
    scene
}

#[track_caller]
fn denials(outcome: ToolOutcome) -> Vec<SandboxDenial> {
    match outcome {
        ToolOutcome::Denied { denials } => denials,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn commit_is_held(scene: &Scene) -> Vec<SandboxDenial> {
    match scene.commit() {
        Err(RunnerClientError::Held(result)) => denials(result.outcome),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tool_writes_only_where_its_agent_said() {
    let scene = scoped(&["src/new/**"]);
    scene.does(
        "write_file",
        json!({"path": "src/new/b.py", "content": "b\n"}),
    );
    for path in ["src/a.py", "src/new/../a.py", "docs/new.md"] {
        let call = scene.call("write_file", json!({"path": path, "content": "c\n"}));
        let result = scene.send(&call).unwrap();
        assert!(
            !matches!(result.outcome, ToolOutcome::Done { .. }),
            "{path}"
        );
    }
    // The directories on the way are there for what is in them.
    scene.commit().unwrap();
    assert_eq!(text(&scene.tree().join("src/new/b.py")), "b\n");
    assert_eq!(text(&scene.tree().join("src/a.py")), "x = 1\n");
}

#[test]
fn what_a_command_wrote_elsewhere_is_not_committed_also_after_a_restart() {
    let mut scene = scoped(&["src/**"]);
    scene.sh("echo y > src/a.py; echo z > docs/b.md; rm -f docs/none");
    let denied = commit_is_held(&scene);
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert!(denied[0].rule.contains("docs/b.md"), "{denied:?}");
    assert_eq!(text(&scene.tree().join("src/a.py")), "x = 1\n");

    scene.spawned = None;
    scene.start();
    assert_eq!(commit_is_held(&scene).len(), 1);

    let fork = scene.wait(scene.client().fork(&scene.workspace)).unwrap();
    scene.workspace = fork.id;
    assert_eq!(commit_is_held(&scene).len(), 1, "a fork has the same scope");

    scene.sh("echo b > docs/b.md");
    scene.commit().unwrap();
    assert_eq!(text(&scene.tree().join("src/a.py")), "y\n");
    assert_eq!(text(&scene.tree().join("docs/b.md")), "b\n");
}

#[test]
fn patterns_that_are_none_open_nothing() {
    let scene = Scene::new(&[("a", "")]);
    let before = scene.wait(scene.client().workspaces()).unwrap();
    for pattern in ["/etc/**", "../x", "", "[", &"a".repeat(300)] {
        let tree = scene.tree();
        let patterns = [pattern.to_owned()];
        let opened = scene
            .client()
            .open_within(tree.to_str().unwrap(), "", &patterns);
        let (status, _) = refusal(scene.wait(opened));
        assert_eq!(status, 400, "{pattern}");
    }
    let after = scene.wait(scene.client().workspaces()).unwrap();
    assert_eq!(after.workspaces.len(), before.workspaces.len());
}
