//! Whether enough people agreed. Pure.

use std::collections::BTreeMap;

use lula_protocol::approval::ApprovalDecision;
use lula_protocol::interrupt::ApprovalRule;
use lula_protocol::{InterruptAnswer, Principal};
use serde::{Deserialize, Serialize};

/// The vote of one approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalBallot {
    /// The role in which the person voted.
    pub role: String,
    pub decision: ApprovalDecision,
}

/// Why a vote does not count; `None` where it does.
pub fn objection(
    rule: &ApprovalRule,
    by: &Principal,
    acting_as: &str,
    now_ms: u64,
) -> Option<&'static str> {
    if now_ms >= rule.expires_ms {
        Some("the time to vote is over")
    } else if !rule.roles.is_empty() && !rule.roles.iter().any(|allowed| allowed == acting_as) {
        Some("that role has no vote here")
    } else if rule.four_eyes && rule.requester.as_ref() == Some(by) {
        Some("who asks for a change does not approve it")
    } else {
        None
    }
}

/// What the votes come to; `None` while people are still asked. Each person has one vote; one
/// rejection is enough; after the deadline the answer is no.
pub fn decide(
    rule: &ApprovalRule,
    votes: &BTreeMap<Principal, ApprovalBallot>,
    now_ms: u64,
) -> Option<InterruptAnswer> {
    if let Some((by, _)) = votes
        .iter()
        .find(|(_, vote)| vote.decision == ApprovalDecision::Reject)
    {
        return Some(InterruptAnswer::Rejected {
            reason: format!("{by} rejected it"),
        });
    }
    if votes.len() >= rule.quorum.max(1) as usize {
        return Some(InterruptAnswer::Approved);
    }
    (now_ms >= rule.expires_ms).then(|| InterruptAnswer::Rejected {
        reason: "nobody answered in time".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(quorum: u32) -> ApprovalRule {
        ApprovalRule {
            quorum,
            roles: vec!["maintainer".to_owned()],
            requester: Some("alice".parse().unwrap()),
            four_eyes: true,
            expires_ms: 1_000,
        }
    }

    #[test]
    fn silence_is_a_no() {
        assert_eq!(decide(&rule(1), &BTreeMap::new(), 999), None);
        let late = decide(&rule(1), &BTreeMap::new(), 1_000);
        assert!(matches!(late, Some(InterruptAnswer::Rejected { .. })));
    }

    #[test]
    fn the_requester_a_stranger_and_a_late_voter_do_not_count() {
        let alice = "alice".parse().unwrap();
        let bob = "bob".parse().unwrap();
        assert!(objection(&rule(1), &alice, "maintainer", 5).is_some());
        assert!(objection(&rule(1), &bob, "guest", 5).is_some());
        assert!(objection(&rule(1), &bob, "maintainer", 1_000).is_some());
        assert_eq!(objection(&rule(1), &bob, "maintainer", 5), None);
    }

    proptest! {
        #[test]
        fn a_quorum_is_of_different_people(
            quorum in 0_u32..5,
            voters in prop::collection::vec(0_u8..4, 0..12),
        ) {
            let ballot = || ApprovalBallot { role: "maintainer".to_owned(), decision: ApprovalDecision::Approve };
            let votes: BTreeMap<Principal, ApprovalBallot> = voters
                .iter()
                .map(|voter| (format!("voter{voter}").parse().unwrap(), ballot()))
                .collect();
            let people = u32::try_from(votes.len()).unwrap();
            let approved = decide(&rule(quorum), &votes, 0) == Some(InterruptAnswer::Approved);
            prop_assert_eq!(approved, people >= quorum.max(1));
        }
    }
}
