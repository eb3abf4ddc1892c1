//! Looks at the project: its files, what its tests say, and which files matter.

use lula_graph::{Ctx, Leave, Visit};

use crate::deeds::Deed;
use crate::graph::{Coding, Way};
use crate::nodes::{tried, workspace};
use crate::task::speaks_of_failing_tests;
use crate::trial::is_evidence;
use crate::verdict::Looked;
use crate::work::{Baseline, Brief, End, Event, Work};

/// Most files that are listed for a coder.
const LISTED: usize = 400;
/// Most files that are named as likely.
const LIKELY: usize = 8;

pub(crate) async fn visit(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let place = workspace(work)?;
    let deed = Deed::Files {
        workspace: place.clone(),
    };
    let files: Vec<String> = ctx.effect(deed.effect()).await?;
    let baseline = if let Some(baseline) = &work.baseline {
        baseline.clone()
    } else {
        let deed = Deed::Examine {
            workspace: place,
            tests: work.task.tests.clone(),
            tests_ms: work.task.tests_ms,
        };
        match tried(ctx.effect::<Baseline>(deed.effect()).await)? {
            Ok(baseline) => baseline,
            Err(why) => {
                let why = format!("the tests cannot be run here: {why}");
                return Ok(pointless(End::Environment { why }, None));
            }
        }
    };
    if let Some(end) = obstacle(&work.task.text, &baseline) {
        return Ok(pointless(end, Some(baseline)));
    }
    let brief = brief(&files, &work.task.text, &baseline);
    let left = Leave::by(Way::Ok);
    let left = if work.baseline.is_none() {
        left.with(Event::Examined {
            baseline: Box::new(baseline),
        })
    } else {
        left
    };
    Ok(left.with(Event::Briefed { brief }))
}

fn pointless(end: End, baseline: Option<Baseline>) -> crate::graph::Left {
    let mut left = Leave::by(Way::Pointless);
    if let Some(baseline) = baseline {
        left = left.with(Event::Examined {
            baseline: Box::new(baseline),
        });
    }
    left.with(Event::Ending { end })
}

/// Why it makes no sense to go on, where the task is failing tests.
fn obstacle(text: &str, baseline: &Baseline) -> Option<End> {
    if !speaks_of_failing_tests(text) {
        return None;
    }
    match &baseline.looked {
        Looked::NoTests => Some(End::Environment {
            why: "no tests were found: give the command that runs them with --tests".to_owned(),
        }),
        Looked::CannotRun(why) => Some(End::Environment {
            why: format!("the tests cannot be run ({why}): `lula exec -- CMD` shows what they see"),
        }),
        Looked::Ran(results) if !results.failing.is_empty() => None,
        Looked::Ran(_) if !baseline.unfixable.is_empty() => Some(End::Environment {
            why: format!(
                "the failing tests need something that is not installed: {}",
                baseline.unfixable.join(", ")
            ),
        }),
        Looked::Ran(results) if !results.flaky.is_empty() => Some(End::Halted {
            why: format!(
                "the failing tests pass when run again ({}): a flaky test proves no change",
                results.flaky.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
        }),
        Looked::Ran(results) => Some(End::NothingToDo {
            passing: results.passing.len(),
        }),
    }
}

/// The files that matter most: those the task, the failing tests and their messages name. Pure.
fn brief(files: &[String], text: &str, baseline: &Baseline) -> Brief {
    let mut words = text.to_lowercase();
    for (id, message) in &baseline.messages {
        words.push('\n');
        words.push_str(&id.to_lowercase());
        words.push('\n');
        words.push_str(&message.to_lowercase());
    }
    let mut scored: Vec<(usize, &String)> = files
        .iter()
        .map(|path| (score(path, &words), path))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    Brief {
        files: files.iter().take(LISTED).cloned().collect(),
        more: files.len().saturating_sub(LISTED),
        likely: scored
            .into_iter()
            .take(LIKELY)
            .map(|(_, path)| path.clone())
            .collect(),
    }
}

/// How much speaks for a file. Code counts more than the tests that name it.
fn score(path: &str, words: &str) -> usize {
    let path_lower = path.to_lowercase();
    let name = path_lower.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let mut score = 0;
    if words.contains(&path_lower) {
        score += 6;
    }
    if name.len() > 4 && words.contains(name) {
        score += 3;
    }
    let parts = words.split(|c: char| !c.is_alphanumeric() && c != '_');
    let named = |word: &str| word == stem || word.strip_prefix("test_") == Some(stem);
    if stem.len() > 2 && parts.into_iter().any(named) {
        score += 2;
    }
    if score > 0 && !is_evidence(path) {
        score += 2;
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Results;

    fn baseline(failing: &[&str], flaky: &[&str]) -> Baseline {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        Baseline {
            looked: Looked::Ran(Results {
                failing: set(failing),
                flaky: set(flaky),
                ..Results::default()
            }),
            command: None,
            messages: vec![(
                "tests/test_cart.py::test_total".to_owned(),
                "shop/cart.py:12: AssertionError".to_owned(),
            )],
            unfixable: Vec::new(),
        }
    }

    #[test]
    fn code_that_a_failing_test_names_comes_first() {
        let files = ["shop/cart.py", "shop/tax.py", "tests/test_cart.py"].map(str::to_owned);
        let brief = brief(&files, "fix the failing tests", &baseline(&["t"], &[]));
        assert_eq!(brief.likely, ["shop/cart.py", "tests/test_cart.py"]);
    }

    #[test]
    fn a_task_about_failing_tests_needs_failing_tests() {
        let text = "fix the failing tests";
        assert_eq!(obstacle(text, &baseline(&["t"], &[])), None);
        let nothing = obstacle(text, &baseline(&[], &[]));
        assert!(matches!(nothing, Some(End::NothingToDo { .. })));
        let flaky = obstacle(text, &baseline(&[], &["t"]));
        assert!(matches!(flaky, Some(End::Halted { .. })));
        assert_eq!(obstacle("add a flag", &baseline(&[], &[])), None);
    }
}
