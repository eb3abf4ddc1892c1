//! Several answers to one question: different models first, then different temperatures.

use super::{NoSuitableModel, RoutingChoice, RoutingInputs, select};

/// Most answers that are asked for at once.
const MOST: u32 = 5;

/// Temperatures for `n` answers: the first sure, the others spread up to 1.
pub fn temperatures(n: u32) -> Vec<f64> {
    const SPREAD: [f64; 6] = [0.0, 0.7, 0.3, 1.0, 0.5, 0.8];
    (0..n.max(1))
        .map(|index| SPREAD[(index as usize) % SPREAD.len()])
        .collect()
}

/// Chooses `n` answers, heterogeneous as far as the models go round. Together they stay within
/// the budget: each is chosen with what the ones before it could cost taken off.
pub fn panel(inputs: &RoutingInputs, n: u32) -> Result<Vec<RoutingChoice>, NoSuitableModel> {
    let n = n.clamp(1, MOST);
    let spread = temperatures(n);
    let mut left = inputs.clone();
    let mut choices: Vec<RoutingChoice> = Vec::new();
    for (index, temperature) in spread.into_iter().enumerate() {
        let unused: Vec<_> = left
            .candidates
            .iter()
            .filter(|candidate| choices.iter().all(|choice| choice.model != candidate.model))
            .cloned()
            .collect();
        let mut fresh = left.clone();
        fresh.candidates = unused;
        fresh.current = None;
        let choice = match select(&fresh) {
            Ok(choice) => choice,
            Err(none) if choices.is_empty() => return Err(none),
            // Every model has its turn: the same ones again, warmer.
            Err(_) => {
                left.current = None;
                match select(&left) {
                    Ok(choice) => choice,
                    Err(_) => break,
                }
            }
        };
        let cost = inputs
            .candidates
            .iter()
            .find(|candidate| candidate.model == choice.model)
            .map_or(0, |candidate| candidate.worst_cost);
        left.budget_left = left.budget_left.map(|budget| budget.saturating_sub(cost));
        let step = u32::try_from(index).unwrap_or(0);
        choices.push(RoutingChoice {
            temperature,
            seed: inputs.seed.wrapping_add(step),
            ..choice
        });
    }
    Ok(choices)
}

#[cfg(test)]
mod tests {
    use super::super::tests::inputs;
    use super::*;

    #[test]
    fn different_models_come_before_the_same_one_again() {
        let choices = panel(&inputs(&["a", "b"]), 3).unwrap();
        let models: Vec<_> = choices.iter().map(|choice| choice.model.as_str()).collect();
        assert_eq!(models[..2], ["a", "b"]);
        assert_eq!(models.len(), 3);
        assert!(
            choices
                .iter()
                .all(|choice| (0.0..=1.0).contains(&choice.temperature))
        );
        let distinct: std::collections::BTreeSet<_> = choices
            .iter()
            .map(|choice| (choice.model.clone(), choice.seed))
            .collect();
        assert_eq!(distinct.len(), 3);
    }

    #[test]
    fn a_panel_together_stays_within_the_budget() {
        let mut inputs = inputs(&["a", "b", "c"]);
        inputs.budget_left = Some(2500);
        assert_eq!(panel(&inputs, 3).unwrap().len(), 2);
        inputs.budget_left = Some(10);
        assert!(panel(&inputs, 3).is_err());
    }
}
