//! Everything a run can have done, and the one table of acts.
//!
//! To add an act:
//!
//! 1. here: a variant of [`RunEffect`], a row of the table below, the row's name in `RunEffect::act`, and the
//!    variant's workspace in `workspace_in`, which the compiler asks for;
//! 2. in `world.rs`: how it is done;
//! 3. only where its result is shown as no other is: a [`ResultDisplay`] here, and the words for it in
//!    `lula-host/src/story/acts.rs`.
//!
//! Everything else goes by the row: what an act is called, what may be done again after a crash, what
//! a person hears while it goes on, its colour in a trace, and how its line is told. What the runner
//! is asked for stands in effects as the runner's API has it; how logs spell it is in `log_form`.

mod log_form;

use lula_edit::patch::FilePatch;
use lula_graph::EffectRequest;
use lula_models::normal::ModelRequest;
use lula_protocol::EffectClass::{Cas, Read};
use lula_protocol::call::ApplyPatch;
use lula_protocol::{
    BudgetAmounts, BudgetDimension, EffectClass, EffectId, RunId, ToolAction, WorkspaceId,
};
use lula_runner_api::{
    ChangeDelivery, CommitAgentChange, FillWorkspaceFromBranch, ForeseenAct, MergeAgentChange,
    OpenWorkspaceOnBranch,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::acts::Tone::{Look, Test, Think, Write};
use crate::acts::row;
use crate::plan::StepId;
use crate::runner_port::Reply;
use crate::survey::SurveyQuery;
use crate::task::RunTask;
use crate::team::PROPOSE;
use crate::test_selection::TestSelectionChange;
use crate::work::TestBaseline;

pub use crate::acts::{Act, Tone};
pub use lula_repair::trial::RepairSearchResult;

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunEffect {
    /// Open the run's workspace.
    Open {
        /// The repository that it shows.
        repository: String,
    },
    /// Try whether the repository and the workspace are out of reach of the driver.
    Fence {
        /// The repository that must be out of reach.
        repository: String,
        /// The workspace that must be out of reach.
        workspace: WorkspaceId,
    },
    /// Look the project over for a coder.
    Survey {
        workspace: WorkspaceId,
        wanted: SurveyQuery,
    },
    /// Read a whole file.
    Fetch {
        workspace: WorkspaceId,
        path: String,
    },
    /// Call a tool in the sandbox.
    Act {
        workspace: WorkspaceId,
        action: ToolAction,
        /// Most bytes that the model which asks for it can be shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<u32>,
    },
    /// Write down what a coder plans to do, for the person to see. It has no effect on anything.
    Todo {
        /// In the order in which it is to be done.
        items: Vec<TodoItem>,
    },
    /// Return to the beginning.
    Reset { workspace: WorkspaceId },
    /// Ask what the rules say about acts that are not begun yet.
    Judge {
        /// The workspace that they would be done in.
        workspace: WorkspaceId,
        acts: Vec<ForeseenAct>,
    },
    /// Run the tests in a fork.
    RunTests {
        /// The workspace that is forked.
        workspace: WorkspaceId,
        /// With this command, where one was given.
        tests: Option<String>,
        /// In this folder, where not at the top.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
        /// Commands that must succeed later, to see what they do now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accept: Vec<String>,
        /// For at most so long.
        tests_ms: u64,
    },
    /// Search for a patch in forks.
    Search {
        /// The workspace that is forked.
        workspace: WorkspaceId,
        /// With this test command, where one was given.
        tests: Option<String>,
        /// In this folder, where not at the top.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
        /// For at most so long.
        search_ms: u64,
    },
    /// Take the change as a diff against the beginning.
    TakeChange { workspace: WorkspaceId },
    /// Find the tests nearest to the change.
    SelectTests {
        /// The workspace that holds the change.
        workspace: WorkspaceId,
        /// The change as it was taken from the workspace.
        change: Box<TestSelectionChange>,
    },
    /// Collect evidence about the change: the tests with it and without it.
    Verify {
        /// The workspace that holds the change.
        workspace: WorkspaceId,
        /// With this test command, where one was given.
        tests: Option<String>,
        /// In this folder, where not at the top.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
        /// What the tests said before.
        before: Box<TestBaseline>,
        /// Tests to run before the others.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        first: Vec<String>,
        /// Commands that must succeed, as a shell reads them.
        accept: Vec<String>,
        /// For at most so long.
        tests_ms: u64,
    },
    /// Run the tests that another workspace's change brings along with the code of this one.
    RunOthersTests {
        /// The workspace whose code it is.
        workspace: WorkspaceId,
        /// The workspace whose tests they are.
        of: WorkspaceId,
        /// With this test command, where one was given.
        tests: Option<String>,
        /// In this folder, where not at the top.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
        /// For at most so long.
        tests_ms: u64,
    },
    /// Ask a model, and pay for it.
    Ask {
        /// The model, by its full name.
        model: String,
        request: Box<ModelRequest>,
        /// It may cost no more than this.
        at_most: BudgetAmounts,
    },
    /// Open a workspace over what the agents of a run did so far.
    OpenOnBranch { order: OpenWorkspaceOnBranch },
    /// Begin the run of an agent.
    Begin {
        /// The run that is to begin.
        agent: RunId,
        /// What it is to do.
        task: Box<RunTask>,
        /// What it may spend.
        limits: BudgetAmounts,
    },
    /// Wait for one of these agents.
    Await { agents: Vec<RunId> },
    /// End these agents, which are not needed any more.
    Dismiss { agents: Vec<RunId> },
    /// Say what an agent wants changed in the plan it is part of.
    Propose {
        /// What it works on.
        step: StepId,
        /// The wish as the model wrote it.
        arguments: Value,
    },
    /// Tell agents what was decided of their wishes.
    Answer {
        /// The reply to each wish, by the effect that asked.
        answers: Vec<(EffectId, Reply)>,
    },
    /// Make a commit of what an agent changed.
    Commit { order: CommitAgentChange },
    /// Merge such a commit into the integration branch.
    Merge { order: Box<MergeAgentChange> },
    /// Fill a workspace from the integration branch, to be judged as a whole.
    Fill {
        /// From where, and which.
        order: FillWorkspaceFromBranch,
    },
    /// Put the changes of the run into their repositories: into all of them, or into none.
    Deliver {
        /// The change of each repository that has one.
        parts: Vec<RepositoryChangeDelivery>,
        /// Whether the run has several repositories.
        several: bool,
    },
    /// The same in the workspace of another repository than the first.
    InRepository {
        /// Which: a number in the list of the run's repositories.
        repo: usize,
        /// The effect in that repository.
        effect: Box<RunEffect>,
    },
}

/// One thing that a coder plans to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    pub text: String,
    #[serde(default)]
    pub done: bool,
}

/// What a coder plans to do, in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TodoSummary {
    pub summary: String,
}

impl TodoSummary {
    /// How much of it is done, and what comes next.
    pub(crate) fn of(items: &[TodoItem]) -> Self {
        let done = items.iter().filter(|item| item.done).count();
        let mut summary = format!("{done} of {} done", items.len());
        if let Some(next) = items.iter().find(|item| !item.done) {
            let line = next.text.lines().next().unwrap_or_default();
            let next: String = line.chars().take(100).collect();
            summary.push_str("; next: ");
            summary.push_str(&next);
        }
        Self { summary }
    }
}

/// The change of one repository on its way into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositoryChangeDelivery {
    /// Which: a number in the list of the run's repositories.
    pub repo: usize,
    pub delivery: ChangeDelivery,
}

/// The workspace that an effect is about, to look at or to change.
macro_rules! workspace_in {
    ($effect:expr) => {
        match $effect {
            // What agents do is in workspaces of their own, and each delivery names its own.
            RunEffect::Open { .. }
            | RunEffect::Todo { .. }
            | RunEffect::Ask { .. }
            | RunEffect::OpenOnBranch { .. }
            | RunEffect::Begin { .. }
            | RunEffect::Await { .. }
            | RunEffect::Dismiss { .. }
            | RunEffect::Propose { .. }
            | RunEffect::Answer { .. }
            | RunEffect::Commit { .. }
            | RunEffect::Merge { .. }
            | RunEffect::Deliver { .. }
            | RunEffect::RunOthersTests { .. }
            | RunEffect::InRepository { .. } => None,
            RunEffect::Fence { workspace, .. }
            | RunEffect::Survey { workspace, .. }
            | RunEffect::Fetch { workspace, .. }
            | RunEffect::Act { workspace, .. }
            | RunEffect::Reset { workspace }
            | RunEffect::Judge { workspace, .. }
            | RunEffect::RunTests { workspace, .. }
            | RunEffect::Search { workspace, .. }
            | RunEffect::TakeChange { workspace }
            | RunEffect::SelectTests { workspace, .. }
            | RunEffect::Verify { workspace, .. }
            | RunEffect::Fill {
                order: FillWorkspaceFromBranch { workspace, .. },
            } => Some(workspace),
        }
    };
}

impl RunEffect {
    /// The row of the effect in the table of acts.
    pub fn act(&self) -> &'static Act {
        match self {
            Self::Open { .. } => &OPEN,
            Self::Fence { .. } => &FENCE,
            Self::Survey { .. } => &SURVEY,
            Self::Fetch { .. } => &FETCH,
            Self::Act { action, .. } => tool(action),
            Self::Todo { .. } => &TODO,
            Self::Reset { .. } => &RESET,
            Self::Judge { .. } => &JUDGE,
            Self::RunTests { .. } => &RUN_TESTS,
            Self::Search { .. } => &SEARCH_PATCH,
            Self::TakeChange { .. } => &TAKE_CHANGE,
            Self::SelectTests { .. } => &PICK_TESTS,
            Self::Verify { .. } => &VERIFY,
            Self::RunOthersTests { .. } => &RUN_OTHERS_TESTS,
            Self::Ask { .. } => &ASK,
            Self::OpenOnBranch { .. } => &OPEN_ON_BRANCH,
            Self::Begin { .. } => &BEGIN_AGENT,
            Self::Await { .. } => &AWAIT_AGENT,
            Self::Dismiss { .. } => &DISMISS_AGENTS,
            Self::Propose { .. } => &PROPOSAL,
            Self::Answer { .. } => &ANSWER_AGENTS,
            Self::Commit { .. } => &COMMIT,
            Self::Merge { .. } => &MERGE,
            Self::Fill { .. } => &FILL,
            Self::Deliver { .. } => &DELIVER,
            Self::InRepository { effect, .. } => effect.act(),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.act().name
    }

    /// What may be done again after a crash. A tool that only looks may, whatever its row says.
    pub fn class(&self) -> EffectClass {
        match self {
            Self::Act { action, .. } if !action.mutates() => EffectClass::Read,
            Self::InRepository { effect, .. } => effect.class(),
            _ => self.act().class,
        }
    }

    /// What a person hears while it goes on, where it may take a while.
    pub(crate) fn doing(&self) -> Option<String> {
        let doing = self.act().doing;
        (!doing.is_empty()).then(|| doing.replace("{}", &self.about()))
    }

    /// What it is about, in a word or two.
    fn about(&self) -> String {
        match self {
            Self::Ask { model, .. } => model.clone(),
            Self::Act { action, .. } => match action {
                ToolAction::ReadFile(read) => read.path.clone(),
                ToolAction::Search(search) => search.pattern.clone(),
                ToolAction::WriteFile(write) => write.path.clone(),
                ToolAction::ApplyPatch(patch) => edited(patch),
                ToolAction::Job(job) => job.job.clone(),
                ToolAction::Exec(exec) => exec.argv.last().cloned().unwrap_or_default(),
                _ => String::new(),
            },
            Self::Deliver {
                parts,
                several: false,
            } => parts
                .first()
                .map(|part| part.delivery.branch.clone())
                .unwrap_or_default(),
            Self::Deliver { parts, .. } => format!("to {} repositories", parts.len()),
            Self::Todo { items } => TodoSummary::of(items).summary,
            Self::Await { agents } => agents.len().to_string(),
            Self::Merge { order } => order.step.clone(),
            Self::InRepository { effect, .. } => effect.about(),
            _ => String::new(),
        }
    }

    /// The workspace it is about.
    pub fn workspace(&self) -> Option<&WorkspaceId> {
        workspace_in!(self)
    }

    /// The same in another workspace.
    pub(crate) fn move_to(&mut self, to: &WorkspaceId) {
        if let Some(workspace) = workspace_in!(self) {
            *workspace = to.clone();
        }
    }

    /// What a log holds of it.
    pub(crate) const fn logged(&self) -> log_form::EffectLogForm<'_> {
        log_form::EffectLogForm(self)
    }

    /// Reads what a log holds of an effect.
    pub(crate) fn from_log(request: Value) -> Result<Self, serde_json::Error> {
        log_form::read(request)
    }

    /// As an effect of the graph.
    pub fn request(&self) -> EffectRequest {
        let effect = EffectRequest::new(self.class(), self.act().logged, &self.logged());
        match self {
            Self::Act { .. } if self.class() == EffectClass::Tree => {
                effect.reserving(BudgetAmounts::none().with(BudgetDimension::ToolCalls, 1))
            }
            _ => effect,
        }
    }
}

/// How the result of an act is told in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultDisplay {
    /// Not at all: that it was done says everything.
    Name,
    /// As a tool's reply, with what the model asked for.
    Reply,
    /// As a number of files; what a tool replied as that.
    Files,
    /// As a workspace that was opened.
    Place,
    /// As tests that were run.
    Tests,
    /// By what it sums itself up with.
    Summary,
    /// As tests that were picked.
    Picked,
    /// As evidence about a change.
    Evidence,
    /// As the size of a change.
    Change,
    /// As the place where a change is now.
    Delivery,
    /// As the answer of a model.
    Answer,
}

macro_rules! acts {
    ($($act:ident = $row:expr;)*) => {
        $(static $act: Act = $row;)*
        /// Every act, in the order of the table.
        pub static ACTS: &[&Act] = &[$(&$act),*];
    };
}

// Whatever happens in forks leaves nothing behind: it is a read. What agents are told to do is found
// again where it was done: a run by its name, a commit in the ledger.
acts! {
    OPEN = row("open", Read, Look, ResultDisplay::Place, "taking a private copy of the repository");
    FENCE = row("fence", Read, Look, ResultDisplay::Name, "");
    SURVEY = row("survey", Read, Look, ResultDisplay::Name, "looking the project over");
    FETCH = row("fetch", Read, Look, ResultDisplay::Files, "");
    RESET = row("reset", EffectClass::Tree, Write, ResultDisplay::Files, "");
    JUDGE = row("judge", Read, Look, ResultDisplay::Name, "");
    RUN_TESTS = row("run_tests", Read, Test, ResultDisplay::Tests, "running the tests, in the sandbox");
    SEARCH_PATCH = row("search_patch", Read, Test, ResultDisplay::Summary, "searching for a patch, with no model");
    TAKE_CHANGE = row("take_change", Read, Look, ResultDisplay::Change, "");
    PICK_TESTS = row("pick_tests", Read, Look, ResultDisplay::Picked, "");
    VERIFY = row("verify", Read, Test, ResultDisplay::Evidence, "judging the change: tests with it and without it").logged_as("weigh");
    RUN_OTHERS_TESTS = row("run_others_tests", Read, Test, ResultDisplay::Tests, "running the tests of one candidate with the code of another");
    ASK = row("ask", EffectClass::Model, Think, ResultDisplay::Answer, "asking {}");
    OPEN_ON_BRANCH = row("open_on_branch", Read, Look, ResultDisplay::Name, "taking a private copy of what is done so far").logged_as("open_over");
    BEGIN_AGENT = row("begin_agent", Cas, Look, ResultDisplay::Name, "");
    AWAIT_AGENT = row("await_agent", Cas, Look, ResultDisplay::Name, "{} agents at work");
    DISMISS_AGENTS = row("dismiss_agents", Cas, Look, ResultDisplay::Name, "");
    PROPOSAL = row(PROPOSE, Cas, Look, ResultDisplay::Reply, "proposing another plan");
    ANSWER_AGENTS = row("answer_agents", Cas, Look, ResultDisplay::Name, "");
    COMMIT = row("commit", Cas, Look, ResultDisplay::Name, "").logged_as("produce");
    MERGE = row("merge", Cas, Look, ResultDisplay::Name, "merging {}, with the tests of the whole").logged_as("integrate");
    FILL = row("fill", EffectClass::Tree, Look, ResultDisplay::Name, "").logged_as("gather");
    DELIVER = row("deliver", Cas, Write, ResultDisplay::Delivery, "delivering {}");
    READ_FILE = row("read_file", Read, Look, ResultDisplay::Reply, "  reads {}");
    LIST_FILES = row("list_files", Read, Look, ResultDisplay::Files, "");
    SEARCH = row("search", Read, Look, ResultDisplay::Reply, "  searches for {}");
    OUTLINE = row("outline", Read, Look, ResultDisplay::Reply, "");
    WRITE_FILE = row("write_file", EffectClass::Tree, Write, ResultDisplay::Reply, "  writes {}").or_asked(&["edit_file"]);
    APPLY_PATCH = row("apply_patch", EffectClass::Tree, Write, ResultDisplay::Reply, "  edits {}").or_asked(&["edit_file", "move_file", "delete_file"]);
    EXEC = row("exec", EffectClass::Tree, Test, ResultDisplay::Reply, "  runs {}").or_asked(&["run"]);
    JOB = row("job", EffectClass::Tree, Test, ResultDisplay::Reply, "");
    TODO = row("todo", Read, Think, ResultDisplay::Summary, "  plans: {}");
    GIT = row("git", EffectClass::Tree, Look, ResultDisplay::Reply, "");
    SNAPSHOT = row("snapshot", Read, Look, ResultDisplay::Reply, "");
    UNDO = row("undo", EffectClass::Tree, Look, ResultDisplay::Reply, "");
}

fn tool(action: &ToolAction) -> &'static Act {
    match action {
        ToolAction::ReadFile(_) => &READ_FILE,
        ToolAction::ListFiles(_) => &LIST_FILES,
        ToolAction::Search(_) => &SEARCH,
        ToolAction::Outline(_) => &OUTLINE,
        ToolAction::WriteFile(_) => &WRITE_FILE,
        ToolAction::ApplyPatch(_) => &APPLY_PATCH,
        ToolAction::Exec(_) => &EXEC,
        ToolAction::Job(_) => &JOB,
        ToolAction::Git(_) => &GIT,
        ToolAction::Snapshot(_) => &SNAPSHOT,
        ToolAction::Undo(_) => &UNDO,
    }
}

/// The files that a patch is about.
fn edited(patch: &ApplyPatch) -> String {
    match patch {
        ApplyPatch::Texts { path, .. } | ApplyPatch::Delete { path } => path.clone(),
        ApplyPatch::Move { from, to } => format!("{from} → {to}"),
        ApplyPatch::SearchReplace { edits } => edits
            .first()
            .map_or_else(String::new, |edit| edit.path.clone()),
        ApplyPatch::UnifiedDiff { diff: patch } | ApplyPatch::Any { patch } => {
            let patches = lula_edit::patch::parse(patch).unwrap_or_default();
            let paths: Vec<&str> = patches.iter().flat_map(FilePatch::paths).collect();
            paths.join(", ")
        }
    }
}

#[cfg(test)]
mod tests;
