//! Judges the tree, never anybody's words.

use lula_graph::{Ctx, Leave, Stop, Visit};

use crate::deeds::Deed;
use crate::graph::{Coding, Way};
use crate::nodes::{second_look, sites, tried, workspace};
use crate::pick::{self, Picked};
use crate::recover::{Failure, FailureClass};
use crate::verdict::{Evidence, Looked, Verdict, judge};
use crate::work::{Baseline, Event, Work};
use lula_repair::trial::{is_evidence, tail};

/// Longest evidence handed to the next attempt.
const EVIDENCE: usize = 6000;

pub(crate) async fn visit(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let before = work.baseline.clone().unwrap_or(Baseline {
        looked: Looked::NoTests,
        command: None,
        messages: Vec::new(),
        unfixable: Vec::new(),
    });
    let deed = Deed::Weigh {
        workspace: workspace(work)?,
        first: nearest(work, &before, ctx).await?,
        tests: work.task.tests.clone(),
        before: Box::new(before),
        accept: work.acceptance(0),
        tests_ms: work.task.tests_ms,
    };
    let by = work.made.as_ref().map_or("", |(by, _)| by);
    let (evidence, verdict) = weigh(&deed, work, ctx).await?;
    let judged = Event::Judged {
        evidence: Box::new(evidence),
        verdict,
    };
    let looked = second_look::take(work, judged, &deed, ctx).await?;
    let verdict = looked.verdict;
    let way = match &verdict {
        Verdict::Pass { .. } => Way::Pass,
        Verdict::Fail { .. } => Way::Fail,
        Verdict::Inconclusive { .. } => Way::Inconclusive,
    };
    let mut left = Leave::by(way);
    if let Verdict::Fail { class, why, named } = &verdict {
        let failure = Failure::new(*class, told(*class, why, named, work), named, by);
        left = left.with(Event::Failed { failure });
    }
    Ok(looked.events.into_iter().fold(left, Leave::with))
}

/// The tests nearest to the change. Where they cannot be found, all tests are run at once.
async fn nearest(work: &Work, before: &Baseline, ctx: &mut Ctx<'_>) -> Result<Vec<String>, Stop> {
    let change = work.produced.as_ref().and_then(|produced| {
        let results = before.looked.results()?;
        // Where tests are touched, only all of them tell.
        let touches_tests = produced.files.iter().any(|path| is_evidence(path));
        let repository = &work.task.repository;
        let change = pick::change(repository, &produced.diff, work.intent(), results);
        change.filter(|_| !touches_tests)
    });
    let Some(change) = change else {
        return Ok(Vec::new());
    };
    let deed = Deed::Pick {
        workspace: workspace(work)?,
        change: Box::new(change),
    };
    let picked = tried(ctx.effect::<Picked>(deed.effect()).await)?;
    Ok(picked.unwrap_or_default().tests)
}

/// Collects evidence and judges it.
pub(super) async fn weigh(
    deed: &Deed,
    work: &Work,
    ctx: &mut Ctx<'_>,
) -> Result<(Evidence, Verdict), Stop> {
    let own = match tried(ctx.effect::<Evidence>(deed.effect()).await)? {
        Ok(evidence) => {
            let verdict = judge(work.intent(), &evidence);
            (evidence, verdict)
        }
        Err(why) => {
            let why = format!("the change could not be judged: {why}");
            let nothing = Evidence {
                before: Looked::NoTests,
                after: Looked::NoTests,
                as_is: None,
                without: None,
                accepted: Vec::new(),
                touched_tests: Vec::new(),
                changed_files: 0,
                first: None,
            };
            (nothing, Verdict::Inconclusive { why })
        }
    };
    sites::weigh_too(own, work, ctx).await
}

/// What whoever tries next is told.
fn told(class: FailureClass, why: &str, named: &[String], work: &Work) -> String {
    let mut text = match class {
        FailureClass::TestTampering => {
            format!("{why}. Existing tests count as they were; change the code, not the tests.")
        }
        _ => why.to_owned(),
    };
    for name in named.iter().take(20) {
        text.push_str("\n- ");
        text.push_str(name);
    }
    if let Some(produced) = &work.produced {
        text.push_str("\n\nThe change that was tried:\n");
        text.push_str(tail(&produced.diff, EVIDENCE / 2));
    }
    tail(&text, EVIDENCE).to_owned()
}
