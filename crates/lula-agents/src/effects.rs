//! Everything a run can have done, as it is written into orders, and the one table of acts.
//!
//! To add an act:
//!
//! 1. here: a variant of [`RunEffect`], a row of the table below, the row's name in `RunEffect::act`, and the
//!    variant's workspace in `workspace_in`, which the compiler asks for;
//! 2. in `world.rs`: how it is done;
//! 3. only where its result is shown as no other is: a [`Showing`] here, and the words for it in
//!    `runs/story/acts.rs` of the driver.
//!
//! Everything else goes by the row: what an act is called in the log, what may be done again after a
//! crash, what a person hears while it goes on, its colour in a trace, and how its line is told.

use lula_graph::EffectRequest;
use lula_models::normal::ModelRequest;
use lula_protocol::EffectClass::{Cas, Read};
use lula_protocol::{
    BudgetAmounts, BudgetDimension, EffectClass, EffectId, RunId, ToolAction, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::acts::Tone::{Look, Test, Think, Write};
use crate::acts::row;
use crate::plan::StepId;
use crate::runner_port::{
    CommitChangeRequest, DeliverRequest, DeliverRequestPart, IntegrationBranchRef, LineWorkspace,
    MergeOrder, Reply,
};
use crate::survey::SurveyQuery;
use crate::task::RunTask;
use crate::team::PROPOSE;
use crate::test_selection::TestSelectionChange;
use crate::work::TestBaseline;

pub use crate::acts::{Act, Tone};
pub use lula_repair::trial::RepairSearchResult;

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case", deny_unknown_fields)]
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
        /// Where.
        workspace: WorkspaceId,
        /// For what.
        wanted: SurveyQuery,
    },
    /// Read a whole file.
    Fetch {
        /// Where.
        workspace: WorkspaceId,
        /// Which.
        path: String,
    },
    /// Call a tool.
    Act {
        /// Where.
        workspace: WorkspaceId,
        /// What.
        action: ToolAction,
    },
    /// Return to the beginning.
    Reset {
        /// Where.
        workspace: WorkspaceId,
    },
    /// Run the tests in a fork.
    Examine {
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
    Repair {
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
    /// Take the change.
    Change {
        /// Of this workspace.
        workspace: WorkspaceId,
    },
    /// Find the tests nearest to the change.
    Pick {
        /// The workspace that holds the change.
        workspace: WorkspaceId,
        /// The change as it was taken from the workspace.
        change: Box<TestSelectionChange>,
    },
    /// Collect evidence about the change.
    Weigh {
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
        /// Acceptance commands.
        accept: Vec<String>,
        /// For at most so long.
        tests_ms: u64,
    },
    /// Ask a model.
    Ask {
        /// By this name.
        mind: String,
        /// This.
        request: Box<ModelRequest>,
        /// It may cost no more than this.
        at_most: BudgetAmounts,
    },
    /// Open a workspace over what the agents of a run did so far.
    OpenOver {
        /// Which, and how.
        wanted: LineWorkspace,
    },
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
    Await {
        /// Their runs.
        agents: Vec<RunId>,
    },
    /// End these agents, which are not needed any more.
    Dismiss {
        /// Their runs.
        agents: Vec<RunId>,
    },
    /// Say what an agent wants changed in the plan it is part of.
    Propose {
        /// What it works on.
        job: StepId,
        /// In its words.
        arguments: Value,
    },
    /// Tell agents what was decided of their wishes.
    Answer {
        /// Each.
        answers: Vec<(EffectId, Reply)>,
    },
    /// Keep what an agent did as a commit.
    Harvest {
        /// What.
        order: CommitChangeRequest,
    },
    /// Bring such a commit into the line.
    Join {
        /// Which.
        order: Box<MergeOrder>,
    },
    /// Take everything that is integrated to where it is judged as a whole.
    Lay {
        /// The line that holds what is integrated.
        line: IntegrationBranchRef,
        /// The workspace that gets all of it.
        workspace: WorkspaceId,
    },
    /// Put the change into the repository.
    Deliver {
        /// How.
        order: DeliverRequest,
    },
    /// Put the changes of several repositories into all of them, or into none.
    DeliverAll {
        /// What, and how.
        parts: Vec<DeliverRequestPart>,
    },
    /// The same in the workspace of another repository of the run.
    Elsewhere {
        /// Which: a number in the list of the run's repositories.
        site: usize,
        /// What.
        act: Box<RunEffect>,
    },
}

/// The workspace that a deed is about, to look at or to change.
macro_rules! workspace_in {
    ($deed:expr) => {
        match $deed {
            // What agents do is in workspaces of their own.
            RunEffect::Open { .. }
            | RunEffect::Ask { .. }
            | RunEffect::OpenOver { .. }
            | RunEffect::Begin { .. }
            | RunEffect::Await { .. }
            | RunEffect::Dismiss { .. }
            | RunEffect::Propose { .. }
            | RunEffect::Answer { .. }
            | RunEffect::Harvest { .. }
            | RunEffect::Join { .. }
            | RunEffect::DeliverAll { .. }
            | RunEffect::Elsewhere { .. } => None,
            RunEffect::Fence { workspace, .. }
            | RunEffect::Survey { workspace, .. }
            | RunEffect::Fetch { workspace, .. }
            | RunEffect::Act { workspace, .. }
            | RunEffect::Reset { workspace }
            | RunEffect::Lay { workspace, .. }
            | RunEffect::Examine { workspace, .. }
            | RunEffect::Repair { workspace, .. }
            | RunEffect::Change { workspace }
            | RunEffect::Pick { workspace, .. }
            | RunEffect::Weigh { workspace, .. }
            | RunEffect::Deliver {
                order: DeliverRequest { workspace, .. },
            } => Some(workspace),
        }
    };
}

impl RunEffect {
    /// Its row.
    pub fn act(&self) -> &'static Act {
        match self {
            Self::Open { .. } => &OPEN,
            Self::Fence { .. } => &FENCE,
            Self::Survey { .. } => &SURVEY,
            Self::Fetch { .. } => &FETCH,
            Self::Act { action, .. } => tool(action),
            Self::Reset { .. } => &RESET,
            Self::Examine { .. } => &RUN_TESTS,
            Self::Repair { .. } => &SEARCH_PATCH,
            Self::Change { .. } => &TAKE_CHANGE,
            Self::Pick { .. } => &PICK_TESTS,
            Self::Weigh { .. } => &WEIGH,
            Self::Ask { .. } => &ASK,
            Self::OpenOver { .. } => &OPEN_OVER,
            Self::Begin { .. } => &BEGIN_AGENT,
            Self::Await { .. } => &AWAIT_AGENT,
            Self::Dismiss { .. } => &DISMISS_AGENTS,
            Self::Propose { .. } => &PROPOSAL,
            Self::Answer { .. } => &ANSWER_AGENTS,
            Self::Harvest { .. } => &PRODUCE,
            Self::Join { .. } => &INTEGRATE,
            Self::Lay { .. } => &GATHER,
            Self::Deliver { .. } | Self::DeliverAll { .. } => &DELIVER,
            Self::Elsewhere { act, .. } => act.act(),
        }
    }

    /// What it is called in the log.
    pub fn name(&self) -> &'static str {
        self.act().name
    }

    /// What may be done again after a crash. A tool that only looks may, whatever its row says.
    pub fn class(&self) -> EffectClass {
        match self {
            Self::Act { action, .. } if !action.mutates() => EffectClass::Read,
            Self::Elsewhere { act, .. } => act.class(),
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
            Self::Ask { mind, .. } => mind.clone(),
            Self::Act { action, .. } => match action {
                ToolAction::ReadFile(read) => read.path.clone(),
                ToolAction::Search(search) => search.pattern.clone(),
                ToolAction::WriteFile(write) => write.path.clone(),
                ToolAction::Exec(exec) => exec.argv.last().cloned().unwrap_or_default(),
                _ => String::new(),
            },
            Self::Deliver { order } => order.branch.clone(),
            Self::DeliverAll { parts } => format!("to {} repositories", parts.len()),
            Self::Await { agents } => agents.len().to_string(),
            Self::Join { order } => order.job.to_string(),
            Self::Elsewhere { act, .. } => act.about(),
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

    /// As an effect of the graph.
    pub fn effect(&self) -> EffectRequest {
        let effect = EffectRequest::new(self.class(), self.name(), self);
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
pub enum Showing {
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
    /// As a change.
    Change,
    /// As the place where a change is now.
    Delivery,
    /// As the answer of a model.
    Answer,
}

macro_rules! acts {
    ($($act:ident = $row:expr;)*) => {
        $(static $act: Act = $row;)*
        /// Every act.
        pub static ACTS: &[&Act] = &[$(&$act),*];
    };
}

// Whatever happens in forks leaves nothing behind: it is a read. What agents are told to do is found
// again where it was done: a run by its name, a commit in the ledger.
acts! {
    OPEN = row("open", Read, Look, Showing::Place, "taking a private copy of the repository");
    FENCE = row("fence", Read, Look, Showing::Name, "");
    SURVEY = row("survey", Read, Look, Showing::Name, "looking the project over");
    FETCH = row("fetch", Read, Look, Showing::Files, "");
    RESET = row("reset", EffectClass::Tree, Write, Showing::Files, "");
    RUN_TESTS = row("run_tests", Read, Test, Showing::Tests, "running the tests, in the sandbox");
    SEARCH_PATCH = row("search_patch", Read, Test, Showing::Summary, "searching for a patch, with no model");
    TAKE_CHANGE = row("take_change", Read, Look, Showing::Change, "");
    PICK_TESTS = row("pick_tests", Read, Look, Showing::Picked, "");
    WEIGH = row("weigh", Read, Test, Showing::Evidence, "judging the change: tests with it and without it");
    ASK = row("ask", EffectClass::Model, Think, Showing::Answer, "asking {}");
    OPEN_OVER = row("open_over", Read, Look, Showing::Name, "taking a private copy of what is done so far");
    BEGIN_AGENT = row("begin_agent", Cas, Look, Showing::Name, "");
    AWAIT_AGENT = row("await_agent", Cas, Look, Showing::Name, "{} agents at work");
    DISMISS_AGENTS = row("dismiss_agents", Cas, Look, Showing::Name, "");
    PROPOSAL = row(PROPOSE, Cas, Look, Showing::Reply, "proposing another plan");
    ANSWER_AGENTS = row("answer_agents", Cas, Look, Showing::Name, "");
    PRODUCE = row("produce", Cas, Look, Showing::Name, "");
    INTEGRATE = row("integrate", Cas, Look, Showing::Name, "integrating {}, with the tests of the whole");
    GATHER = row("gather", EffectClass::Tree, Look, Showing::Name, "");
    DELIVER = row("deliver", Cas, Write, Showing::Delivery, "delivering {}");
    READ_FILE = row("read_file", Read, Look, Showing::Reply, "  reads {}");
    LIST_FILES = row("list_files", Read, Look, Showing::Files, "");
    SEARCH = row("search", Read, Look, Showing::Reply, "  searches for {}");
    OUTLINE = row("outline", Read, Look, Showing::Reply, "");
    WRITE_FILE = row("write_file", EffectClass::Tree, Write, Showing::Reply, "  writes {}").or_asked(&["edit_file"]);
    APPLY_PATCH = row("apply_patch", EffectClass::Tree, Write, Showing::Reply, "");
    EXEC = row("exec", EffectClass::Tree, Test, Showing::Reply, "  runs {}").or_asked(&["run"]);
    GIT = row("git", EffectClass::Tree, Look, Showing::Reply, "");
    SNAPSHOT = row("snapshot", Read, Look, Showing::Reply, "");
    UNDO = row("undo", EffectClass::Tree, Look, Showing::Reply, "");
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
        ToolAction::Git(_) => &GIT,
        ToolAction::Snapshot(_) => &SNAPSHOT,
        ToolAction::Undo(_) => &UNDO,
    }
}

#[cfg(test)]
mod tests;
