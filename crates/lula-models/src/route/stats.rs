//! How models did: folded from records of the event log, shown by `lula models stats`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::normal::TokenUsage;

/// One finished piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRecord {
    /// The model that did it.
    pub model: String,
    /// The role it had.
    pub role: String,
    /// The class of the task.
    pub task_class: String,
    /// Whether the result was verified. Only tests and checks say so, never a model.
    pub verified: bool,
    /// What it cost, in millionths of a dollar.
    pub cost: u64,
    /// Tokens that were read and written.
    pub usage: TokenUsage,
    /// How often its answer had to be asked for again.
    pub repairs: u32,
    /// Whether its price is not known, so that the cost is a bound.
    #[serde(default)]
    pub unpriced: bool,
}

/// What one model did in one role and class of task, summed up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelStatsRow {
    /// How many pieces of work it did.
    pub calls: u32,
    /// How many of those were verified.
    pub verified: u32,
    /// What they cost, in millionths of a dollar.
    pub cost: u64,
    /// Tokens that were read and written.
    pub usage: TokenUsage,
    /// Answers asked for again.
    pub repairs: u32,
    /// Pieces of work whose price is not known: their cost is a bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ModelStatsRow {
    /// The part of the input that came from the prompt cache, from 0 to 1.
    #[allow(clippy::cast_precision_loss)] // A ratio for people.
    pub fn cache_share(&self) -> f64 {
        self.usage.cache_read as f64 / (self.usage.input.max(1)) as f64
    }

    fn add(&mut self, record: &WorkRecord) {
        self.calls = self.calls.saturating_add(1);
        self.verified = self.verified.saturating_add(u32::from(record.verified));
        self.cost = self.cost.saturating_add(record.cost);
        self.repairs = self.repairs.saturating_add(record.repairs);
        self.unpriced = self.unpriced.saturating_add(u32::from(record.unpriced));
        self.usage.add(&record.usage);
    }
}

/// All records, by role, class and model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelStats(BTreeMap<(String, String, String), ModelStatsRow>);

impl ModelStats {
    pub fn add(&mut self, record: &WorkRecord) {
        let key = (
            record.role.clone(),
            record.task_class.clone(),
            record.model.clone(),
        );
        self.0.entry(key).or_default().add(record);
    }

    /// The rows of one role and class, by model: what a choice is made from.
    pub fn of(&self, role: &str, task_class: &str) -> BTreeMap<String, ModelStatsRow> {
        self.0
            .iter()
            .filter(|((r, c, _), _)| r == role && c == task_class)
            .map(|((_, _, model), row)| (model.clone(), row.clone()))
            .collect()
    }

    /// The share of a model's work that was verified, from 0 to 1.
    pub fn reward(&self, role: &str, task_class: &str, model: &str) -> Option<f64> {
        share(self.of(role, task_class).get(model).into_iter())
    }

    /// How much more often a model was verified than the others at the same work; nothing where
    /// there is no other.
    pub fn uplift(&self, role: &str, task_class: &str, model: &str) -> Option<f64> {
        let rows = self.of(role, task_class);
        let others = rows.iter().filter(|(name, _)| *name != model);
        Some(share(rows.get(model).into_iter())? - share(others.map(|(_, row)| row))?)
    }

    /// Every row: role, class, model and sums.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str, &str, &ModelStatsRow)> {
        self.0
            .iter()
            .map(|((role, class, model), row)| (role.as_str(), class.as_str(), model.as_str(), row))
    }
}

fn share<'a>(rows: impl Iterator<Item = &'a ModelStatsRow>) -> Option<f64> {
    let (done, good) = rows.fold((0.0, 0.0), |(done, good), row| {
        (done + f64::from(row.calls), good + f64::from(row.verified))
    });
    (done > 0.0).then(|| good / done)
}

impl FromIterator<((String, String, String), ModelStatsRow)> for ModelStats {
    fn from_iter<T: IntoIterator<Item = ((String, String, String), ModelStatsRow)>>(
        rows: T,
    ) -> Self {
        Self(rows.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_add_up_by_role_and_class() {
        let record = |role: &str, verified| WorkRecord {
            model: "m".into(),
            role: role.into(),
            task_class: "t".into(),
            verified,
            cost: 10,
            usage: TokenUsage {
                input: 100,
                cache_read: 80,
                ..TokenUsage::default()
            },
            repairs: 1,
            unpriced: false,
        };
        let mut stats = ModelStats::default();
        for verified in [true, false] {
            stats.add(&record("coder", verified));
        }
        stats.add(&record("planner", true));
        let row = &stats.of("coder", "t")["m"];
        assert_eq!(
            (row.calls, row.verified, row.cost, row.repairs),
            (2, 1, 20, 2)
        );
        assert!((row.cache_share() - 0.8).abs() < 1e-9);
        assert_eq!(stats.rows().count(), 2);
        assert_eq!(stats.reward("coder", "t", "m"), Some(0.5));
        assert_eq!(
            stats.uplift("coder", "t", "m"),
            None,
            "nobody to compare with"
        );
        stats.add(&WorkRecord {
            model: "other".into(),
            ..record("coder", false)
        });
        assert_eq!(stats.uplift("coder", "t", "m"), Some(0.5));
        assert_eq!(stats.uplift("coder", "t", "other"), Some(-0.5));
    }
}
