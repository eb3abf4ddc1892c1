//! `lula approvals`, `approve`, `reject`: exactly the shown bytes, answered once.

use lula_gate::approvals::ApprovalsError;
use lula_gate::approvals::{
    ApprovalKeyring, ApprovalQuestion, ApprovalRefusal, ApprovalTerms, LocalApprovalDesk,
    challenge, redeem,
};
use lula_protocol::approval::ApprovalSubject;
use lula_protocol::{ApprovalChallenge, Digest, EffectClass};

use crate::support::LulaEnv;

const DIFF: &[u8] = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \xc3\xa9\n";

struct Asked {
    world: LulaEnv,
    desk: LocalApprovalDesk,
    challenge: ApprovalChallenge,
    subject: ApprovalSubject,
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_millis()).unwrap()
}

/// What the runner does when a rule asks.
fn asked(terms: &ApprovalTerms) -> Asked {
    let world = LulaEnv::new();
    let state = world.home().join(".local/state/lula");
    std::fs::create_dir_all(&state).unwrap();
    let keys = ApprovalKeyring::open(&state).unwrap();
    let mut desk = LocalApprovalDesk::open(&state.join("hands.db"), keys).unwrap();
    let subject = ApprovalSubject {
        call: Digest::of_bytes(b"call"),
        diff: Digest::of_bytes(DIFF),
        base_tree: Digest::of_bytes(b"tree"),
        policy: Digest::of_bytes(b"policy"),
    };
    let question = ApprovalQuestion {
        subject: &subject,
        rendered: DIFF,
        class: EffectClass::Tree,
        reason: "automation runs it",
        terms,
        requester: &"agent:coder".parse().unwrap(),
    };
    let challenge = desk
        .transact(|tx, _| challenge(tx, &question, now()))
        .unwrap();
    Asked {
        world,
        desk,
        challenge,
        subject,
    }
}

impl Asked {
    fn spend(&mut self) -> Result<(), ApprovalRefusal> {
        let digest = self.subject.digest().unwrap();
        let id = self.challenge.id.clone();
        match self.desk.transact(|tx, _| redeem(tx, &id, &digest, now())) {
            Ok(()) => Ok(()),
            Err(ApprovalsError::Refused(refused)) => Err(refused),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn what_waits_is_listed_shown_byte_for_byte_and_approved_once() {
    let mut asked = asked(&ApprovalTerms::default());
    let id = asked.challenge.id.to_string();
    asked
        .world
        .run(&["approvals"])
        .exits(0)
        .says(&id)
        .says("automation runs it");
    let shown = asked.world.run(&["approvals", "show", &id]).exits(0);
    let as_diff = asked.world.run(&["diff", &id]).exits(0);
    assert_eq!(as_diff.stdout, shown.stdout);
    assert_eq!(shown.stdout.as_bytes(), DIFF);
    assert!(shown.stderr.contains(&asked.challenge.digest.to_string()));

    asked.world.run(&["approve", &id]).exits(2).says("--yes");
    assert!(matches!(asked.spend(), Err(ApprovalRefusal::NotYet { .. })));

    let approved = asked
        .world
        .run(&["approve", &id, "--yes"])
        .exits(0)
        .says("approved");
    assert_eq!(approved.stdout.as_bytes(), DIFF);
    assert_eq!(asked.spend(), Ok(()));
    assert_eq!(asked.spend(), Err(ApprovalRefusal::Used));
    asked
        .world
        .run(&["approve", &id, "--yes"])
        .exits(1)
        .says("L0503");
    asked
        .world
        .run(&["approvals"])
        .exits(0)
        .says("nothing waits");
}

#[test]
fn a_no_is_final() {
    let mut asked = asked(&ApprovalTerms::default());
    let id = asked.challenge.id.to_string();
    let answer = asked
        .world
        .run(&["reject", &id, "--yes", "--json"])
        .exits(0)
        .json();
    assert_eq!(answer["standing"]["end"], "rejected");
    asked
        .world
        .run(&["approve", &id, "--yes"])
        .exits(1)
        .says("settled");
    assert_eq!(asked.spend(), Err(ApprovalRefusal::Rejected));
}

#[test]
fn one_person_is_no_quorum_and_no_other_role() {
    let two = ApprovalTerms {
        quorum: 2.try_into().unwrap(),
        ..ApprovalTerms::default()
    };
    let mut asked_two = asked(&two);
    let id = asked_two.challenge.id.to_string();
    asked_two.world.run(&["approve", &id, "--yes"]).exits(3);
    asked_two
        .world
        .run(&["approve", &id, "--yes"])
        .exits(1)
        .says("already");
    assert!(asked_two.spend().is_err());

    let role = ApprovalTerms {
        role: Some("release-manager".into()),
        ..ApprovalTerms::default()
    };
    let asked_role = asked(&role);
    let id = asked_role.challenge.id.to_string();
    asked_role
        .world
        .run(&["approve", &id, "--yes"])
        .exits(6)
        .says("L0504");
}

#[test]
fn a_question_nobody_asked_is_not_answered() {
    let world = LulaEnv::new();
    let id = "apr_00000000000000000000000000";
    world.run(&["approve", id, "--yes"]).exits(2).says("L0502");
    world
        .run(&["approvals", "show", "nonsense"])
        .exits(2)
        .says("not an approval id");
    world.run(&["approvals"]).exits(0).says("nothing waits");
    assert!(!world.home().join(".local/state/lula/hands.db").exists());
}
