//! How models did in the runs that are kept here.

use std::sync::Arc;

use lula_agents::choose::Standing;
use lula_models::route::Stats;
use lula_store::{RunFilter, Store};

use super::reader;
use crate::failure::Failure;

/// Older runs say little about the models of today, and each has to be read.
const RECENT: usize = 200;

/// Adds up the newest runs. A run whose log this program cannot read is left out and counted.
pub(crate) async fn stats(store: Arc<dyn Store>) -> Result<(Stats, usize), Failure> {
    let rows = store.runs(&RunFilter::default()).await?;
    let engine = reader(store)?;
    let mut stats = Stats::default();
    let mut unread = 0;
    for row in rows.iter().rev().take(RECENT) {
        match engine.show(&row.run, None).await {
            Ok(known) => {
                for part in &known.state.parts {
                    stats.add(&part.record());
                }
            }
            Err(_) => unread += 1,
        }
    }
    Ok((stats, unread))
}

/// The same as a run writes it down when it begins.
pub(crate) fn standing(stats: &Stats) -> Vec<Standing> {
    stats
        .rows()
        .map(|(role, class, model, row)| Standing {
            role: role.to_owned(),
            class: class.to_owned(),
            model: model.to_owned(),
            row: row.clone(),
        })
        .collect()
}
