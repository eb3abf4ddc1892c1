//! How sure to be of a judged change, and a second look where that is not clear: the tests once
//! more, with and without the change, and models that did not write it. Tests can take a pass back;
//! nothing here can give one.

use lula_graph::{Ctx, Stop};

use super::verifier::weigh;
use crate::choose::{Chosen, Tally};
use crate::coder::conversation::Talk;
use crate::deeds::Deed;
use crate::glean::{Phase, Rating, confidence, features, judge, rate};
use crate::task::Mind;
use crate::verdict::Verdict;
use crate::work::{Event, Work};

/// What came of it.
pub(super) struct Looked {
    /// The verdict that stands.
    pub(super) verdict: Verdict,
    /// What happened, in order.
    pub(super) events: Vec<Event>,
}

/// Rates a judged change, and looks again where that leaves doubt.
pub(super) async fn take(
    work: &Work,
    judged: Event,
    deed: &Deed,
    ctx: &mut Ctx<'_>,
) -> Result<Looked, Stop> {
    let mut looked = Seen {
        now: work.clone(),
        events: Vec::new(),
    };
    looked.saw(judged);
    if work.task.guidance.guidelines.is_empty() {
        return Ok(looked.into_looked());
    }
    let rating = rate(&looked.now, Phase::Verdict);
    looked.saw(Event::Rated { rating });
    looked.weigh(false);
    let passed = matches!(looked.now.verdict, Some(Verdict::Pass { .. }));
    let unsure = looked.now.confidence.as_ref();
    if passed && unsure.is_some_and(confidence::Confidence::is_unsure) {
        again(&mut looked, deed, ctx).await?;
    }
    Ok(looked.into_looked())
}

/// The run as it is with what was seen since.
struct Seen {
    now: Work,
    events: Vec<Event>,
}

impl Seen {
    fn saw(&mut self, event: Event) {
        self.now.apply(&event);
        self.events.push(event);
    }

    fn weigh(&mut self, second_look: bool) {
        let known = self.now.task.guidance.calibration.as_ref();
        let confidence = confidence::weigh(known, features(&self.now), second_look);
        self.saw(Event::Weighed { confidence });
    }

    fn into_looked(self) -> Looked {
        let nothing = || Verdict::Inconclusive {
            why: "it was not judged".to_owned(),
        };
        Looked {
            verdict: self.now.verdict.unwrap_or_else(nothing),
            events: self.events,
        }
    }
}

async fn again(looked: &mut Seen, deed: &Deed, ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (evidence, verdict) = weigh(deed, &looked.now, ctx).await?;
    let verdict = match verdict {
        Verdict::Pass { .. } => None,
        other => Some(Verdict::Inconclusive {
            why: format!("a second look came out otherwise: {}", other.why()),
        }),
    };
    if let Some(verdict) = verdict {
        looked.saw(Event::Judged {
            evidence: Box::new(evidence),
            verdict,
        });
    }
    let minds: Vec<Mind> = judge::panel(&looked.now).into_iter().cloned().collect();
    for mind in &minds {
        if let Some(rating) = ask(&looked.now, mind, ctx).await? {
            looked.saw(Event::Rated { rating });
        }
    }
    looked.weigh(true);
    Ok(())
}

/// Asks one judge. One that cannot be asked, or says nothing usable, rates nothing.
async fn ask(work: &Work, mind: &Mind, ctx: &mut Ctx<'_>) -> Result<Option<Rating>, Stop> {
    let guidelines = judge::asked(work);
    if guidelines.is_empty() {
        return Ok(None);
    }
    let request = judge::request(work, mind, &guidelines);
    let mut tally = Tally::default();
    let chosen = Chosen::as_judge(mind);
    let silent = |why: &str| Ok(Some(judge::silent(work, &mind.name, &guidelines, why)));
    let mut talk = match Talk::begin(&chosen, request, &mut tally) {
        Ok(talk) => talk,
        Err(why) => return silent(&why),
    };
    match talk.ask(ctx).await? {
        Ok(answer) => {
            let said = answer.json.unwrap_or_default();
            Ok(Some(judge::read(work, &mind.name, &guidelines, &said)))
        }
        Err(trouble) => silent(&trouble.message),
    }
}
