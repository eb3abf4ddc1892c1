//! Commands in the background, as a driver starts, watches and ends them.

use lula_protocol::{ToolOutcome, ToolOutput, ToolOutputDetails};
use serde_json::{Value, json};

use super::{Scene, done, effect, failure};

/// What a job is, and what it wrote since it was last looked at.
#[track_caller]
fn told(output: ToolOutput) -> (bool, Option<u8>, String) {
    match output.details {
        Some(ToolOutputDetails::Job {
            running,
            status,
            output,
            ..
        }) => (running, status, output),
        other => panic!("{other:?}"),
    }
}

impl Scene {
    #[track_caller]
    fn starts(&self, line: &str) -> String {
        let input = json!({"argv": ["sh", "-c", line], "background": true});
        let output = self.does("exec", input);
        match output.details {
            Some(ToolOutputDetails::Job { job, running, .. }) if running => job,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    #[allow(clippy::needless_pass_by_value)] // reads better where it is called
    fn job(&self, job: &str, action: Value, wait_ms: u64) -> ToolOutput {
        self.does(
            "job",
            json!({"job": job, "action": action, "wait_ms": wait_ms}),
        )
    }
}

#[test]
fn a_job_is_started_told_something_watched_and_stopped() {
    let scene = Scene::new(&[("a", "")]);
    let job = scene.starts("echo ready; while read line; do echo \"got $line\"; done; sleep 100");
    assert_eq!(job, "job-1");
    let look = || json!({"do": "look"});
    assert_eq!(
        told(scene.job(&job, look(), 10_000)),
        (true, None, "ready\n".to_owned())
    );
    assert_eq!(
        told(scene.job(&job, look(), 0)).2,
        "",
        "only what is new is told"
    );
    let sent = scene.job(&job, json!({"do": "send", "input": "one\n"}), 10_000);
    assert_eq!(told(sent).2, "got one\n");
    // Other calls go on meanwhile, and it writes into the same workspace.
    assert_eq!(scene.sh("echo here"), "here\n");
    let (running, status, _) = told(scene.job(&job, json!({"do": "stop"}), 0));
    assert_eq!((running, status), (false, Some(137)));
    let late = json!({"job": job, "action": {"do": "send", "input": "two\n"}});
    assert_eq!(failure(scene.send(&scene.call("job", late))), "L1002");
    let second = scene.starts("echo x > made; exit 3");
    assert_eq!(second, "job-2");
    let ended = scene.job(&second, look(), 10_000);
    assert_eq!(told(ended), (false, Some(3), String::new()));
    assert_eq!(scene.sh("cat made"), "x\n");
}

#[test]
fn the_same_look_is_answered_with_the_same_and_the_same_start_happens_once() {
    let scene = Scene::new(&[("a", "")]);
    let start = json!({"argv": ["sh", "-c", "echo x >> log; echo out; sleep 100"],
        "background": true});
    let start = scene.call_as(&effect(), 1, "exec", start);
    let first = scene.send(&start).unwrap();
    assert_eq!(scene.send(&start).unwrap(), first);
    let look = json!({"job": "job-1", "action": {"do": "look"}, "wait_ms": 10_000});
    let look = scene.call_as(&effect(), 1, "job", look);
    let seen = told(done(scene.send(&look).unwrap()));
    assert_eq!(seen, (true, None, "out\n".to_owned()));
    assert_eq!(told(done(scene.send(&look).unwrap())), seen);
    assert_eq!(scene.sh("cat log"), "x\n");
    let unknown = json!({"job": "job-7", "action": {"do": "look"}});
    assert_eq!(failure(scene.send(&scene.call("job", unknown))), "L1002");
}

#[test]
fn a_job_that_ended_with_its_runner_is_told_so_and_not_started_again() {
    let mut scene = Scene::new(&[("a", "")]);
    let start = json!({"argv": ["sh", "-c", "echo x >> log; sleep 100"], "background": true});
    let start = scene.call_as(&effect(), 1, "exec", start);
    let first = scene.send(&start).unwrap();
    while scene.sh("cat log 2>/dev/null || true") != "x\n" {}
    scene.crash();
    assert_eq!(scene.send(&start).unwrap(), first, "the ledger knows");
    let look = json!({"job": "job-1", "action": {"do": "look"}});
    let result = scene.send(&scene.call("job", look)).unwrap();
    let ToolOutcome::Done { output } = result.outcome else {
        panic!("{result:?}");
    };
    assert_eq!(output.text, "job-1 ended: the runner was restarted\n");
    assert_eq!(scene.sh("cat log"), "x\n");
    assert_eq!(scene.starts("true"), "job-2", "its name is not given again");
}
