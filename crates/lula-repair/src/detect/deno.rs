//! `deno test`.

use super::{DetectedTests, DetectionProject, TestFramework, found};

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    let Some(manifest) = ["deno.json", "deno.jsonc"]
        .into_iter()
        .find(|path| project.has(path))
    else {
        return;
    };
    // The second may have comments, so it is not parsed.
    let text: String = project.text(manifest).split_whitespace().collect();
    let task = text
        .split_once("\"tasks\":{")
        .is_some_and(|(_, tasks)| tasks.contains("\"test\":"));
    let (argv, reason): (&[&str], _) = if task {
        (
            &["deno", "task", "test"],
            format!("{manifest} has the task test"),
        )
    } else {
        // What tests may do is for the sandbox to say.
        (&["deno", "test", "-A"], format!("{manifest} is there"))
    };
    out.push(found(TestFramework::DenoTest, argv, Vec::new(), reason));
}
