//! How sure to be of a judged change, and a second look where that is not clear: the tests once
//! more, with and without the change, where tests were seen to come and go or people often turned such
//! changes down; and models that did not write it. Tests can take a pass back; nothing here can give
//! one.

use lula_graph::{NodeContext, VisitStop};

use super::verifier::verify;
use crate::coder::conversation::CoderConversation;
use crate::effects::RunEffect;
use crate::guidelines::{RatingPhase, StepRating, confidence, features, judge, rate};
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::task::ModelChoice;
use crate::verdict::{RunVerdict, VerificationEvidence};
use crate::work::{CodingState, RunStateEvent};

/// What came of it.
pub(super) struct SecondLookResult {
    /// The verdict that stands.
    pub(super) verdict: RunVerdict,
    /// What happened, in order.
    pub(super) events: Vec<RunStateEvent>,
}

/// Rates a judged change, and looks again where that leaves doubt.
pub(super) async fn take(
    work: &CodingState,
    judged: RunStateEvent,
    effect: &RunEffect,
    ctx: &mut NodeContext<'_>,
) -> Result<SecondLookResult, VisitStop> {
    let mut looked = SecondLookState {
        now: work.clone(),
        events: Vec::new(),
    };
    looked.saw(judged);
    if work.task.guidance.guidelines.is_empty() {
        return Ok(looked.into_looked());
    }
    let rating = rate(&looked.now, RatingPhase::Verdict);
    looked.saw(RunStateEvent::Rated { rating });
    looked.weigh(false);
    let unsure = looked.now.confidence.as_ref();
    let unsure = unsure.is_some_and(confidence::ChangeConfidence::is_unsure);
    if !matches!(looked.now.verdict, Some(RunVerdict::Pass { .. })) {
        return Ok(looked.into_looked());
    }
    let by_tests = is_doubtful(&looked.now);
    let by_models = unsure && !judge::panel(&looked.now).is_empty();
    if by_tests {
        tests_again(&mut looked, effect, ctx).await?;
    }
    if by_models {
        ask_judges(&mut looked, ctx).await?;
    }
    if by_tests || by_models {
        looked.weigh(true);
    }
    Ok(looked.into_looked())
}

/// Whether another run of the tests may come out otherwise. A confidence that nothing calibrates says
/// nothing of that: what decides was seen twice already.
fn is_doubtful(work: &CodingState) -> bool {
    let evidence = work.evidence.as_ref();
    let confidence = work.confidence.as_ref();
    evidence.is_some_and(VerificationEvidence::is_unsteady)
        || confidence.is_some_and(|known| known.is_calibrated() && known.is_unsure())
}

/// The run as it is with what was seen since.
struct SecondLookState {
    now: CodingState,
    events: Vec<RunStateEvent>,
}

impl SecondLookState {
    fn saw(&mut self, event: RunStateEvent) {
        self.now.apply(&event);
        self.events.push(event);
    }

    fn weigh(&mut self, second_look: bool) {
        let known = self.now.task.guidance.calibration.as_ref();
        let confidence = confidence::weigh(known, features(&self.now), second_look);
        self.saw(RunStateEvent::Weighed { confidence });
    }

    fn into_looked(self) -> SecondLookResult {
        let nothing = || RunVerdict::Inconclusive {
            why: "it was not judged".to_owned(),
        };
        SecondLookResult {
            verdict: self.now.verdict.unwrap_or_else(nothing),
            events: self.events,
        }
    }
}

async fn tests_again(
    looked: &mut SecondLookState,
    effect: &RunEffect,
    ctx: &mut NodeContext<'_>,
) -> Result<(), VisitStop> {
    let (evidence, verdict) = verify(effect, &looked.now, ctx).await?;
    if matches!(verdict, RunVerdict::Pass { .. }) {
        return Ok(());
    }
    let why = format!("a second look came out otherwise: {}", verdict.why());
    looked.saw(RunStateEvent::Judged {
        evidence: Box::new(evidence),
        verdict: RunVerdict::Inconclusive { why },
    });
    Ok(())
}

async fn ask_judges(
    looked: &mut SecondLookState,
    ctx: &mut NodeContext<'_>,
) -> Result<(), VisitStop> {
    let models: Vec<ModelChoice> = judge::panel(&looked.now).into_iter().cloned().collect();
    for model in &models {
        if let Some(rating) = ask(&looked.now, model, ctx).await? {
            looked.saw(RunStateEvent::Rated { rating });
        }
    }
    Ok(())
}

/// Asks one judge. One that cannot be asked, or says nothing usable, rates nothing.
async fn ask(
    work: &CodingState,
    model: &ModelChoice,
    ctx: &mut NodeContext<'_>,
) -> Result<Option<StepRating>, VisitStop> {
    let guidelines = judge::asked(work);
    if guidelines.is_empty() {
        return Ok(None);
    }
    let request = judge::request(work, model, &guidelines);
    let mut tally = VisitModelUsage::default();
    let chosen = ChosenModel::as_judge(model);
    let silent = |why: &str| Ok(Some(judge::silent(work, &model.name, &guidelines, why)));
    let mut talk = match CoderConversation::begin(&chosen, request, &mut tally) {
        Ok(talk) => talk,
        Err(why) => return silent(&why),
    };
    match talk.ask(ctx).await? {
        Ok(answer) => {
            let said = answer.json.unwrap_or_default();
            Ok(Some(judge::read(work, &model.name, &guidelines, &said)))
        }
        Err(trouble) => silent(&trouble.message),
    }
}
