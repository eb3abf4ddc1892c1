use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;

use lula_protocol::approval::ApprovalSubject;
use lula_protocol::{
    ApprovalChallenge, ApprovalDecision, ApprovalToken, Digest, EffectClass, Principal,
};
use proptest::prelude::*;
use rusqlite::Connection;

use super::keys::ApprovalTokenError;
use super::*;

const DIFF: &[u8] = b"-old\n+new\n";
const HOUR: u64 = 3_600_000;

fn who(name: &str) -> Principal {
    name.parse().unwrap()
}

fn subject(diff: &[u8]) -> ApprovalSubject {
    ApprovalSubject {
        call: Digest::of_bytes(b"call"),
        diff: Digest::of_bytes(diff),
        base_tree: Digest::of_bytes(b"tree"),
        policy: Digest::of_bytes(b"policy"),
    }
}

struct Desk {
    connection: Connection,
    keys: ApprovalKeyring,
    state: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let connection = Connection::open(state.path().join("hands.db")).unwrap();
        migrate(&connection).unwrap();
        migrate(&connection).unwrap();
        let mut keys = ApprovalKeyring::open(state.path()).unwrap();
        for name in ["alice", "bob"] {
            keys.add_for(who(name), vec!["maintainer".into(), "owner".into()])
                .unwrap();
        }
        Self {
            connection,
            keys,
            state,
        }
    }

    fn ask(&mut self, terms: &ApprovalTerms, class: EffectClass, now: u64) -> ApprovalChallenge {
        let tx = self.connection.transaction().unwrap();
        let question = ApprovalQuestion {
            subject: &subject(DIFF),
            rendered: DIFF,
            class,
            reason: "a push leaves the machine",
            terms,
            requester: &who("alice"),
        };
        let challenge = challenge(&tx, &question, now).unwrap();
        tx.commit().unwrap();
        challenge
    }

    fn answer(
        &mut self,
        challenge: &ApprovalChallenge,
        name: &str,
        decision: ApprovalDecision,
        now: u64,
    ) -> Result<ApprovalStanding, ApprovalsError> {
        let token = self
            .keys
            .sign(challenge, &who(name), "owner", decision)
            .unwrap();
        self.hand_in(&token, now)
    }

    fn hand_in(
        &mut self,
        token: &ApprovalToken,
        now: u64,
    ) -> Result<ApprovalStanding, ApprovalsError> {
        let tx = self.connection.transaction().unwrap();
        let standing = vote(&tx, &self.keys, token, now);
        tx.commit().unwrap();
        standing
    }

    fn spend(
        &mut self,
        asked: &ApprovalChallenge,
        diff: &[u8],
        now: u64,
    ) -> Result<(), ApprovalRefusal> {
        let tx = self.connection.transaction().unwrap();
        let redeemed = redeem(&tx, &asked.id, &subject(diff).digest().unwrap(), now);
        tx.commit().unwrap();
        match redeemed {
            Ok(()) => Ok(()),
            Err(ApprovalsError::Refused(refused)) => Err(refused),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn an_approved_act_happens_once() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    let not_yet = desk.spend(&asked, DIFF, 2);
    assert!(matches!(
        not_yet,
        Err(ApprovalRefusal::NotYet {
            approvals: 0,
            needed: 1
        })
    ));
    let standing = desk
        .answer(&asked, "bob", ApprovalDecision::Approve, 3)
        .unwrap();
    assert_eq!(standing, ApprovalStanding::Approved { by_silence: false });
    assert_eq!(desk.spend(&asked, DIFF, 4), Ok(()));
    assert_eq!(desk.spend(&asked, DIFF, 5), Err(ApprovalRefusal::Used));
}

#[test]
fn one_changed_byte_voids_the_approval_for_good() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    desk.answer(&asked, "bob", ApprovalDecision::Approve, 3)
        .unwrap();
    assert_eq!(
        desk.spend(&asked, b"-old\n+evil\n", 4),
        Err(ApprovalRefusal::Void)
    );
    assert_eq!(desk.spend(&asked, DIFF, 5), Err(ApprovalRefusal::Void));
}

#[test]
fn spending_is_undone_with_the_transaction_it_belongs_to() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::Tree, 1);
    desk.answer(&asked, "bob", ApprovalDecision::Approve, 2)
        .unwrap();
    let digest = subject(DIFF).digest().unwrap();
    {
        let tx = desk.connection.transaction().unwrap();
        redeem(&tx, &asked.id, &digest, 3).unwrap();
        // Dropped without a commit: the intent was not recorded, so nothing may be spent.
    }
    assert_eq!(desk.spend(&asked, DIFF, 4), Ok(()));
}

#[test]
fn one_person_cannot_fill_a_quorum() {
    let mut desk = Desk::new();
    let terms = ApprovalTerms {
        quorum: NonZeroU32::new(2).unwrap(),
        ..ApprovalTerms::default()
    };
    let asked = desk.ask(&terms, EffectClass::External, 1);
    desk.answer(&asked, "bob", ApprovalDecision::Approve, 2)
        .unwrap();
    let again = desk.answer(&asked, "bob", ApprovalDecision::Approve, 3);
    assert!(matches!(
        again,
        Err(ApprovalsError::Vote(VoteRefusal::AlreadyVoted(_)))
    ));
    assert!(desk.spend(&asked, DIFF, 4).is_err());
    desk.answer(&asked, "alice", ApprovalDecision::Approve, 5)
        .unwrap();
    assert_eq!(desk.spend(&asked, DIFF, 6), Ok(()));
}

#[test]
fn with_four_eyes_whoever_asks_cannot_approve_but_can_withdraw() {
    let mut desk = Desk::new();
    let terms = ApprovalTerms {
        four_eyes: true,
        ..ApprovalTerms::default()
    };
    let asked = desk.ask(&terms, EffectClass::External, 1);
    let own = desk.answer(&asked, "alice", ApprovalDecision::Approve, 2);
    assert!(matches!(
        own,
        Err(ApprovalsError::Vote(VoteRefusal::OwnRequest(_)))
    ));
    desk.answer(&asked, "alice", ApprovalDecision::Reject, 3)
        .unwrap();
    assert_eq!(desk.spend(&asked, DIFF, 4), Err(ApprovalRefusal::Rejected));
}

#[test]
fn a_no_is_final() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    desk.answer(&asked, "alice", ApprovalDecision::Approve, 2)
        .unwrap();
    desk.answer(&asked, "bob", ApprovalDecision::Reject, 3)
        .unwrap();
    assert!(
        desk.answer(&asked, "bob", ApprovalDecision::Approve, 4)
            .is_err()
    );
    assert_eq!(desk.spend(&asked, DIFF, 5), Err(ApprovalRefusal::Rejected));
}

#[test]
fn a_role_is_what_the_key_says_not_what_the_answer_says() {
    let mut desk = Desk::new();
    let terms = ApprovalTerms {
        role: Some("maintainer".into()),
        ..ApprovalTerms::default()
    };
    let asked = desk.ask(&terms, EffectClass::External, 1);
    let as_owner = desk.answer(&asked, "bob", ApprovalDecision::Approve, 2);
    assert!(matches!(
        as_owner,
        Err(ApprovalsError::Vote(VoteRefusal::WrongRole { .. }))
    ));
    let claimed = desk.keys.sign(
        &asked,
        &who("local:1000"),
        "maintainer",
        ApprovalDecision::Approve,
    );
    assert!(matches!(claimed, Err(ApprovalKeyError::NoKeyFor { .. })));
    let rightly = desk
        .keys
        .sign(&asked, &who("bob"), "maintainer", ApprovalDecision::Approve)
        .unwrap();
    desk.hand_in(&rightly, 3).unwrap();
    assert_eq!(desk.spend(&asked, DIFF, 4), Ok(()));
}

#[test]
fn silence_is_a_no_even_if_nobody_looks() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::Tree, 1);
    desk.answer(&asked, "bob", ApprovalDecision::Approve, 2)
        .unwrap();
    assert_eq!(
        desk.spend(&asked, DIFF, 1 + HOUR),
        Err(ApprovalRefusal::Expired)
    );
    assert_eq!(
        desk.spend(&asked, DIFF, 3),
        Err(ApprovalRefusal::Expired),
        "a clock set back"
    );
}

#[test]
fn silence_agrees_only_to_changes_of_a_workspace_and_only_if_told_so() {
    let terms = ApprovalTerms {
        on_expiry: ApprovalExpiryPolicy::ApproveTree,
        ..ApprovalTerms::default()
    };
    for (class, agreed) in [
        (EffectClass::Tree, Ok(())),
        (EffectClass::Cas, Err(ApprovalRefusal::Expired)),
        (EffectClass::External, Err(ApprovalRefusal::Expired)),
    ] {
        let mut desk = Desk::new();
        let asked = desk.ask(&terms, class, 1);
        assert!(desk.spend(&asked, DIFF, 2).is_err());
        assert_eq!(desk.spend(&asked, DIFF, 1 + HOUR), agreed, "{class}");
    }
    let mut desk = Desk::new();
    let strict = ApprovalTerms {
        four_eyes: true,
        ..terms
    };
    let asked = desk.ask(&strict, EffectClass::Tree, 1);
    assert_eq!(
        desk.spend(&asked, DIFF, 1 + HOUR),
        Err(ApprovalRefusal::Expired)
    );
}

#[test]
fn what_expired_is_written_down_once() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    let tx = desk.connection.transaction().unwrap();
    assert_eq!(pending(&tx, 2).unwrap().len(), 1);
    assert_eq!(expire(&tx, 2).unwrap(), []);
    assert_eq!(expire(&tx, 1 + HOUR).unwrap(), [asked.id]);
    assert_eq!(expire(&tx, 2 + HOUR).unwrap(), []);
    assert_eq!(pending(&tx, 2).unwrap().len(), 0);
}

#[test]
fn asking_the_same_again_is_the_same_question() {
    let mut desk = Desk::new();
    let first = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    assert_eq!(
        desk.ask(&ApprovalTerms::default(), EffectClass::External, 2),
        first
    );
    desk.answer(&first, "bob", ApprovalDecision::Reject, 3)
        .unwrap();
    let second = desk.ask(&ApprovalTerms::default(), EffectClass::External, 4);
    assert_ne!(second.id, first.id);
    assert_ne!(second.nonce, first.nonce);
}

#[test]
fn nothing_is_asked_about_bytes_that_are_not_shown() {
    let mut desk = Desk::new();
    let tx = desk.connection.transaction().unwrap();
    let question = ApprovalQuestion {
        subject: &subject(DIFF),
        rendered: b"something harmless",
        class: EffectClass::Tree,
        reason: "",
        terms: &ApprovalTerms::default(),
        requester: &who("alice"),
    };
    let asked = challenge(&tx, &question, 1);
    assert!(matches!(asked, Err(ApprovalsError::ShownIsNotSubject)));
}

#[test]
fn a_token_with_any_field_changed_is_refused() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    let token = desk
        .keys
        .sign(&asked, &who("bob"), "owner", ApprovalDecision::Reject)
        .unwrap();
    let other = Digest::of_bytes(b"other");
    let forged = [
        ApprovalToken {
            digest: other,
            ..token.clone()
        },
        ApprovalToken {
            approver: who("alice"),
            ..token.clone()
        },
        ApprovalToken {
            role: "maintainer".into(),
            ..token.clone()
        },
        ApprovalToken {
            decision: ApprovalDecision::Approve,
            ..token.clone()
        },
        ApprovalToken {
            nonce: "0".into(),
            ..token.clone()
        },
        ApprovalToken {
            expires_ms: token.expires_ms + 1,
            ..token.clone()
        },
        ApprovalToken {
            mac: token.mac.to_uppercase(),
            ..token.clone()
        },
        ApprovalToken {
            mac: String::new(),
            ..token.clone()
        },
        ApprovalToken {
            mac: token.mac[..62].to_owned(),
            ..token.clone()
        },
    ];
    for forged in forged {
        let refused = desk.hand_in(&forged, 2);
        assert!(
            matches!(
                refused,
                Err(ApprovalsError::Token(ApprovalTokenError::BadSignature))
            ),
            "{forged:?}: {refused:?}"
        );
    }
    assert!(desk.hand_in(&token, 2).is_ok());
}

#[test]
fn a_token_for_an_older_question_about_the_same_bytes_does_not_fit() {
    let mut desk = Desk::new();
    let first = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    let mut token = desk
        .keys
        .sign(&first, &who("bob"), "owner", ApprovalDecision::Approve)
        .unwrap();
    let second = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1 + HOUR);
    assert_ne!(first.id, second.id);
    token.id = second.id;
    assert!(desk.hand_in(&token, 2 + HOUR).is_err());
}

#[test]
fn an_edited_row_is_not_believed() {
    let mut desk = Desk::new();
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    let other = serde_json::to_string(&subject(b"other")).unwrap();
    desk.connection
        .execute("UPDATE approvals SET subject = ?", [other])
        .unwrap();
    let tx = desk.connection.transaction().unwrap();
    assert!(matches!(
        load(&tx, &asked.id),
        Err(ApprovalsError::Damaged { .. })
    ));
}

#[test]
fn keys_are_private_rotate_and_retire() {
    let mut desk = Desk::new();
    let path = desk.state.path().join(keys::FILE_NAME);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let asked = desk.ask(&ApprovalTerms::default(), EffectClass::External, 1);
    let me = who("local:1000");
    let old = desk
        .keys
        .sign(&asked, &me, "owner", ApprovalDecision::Approve)
        .unwrap();
    desk.keys.rotate().unwrap();
    let new = desk
        .keys
        .sign(&asked, &me, "owner", ApprovalDecision::Approve)
        .unwrap();
    assert_ne!(old.key_id, new.key_id);
    let reread = ApprovalKeyring::open(desk.state.path()).unwrap();
    assert_eq!(reread.verify(&old), Ok(()));
    assert_eq!(reread.verify(&new), Ok(()));
    desk.keys.retire(&old.key_id).unwrap();
    let reread = ApprovalKeyring::open(desk.state.path()).unwrap();
    assert_eq!(reread.verify(&old), Err(ApprovalTokenError::UnknownKey));
    assert_eq!(reread.verify(&new), Ok(()));
    assert!(!format!("{reread:?}").contains("secret"));

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let opened = ApprovalKeyring::open(desk.state.path());
    assert!(matches!(
        opened,
        Err(ApprovalKeyError::File {
            source: lula_files::PrivateFileError::NotPrivate { mode: 0o640 },
            ..
        })
    ));
}

#[test]
fn a_key_of_one_person_does_not_sign_for_another() {
    let desk = Desk::new();
    let state = tempfile::tempdir().unwrap();
    let mut others = ApprovalKeyring::open(state.path()).unwrap();
    others
        .add_for(who("mallory"), vec!["owner".into()])
        .unwrap();
    let asked = ApprovalChallenge {
        id: lula_protocol::ApprovalId::from_parts(1, [0; 10]),
        digest: Digest::of_bytes(b""),
        nonce: "n".into(),
        expires_ms: 1,
        reason: String::new(),
    };
    let theirs = others
        .sign(&asked, &who("mallory"), "owner", ApprovalDecision::Approve)
        .unwrap();
    assert_eq!(
        desk.keys.verify(&theirs),
        Err(ApprovalTokenError::UnknownKey)
    );
}

#[derive(Debug, Clone)]
enum Step {
    Vote(usize, usize, bool),
    Redeem(bool),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4_usize, 0..2_usize, any::<bool>()).prop_map(|(who, role, yes)| Step::Vote(who, role, yes)),
        2 => any::<bool>().prop_map(Step::Redeem),
        1 => (0..80_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..30)
}

proptest! {
    /// Whatever is answered, in whatever order: the act happens at most once, only with the shown
    /// bytes, only after enough different eligible people agreed and none refused, or after
    /// silence where silence agrees.
    #[test]
    fn no_sequence_of_answers_gets_more_than_it_should(
        quorum in 1..4_u32, role in any::<bool>(), four_eyes in any::<bool>(),
        silence in any::<bool>(), tree in any::<bool>(), steps in steps(),
    ) {
        let names = ["alice", "bob", "carol", "dave"].map(who);
        let roles = ["owner", "guest"];
        let right = Digest::of_bytes(b"right");
        let terms = ApprovalTerms {
            quorum: NonZeroU32::new(quorum).unwrap(),
            role: role.then(|| "owner".to_owned()),
            four_eyes,
            open_ms: 100,
            on_expiry: if silence { ApprovalExpiryPolicy::ApproveTree } else { ApprovalExpiryPolicy::Deny },
        };
        let class = if tree { EffectClass::Tree } else { EffectClass::External };
        let mut approval = Approval {
            digest: right, class, terms, requester: names[0].clone(),
            expires_ms: 100, votes: Vec::new(), settled: None,
        };
        let (mut now, mut uses, mut refused) = (0, 0, false);
        let mut eligible = std::collections::BTreeSet::new();
        for step in steps {
            match step {
                Step::Wait(ms) => now += ms,
                Step::Vote(index, role_index, yes) => {
                    let decision = if yes { ApprovalDecision::Approve } else { ApprovalDecision::Reject };
                    let vote = ApprovalVote { approver: names[index].clone(), role: roles[role_index].into(), decision };
                    let taken = approval.apply(vote, now).is_ok();
                    if taken && !yes { refused = true; }
                    if taken && yes {
                        prop_assert!(!(four_eyes && index == 0));
                        prop_assert!(!(role && role_index != 0));
                        prop_assert!(eligible.insert(index), "one person twice");
                    }
                }
                Step::Redeem(same) => {
                    let digest = if same { right } else { Digest::of_bytes(b"wrong") };
                    if approval.redeem(&digest, now).is_ok() {
                        uses += 1;
                        prop_assert!(same && !refused);
                        let by_people = now < 100 && eligible.len() >= quorum as usize;
                        let by_silence = (100..200).contains(&now) && silence && tree
                            && quorum == 1 && !role && !four_eyes;
                        prop_assert!(by_people || by_silence);
                    }
                }
            }
        }
        prop_assert!(uses <= 1);
    }
}
