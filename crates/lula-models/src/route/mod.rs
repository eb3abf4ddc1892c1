//! Which model does a piece of work: a pure function of inputs that are recorded before it runs,
//! so that a replay chooses the same and a person can read why.

mod panel;
mod score;
mod stats;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::output::OutputCapability;
use crate::resilience::ModelHealth;
pub use panel::{panel, temperatures};
pub use stats::{ModelStats, ModelStatsRow, WorkRecord};

/// What the work needs of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelNeeds {
    /// The least that the model can be trusted with.
    pub capability: OutputCapability,
    /// Whether it must see pictures.
    pub vision: bool,
    /// Tokens the prompt has.
    pub context: u64,
    /// Tokens the answer may have.
    pub output: u64,
}

/// A model that could do it. Prices in millionths of a dollar for a million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateModel {
    pub model: String,
    /// What it can be trusted with.
    pub capability: OutputCapability,
    /// Whether it sees pictures.
    pub vision: bool,
    /// Its context in tokens; `None` where unknown.
    pub context: Option<u64>,
    /// The worst case of this call, in millionths of a dollar.
    pub worst_cost: u64,
}

/// Everything a choice is made from. Recorded, then chosen from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutingInputs {
    /// Who asks: `planner`, `coder`, `reporter`, …
    pub role: String,
    /// The lane of the run.
    pub lane: String,
    /// The class of the task.
    pub task_class: String,
    pub needs: ModelNeeds,
    /// Who could do it, in the user's order.
    pub candidates: Vec<CandidateModel>,
    /// How each candidate is, by its name.
    pub health: BTreeMap<String, ModelHealth>,
    /// How each did before, in this role and class.
    pub stats: BTreeMap<String, ModelStatsRow>,
    /// What is left of the budget, in millionths of a dollar.
    pub budget_left: Option<u64>,
    /// The model this conversation is with; changing it loses the prompt cache.
    pub current: Option<String>,
    /// The model whose attempt failed, on recovery.
    pub failed: Option<String>,
    /// Which attempt this is, from 0.
    pub attempt: u32,
    /// Seed of the run, so that a replay chooses the same.
    pub seed: u32,
}

/// A choice, with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutingChoice {
    pub model: String,
    pub temperature: f64,
    pub seed: u32,
    /// Why it was chosen.
    pub because: String,
    /// Who was passed over, and why.
    pub passed_over: Vec<(String, String)>,
}

/// No model can do it: each with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no model can do this: {}", reasons(.0))]
pub struct NoSuitableModel(pub Vec<(String, String)>);

fn reasons(passed_over: &[(String, String)]) -> String {
    if passed_over.is_empty() {
        return "none is configured; see `lula models list`".to_owned();
    }
    let list: Vec<_> = passed_over
        .iter()
        .map(|(model, why)| format!("{model} {why}"))
        .collect();
    list.join(", ")
}

/// Chooses a model: the same inputs always give the same choice.
pub fn select(inputs: &RoutingInputs) -> Result<RoutingChoice, NoSuitableModel> {
    let (fit, passed_over) = sift(inputs);
    let temperature = temperatures(inputs.attempt + 1)[inputs.attempt as usize];
    let seed = inputs.seed.wrapping_add(inputs.attempt);
    // A conversation stays with its model: another one would read the whole prompt anew.
    if inputs.failed.is_none()
        && let Some(current) = inputs.current.as_ref()
        && fit.iter().any(|candidate| candidate.model == *current)
    {
        let because = "the conversation is with it".to_owned();
        return Ok(RoutingChoice {
            model: current.clone(),
            temperature,
            seed,
            because,
            passed_over,
        });
    }
    let best =
        score::best(&fit, &inputs.stats).ok_or_else(|| NoSuitableModel(passed_over.clone()))?;
    Ok(RoutingChoice {
        model: best.0,
        temperature,
        seed,
        because: best.1,
        passed_over,
    })
}

/// Who can do it at all, and who cannot and why.
fn sift(inputs: &RoutingInputs) -> (Vec<&CandidateModel>, Vec<(String, String)>) {
    let mut fit = Vec::new();
    let mut passed_over = Vec::new();
    for candidate in &inputs.candidates {
        match unfit(candidate, inputs) {
            Some(why) => passed_over.push((candidate.model.clone(), why)),
            None => fit.push(candidate),
        }
    }
    // The model that failed is only asked again where there is no other.
    if let Some(failed) = &inputs.failed
        && fit.iter().any(|candidate| candidate.model != *failed)
    {
        fit.retain(|candidate| {
            let is_failed = candidate.model == *failed;
            if is_failed {
                passed_over.push((failed.clone(), "failed at the attempt before".to_owned()));
            }
            !is_failed
        });
    }
    (fit, passed_over)
}

fn unfit(candidate: &CandidateModel, inputs: &RoutingInputs) -> Option<String> {
    let needs = &inputs.needs;
    if candidate.capability < needs.capability {
        return Some(format!("can do {:?} only", candidate.capability));
    }
    if needs.vision && !candidate.vision {
        return Some("cannot see pictures".to_owned());
    }
    let tokens = needs.context.saturating_add(needs.output);
    if let Some(context) = candidate.context.filter(|context| *context < tokens) {
        return Some(format!(
            "has a context of {context} tokens, {tokens} are needed"
        ));
    }
    if let Some(left) = inputs
        .budget_left
        .filter(|left| *left < candidate.worst_cost)
    {
        return Some(format!(
            "could cost {} µUSD, {left} are left",
            candidate.worst_cost
        ));
    }
    match inputs.health.get(&candidate.model) {
        Some(ModelHealth::Resting) => Some("kept failing and is left alone".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn candidate(model: &str, worst_cost: u64) -> CandidateModel {
        CandidateModel {
            model: model.into(),
            capability: OutputCapability::ToolCalls,
            vision: false,
            context: Some(100_000),
            worst_cost,
        }
    }

    pub(crate) fn inputs(models: &[&str]) -> RoutingInputs {
        RoutingInputs {
            role: "coder".into(),
            lane: "interactive".into(),
            task_class: "failing-tests".into(),
            needs: ModelNeeds {
                capability: OutputCapability::Text,
                vision: false,
                context: 1000,
                output: 1000,
            },
            candidates: models.iter().map(|model| candidate(model, 1000)).collect(),
            health: BTreeMap::new(),
            stats: BTreeMap::new(),
            budget_left: None,
            current: None,
            failed: None,
            attempt: 0,
            seed: 7,
        }
    }

    #[test]
    fn the_users_order_decides_where_nothing_is_known() {
        assert_eq!(select(&inputs(&["a", "b"])).unwrap().model, "a");
    }

    #[test]
    fn whoever_cannot_do_it_is_passed_over_with_a_reason() {
        let mut inputs = inputs(&["weak", "blind", "small", "dear", "sick", "good"]);
        inputs.needs = ModelNeeds {
            capability: OutputCapability::JsonSchema,
            vision: true,
            context: 50_000,
            output: 1000,
        };
        inputs.budget_left = Some(5000);
        for candidate in &mut inputs.candidates {
            candidate.vision = candidate.model != "blind";
        }
        inputs.candidates[0].capability = OutputCapability::Text;
        inputs.candidates[2].context = Some(8192);
        inputs.candidates[3].worst_cost = 5001;
        inputs.health.insert("sick".into(), ModelHealth::Resting);
        let choice = select(&inputs).unwrap();
        assert_eq!(choice.model, "good");
        assert_eq!(
            choice.passed_over,
            [
                ("weak", "can do Text only"),
                ("blind", "cannot see pictures"),
                ("small", "has a context of 8192 tokens, 51000 are needed"),
                ("dear", "could cost 5001 µUSD, 5000 are left"),
                ("sick", "kept failing and is left alone"),
            ]
            .map(|(model, why)| (model.to_owned(), why.to_owned()))
        );
    }

    #[test]
    fn recovery_takes_another_model_where_there_is_one() {
        let mut inputs = inputs(&["a", "b"]);
        inputs.current = Some("a".into());
        assert_eq!(select(&inputs).unwrap().model, "a");
        inputs.failed = Some("a".into());
        assert_eq!(select(&inputs).unwrap().model, "b");
        inputs.candidates.truncate(1);
        assert_eq!(select(&inputs).unwrap().model, "a");
    }

    #[test]
    fn a_conversation_stays_with_its_model() {
        let mut inputs = inputs(&["a", "b"]);
        inputs.current = Some("b".into());
        assert_eq!(select(&inputs).unwrap().model, "b");
    }

    #[test]
    fn no_model_says_why() {
        let error = select(&inputs(&[])).unwrap_err().to_string();
        assert!(error.contains("none is configured"), "{error}");
    }

    proptest! {
        #[test]
        fn a_choice_is_a_function_of_what_was_recorded(
            costs in proptest::collection::vec(0_u64..10_000, 1..5),
            pulls in proptest::collection::vec((0_u32..50, 0_u32..50), 5),
            budget in proptest::option::of(0_u64..10_000),
            attempt in 0_u32..4,
        ) {
            let names = ["a", "b", "c", "d", "e"];
            let mut inputs = inputs(&names[..costs.len()]);
            for (index, cost) in costs.iter().enumerate() {
                inputs.candidates[index].worst_cost = *cost;
                let (done, good) = pulls[index];
                let row = ModelStatsRow { calls: done, verified: good.min(done), cost: *cost, ..ModelStatsRow::default() };
                inputs.stats.insert(names[index].into(), row);
            }
            inputs.budget_left = budget;
            inputs.attempt = attempt;
            let text = serde_json::to_string(&inputs).unwrap();
            let replayed: RoutingInputs = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(select(&replayed), select(&inputs));
            if let Ok(choice) = select(&inputs) {
                let chosen = inputs.candidates.iter().find(|c| c.model == choice.model).unwrap();
                prop_assert!(budget.is_none_or(|left| chosen.worst_cost <= left));
            }
        }
    }
}
