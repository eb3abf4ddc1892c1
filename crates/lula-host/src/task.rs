//! From what a person asks for to the task of a run: checked as far as it can be before anything is
//! begun, and with what earlier runs say about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lula_agents::guidelines::GuidelineSet;
use lula_agents::lessons::{LessonRecord, LessonView, MOST};
use lula_agents::model_choice::ModelTrackRecord;
use lula_agents::route::TaskLane;
use lula_agents::task::{RepositoryTerms, TaskRepository};
use lula_agents::team::TeamPolicy;
use lula_agents::{CoderChoice, DeliverMode, RunTask};
use lula_config::keys;
use lula_models::normal::ThinkingEffort;
use lula_sandbox::policy::Profile;
use lula_store::RunStore;
use lula_workspace::GitProgram;

use crate::drive::model_endpoints;
use crate::error::HostError;
use crate::history::{History, standing};
use crate::installation::Installation;
use crate::otlp::TraceContext;
use crate::repository::{around, find_git};
use crate::{folder, guidelines, sandbox};

/// When a person is asked before a change is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// Where the rules say so.
    #[default]
    ByRules,
    /// A person is always asked before anything is delivered.
    First,
    /// Unless the change is likely good.
    Unsure,
    /// Never: whatever can be agreed to beforehand is.
    Beforehand,
}

/// What a person asks for.
#[derive(Debug, Clone)]
pub struct TaskRequest {
    /// What is to be done.
    pub text: String,
    /// Repositories or folders of them, the first one first; the one around this directory where
    /// there are none.
    pub repositories: Vec<PathBuf>,
    /// Whether the task is failing tests that are to pass.
    pub repair: bool,
    /// The command that runs the tests.
    pub tests: Option<String>,
    /// Commands that must succeed when it is done.
    pub accept: Vec<String>,
    /// Commands that finish a change; those of the configuration where there are none.
    pub finish: Vec<String>,
    /// Models to ask, the preferred one first.
    pub models: Vec<String>,
    /// How much they think; as configured where nothing is said.
    pub effort: Option<ThinkingEffort>,
    /// Models that judge a doubtful change.
    pub judges: Vec<String>,
    /// How the work is gone about, where that is chosen.
    pub lane: Option<TaskLane>,
    /// Agents that share a plan.
    pub team: Option<TeamPolicy>,
    /// How many candidates try it.
    pub best_of: Option<u32>,
    /// Who writes the change.
    pub coder: CoderChoice,
    /// Where the change goes.
    pub deliver: DeliverMode,
    /// When a person is asked.
    pub approval: ApprovalMode,
    /// Most attempts at the change.
    pub max_loops: u32,
    /// Most turns of a model in one attempt.
    pub max_turns: u32,
    /// How long the built-in search may take.
    pub search: Duration,
    /// The trace that the run belongs to, as W3C Trace Context writes it; one of its own where it is left
    /// out.
    pub traceparent: Option<String>,
}

fn refused<T>(why: impl Into<String>, remedy: &'static str) -> Result<T, HostError> {
    let why = why.into();
    Err(HostError::TaskRefused { why, remedy })
}

impl TaskRequest {
    /// The task. Everything it needs of the repositories is read here: the driver is locked out of
    /// them.
    pub fn task(&self, installation: &Installation) -> Result<RunTask, HostError> {
        if self.text.trim().is_empty() {
            return refused(
                "the task is empty",
                "say what to do: lula run 'fix the failing tests'",
            );
        }
        let git = find_git(installation)?;
        let named = self.repositories.first().map(PathBuf::as_path);
        let (repository, here) = around(named, &git)?;
        let mut paths = RunTask::new(&self.text, repository.to_string_lossy());
        let others = self.others(&repository, &git)?;
        paths
            .repositories
            .extend(others.into_iter().map(TaskRepository::new));
        let models = model_endpoints::thinking(&self.models, self.effort, installation)?;
        self.check_models(models.is_empty())?;
        let policy = sandbox::policy(installation, Profile::Build);
        let task = RunTask {
            folder: folder::meant(&repository, &here, named.is_some()),
            tests: self.tests.clone(),
            accept: named_for(&paths, &self.accept, 0),
            finish: named_for(&paths, &self.finishing(installation), 0),
            team: self.team.clone(),
            best_of: self.best_of,
            repositories: self.with_terms(&paths, installation)?,
            deliver: self.deliver,
            ask_first: self.approval == ApprovalMode::First,
            lane: self.lane,
            coder: self.coder,
            models,
            guidance: self.guidance(&repository, installation)?,
            max_loops: self.max_loops,
            max_turns: self.max_turns,
            search_ms: u64::try_from(self.search.as_millis()).unwrap_or(u64::MAX),
            tests_ms: policy.limits.wall.millis(),
            // What is no context is as if it had not come.
            traceparent: (self.traceparent.clone())
                .filter(|text| text.parse::<TraceContext>().is_ok()),
            ..RunTask::new(&self.text, repository.to_string_lossy())
        };
        Ok(if self.repair { task.repairing() } else { task })
    }

    /// The commands that finish a change, as this command line or else the configuration names them.
    fn finishing(&self, installation: &Installation) -> Vec<String> {
        if self.finish.is_empty() {
            return installation.config.get(&keys::RUN_FINISH);
        }
        self.finish.clone()
    }

    fn check_models(&self, none: bool) -> Result<(), HostError> {
        if none && self.lane == Some(TaskLane::DeepPlanning) {
            return refused(
                "a plan needs a model, and none is configured",
                "name one with --model, or leave --lane out",
            );
        }
        if none && self.team.is_some() {
            return refused(
                "agents share a plan, a plan needs a model, and none is configured",
                "name one with --model, or leave --agents out",
            );
        }
        if self.best_of.is_some() && (none || self.coder == CoderChoice::Repairer) {
            return refused(
                "candidates are written by models, and none is to be asked",
                "name one or several with --model, or leave --best-of out",
            );
        }
        Ok(())
    }

    /// The other repositories, which have to be others.
    fn others(&self, first: &Path, git: &GitProgram) -> Result<Vec<String>, HostError> {
        let mut others: Vec<String> = Vec::new();
        for named in self.repositories.iter().skip(1) {
            let (other, _) = around(Some(named), git)?;
            let path = other.to_string_lossy().into_owned();
            if other == first || others.contains(&path) {
                let why = format!("{} is named twice", other.display());
                return refused(why, "name each repository once");
            }
            others.push(path);
        }
        if !others.is_empty() && self.team.is_none() {
            return refused(
                "several repositories are for several agents",
                "add --agents N, or name one repository",
            );
        }
        if !others.is_empty() && self.deliver == DeliverMode::Worktree {
            return refused(
                "files of several checkouts cannot be changed as one",
                "use --deliver branch, patch or none",
            );
        }
        Ok(others)
    }

    /// The repositories, each but the first with what it is held to.
    fn with_terms(
        &self,
        task: &RunTask,
        installation: &Installation,
    ) -> Result<Vec<TaskRepository>, HostError> {
        let mut all = task.repositories.clone();
        for (repo, repository) in all.iter_mut().enumerate().skip(1) {
            let top = Path::new(&repository.path);
            repository.terms = Some(RepositoryTerms {
                accept: named_for(task, &self.accept, repo),
                finish: named_for(task, &self.finishing(installation), repo),
                guidelines: guidelines::in_force(Some(top), installation)?,
            });
        }
        Ok(all)
    }

    /// How the change will be rated.
    fn guidance(&self, top: &Path, installation: &Installation) -> Result<GuidelineSet, HostError> {
        let judges = match self.judges.as_slice() {
            [] => Vec::new(),
            names => model_endpoints::named(names, installation)?,
        };
        Ok(GuidelineSet {
            guidelines: guidelines::in_force(Some(top), installation)?,
            calibration: None,
            judges,
            ask_unless_sure: self.approval == ApprovalMode::Unsure,
            agreed_beforehand: self.approval == ApprovalMode::Beforehand,
        })
    }
}

/// Commands as one of several repositories runs them: in each, or only in the one that a command names
/// before a colon; none where it names another.
fn named_for(task: &RunTask, commands: &[String], repo: usize) -> Vec<String> {
    let names: Vec<String> = match task.repositories.len() {
        0 | 1 => Vec::new(),
        count => (0..count).map(|repo| task.repository_name(repo)).collect(),
    };
    let command = |text: &String| {
        let (name, rest) = text.split_once(':').unwrap_or_default();
        match names.iter().position(|known| known == name.trim()) {
            Some(place) => (place == repo).then(|| rest.trim().to_owned()),
            None => Some(text.clone()),
        }
    };
    commands.iter().filter_map(command).collect()
}

/// Adds what earlier runs say about a task, in one reading of them.
pub async fn recall(
    task: &mut RunTask,
    store: Arc<dyn RunStore>,
    installation: &Installation,
) -> Result<(), HostError> {
    let history = History::read(store).await?;
    // One model needs no choosing.
    if task.models.len() > 1 {
        task.standing = standing::standing(&history.stats());
        let named =
            |known: &ModelTrackRecord| task.models.iter().any(|model| model.name == known.model);
        task.standing.retain(named);
    }
    if !task.models.is_empty() {
        let records = history.lessons(task.repository(0), installation).await?;
        task.lessons = view(records)?;
    }
    let git = find_git(installation).ok();
    task.guidance.calibration = history.calibration(git.as_ref(), installation)?;
    Ok(())
}

/// What earlier attempts showed, some of it held back.
fn view(records: Vec<LessonRecord>) -> Result<LessonView, HostError> {
    let in_use = records
        .into_iter()
        .filter(|record| record.retired.is_none());
    let known: Vec<_> = in_use.map(|record| record.lesson).collect();
    let mut dice = [0; MOST];
    getrandom::fill(&mut dice).map_err(|error| HostError::Internal(error.to_string()))?;
    Ok(LessonView::new(&known, |number| dice[number]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(others: &[&str]) -> RunTask {
        let mut task = RunTask::new("rename the field", "/repositories/server");
        let others = others.iter().map(|path| TaskRepository::new(*path));
        task.repositories.extend(others);
        task
    }

    #[test]
    fn a_command_runs_in_the_repository_it_names_or_in_each() {
        let commands = ["make check".to_owned(), "client: npm test".to_owned()];
        let both = task(&["/repositories/client"]);
        assert_eq!(named_for(&both, &commands, 0), ["make check"]);
        assert_eq!(named_for(&both, &commands, 1), ["make check", "npm test"]);
        // With one repository there is nothing to name.
        assert_eq!(named_for(&task(&[]), &commands, 0), commands);
    }
}
