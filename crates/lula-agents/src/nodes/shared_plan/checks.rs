//! What is odd about a plan that could be carried out: patterns that match nothing, conditions that
//! hold already. The planner is told of each once; one that keeps to it has its way.

use std::collections::BTreeSet;

use lula_graph::{NodeContext, VisitStop};

use super::super::{repositories, tried, workspace};
use crate::effects::RunEffect;
use crate::plan::{PathScope, PlanGraph, PlanStepEntry};
use crate::verdict::VerificationEvidence;
use crate::work::{CoderBrief, CodingState};

/// Most files of one name that are shown.
const SHOWN: usize = 3;
/// Most commands that are tried in one repository.
const COMMANDS: usize = 32;

/// What was told of a plan, and what is known of the repositories it is about.
pub(super) struct PlanChecks {
    /// The files of each repository; nothing where not all are known.
    files: Vec<Option<Vec<String>>>,
    /// The plan as it was: what stands in it was told of before.
    known: PlanGraph,
    /// Whether the workspaces still are as they were, so that commands say what they do there.
    unchanged: bool,
    told: BTreeSet<String>,
    /// Commands that were tried, by repository.
    tried: BTreeSet<(usize, String)>,
}

impl PlanChecks {
    /// The checks of a first plan.
    pub(super) fn new<'a>(briefs: impl IntoIterator<Item = Option<&'a CoderBrief>>) -> Self {
        let whole = |brief: Option<&CoderBrief>| {
            let brief = brief.filter(|brief| brief.more == 0 && !brief.files.is_empty());
            brief.map(|brief| brief.files.clone())
        };
        Self {
            files: briefs.into_iter().map(whole).collect(),
            known: PlanGraph::default(),
            unchanged: true,
            told: BTreeSet::new(),
            tried: BTreeSet::new(),
        }
    }

    /// The checks of what is added to a plan.
    pub(super) fn beside(work: &CodingState, dag: &PlanGraph) -> Self {
        Self {
            known: dag.clone(),
            // What came together was put there once.
            unchanged: work.made.is_none(),
            ..Self::new([work.brief.as_ref()])
        }
    }

    /// What is odd about a plan and was not told yet.
    pub(super) async fn remarks(
        &mut self,
        work: &CodingState,
        dag: &PlanGraph,
        ctx: &mut NodeContext<'_>,
    ) -> Result<Vec<String>, VisitStop> {
        let mut remarks = Vec::new();
        let known = &self.known;
        let new: Vec<&PlanStepEntry> = dag
            .steps
            .values()
            .filter(|entry| !known.steps.contains_key(&entry.step.id))
            .collect();
        for entry in &new {
            if let Some(Some(files)) = self.files.get(entry.step.repo) {
                let odd = unmatched(&entry.step.scope, files);
                remarks.extend(
                    odd.into_iter()
                        .map(|why| format!("{}: {why}", entry.step.id)),
                );
            }
        }
        let repositories = if self.unchanged {
            work.repositories.len()
        } else {
            0
        };
        for repo in 0..repositories {
            let mut commands: Vec<String> = Vec::new();
            for entry in new.iter().filter(|entry| entry.step.repo == repo) {
                for command in &entry.step.acceptance {
                    if self.tried.insert((repo, command.clone())) && commands.len() < COMMANDS {
                        commands.push(command.clone());
                    }
                }
            }
            for command in holding(work, repo, commands, ctx).await? {
                remarks.push(format!(
                    "{command:?} succeeds already, so it shows nothing: name one that fails now, or \
                     none, and the tests decide"
                ));
            }
        }
        remarks.retain(|remark| self.told.insert(remark.clone()));
        Ok(remarks)
    }
}

/// Those of these commands that succeed before anything is done.
async fn holding(
    work: &CodingState,
    repo: usize,
    accept: Vec<String>,
    ctx: &mut NodeContext<'_>,
) -> Result<Vec<String>, VisitStop> {
    if accept.is_empty() {
        return Ok(Vec::new());
    }
    let place = match repo {
        0 => Some(workspace(work)?),
        _ => work.place_of(repo).map(|place| place.workspace.clone()),
    };
    let Some(place) = place else {
        return Ok(Vec::new());
    };
    // Where nothing was changed only the commands are run.
    let effect = RunEffect::Verify {
        workspace: place,
        tests: work.task.tests.clone(),
        folder: work.task.folder_of(repo).to_owned(),
        before: Box::default(),
        first: Vec::new(),
        accept,
        tests_ms: work.task.tests_ms,
    };
    let effect = repositories::in_repository(repo, effect).request();
    let seen = tried(ctx.effect::<VerificationEvidence>(effect).await)?;
    let accepted = seen.map(|evidence| evidence.accepted).unwrap_or_default();
    let holding = accepted.into_iter().filter(|one| one.after);
    Ok(holding.map(|one| one.command).collect())
}

/// Patterns that match no file and are no new file, and files that are elsewhere. Pure.
fn unmatched(scope: &PathScope, files: &[String]) -> Vec<String> {
    let mut odd = Vec::new();
    for pattern in scope.patterns() {
        if pattern == "**" || files.contains(pattern) {
            continue;
        }
        if pattern.contains(['*', '?']) {
            let alone = PathScope::new(&[pattern]).unwrap_or_default();
            if !files.iter().any(|path| alone.holds(path)) {
                odd.push(format!(
                    "no file matches {pattern}; name new files one by one, or keep it where all of \
                     them are new"
                ));
            }
            continue;
        }
        // A new file, unless one of that name is elsewhere.
        let name = pattern.rsplit('/').next().unwrap_or(pattern);
        let elsewhere: Vec<&str> = files
            .iter()
            .filter(|path| path.rsplit('/').next() == Some(name))
            .map(String::as_str)
            .collect();
        if (1..=SHOWN).contains(&elsewhere.len()) && !name.starts_with("__init__") {
            odd.push(format!(
                "there is no {pattern}, but {}; keep it where a new file is meant",
                elsewhere.join(", ")
            ));
        }
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(patterns: &[&str]) -> Vec<String> {
        let files = ["src/shop/cli.py", "src/shop/cart.py", "tests/test_cart.py"];
        unmatched(
            &PathScope::new(patterns).unwrap(),
            &files.map(str::to_owned),
        )
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_told_and_a_new_file_is_not() {
        assert!(told(&["src/", "src/shop/cli.py", "docs/new.md", "**"]).is_empty());
        let [odd] = &told(&["lib/**"])[..] else {
            panic!("{:?}", told(&["lib/**"]));
        };
        assert!(odd.contains("no file matches lib/**"), "{odd}");
        let [odd] = &told(&["cli.py"])[..] else {
            panic!("{:?}", told(&["cli.py"]));
        };
        assert!(odd.contains("but src/shop/cli.py"), "{odd}");
    }
}
