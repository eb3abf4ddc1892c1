//! What a person asks for, and everything that was settled before the run began.
//!
//! A run derives every decision from its task and from what its effects returned; so whatever comes
//! from configuration (models, prices, limits) is written down here when the run starts.

use std::collections::BTreeSet;

use lula_models::normal::ThinkingEffort;
use lula_models::output::OutputCapability;
use lula_models::spend::ModelPrice;
use lula_repair::TestSelection;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::chat::ChatTerms;
use crate::guidelines::{Guideline, GuidelineSet};
use crate::intent::{literal, test_names};
use crate::lessons::LessonView;
use crate::model_choice::ModelTrackRecord;
use crate::route::TaskLane;
use crate::team::{AgentHandoff, TeamPolicy};

pub use crate::intent::TaskIntent;

/// One task.
///
/// `remote = "Self"`: the derived code spells `repositories` as a list; how logs spell it is below,
/// where the traits are implemented.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct RunTask {
    /// In the person's words.
    pub text: String,
    /// The repositories that it is about.
    pub repositories: Vec<TaskRepository>,
    /// What kind of evidence it asks for; nothing in logs from before that was settled first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<TaskIntent>,
    /// Where tests are to pass: those that are meant, as the person names them. All that fail where
    /// none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goal: Vec<String>,
    /// The folder of the first repository that the task is about; empty for its top. Tests and
    /// acceptance commands are those of this folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// The command that runs the tests, where one was given.
    pub tests: Option<String>,
    /// Commands that must succeed when the task is done, as a shell reads them, in the first repository.
    pub accept: Vec<String>,
    /// Commands that finish a change, as a shell reads them: formatters, generators. They run in the
    /// workspace of the first repository after a coder's edits, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finish: Vec<String>,
    /// Whether the gate asks rules and budget before an attempt; it did not when older logs were
    /// written, which say nothing of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// What becomes of the change.
    pub deliver: DeliverMode,
    /// Whether a person has to agree to exactly that change first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask_first: bool,
    /// The lane, where the person chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<TaskLane>,
    pub coder: CoderChoice,
    /// Models that may be asked, the preferred one first.
    pub models: Vec<ModelChoice>,
    /// How they did before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standing: Vec<ModelTrackRecord>,
    /// How several agents share the work, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamPolicy>,
    /// How many candidates are made, of which the best is taken, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_of: Option<u32>,
    /// How freely models answer at least, in hundredths, where that is settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_percent: Option<u32>,
    /// Who sends the agent that works on it, and with what, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Box<AgentHandoff>>,
    /// How changes are rated.
    #[serde(default, skip_serializing_if = "GuidelineSet::is_empty")]
    pub guidance: GuidelineSet,
    /// What earlier attempts showed.
    #[serde(default, skip_serializing_if = "LessonView::is_empty")]
    pub lessons: LessonView,
    /// How it is talked about, where a person talks with its coder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatTerms>,
    /// How often a failed attempt is followed by another.
    pub max_loops: u32,
    /// How often a model may act in one attempt.
    pub max_turns: u32,
    /// How long the built-in repairer may search, in milliseconds.
    pub search_ms: u64,
    /// How long the tests may take, in milliseconds.
    pub tests_ms: u64,
    /// The trace that it belongs to, as W3C Trace Context writes it; one of its own where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl RunTask {
    /// A task with the usual limits and no model.
    pub fn new(text: impl Into<String>, repository: impl Into<String>) -> Self {
        let text = text.into();
        let (intent, goal) = asked(&text);
        Self {
            text,
            repositories: vec![TaskRepository::new(repository)],
            intent: Some(intent),
            goal,
            folder: String::new(),
            tests: None,
            accept: Vec::new(),
            finish: Vec::new(),
            gated: true,
            deliver: DeliverMode::Branch,
            ask_first: false,
            lane: None,
            coder: CoderChoice::Auto,
            models: Vec::new(),
            standing: Vec::new(),
            team: None,
            best_of: None,
            temperature_percent: None,
            handoff: None,
            guidance: GuidelineSet::default(),
            lessons: LessonView::default(),
            chat: None,
            max_loops: 3,
            max_turns: 40,
            search_ms: 120_000,
            tests_ms: 600_000,
            traceparent: None,
        }
    }
}

/// What a text asks for, and the tests it names where it asks for those.
fn asked(text: &str) -> (TaskIntent, Vec<String>) {
    match literal(text) {
        Some(named) => (TaskIntent::Repair, named),
        None => (TaskIntent::Change, Vec::new()),
    }
}

impl RunTask {
    /// The same, where the person says beside it that failing tests are to pass.
    #[must_use]
    pub fn repairing(mut self) -> Self {
        if self.intent != Some(TaskIntent::Repair) {
            self.intent = Some(TaskIntent::Repair);
            self.goal = test_names(&self.text);
        }
        self
    }

    /// The same as what a chat is about: a person says what is to be done, turn by turn.
    #[must_use]
    pub fn talked_about(mut self, terms: ChatTerms) -> Self {
        self.chat = Some(terms);
        self.intent = Some(TaskIntent::Change);
        self.goal = Vec::new();
        self.lane = Some(TaskLane::Interactive);
        self.coder = CoderChoice::Model;
        self
    }

    /// Whether its text says that failing tests are to pass, and nothing else.
    pub fn says_only_repair(&self) -> bool {
        let listed = self.text.split_once(crate::heal::THESE_FAIL);
        literal(listed.map_or(self.text.as_str(), |(text, _)| text)).is_some()
    }

    /// Takes another text, which may ask for something else.
    pub(crate) fn reword(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        if self.intent.is_some() {
            let (intent, goal) = asked(text);
            self.intent = Some(intent);
            self.goal = goal;
        }
    }

    /// Which tests of a repository are meant.
    pub fn tests_of(&self, repo: usize) -> TestSelection {
        TestSelection {
            command: self.tests.clone(),
            folder: self.folder_of(repo).to_owned(),
        }
    }

    /// The folder of a repository that the task is about; empty for its top.
    pub fn folder_of(&self, repo: usize) -> &str {
        if repo == 0 { &self.folder } else { "" }
    }

    /// A repository by its number, as an absolute path.
    pub fn repository(&self, repo: usize) -> &str {
        let found = self.repositories.get(repo).or(self.repositories.first());
        found.map_or("", |repository| repository.path.as_str())
    }

    /// A repository in a word: the name of its directory, with its number where that is not enough.
    pub fn repository_name(&self, repo: usize) -> String {
        let name = |repo: usize| {
            let path = self.repository(repo).trim_end_matches('/');
            path.rsplit('/').next().unwrap_or_default()
        };
        let others = (0..self.repositories.len()).filter(|other| *other != repo);
        if others.map(name).any(|other| other == name(repo)) {
            return format!("{}-{}", name(repo), repo + 1);
        }
        name(repo).to_owned()
    }

    /// What one of the other repositories is held to, where something is said.
    pub fn terms(&self, repo: usize) -> Option<&RepositoryTerms> {
        self.repositories.get(repo)?.terms.as_ref()
    }

    /// Commands that finish a change of a repository.
    pub fn finishing(&self, repo: usize) -> &[String] {
        match self.terms(repo) {
            _ if repo == 0 => &self.finish,
            Some(terms) => &terms.finish,
            None => &[],
        }
    }

    /// What the whole is rated by: what every repository says, the first where several say the same.
    pub fn guidelines(&self) -> impl Iterator<Item = &Guideline> {
        let own = &self.guidance.guidelines;
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let others = self.repositories.iter().filter_map(|it| it.terms.as_ref());
        let others = others.flat_map(|terms| &terms.guidelines);
        own.iter()
            .chain(others)
            .filter(move |one| known.insert(&one.id))
    }

    /// How changes of a repository are rated.
    pub fn guidance_of(&self, repo: usize) -> GuidelineSet {
        let mut guidance = self.guidance.clone();
        if let Some(terms) = self.terms(repo) {
            guidance.guidelines.clone_from(&terms.guidelines);
        }
        guidance
    }
}

/// One repository of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRepository {
    pub path: String,
    /// What it is held to; for the first that is the task's own folder, commands and guidelines.
    pub terms: Option<RepositoryTerms>,
}

impl TaskRepository {
    /// A repository with no terms of its own.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            terms: None,
        }
    }
}

/// Logs name the first repository, and the others and their terms beside it.
impl Serialize for RunTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut task = Self::serialize(self, serde_json::value::Serializer)
            .map_err(serde::ser::Error::custom)?;
        if let Some(fields) = task.as_object_mut() {
            fields.remove("repositories");
            fields.insert("repository".to_owned(), json!(self.repository(0)));
            let others = self.repositories.get(1..).unwrap_or_default();
            let paths: Vec<&str> = others.iter().map(|other| other.path.as_str()).collect();
            if !paths.is_empty() {
                fields.insert("also".to_owned(), json!(paths));
            }
            if others.iter().any(|other| other.terms.is_some()) {
                let terms = others.iter().map(|it| it.terms.clone().unwrap_or_default());
                fields.insert("also_terms".to_owned(), json!(terms.collect::<Vec<_>>()));
            }
        }
        task.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut task = Value::deserialize(deserializer)?;
        if let Some(fields) = task.as_object_mut() {
            let first = fields.remove("repository").into_iter();
            let others = match fields.remove("also") {
                Some(Value::Array(others)) => others,
                _ => Vec::new(),
            };
            let mut terms = match fields.remove("also_terms") {
                Some(Value::Array(terms)) => terms.into_iter(),
                _ => Vec::new().into_iter(),
            };
            let mut all: Vec<Value> = first.map(|it| json!({"path": it, "terms": null})).collect();
            all.extend(
                others
                    .into_iter()
                    .map(|it| json!({"path": it, "terms": terms.next()})),
            );
            fields.insert("repositories".to_owned(), Value::Array(all));
        }
        Self::deserialize(task).map_err(serde::de::Error::custom)
    }
}

/// What one of several repositories is held to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositoryTerms {
    /// Commands that must succeed there when the task is done.
    pub accept: Vec<String>,
    /// Commands that finish a change there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finish: Vec<String>,
    /// How changes of it are rated.
    pub guidelines: Vec<Guideline>,
}

/// What becomes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliverMode {
    /// A new branch of the repository.
    Branch,
    /// The files of the person's checkout.
    Worktree,
    /// The diff is reported, the repository stays as it is.
    Patch,
    /// The change stays in the record of the run.
    None,
}

/// Who writes the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoderChoice {
    /// The built-in repairer where the task is failing tests, then a model.
    Auto,
    /// Only the built-in repairer.
    Repairer,
    /// Only models, without a search.
    Model,
}

/// A model that may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelChoice {
    /// Its full name, as in `ollama/qwen2.5-coder:7b`.
    pub name: String,
    /// The provider's own name of it.
    pub model: String,
    /// What it can be trusted to do with structure.
    pub capability: OutputCapability,
    /// What it costs at most.
    pub rates: ModelRates,
    /// Its context in tokens, where known.
    pub context: Option<u64>,
    /// Most tokens of one answer.
    pub max_tokens: u32,
    /// How it is asked, and what is known of its price.
    #[serde(default, skip_serializing_if = "ModelSettings::is_usual")]
    pub settings: ModelSettings,
}

impl ModelChoice {
    /// What it costs at most, and whether that is known or a bound.
    pub fn price(&self) -> ModelPrice {
        ModelPrice {
            known: !self.settings.unpriced,
            ..self.rates.into()
        }
    }
}

/// How a model is asked, and what is known of its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// How much it is to think before it answers.
    #[serde(default, skip_serializing_if = "ThinkingEffort::is_off")]
    pub effort: ThinkingEffort,
    /// Whether its price is not known, so that its rates are a bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
    /// Whether it takes pictures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pictures: bool,
}

impl ModelSettings {
    /// Whether nothing was said and everything is known.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A price, as a run keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRates {
    /// Millionths of a dollar for a million tokens read.
    pub input: u64,
    /// The same for tokens written.
    pub output: u64,
    /// For tokens read from the prompt cache.
    pub cache_read: u64,
    /// For tokens written to the prompt cache.
    pub cache_write: u64,
}

impl From<&ModelPrice> for ModelRates {
    fn from(price: &ModelPrice) -> Self {
        Self {
            input: price.input,
            output: price.output,
            cache_read: price.cache_read,
            cache_write: price.cache_write,
        }
    }
}

impl From<ModelRates> for ModelPrice {
    fn from(rates: ModelRates) -> Self {
        Self {
            input: rates.input,
            output: rates.output,
            cache_read: rates.cache_read,
            cache_write: rates.cache_write,
            as_of: None,
            known: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_asks_for_is_written_down_with_it() {
        let task = RunTask::new("fix the failing test test_a", "/r");
        assert_eq!(task.intent, Some(TaskIntent::Repair));
        assert_eq!(task.goal, ["test_a"]);
        let report = "pytest says 2 failed, since the build is broken on Windows";
        let task = RunTask::new(report, "/r");
        assert_eq!(task.intent, Some(TaskIntent::Change));
        let flagged = task.repairing();
        assert_eq!(flagged.intent, Some(TaskIntent::Repair));
        assert!(!flagged.says_only_repair());
    }

    #[test]
    fn repositories_are_kept_as_logs_spell_them() {
        let mut task = RunTask::new("x", "/one");
        let value = serde_json::to_value(&task).unwrap();
        assert_eq!(
            (&value["repository"], value.get("also")),
            (&json!("/one"), None)
        );
        task.repositories.push(TaskRepository::new("/two"));
        for terms in [None, Some(RepositoryTerms::default())] {
            task.repositories[1].terms = terms;
            let value = serde_json::to_value(&task).unwrap();
            assert_eq!(value["also"], json!(["/two"]));
            let with = task.repositories[1].terms.is_some();
            assert_eq!(value.get("also_terms").is_some(), with);
            assert_eq!(serde_json::from_value::<RunTask>(value).unwrap(), task);
        }
        let stranger = json!({"repository": "/one", "text": "x", "another": 1});
        assert!(serde_json::from_value::<RunTask>(stranger).is_err());
    }

    #[test]
    fn a_task_of_an_older_log_is_still_read() {
        let mut value = serde_json::to_value(RunTask::new("fix it", "/r")).unwrap();
        let fields = value.as_object_mut().unwrap();
        for new in ["intent", "goal", "folder", "gated"] {
            fields.remove(new);
        }
        let task: RunTask = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(task.intent, None);
        assert!(!task.gated, "its gate asked nothing");
        assert_eq!(serde_json::to_value(&task).unwrap(), value);
    }
}
