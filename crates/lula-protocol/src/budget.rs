//! What a run may spend, and in which dimensions it is counted. Whole numbers only.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetDimension {
    /// Money, in millionths of a US dollar.
    MicroUsd,
    /// Tokens sent to models.
    InputTokens,
    /// Tokens written by models.
    OutputTokens,
    /// Requests sent to models.
    ModelCalls,
    /// Those of them whose price is not known here: the money counted for them is a bound.
    UnpricedCalls,
    /// Time on the wall, in milliseconds.
    WallMs,
    ToolCalls,
    /// Rounds of recovery after a failed attempt.
    Loops,
    /// Size of the patches that are written, in bytes.
    PatchBytes,
    /// Runs started by this run.
    Children,
    /// Processor time in sandboxes, in milliseconds.
    SandboxCpuMs,
}

impl BudgetDimension {
    pub const ALL: [Self; 11] = [
        Self::MicroUsd,
        Self::InputTokens,
        Self::OutputTokens,
        Self::ModelCalls,
        Self::UnpricedCalls,
        Self::WallMs,
        Self::ToolCalls,
        Self::Loops,
        Self::PatchBytes,
        Self::Children,
        Self::SandboxCpuMs,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MicroUsd => "micro_usd",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::ModelCalls => "model_calls",
            Self::UnpricedCalls => "unpriced_calls",
            Self::WallMs => "wall_ms",
            Self::ToolCalls => "tool_calls",
            Self::Loops => "loops",
            Self::PatchBytes => "patch_bytes",
            Self::Children => "children",
            Self::SandboxCpuMs => "sandbox_cpu_ms",
        }
    }

    /// The dimension of a wire name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dim| dim.name() == name)
    }
}

impl fmt::Display for BudgetDimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much of each dimension. A dimension that is not named is zero when it is spent and
/// unlimited when it is a limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BudgetAmounts(pub BTreeMap<BudgetDimension, u64>);

impl BudgetAmounts {
    pub fn none() -> Self {
        Self::default()
    }

    /// These amounts, with one dimension set.
    #[must_use]
    pub fn with(mut self, dim: BudgetDimension, amount: u64) -> Self {
        self.0.insert(dim, amount);
        self
    }

    /// The amount, where one is named.
    pub fn get(&self, dim: BudgetDimension) -> Option<u64> {
        self.0.get(&dim).copied()
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The dimensions that are named, each with its amount.
    pub fn iter(&self) -> impl Iterator<Item = (BudgetDimension, u64)> + '_ {
        self.0.iter().map(|(dim, amount)| (*dim, *amount))
    }
}

impl FromIterator<(BudgetDimension, u64)> for BudgetAmounts {
    fn from_iter<I: IntoIterator<Item = (BudgetDimension, u64)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_has_one_name_in_code_and_on_the_wire() {
        for dim in BudgetDimension::ALL {
            assert_eq!(serde_json::to_value(dim).unwrap(), dim.name());
            assert_eq!(BudgetDimension::from_name(dim.name()), Some(dim));
        }
    }
}
