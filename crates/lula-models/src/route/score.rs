//! Scoring: verified reward with room for trying, minus cost (UCB1).

use std::collections::BTreeMap;

use super::{CandidateModel, ModelStatsRow};

/// What a dollar counts against a task solved.
const DOLLAR: f64 = 0.5;
/// How much is tried out.
const CURIOSITY: f64 = 0.7;

/// The best candidate and why. A model that was never tried goes first, in the user's order.
pub(super) fn best(
    fit: &[&CandidateModel],
    stats: &BTreeMap<String, ModelStatsRow>,
) -> Option<(String, String)> {
    let row = |candidate: &CandidateModel| stats.get(&candidate.model).cloned().unwrap_or_default();
    if let Some(untried) = fit.iter().find(|candidate| row(candidate).calls == 0) {
        return Some((
            untried.model.clone(),
            "it was not tried at this yet".to_owned(),
        ));
    }
    let total: u32 = fit
        .iter()
        .fold(0, |sum, c| sum.saturating_add(row(c).calls));
    let mut best: Option<(f64, &CandidateModel, ModelStatsRow)> = None;
    for candidate in fit {
        let row = row(candidate);
        let score = score(&row, total);
        if best.as_ref().is_none_or(|(top, ..)| score > *top) {
            best = Some((score, candidate, row));
        }
    }
    best.map(|(score, candidate, row)| {
        let because = format!(
            "{} of {} verified at {} µUSD each, score {score:.3}",
            row.verified,
            row.calls,
            row.cost / u64::from(row.calls.max(1))
        );
        (candidate.model.clone(), because)
    })
}

#[allow(clippy::cast_precision_loss)] // Costs of calls are far below 2^52.
fn score(row: &ModelStatsRow, total: u32) -> f64 {
    let calls = f64::from(row.calls.max(1));
    let reward = f64::from(row.verified) / calls;
    let dollars = row.cost as f64 / 1_000_000.0 / calls;
    let unsure = (2.0 * f64::from(total.max(1)).ln() / calls).sqrt();
    reward - DOLLAR * dollars + CURIOSITY * unsure
}

#[cfg(test)]
mod tests {
    use super::super::tests::candidate;
    use super::*;

    fn rows(list: &[(&str, u32, u32, u64)]) -> BTreeMap<String, ModelStatsRow> {
        list.iter()
            .map(|(model, calls, verified, cost)| {
                let row = ModelStatsRow {
                    calls: *calls,
                    verified: *verified,
                    cost: *cost,
                    ..ModelStatsRow::default()
                };
                ((*model).to_owned(), row)
            })
            .collect()
    }

    #[test]
    fn what_solves_more_wins_and_equal_work_goes_to_the_cheaper() {
        let (a, b) = (candidate("a", 1), candidate("b", 1));
        let fit = [&a, &b];
        let better = rows(&[("a", 100, 40, 0), ("b", 100, 90, 0)]);
        assert_eq!(best(&fit, &better).unwrap().0, "b");
        let cheaper = rows(&[("a", 100, 90, 50_000_000), ("b", 100, 90, 1_000_000)]);
        assert_eq!(best(&fit, &cheaper).unwrap().0, "b");
    }

    #[test]
    fn what_was_hardly_tried_gets_its_chance() {
        let (a, b) = (candidate("a", 1), candidate("b", 1));
        let stats = rows(&[("a", 200, 140, 0), ("b", 2, 1, 0)]);
        assert_eq!(best(&[&a, &b], &stats).unwrap().0, "b");
        assert_eq!(best(&[&a, &b], &BTreeMap::new()).unwrap().0, "a");
    }
}
