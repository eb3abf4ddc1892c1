//! What has to be true of the answers before an act may happen.

use std::num::NonZeroU32;

use lula_protocol::EffectClass;
use serde::{Deserialize, Serialize};

/// The terms of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalTerms {
    /// How many different principals have to agree.
    pub quorum: NonZeroU32,
    /// The role each of them must answer in; any role where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Whether the principal who asked may not agree to it.
    pub four_eyes: bool,
    /// How long the question stays open.
    pub open_ms: u64,
    pub on_expiry: ApprovalExpiryPolicy,
}

/// What it means when no approver answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalExpiryPolicy {
    /// The act is refused.
    Deny,
    /// Yes for changes of a workspace, which can be undone; no for everything else.
    ApproveTree,
}

/// What the operator who starts the work may agree to before it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvanceApproval {
    /// The operator agrees to nothing beforehand.
    #[default]
    Never,
    /// Acts in a workspace: they can be undone, and what comes of them is judged again before it
    /// leaves.
    Tree,
}

impl Default for ApprovalTerms {
    fn default() -> Self {
        Self {
            quorum: NonZeroU32::MIN,
            role: None,
            four_eyes: false,
            open_ms: 60 * 60 * 1000,
            on_expiry: ApprovalExpiryPolicy::Deny,
        }
    }
}

impl ApprovalTerms {
    /// Whether silence agrees to an act of this class. Where a role, another person or several
    /// have to agree, silence never does.
    pub(super) fn silence_agrees(&self, class: EffectClass) -> bool {
        self.on_expiry == ApprovalExpiryPolicy::ApproveTree
            && class == EffectClass::Tree
            && self.anyone_will_do()
    }

    /// Whether one person's agreement is enough, whichever person it is.
    pub fn anyone_will_do(&self) -> bool {
        self.quorum == NonZeroU32::MIN && self.role.is_none() && !self.four_eyes
    }

    /// Terms that ask for everything either of two asks for. Of two roles, the first one stands.
    #[must_use]
    pub fn strictest(&self, other: &Self) -> Self {
        let on_expiry = if self.on_expiry == other.on_expiry {
            self.on_expiry
        } else {
            ApprovalExpiryPolicy::Deny
        };
        Self {
            quorum: self.quorum.max(other.quorum),
            role: self.role.clone().or_else(|| other.role.clone()),
            four_eyes: self.four_eyes || other.four_eyes,
            open_ms: self.open_ms.min(other.open_ms),
            on_expiry,
        }
    }
}
