//! `lula run` with a model that uses every tool it is offered.

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, Models, Repo, git, listing, run_with};

/// What the tools said to the model, one after the other.
fn results(server: &MockModelServer) -> Vec<(String, bool)> {
    let last = server.arrived().last().unwrap().body.clone();
    let body: Value = serde_json::from_slice(&last).unwrap();
    let parts = body["messages"].as_array().unwrap().iter();
    let parts = parts.filter_map(|message| message["content"].as_array());
    parts
        .flatten()
        .filter(|part| part["type"] == "tool_result")
        .map(|part| {
            let content = &part["content"];
            let text = content.as_str().map_or_else(
                || {
                    let texts = content.as_array().unwrap().iter();
                    texts
                        .map(|part| part["text"].as_str().unwrap_or_default())
                        .collect()
                },
                str::to_owned,
            );
            (text, part["is_error"] == true)
        })
        .collect()
}

const PATCH: &str = "\
*** Begin Patch
*** Add File: docs/double.md
+# double
+
+Doubles a number.
*** Update File: items.py
@@ def double(x):
-    return x * 2
+    return 2 * x
*** Update File: old.txt
*** Move to: docs/old.txt
@@
-old
+older
*** Delete File: gone.txt
*** End Patch";

/// A call, and what its answer must hold.
struct ToolStep {
    name: &'static str,
    arguments: Value,
    says: &'static [&'static str],
    fails: bool,
}

fn does(name: &'static str, arguments: Value, says: &'static [&'static str]) -> ToolStep {
    ToolStep {
        name,
        arguments,
        says,
        fails: false,
    }
}

fn fails(name: &'static str, arguments: Value, says: &'static [&'static str]) -> ToolStep {
    ToolStep {
        fails: true,
        ..does(name, arguments, says)
    }
}

fn looking() -> Vec<ToolStep> {
    let items = json!([{"text": "look", "done": true}, {"text": "mend last", "done": false}]);
    vec![
        does(
            "todo",
            json!({"items": items}),
            &["1 of 2 done; next: mend last"],
        ),
        does(
            "list_files",
            json!({"path": ""}),
            &["items.py\n", "tests/test_items.py\n"],
        ),
        does(
            "search",
            json!({"pattern": "RETURN", "ignore_case": true, "globs": ["*.py"], "context": 1}),
            &["items.py\n1-def last(items):\n2:    return items[len(items)]\n"],
        ),
        does(
            "search",
            json!({"pattern": "^1", "glob": "long.txt", "count": true}),
            &["long.txt:1111\n"],
        ),
        does(
            "outline",
            json!({"path": "items.py"}),
            &["1-2 function last\n"],
        ),
        does(
            "read_file",
            json!({"path": "items.py"}),
            &["lines 1-5 of 5\n    1\tdef last(items):\n    2\t    return items[len(items)]\n"],
        ),
        does(
            "read_file",
            json!({"path": "long.txt", "from_line": 10, "to_line": 11}),
            &[
                "lines 10-11 of 3,000\n   10\t10\n   11\t11\n[2,989 more lines: read on with from_line 12]",
            ],
        ),
        does(
            "read_file",
            json!({"path": "long.txt"}),
            &["lines 1-", " of 3,000\n    1\t1\n"],
        ),
    ]
}

fn changing() -> Vec<ToolStep> {
    let miss = json!([{"old": "items[length]", "new": "items[-1]"}]);
    let edits = json!([
        {"old": "len(items)]", "new": "len(items) - 1]"},
        {"old": "def last(items):\n", "new": "def last(items):\n    # the end\n"},
    ]);
    vec![
        fails(
            "edit_file",
            json!({"path": "items.py", "edits": miss}),
            &[
                "`old` does not stand in items.py. The nearest place is line 2:\n    2\t    return",
                "nothing was written",
            ],
        ),
        does(
            "edit_file",
            json!({"path": "items.py", "edits": edits}),
            &[
                "wrote items.py (+2 -1)\n",
                "    2\t    # the end\n    3\t    return items[len(items) - 1]\n",
            ],
        ),
        fails(
            "edit_file",
            json!({"path": "items.py", "old": "def last(items):", "new": "def last(items:"}),
            &["nothing was written: items.py would no longer parse at line"],
        ),
        does(
            "apply_patch",
            json!({"patch": PATCH}),
            &[
                "removed gone.txt\n",
                "removed old.txt\n",
                "wrote docs/double.md (new, +3 -0)\n",
                "wrote docs/old.txt (new, +1 -0)\n",
                "wrote items.py (+1 -1)\n",
                "    return 2 * x\n",
            ],
        ),
        does(
            "write_file",
            json!({"path": "notes.txt", "content": "n\n"}),
            &["(new, +1 -0)\n"],
        ),
        does(
            "move_file",
            json!({"from": "notes.txt", "to": "docs/notes.txt"}),
            &["removed notes.txt\n", "wrote docs/notes.txt"],
        ),
        does(
            "write_file",
            json!({"path": "scrap.txt", "content": "n\n"}),
            &["wrote scrap.txt"],
        ),
        does(
            "delete_file",
            json!({"path": "scrap.txt"}),
            &["removed scrap.txt\n"],
        ),
    ]
}

fn running() -> Vec<ToolStep> {
    let serve = "read line; echo \"got $line\"; sleep 100";
    vec![
        does(
            "run",
            json!({"command": "git log --format=%s; pwd", "directory": "tests"}),
            &["exit status 0\n<stdout>\none\n", "/tests\n</stdout>"],
        ),
        fails(
            "run",
            json!({"command": "seq 100000; exit 3"}),
            &[
                "exit status 3\n<stdout>\n1\n2\n",
                " bytes left out …]\n",
                "\n99999\n100000\n</stdout>",
            ],
        ),
        fails(
            "run",
            json!({"command": "sleep 60", "timeout_s": 1}),
            &["exit status 124: its time ran out\n"],
        ),
        does(
            "run",
            json!({"command": serve, "background": true}),
            &["started job-1\n"],
        ),
        does(
            "job",
            json!({"id": "job-1", "action": "send", "input": "this\n", "wait_s": 10}),
            &["job-1 is running\n<output>\ngot this\n</output>"],
        ),
        does(
            "job",
            json!({"id": "job-1", "action": "stop"}),
            &["job-1 ended with exit status 137\n"],
        ),
        fails(
            "job",
            json!({"id": "job-9", "action": "look"}),
            &["there is no job"],
        ),
        does(
            "run",
            json!({"command": "git status --porcelain; git stash -q; git stash pop -q"}),
            &["exit status 0\n<stdout>\n D gone.txt\n M items.py\n D old.txt\n?? docs/\n</stdout>"],
        ),
        does(
            "diff",
            json!({}),
            &[
                "docs/double.md (+3 -0)\n",
                "6 files changed, ",
                "+    return items[len(items) - 1]\n",
            ],
        ),
        does(
            "test",
            json!({}),
            &[
                "2 pass, 0 fail",
                "1 pass now, and failed before the change:\n- ",
            ],
        ),
    ]
}

#[test]
fn a_model_uses_each_tool_and_is_told_what_came_of_it() {
    let world = LulaEnv::new();
    let lines = (1..=3000).map(|number| format!("{number}\n"));
    let long = lines.collect::<Vec<_>>().concat();
    Repo::buggy_with(
        &world,
        &[
            ("old.txt", "old\n"),
            ("gone.txt", "x\n"),
            ("long.txt", &long),
        ],
    );
    let steps: Vec<ToolStep> = [looking(), changing(), running()]
        .into_iter()
        .flatten()
        .collect();
    let mut script = ModelScript::default();
    for step in &steps {
        script = script.then_call(step.name, step.arguments.clone());
    }
    script = script.then_call("submit", json!({"summary": "mended last"}));
    let server = MockModelServer::start(script).unwrap();
    let work = world.work();
    let stays = |(path, _): &(std::path::PathBuf, Vec<u8>)| !path.starts_with(work.join(".git"));
    let mut before = listing(&work);
    before.retain(stays);
    let ran = run_with(&world, &Models::strong(&server), FIX, &[]).exits(0);
    let report = ran.json();
    assert_eq!(report["verdict"]["verdict"], "pass");
    assert_eq!(server.unused(), 0);
    let said = results(&server);
    assert_eq!(said.len(), steps.len(), "{said:#?}");
    for (step, (text, failed)) in steps.iter().zip(&said) {
        let asked = format!("{} {}", step.name, step.arguments);
        for part in step.says {
            assert!(
                text.contains(part),
                "{asked} said:\n{text}\nand not {part:?}"
            );
        }
        assert_eq!(*failed, step.fails, "{asked} said:\n{text}");
    }
    let mut files: Vec<String> = serde_json::from_value(report["files"].clone()).unwrap();
    files.sort();
    assert_eq!(
        files,
        [
            "docs/double.md",
            "docs/notes.txt",
            "docs/old.txt",
            "gone.txt",
            "items.py",
            "old.txt"
        ]
    );
    let mut after = listing(&work);
    after.retain(stays);
    assert_eq!(after, before);
    assert_eq!(git(&work, &["stash", "list"]), "");
    // The person sees the plan.
    let id = report["run"].as_str().unwrap();
    let logs = world.run(&["logs", id]).exits(0);
    assert!(
        logs.stdout.contains("1 of 2 done; next: mend last"),
        "{}",
        logs.stdout
    );
}
