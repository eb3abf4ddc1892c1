//! How models did in the runs that are kept here.

use lula_agents::model_choice::ModelTrackRecord;
use lula_models::route::ModelStats;
use serde_json::{Value, json};

use super::History;
use crate::text::dollars;

impl History {
    /// Adds these runs up.
    pub fn stats(&self) -> ModelStats {
        let mut stats = ModelStats::default();
        for part in self.states().flat_map(|known| &known.state.parts) {
            stats.add(&part.record());
        }
        stats
    }
}

/// The same as a run writes it down when it begins.
pub fn standing(stats: &ModelStats) -> Vec<ModelTrackRecord> {
    stats
        .rows()
        .map(|(role, class, model, row)| ModelTrackRecord {
            role: role.to_owned(),
            class: class.to_owned(),
            model: model.to_owned(),
            row: row.clone(),
        })
        .collect()
}

/// The same for programs.
pub fn document(stats: &ModelStats) -> Vec<Value> {
    stats
        .rows()
        .map(|(role, class, model, row)| {
            json!({
                "role": role, "task": class, "model": model, "asked": row.calls,
                "verified": row.verified, "reward": stats.reward(role, class, model),
                "uplift": stats.uplift(role, class, model), "cost_usd": (row.unpriced == 0).then(|| dollars(row.cost)),
                "input_tokens": row.usage.input, "output_tokens": row.usage.output,
                "cached_share": row.cache_share(), "asked_again": row.repairs,
            })
        })
        .collect()
}
