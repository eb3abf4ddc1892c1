//! Which model is asked. Pure: what the run was told when it began and what happened since in, a
//! choice with its reasons out.

use std::collections::BTreeMap;

use lula_models::normal::TokenUsage;
use lula_models::output::OutputCapability;
use lula_models::resilience::ModelHealth;
use lula_models::route::{
    CandidateModel, ModelNeeds, ModelStats, ModelStatsRow, RoutingChoice, RoutingInputs,
    WorkRecord, panel, select,
};
use serde::{Deserialize, Serialize};

use crate::coder::REPAIRER;
use crate::recovery::AttemptFailureClass;
use crate::task::{ModelChoice, TaskIntent};
use crate::verdict::RunVerdict;
use crate::work::CodingState;

/// What a model is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// It says what the steps are.
    Planner,
    /// It writes the change.
    Coder,
    /// It rates the change of another.
    Judge,
}

impl ModelRole {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Coder => "coder",
            Self::Judge => "judge",
        }
    }
}

/// How models did at something before the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelTrackRecord {
    pub role: String,
    /// At which kind of task.
    pub class: String,
    /// The model, as `PROVIDER/MODEL`.
    pub model: String,
    pub row: ModelStatsRow,
}

/// One model's part in a run: why it was asked, what it used, and whether that was proven good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelShareOfRun {
    pub role: ModelRole,
    /// At which kind of task.
    pub class: TaskIntent,
    /// The model, as `PROVIDER/MODEL`.
    pub model: String,
    pub because: String,
    /// Who was passed over, and why.
    pub passed_over: Vec<(String, String)>,
    /// How freely it was to answer, in hundredths.
    pub temperature_percent: u32,
    /// The tokens it took.
    pub usage: TokenUsage,
    /// What they cost, in millionths of a dollar.
    pub cost: u64,
    /// How often an answer had to be asked for again.
    pub repairs: u32,
    /// Whether tests or commands showed that what came of it is right.
    pub verified: bool,
    /// Whether its price is not known, so that the cost is a bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
    /// How often a conversation with it was too long and a summary took the place of its older part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub summaries: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ModelShareOfRun {
    /// As a record of how models do.
    pub fn record(&self) -> WorkRecord {
        WorkRecord {
            model: self.model.clone(),
            role: self.role.name().to_owned(),
            task_class: self.class.name().to_owned(),
            verified: self.verified,
            cost: self.cost,
            usage: self.usage,
            repairs: self.repairs,
            unpriced: self.unpriced,
        }
    }
}

/// What one visit asked of a model.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct VisitModelUsage {
    pub(crate) usage: TokenUsage,
    pub(crate) repairs: u32,
    pub(crate) summaries: u32,
}

/// A model and why it is asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChosenModel<'a> {
    pub(crate) model: &'a ModelChoice,
    pub(crate) role: ModelRole,
    /// What it works on, in the person's words.
    pub(crate) task: &'a str,
    choice: RoutingChoice,
}

impl<'a> ChosenModel<'a> {
    /// The model of a conversation that goes on, as it was asked before.
    pub(crate) fn going_on(work: &'a CodingState, role: ModelRole, name: &str) -> Option<Self> {
        let model = work.task.models.iter().find(|model| model.name == name)?;
        let mut own = work.parts.iter().filter(|part| part.role == role);
        let before = own.rfind(|part| part.model == name);
        Some(Self {
            model,
            role,
            task: &work.task.text,
            choice: RoutingChoice {
                model: name.to_owned(),
                temperature: before.map_or(0.0, |part| f64::from(part.temperature_percent) / 100.0),
                seed: 0,
                because: "the conversation goes on".to_owned(),
                passed_over: Vec::new(),
            },
        })
    }

    /// A model that was named to judge.
    pub(crate) fn as_judge(model: &'a ModelChoice) -> Self {
        Self {
            model,
            task: "",
            role: ModelRole::Judge,
            choice: RoutingChoice {
                model: model.name.clone(),
                temperature: 0.0,
                seed: 0,
                because: "it was named to judge".to_owned(),
                passed_over: Vec::new(),
            },
        }
    }
}

impl ChosenModel<'_> {
    /// How freely it is to answer.
    pub(crate) const fn temperature(&self) -> f64 {
        self.choice.temperature
    }

    /// Its part in the run, before it is judged.
    pub(crate) fn part(&self, work: &CodingState, tally: VisitModelUsage) -> ModelShareOfRun {
        ModelShareOfRun {
            role: self.role,
            class: work.intent(),
            model: self.model.name.clone(),
            because: self.choice.because.clone(),
            passed_over: self.choice.passed_over.clone(),
            temperature_percent: percent(self.choice.temperature),
            usage: tally.usage,
            cost: self.model.price().of(&tally.usage),
            repairs: tally.repairs,
            verified: false,
            unpriced: self.model.settings.unpriced,
            summaries: tally.summaries,
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 0 and 1.
fn percent(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * 100.0).round() as u32
}

/// A judged change decides about the last model in each role.
pub(crate) fn credit(parts: &mut [ModelShareOfRun], made_by: Option<&str>, verdict: &RunVerdict) {
    let verified = matches!(verdict, RunVerdict::Pass { .. });
    for role in [ModelRole::Planner, ModelRole::Coder] {
        if let Some(part) = parts.iter_mut().rev().find(|part| part.role == role) {
            part.verified =
                verified && (role == ModelRole::Planner || made_by == Some(&part.model));
        }
    }
}

/// Tokens are estimated as this many bytes each.
const BYTES_PER_TOKEN: u64 = 3;

/// The model to ask, or `None` where no model can be chosen.
pub(crate) fn choose(work: &CodingState, role: ModelRole) -> Option<ChosenModel<'_>> {
    let mut choice = select(&inputs(work, role)).ok()?;
    if let Some(least) = work.task.temperature_percent {
        choice.temperature = choice.temperature.max(f64::from(least.min(100)) / 100.0);
    }
    let model = work
        .task
        .models
        .iter()
        .find(|model| model.name == choice.model)?;
    Some(ChosenModel {
        model,
        role,
        task: &work.task.text,
        choice,
    })
}

/// One who is to try what others try too.
pub(crate) struct ContestEntrant<'a> {
    pub(crate) model: &'a ModelChoice,
    pub(crate) temperature_percent: u32,
    pub(crate) because: String,
}

/// Who tries the same task: different models as far as there are some, then the same ones freer.
pub(crate) fn entrants(work: &CodingState, count: u32) -> Vec<ContestEntrant<'_>> {
    let choices = panel(&inputs(work, ModelRole::Coder), count).unwrap_or_default();
    let entrant = |choice: RoutingChoice| {
        let mut models = work.task.models.iter();
        Some(ContestEntrant {
            model: models.find(|model| model.name == choice.model)?,
            temperature_percent: percent(choice.temperature),
            because: choice.because,
        })
    };
    choices.into_iter().filter_map(entrant).collect()
}

fn inputs(work: &CodingState, role: ModelRole) -> RoutingInputs {
    let class = work.intent().name();
    let tokens = prompt_bytes(work) / BYTES_PER_TOKEN;
    let candidates = work.task.models.iter().map(|model| CandidateModel {
        model: model.name.clone(),
        capability: model.capability,
        vision: false,
        context: model.context,
        worst_cost: model.price().of(&TokenUsage {
            input: tokens,
            output: u64::from(model.max_tokens),
            ..TokenUsage::default()
        }),
    });
    // A model that could not be reached is not asked again in this run.
    let gone = work
        .failures
        .iter()
        .filter(|failure| failure.class == AttemptFailureClass::ModelUnavailable)
        .map(|failure| (failure.by.clone(), ModelHealth::Resting));
    let mut by_models = work.failures.iter().filter(|f| f.by != REPAIRER);
    let last = by_models.next_back().map(|failure| failure.by.clone());
    let another = work.retry.as_ref().is_some_and(|retry| retry.another_model);
    let mut own = work.parts.iter().filter(|part| part.role == role);
    let attempts = own.clone().count();
    RoutingInputs {
        role: role.name().to_owned(),
        lane: work.lane.name().to_owned(),
        task_class: class.to_owned(),
        needs: ModelNeeds {
            capability: OutputCapability::Text,
            vision: false,
            context: tokens,
            output: 0,
        },
        candidates: candidates.collect(),
        health: gone.collect(),
        stats: known(work, role, class),
        // What may be spent is held by the run's ledger, call by call.
        budget_left: None,
        current: own.next_back().map(|part| part.model.clone()),
        failed: last.filter(|_| another),
        attempt: u32::try_from(attempts).unwrap_or(u32::MAX).min(64),
        seed: 0,
    }
}

/// How each model did, before this run and in it.
fn known(work: &CodingState, role: ModelRole, class: &str) -> BTreeMap<String, ModelStatsRow> {
    let mut stats: ModelStats = work
        .task
        .standing
        .iter()
        .map(|known| {
            let key = (known.role.clone(), known.class.clone(), known.model.clone());
            (key, known.row.clone())
        })
        .collect();
    for part in &work.parts {
        stats.add(&part.record());
    }
    stats.of(role.name(), class)
}

/// About how much a model has to read.
fn prompt_bytes(work: &CodingState) -> u64 {
    let mut bytes = work.task.text.len() + work.plan.iter().map(String::len).sum::<usize>();
    if let Some(baseline) = work.baseline_of(0) {
        bytes += baseline
            .messages
            .iter()
            .map(|(_, m)| m.len())
            .sum::<usize>();
    }
    if let Some(brief) = &work.brief {
        bytes += if brief.map.is_empty() {
            brief.files.iter().map(|path| path.len() + 1).sum::<usize>()
        } else {
            brief.map.len()
        };
        bytes += brief
            .instructions
            .iter()
            .map(|(_, text)| text.len())
            .sum::<usize>();
        bytes += brief.hits.iter().map(String::len).sum::<usize>();
    }
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{AttemptFailure, RetryTarget};
    use crate::task::{ModelRates, RunTask};
    use crate::work::{RetryPlan, RunStateEvent};

    fn model(name: &str) -> ModelChoice {
        ModelChoice {
            name: name.to_owned(),
            model: name.to_owned(),
            capability: OutputCapability::ToolCalls,
            rates: ModelRates {
                input: 0,
                output: 0,
                cache_read: 0,
                cache_write: 0,
            },
            context: None,
            max_tokens: 1000,
            settings: crate::task::ModelSettings::default(),
        }
    }

    fn work(names: &[&str]) -> CodingState {
        CodingState::begin(RunTask {
            models: names.iter().map(|name| model(name)).collect(),
            ..RunTask::new("add a flag", "/r")
        })
    }

    fn asked(work: &mut CodingState) -> String {
        let chosen = choose(work, ModelRole::Coder).unwrap();
        let part = chosen.part(work, VisitModelUsage::default());
        let name = part.model.clone();
        work.apply(&RunStateEvent::Asked { part });
        name
    }

    fn fail(work: &mut CodingState, by: &str, class: AttemptFailureClass, another_model: bool) {
        work.apply(&RunStateEvent::Failed {
            failure: AttemptFailure::new(class, "seen", &[], by),
        });
        work.apply(&RunStateEvent::Retrying {
            retry: RetryPlan {
                target: RetryTarget::Coder,
                another_model,
            },
        });
    }

    #[test]
    fn another_model_is_asked_where_one_failed_and_there_is_one() {
        let mut work = work(&["one", "two"]);
        assert_eq!(asked(&mut work), "one");
        fail(&mut work, "one", AttemptFailureClass::TestFail, false);
        assert_eq!(asked(&mut work), "one");
        fail(&mut work, "one", AttemptFailureClass::TestFail, true);
        assert_eq!(asked(&mut work), "two");
        fail(
            &mut work,
            "two",
            AttemptFailureClass::ModelUnavailable,
            true,
        );
        assert_eq!(asked(&mut work), "one");
        let why = &work.parts[3].passed_over;
        assert_eq!(why[0].0, "two", "{why:?}");
    }

    #[test]
    fn whoever_did_better_before_is_asked_first() {
        let mut work = work(&["one", "two"]);
        let row = |verified| ModelStatsRow {
            calls: 40,
            verified,
            ..ModelStatsRow::default()
        };
        work.task.standing = [("one", row(4)), ("two", row(36))]
            .map(|(model, row)| ModelTrackRecord {
                role: "coder".into(),
                class: "change".into(),
                model: model.into(),
                row,
            })
            .into();
        assert_eq!(asked(&mut work), "two");
        assert!(work.parts[0].because.contains("36 of 40"));
    }

    #[test]
    fn only_a_passed_test_makes_a_part_good() {
        let mut work = work(&["one"]);
        asked(&mut work);
        let inconclusive = RunVerdict::Inconclusive { why: "?".into() };
        credit(&mut work.parts, Some("one"), &inconclusive);
        assert!(!work.parts[0].verified);
        let pass = RunVerdict::Pass { why: "!".into() };
        credit(&mut work.parts, Some("somebody else"), &pass);
        assert!(!work.parts[0].verified);
        credit(&mut work.parts, Some("one"), &pass);
        assert!(work.parts[0].verified);
    }

    #[test]
    fn each_further_attempt_is_freer() {
        let mut work = work(&["one"]);
        asked(&mut work);
        fail(&mut work, "one", AttemptFailureClass::TestFail, false);
        asked(&mut work);
        let warmth: Vec<_> = work.parts.iter().map(|p| p.temperature_percent).collect();
        assert_eq!(warmth, [0, 70]);
    }
}
