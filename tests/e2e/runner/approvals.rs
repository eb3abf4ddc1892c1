//! Approvals: what was shown is what happens, once, and only if the right people said so in time.
//! Every case looks at the disk.

use lula_gate::approvals::ApprovalKeyring;
use lula_protocol::{
    ApprovalChallenge, ApprovalDecision, ApprovalToken, Principal, ToolCall, ToolOutcome,
    ToolResult,
};
use lula_runner_api::client::RunnerClientError;
use serde_json::json;

use super::{Scene, done, effect, refusal, text};

const RULES: &str = r#"
[[rule]]
id = "test.guarded"
paths = ["guarded/**"]
decision = "ask"
reason = "it is guarded"
approval = { role = "maintainer" }

[[rule]]
id = "test.two"
paths = ["two/**"]
decision = "ask"
reason = "two have to look"
approval = { quorum = 2, role = "maintainer" }

[[rule]]
id = "test.hasty"
paths = ["hasty/**"]
decision = "ask"
reason = "it cannot wait"
approval = { expires = "1s" }

[[rule]]
id = "test.never"
paths = ["never/**"]
decision = "deny"
reason = "nobody writes there"

[[rule]]
id = "test.deploy"
match = ["deploy"]
decision = "ask"
reason = "it deploys"
"#;

fn scene() -> Scene {
    Scene::with_rules(
        &[("guarded/a", "1\n"), ("two/a", "1\n"), ("free", "1\n")],
        RULES,
    )
}

impl Scene {
    fn people(&self) -> ApprovalKeyring {
        let mut ring = ApprovalKeyring::open(&self.state()).unwrap();
        for (who, role) in [
            ("alice", "maintainer"),
            ("bob", "maintainer"),
            ("carol", "reader"),
        ] {
            ring.add_for(who.parse().unwrap(), vec![role.to_owned()])
                .unwrap();
        }
        ring
    }

    fn write(&self, path: &str, content: &str) -> ToolCall {
        self.call("write_file", json!({"path": path, "content": content}))
    }

    fn vote(&self, token: &ApprovalToken) -> Result<String, RunnerClientError> {
        self.wait(self.client().vote(token))
            .map(|view| view.standing)
    }

    /// What the workspace holds now.
    fn now(&self, path: &str) -> String {
        self.does("read_file", json!({"path": path})).text
    }
}

#[track_caller]
fn challenge(result: Result<ToolResult, RunnerClientError>) -> ApprovalChallenge {
    match result.unwrap().outcome {
        ToolOutcome::NeedsApproval { challenge } => challenge,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn is_denied(result: Result<ToolResult, RunnerClientError>) {
    let outcome = result.unwrap().outcome;
    assert!(matches!(outcome, ToolOutcome::Denied { .. }), "{outcome:?}");
}

fn sign(
    ring: &ApprovalKeyring,
    challenge: &ApprovalChallenge,
    who: &str,
    role: &str,
    decision: ApprovalDecision,
) -> ApprovalToken {
    let who: Principal = who.parse().unwrap();
    ring.sign(challenge, &who, role, decision).unwrap()
}

#[test]
fn what_is_free_happens_what_is_forbidden_does_not_and_the_rest_waits() {
    let scene = scene();
    done(scene.send(&scene.write("free", "2\n")).unwrap());
    is_denied(scene.send(&scene.write("never/x", "2\n")));
    let call = scene.write("guarded/a", "2\n");
    let asked = challenge(scene.send(&call));
    assert_eq!(
        challenge(scene.send(&call)).id,
        asked.id,
        "asking again is the same question"
    );
    assert_eq!(scene.now("guarded/a"), "1\n");
    let shown = scene.wait(scene.client().approval(&asked.id)).unwrap();
    assert_eq!(
        shown.rendered,
        "--- a/guarded/a\n+++ b/guarded/a\n@@ -1 +1 @@\n-1\n+2\n"
    );
    assert_eq!(
        scene
            .wait(scene.client().approvals())
            .unwrap()
            .approvals
            .len(),
        1
    );

    let token = sign(
        &scene.people(),
        &asked,
        "alice",
        "maintainer",
        ApprovalDecision::Approve,
    );
    assert_eq!(scene.vote(&token).unwrap(), "approved");
    done(scene.send(&call).unwrap());
    assert_eq!(scene.now("guarded/a"), "2\n");
    let shown = scene.wait(scene.client().approval(&asked.id)).unwrap();
    assert_eq!(shown.standing, "used");
}

#[test]
fn an_approval_is_for_one_act() {
    let scene = scene();
    let call = scene.write("guarded/a", "2\n");
    let token = sign(
        &scene.people(),
        &challenge(scene.send(&call)),
        "alice",
        "maintainer",
        ApprovalDecision::Approve,
    );
    scene.vote(&token).unwrap();
    assert_eq!(refusal(scene.vote(&token)).0, 409, "the same answer twice");
    let first = scene.send(&call).unwrap();
    assert_eq!(
        scene.send(&call).unwrap(),
        first,
        "the same call is not done again"
    );
    scene.sh("printf '1\\n' > guarded/a");
    let again = scene.write("guarded/a", "2\n");
    challenge(scene.send(&again));
    assert_eq!(scene.now("guarded/a"), "1\n");
    assert_eq!(
        refusal(scene.vote(&token)).0,
        409,
        "an old answer to a new question"
    );
}

#[test]
fn one_changed_byte_anywhere_voids_it() {
    let scene = scene();
    let ring = scene.people();
    // The file changes between the answer and the act.
    let call = scene.write("guarded/a", "2\n");
    let asked = challenge(scene.send(&call));
    scene
        .vote(&sign(
            &ring,
            &asked,
            "alice",
            "maintainer",
            ApprovalDecision::Approve,
        ))
        .unwrap();
    scene.sh("echo other > guarded/a");
    let anew = challenge(scene.send(&call));
    assert_ne!(anew.id, asked.id);
    assert_eq!(scene.now("guarded/a"), "other\n");
    // The call changes under the id that was approved.
    let mut tampered = call.clone();
    tampered.action = scene.write("guarded/a", "3\n").action;
    challenge(scene.send(&tampered));
    assert_eq!(scene.now("guarded/a"), "other\n");
    // The signature is over every field.
    let good = sign(
        &ring,
        &anew,
        "alice",
        "maintainer",
        ApprovalDecision::Approve,
    );
    let mut forged = good.clone();
    forged.approver = "bob".parse().unwrap();
    assert_eq!(refusal(scene.vote(&forged)).0, 403);
    let mut forged = good.clone();
    forged.expires_ms += 1;
    assert_eq!(refusal(scene.vote(&forged)).0, 403);
    let mut forged = good.clone();
    forged
        .mac
        .replace_range(0..1, if good.mac.starts_with('0') { "1" } else { "0" });
    assert_eq!(refusal(scene.vote(&forged)).0, 403);
    assert_eq!(scene.now("guarded/a"), "other\n");
    scene.vote(&good).unwrap();
    done(scene.send(&call).unwrap());
    assert_eq!(scene.now("guarded/a"), "2\n");
}

#[test]
fn roles_and_quorums_count_different_people() {
    let scene = scene();
    let ring = scene.people();
    let call = scene.write("two/a", "2\n");
    let asked = challenge(scene.send(&call));
    let reader = sign(&ring, &asked, "carol", "reader", ApprovalDecision::Approve);
    assert_eq!(
        refusal(scene.vote(&reader)).0,
        409,
        "another role is asked for"
    );
    let alice = sign(
        &ring,
        &asked,
        "alice",
        "maintainer",
        ApprovalDecision::Approve,
    );
    assert_eq!(scene.vote(&alice).unwrap(), "pending");
    assert_eq!(refusal(scene.vote(&alice)).0, 409, "one person is not two");
    challenge(scene.send(&call));
    assert_eq!(scene.now("two/a"), "1\n");
    let bob = sign(
        &ring,
        &asked,
        "bob",
        "maintainer",
        ApprovalDecision::Approve,
    );
    assert_eq!(scene.vote(&bob).unwrap(), "approved");
    done(scene.send(&call).unwrap());
    assert_eq!(scene.now("two/a"), "2\n");
}

#[test]
fn no_means_no_and_silence_means_no() {
    let scene = scene();
    let call = scene.write("guarded/a", "2\n");
    let asked = challenge(scene.send(&call));
    let no = sign(
        &scene.people(),
        &asked,
        "alice",
        "maintainer",
        ApprovalDecision::Reject,
    );
    assert_eq!(scene.vote(&no).unwrap(), "rejected");
    is_denied(scene.send(&call));

    let late = scene.write("hasty/a", "2\n");
    let asked = challenge(scene.send(&late));
    let ring = ApprovalKeyring::open(&scene.state()).unwrap();
    let token = sign(&ring, &asked, "local:0", "owner", ApprovalDecision::Approve);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(refusal(scene.vote(&token)).0, 409);
    is_denied(scene.send(&late));
    assert_eq!(scene.now("guarded/a"), "1\n");
    assert_eq!(scene.sh("ls"), "free\nguarded\ntwo\n");
}

#[test]
fn commands_and_sessions_wait_too() {
    let scene = scene();
    let call = scene.call(
        "exec",
        json!({"argv": ["sh", "-c", "deploy now; echo ran > ran"]}),
    );
    challenge(scene.send(&call));
    let session = lula_runner_api::StartSession {
        call,
        background: false,
        terminal: None,
        open_input: false,
    };
    let events = scene.wait(scene.client().start(&session)).unwrap();
    challenge(scene.wait(events.finish()));
    assert_eq!(scene.sh("ls"), "free\nguarded\ntwo\n");
}

/// A command in the sandbox writes without asking; what it wrote does not get past the commit.
#[test]
fn a_commit_of_guarded_paths_waits() {
    let scene = scene();
    scene.sh("echo sneaked > guarded/a");
    let diff = scene.wait(scene.client().diff(&scene.workspace)).unwrap();
    let commit = scene.commit_of(diff.digest);
    let send = || scene.wait(scene.client().commit(&scene.workspace, &commit));
    let Err(RunnerClientError::Held(result)) = send() else {
        panic!();
    };
    let asked = challenge(Ok(*result));
    assert_eq!(text(&scene.tree().join("guarded/a")), "1\n");
    let token = sign(
        &scene.people(),
        &asked,
        "alice",
        "maintainer",
        ApprovalDecision::Approve,
    );
    scene.vote(&token).unwrap();
    send().unwrap();
    assert_eq!(text(&scene.tree().join("guarded/a")), "sneaked\n");
}

#[test]
fn a_crash_between_answer_and_act_keeps_both_promises() {
    let mut scene = scene();
    let ring = scene.people();
    let call = scene.write("guarded/a", "2\n");
    let asked = challenge(scene.send(&call));
    scene
        .vote(&sign(
            &ring,
            &asked,
            "alice",
            "maintainer",
            ApprovalDecision::Approve,
        ))
        .unwrap();
    scene.crash();
    done(scene.send(&call).unwrap());
    assert_eq!(scene.now("guarded/a"), "2\n");
    scene.crash();
    done(scene.send(&call).unwrap());
    challenge(scene.send(&scene.call_as(
        &effect(),
        1,
        "write_file",
        json!({"path": "guarded/a", "content": "3\n"}),
    )));
    assert_eq!(scene.now("guarded/a"), "2\n");
}

/// Everything above leaves a trace that every reader can check.
#[test]
fn the_audit_has_every_act_and_refusal() {
    let scene = scene();
    done(scene.send(&scene.write("free", "2\n")).unwrap());
    is_denied(scene.send(&scene.write("never/x", "2\n")));
    challenge(scene.send(&scene.write("guarded/a", "2\n")));
    scene.does("exec", json!({"argv": ["true"]}));
    let log = text(&scene.state().join("audit/audit.jsonl"));
    for word in ["write_file", "allowed", "denied", "asked", "exec", "local:"] {
        assert!(log.contains(word), "{word} is not in\n{log}");
    }
}
