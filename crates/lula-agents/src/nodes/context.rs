//! Looks at the project: its files, what its tests say, and which files matter.

use lula_graph::{NodeContext, NodeExit, NodeVisitFuture, VisitStop};
use lula_index::FileStanding;
use lula_protocol::WorkspaceId;
use lula_protocol::units::whole_seconds;

use crate::effects::RunEffect;
use crate::graph::{CodingGraph, RunNodeExit};
use crate::intent::{is_meant, old_log_means_tests};
use crate::lessons::recall;
use crate::model_choice::{ModelRole, choose};
use crate::nodes::{tried, workspace};
use crate::survey::{ProjectSurvey, SurveyQuery, about};
use crate::task::{RunTask, TaskIntent};
use crate::verdict::TestRunAttempt;
use crate::work::{
    CoderBrief, CodingState, EarlyEnd, RepositoryEvent, RunStateEvent, TestBaseline,
};
use lula_repair::trial::is_evidence;

/// Most files that are listed for a coder.
const LISTED: usize = 400;
/// Most files that are named as likely.
const LIKELY: usize = 8;
/// Most of them where only the map speaks for them.
const LIKELY_ON_MAP: usize = 3;
/// Bytes of map and places together: where nothing is known of the model's context, and at least and at
/// most. What a model looks for itself tells it more than a longer map.
const USUAL: u64 = 4 << 10;
const LEAST: u64 = 2 << 10;
const MOST: u64 = 16 << 10;
/// This part of a model's context, where a token is taken for three bytes.
const SHARE: u64 = 64;
const TOKEN: u64 = 3;
/// The project's own instructions may take so many times that.
const INSTRUCTIONS: u64 = 2;

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    if work.chat.is_some() {
        // A person waits for the first word: tests are run once a change is to be delivered.
        let brief = survey(work, &TestBaseline::default(), ctx).await?;
        return Ok(NodeExit::by(RunNodeExit::Ok).with(RunStateEvent::Briefed { brief }));
    }
    let (baseline, brief) = match look(work, ctx).await? {
        Ok(seen) => seen,
        Err((end, baseline)) => return Ok(pointless(end, baseline)),
    };
    let left = NodeExit::by(RunNodeExit::Ok);
    let left = if work.baseline_of(0).is_none() {
        left.with(tested(baseline.clone()))
    } else {
        left
    };
    let left = left.with(RunStateEvent::Briefed { brief });
    // Chosen once: what a run is shown is what it is judged by.
    if work.task.lessons.is_empty() || work.recalled.is_some() {
        return Ok(left);
    }
    let recalled = recall(&work.clone().knowing(baseline));
    Ok(left.with(RunStateEvent::Recalled { recalled }))
}

/// What the tests of the first repository say before anything is done.
pub(super) fn tested(baseline: TestBaseline) -> RunStateEvent {
    RunStateEvent::Repository(RepositoryEvent::Tested {
        repo: 0,
        baseline: Box::new(baseline),
    })
}

/// What is seen of a project, or why looking was enough.
pub(super) type ProjectContext =
    Result<(TestBaseline, CoderBrief), (EarlyEnd, Option<TestBaseline>)>;

/// What the tests and the acceptance commands of a repository do before anything is done.
pub(super) fn run_tests(work: &CodingState, repo: usize, workspace: &WorkspaceId) -> RunEffect {
    let settled = work.task.intent.is_some();
    RunEffect::RunTests {
        workspace: workspace.clone(),
        tests: work.task.tests.clone(),
        folder: work.task.folder_of(repo).to_owned(),
        // Logs from before intents were settled know of none that early.
        accept: if settled {
            work.acceptance(repo)
        } else {
            Vec::new()
        },
        tests_ms: work.task.tests_ms,
    }
}

/// Looks at the project.
pub(super) async fn look(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> Result<ProjectContext, VisitStop> {
    let baseline = if let Some(baseline) = work.baseline_of(0) {
        baseline.clone()
    } else {
        let effect = run_tests(work, 0, &workspace(work)?);
        match tried(ctx.effect::<TestBaseline>(effect.request()).await)? {
            Ok(baseline) => baseline,
            Err(why) => {
                let why = format!("the tests cannot be run here: {why}");
                return Ok(Err((EarlyEnd::Environment { why, broken: None }, None)));
            }
        }
    };
    if let Some(end) = obstacle(&work.task, &baseline) {
        return Ok(Err((end, Some(baseline))));
    }
    let brief = survey(work, &baseline, ctx).await?;
    Ok(Ok((baseline, brief)))
}

/// Looks the project over, for what a coder is told of it.
async fn survey(
    work: &CodingState,
    baseline: &TestBaseline,
    ctx: &mut NodeContext<'_>,
) -> Result<CoderBrief, VisitStop> {
    let effect = RunEffect::Survey {
        workspace: workspace(work)?,
        wanted: wanted(work, baseline),
    };
    // A project that cannot be looked over can still be worked on.
    let survey: ProjectSurvey = tried(ctx.effect(effect.request()).await)?.unwrap_or_default();
    Ok(brief(survey, &work.task.text, baseline))
}

fn pointless(end: EarlyEnd, baseline: Option<TestBaseline>) -> crate::graph::NodeDeparture {
    let mut left = NodeExit::by(RunNodeExit::Pointless);
    if let Some(baseline) = baseline {
        left = left.with(tested(baseline));
    }
    left.with(RunStateEvent::Ending { end })
}

/// Where the tests cannot tell anything, whatever the task is: a person has to do something first.
pub(super) fn unusable(looked: &TestRunAttempt) -> Option<EarlyEnd> {
    match looked {
        TestRunAttempt::EnvironmentBroken(broken) => {
            let remedy = broken.remedy.as_ref();
            let remedy = remedy.map(|command| format!("; `{command}` installs it"));
            Some(EarlyEnd::Environment {
                why: format!(
                    "the tests cannot run here: {}{}",
                    broken.what,
                    remedy.unwrap_or_default()
                ),
                broken: Some(broken.clone()),
            })
        }
        TestRunAttempt::OutOfTime(ms) => Some(EarlyEnd::OutOfTime {
            why: format!(
                "the tests did not end within {}, so nothing is known of them: give them more time \
                 with --sandbox-timeout, or name fewer with --tests",
                whole_seconds(*ms)
            ),
        }),
        TestRunAttempt::Ran(_)
        | TestRunAttempt::NoTests
        | TestRunAttempt::CannotRun(_)
        | TestRunAttempt::NotRun => None,
    }
}

/// Why it makes no sense to go on.
fn obstacle(task: &RunTask, baseline: &TestBaseline) -> Option<EarlyEnd> {
    if let Some(end) = unusable(&baseline.looked) {
        return Some(end);
    }
    let repairs = match task.intent {
        Some(intent) => intent == TaskIntent::Repair,
        None => old_log_means_tests(&task.text),
    };
    if !repairs {
        return None;
    }
    let unfit = |why: String| Some(EarlyEnd::Environment { why, broken: None });
    let results = match &baseline.looked {
        TestRunAttempt::Ran(results) => results,
        TestRunAttempt::CannotRun(why) => {
            return unfit(format!(
                "the tests cannot be run ({why}): `lula exec -- CMD` shows what they see"
            ));
        }
        _ => {
            return unfit(
                "no tests were found: give the command that runs them with --tests".to_owned(),
            );
        }
    };
    let meant =
        |id: &&String| task.goal.is_empty() || task.goal.iter().any(|name| is_meant(id, name));
    if results.failing.iter().any(|id| meant(&id)) {
        return None;
    }
    let named = |ids: &mut dyn Iterator<Item = &String>| {
        let ids: Vec<&str> = ids.filter(meant).map(String::as_str).collect();
        ids.join(", ")
    };
    let unfixable = named(&mut baseline.unfixable.iter());
    if !unfixable.is_empty() {
        return unfit(format!(
            "the failing tests need something that is not installed: {unfixable}"
        ));
    }
    let flaky = named(&mut results.flaky.iter());
    if !flaky.is_empty() {
        return Some(EarlyEnd::Unclear {
            why: format!(
                "the failing tests pass when run again ({flaky}): a flaky test proves no change"
            ),
        });
    }
    // What else the person says, or a command that fails, is something that a model can do.
    let more = !task.accept.is_empty() || !task.says_only_repair();
    let settled = task.intent.is_some();
    (!settled || !more || task.models.is_empty()).then(|| EarlyEnd::NothingToDo {
        passing: results.passing.len(),
        named: task.goal.clone(),
    })
}

/// What is looked for: as much as the model to be asked can well hold.
pub(super) fn wanted(work: &CodingState, baseline: &TestBaseline) -> SurveyQuery {
    let context = choose(work, ModelRole::Coder).and_then(|chosen| chosen.model.context);
    let most = room(context);
    SurveyQuery {
        text: about(&work.task.text, &baseline.messages),
        files: Vec::new(),
        repository: work.task.repository(0).to_owned(),
        tokens: most / TOKEN,
        instructions: Some(most * INSTRUCTIONS),
    }
}

/// How many bytes map and places may take together.
fn room(context: Option<u64>) -> u64 {
    let share = |context: u64| (context.saturating_mul(TOKEN) / SHARE).clamp(LEAST, MOST);
    context.map_or(USUAL, share)
}

/// The files that matter most: those the task, the failing tests and their messages name, or else
/// the first ones of the map. Pure.
pub(super) fn brief(survey: ProjectSurvey, text: &str, baseline: &TestBaseline) -> CoderBrief {
    let files = &survey.files;
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
        .filter(|(score, path)| *score > 0 && FileStanding::of(path) != FileStanding::Noise)
        .collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut likely: Vec<String> = scored
        .into_iter()
        .take(LIKELY)
        .map(|(_, path)| path.clone())
        .collect();
    if likely.is_empty() {
        likely = survey.ranked.into_iter().take(LIKELY_ON_MAP).collect();
    }
    CoderBrief {
        more: files.len().saturating_sub(LISTED),
        files: files.iter().take(LISTED).cloned().collect(),
        likely,
        map: survey.map,
        instructions: survey.instructions,
        hits: survey.hits,
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
    if score > 0 && !is_evidence(path) && FileStanding::of(path) < FileStanding::Vendored {
        score += 2;
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::ProjectTestResults;

    fn baseline(failing: &[&str], flaky: &[&str]) -> TestBaseline {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        TestBaseline {
            looked: TestRunAttempt::Ran(ProjectTestResults {
                failing: set(failing),
                flaky: set(flaky),
                ..ProjectTestResults::default()
            }),
            messages: vec![(
                "tests/test_cart.py::test_total".to_owned(),
                "shop/cart.py:12: AssertionError".to_owned(),
            )],
            ..TestBaseline::default()
        }
    }

    #[test]
    fn code_that_a_failing_test_names_comes_first() {
        let files = ["shop/cart.py", "shop/tax.py", "tests/test_cart.py"].map(str::to_owned);
        let survey = ProjectSurvey {
            files: files.to_vec(),
            ranked: vec!["shop/tax.py".to_owned()],
            ..ProjectSurvey::default()
        };
        let named = brief(
            survey.clone(),
            "fix the failing tests",
            &baseline(&["t"], &[]),
        );
        assert_eq!(named.likely, ["shop/cart.py", "tests/test_cart.py"]);
        let mut silent = baseline(&["t"], &[]);
        silent.messages.clear();
        let ranked = brief(survey, "make it better", &silent);
        assert_eq!(ranked.likely, ["shop/tax.py"]);
    }

    #[test]
    fn map_and_places_grow_with_what_a_model_can_hold() {
        assert_eq!(room(None), 4 << 10);
        assert_eq!(room(Some(8_000)), 2 << 10);
        assert_eq!(room(Some(200_000)), 9_375);
        assert_eq!(room(Some(1_000_000)), 16 << 10);
    }

    #[test]
    fn a_task_about_failing_tests_needs_failing_tests() {
        let task = RunTask::new("fix the failing tests", "/r");
        assert_eq!(obstacle(&task, &baseline(&["t"], &[])), None);
        let nothing = obstacle(&task, &baseline(&[], &[]));
        assert!(matches!(nothing, Some(EarlyEnd::NothingToDo { .. })));
        let flaky = obstacle(&task, &baseline(&[], &["t"]));
        assert!(matches!(flaky, Some(EarlyEnd::Unclear { .. })));
        let change = RunTask::new("add a flag", "/r");
        assert_eq!(obstacle(&change, &baseline(&[], &[])), None);
        // The test that is meant does not fail, whatever else does.
        let named = RunTask::new("fix the failing test test_a", "/r");
        let nothing = obstacle(&named, &baseline(&["t"], &[]));
        assert!(
            matches!(nothing, Some(EarlyEnd::NothingToDo { named, .. }) if named == ["test_a"])
        );
    }

    #[test]
    fn a_green_suite_ends_nothing_that_says_more_than_repair() {
        let green = baseline(&[], &[]);
        let model = model();
        let mut task = RunTask::new("the report of pytest --cov is broken", "/r").repairing();
        task.models = vec![model];
        assert_eq!(obstacle(&task, &green), None);
        let mut literal = RunTask::new("fix the failing tests", "/r");
        literal.models = task.models.clone();
        assert!(obstacle(&literal, &green).is_some());
        literal.accept = vec!["make check".to_owned()];
        assert_eq!(obstacle(&literal, &green), None);
    }

    #[test]
    fn a_broken_environment_and_lost_time_end_every_task() {
        for text in ["fix the failing tests", "add a flag"] {
            let task = RunTask {
                accept: vec!["make check".to_owned()],
                ..RunTask::new(text, "/r")
            };
            let mut seen = baseline(&[], &[]);
            seen.looked = TestRunAttempt::EnvironmentBroken(Box::default());
            let end = obstacle(&task, &seen);
            assert!(matches!(
                end,
                Some(EarlyEnd::Environment {
                    broken: Some(_),
                    ..
                })
            ));
            seen.looked = TestRunAttempt::OutOfTime(1000);
            assert!(matches!(
                obstacle(&task, &seen),
                Some(EarlyEnd::OutOfTime { .. })
            ));
        }
        // No tests at all are no obstacle for something else.
        let mut seen = baseline(&[], &[]);
        seen.looked = TestRunAttempt::NoTests;
        assert_eq!(obstacle(&RunTask::new("add a flag", "/r"), &seen), None);
    }

    fn model() -> crate::task::ModelChoice {
        crate::task::ModelChoice {
            name: "a/b".to_owned(),
            model: "b".to_owned(),
            capability: lula_models::output::OutputCapability::ToolCalls,
            rates: crate::task::ModelRates {
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
}
