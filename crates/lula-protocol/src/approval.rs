//! Approvals that bind to bytes.
//!
//! A challenge names the digest of everything the approver sees and the executor will use: the
//! canonical call, the rendered diff, the base tree and the policy version. The token signs that
//! digest; one changed byte anywhere makes another digest, for which there is no token.

use serde::{Deserialize, Serialize};

use crate::canonical::CanonicalError;
use crate::digest::{Digest, DigestDomain};
use crate::id::{ApprovalId, Principal};

/// What an approval is about. Its digest is what gets approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalSubject {
    /// Digest of the call, see [`ToolCall::digest`](crate::ToolCall::digest).
    pub call: Digest,
    /// Digest of the diff exactly as it is shown.
    pub diff: Digest,
    /// The tree the diff applies to.
    pub base_tree: Digest,
    /// The policy that asked.
    pub policy: Digest,
}

impl ApprovalSubject {
    /// The digest that is approved.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Digest::of(DigestDomain::Approval, self)
    }
}

/// The question put to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalChallenge {
    /// Identity of the question.
    pub id: ApprovalId,
    /// Digest of the [`ApprovalSubject`].
    pub digest: Digest,
    /// Fresh per challenge, so that no old token fits.
    pub nonce: String,
    /// Unix time in milliseconds after which the answer is no.
    pub expires_ms: u64,
    /// Why a person is asked, in one sentence.
    pub reason: String,
}

/// What an approver answers to a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The act may be done exactly as it was shown.
    Approve,
    /// The act must not be done.
    Reject,
}

/// A signed answer. The signature covers every other field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalToken {
    /// The challenge that is answered.
    pub id: ApprovalId,
    /// Digest of what was approved.
    pub digest: Digest,
    /// Who answered, from a verified identity.
    pub approver: Principal,
    /// The role in which the approver answers.
    pub role: String,
    pub decision: ApprovalDecision,
    /// The nonce of the challenge.
    pub nonce: String,
    /// Unix time in milliseconds after which the token is void.
    pub expires_ms: u64,
    /// Which key signed, for rotation.
    pub key_id: String,
    /// HMAC-SHA256 in lower-case hexadecimal digits.
    pub mac: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_any_part_of_the_subject_changes_what_is_approved() {
        let of = |text: &str| Digest::of_bytes(text.as_bytes());
        let subject = ApprovalSubject {
            call: of("call"),
            diff: of("diff"),
            base_tree: of("tree"),
            policy: of("policy"),
        };
        let other = of("other");
        let variants = [
            ApprovalSubject {
                call: other,
                ..subject.clone()
            },
            ApprovalSubject {
                diff: other,
                ..subject.clone()
            },
            ApprovalSubject {
                base_tree: other,
                ..subject.clone()
            },
            ApprovalSubject {
                policy: other,
                ..subject.clone()
            },
        ];
        for variant in variants {
            assert_ne!(variant.digest().unwrap(), subject.digest().unwrap());
        }
    }

    #[test]
    fn a_token_with_an_extra_field_is_not_a_token() {
        let token = serde_json::json!({
            "id": ApprovalId::from_parts(1, [0; 10]),
            "digest": Digest::of_bytes(b""),
            "approver": "alice",
            "role": "maintainer",
            "decision": "approve",
            "nonce": "n",
            "expires_ms": 1,
            "key_id": "k1",
            "mac": "00",
        });
        assert!(serde_json::from_value::<ApprovalToken>(token.clone()).is_ok());
        let mut extended = token;
        extended["any_digest"] = true.into();
        assert!(serde_json::from_value::<ApprovalToken>(extended).is_err());
    }
}
