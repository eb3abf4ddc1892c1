//! Everything a run can have done, as it is written into orders.

use lula_graph::Effect;
use lula_models::normal::ModelRequest;
use lula_models::spend::{input_bound, worst_case};
use lula_protocol::{Action, Amounts, Dimension, EffectClass, EffectId, RunId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dag::JobId;
use crate::hands::{Consignment, Harvest, Joining, Line, OverLine, Said, Shipment};
use crate::pick::Change;
use crate::survey::Wanted;
use crate::task::{Mind, Task};
use crate::team::PROPOSE;
use crate::work::Baseline;

pub use lula_repair::trial::Found;

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case", deny_unknown_fields)]
pub enum Deed {
    /// Open the run's workspace.
    Open {
        /// Of this repository.
        repository: String,
    },
    /// Try whether the repository and the workspace are out of reach of whoever drives the run.
    Fence {
        /// The repository.
        repository: String,
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// Look the project over for a coder.
    Survey {
        /// Where.
        workspace: WorkspaceId,
        /// For what.
        wanted: Wanted,
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
        action: Action,
    },
    /// Return to the beginning.
    Reset {
        /// Where.
        workspace: WorkspaceId,
    },
    /// Run the tests in a fork.
    Examine {
        /// Of this workspace.
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
        /// Of this workspace.
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
        /// In this workspace.
        workspace: WorkspaceId,
        /// The change.
        change: Box<Change>,
    },
    /// Collect evidence about the change.
    Weigh {
        /// In this workspace.
        workspace: WorkspaceId,
        /// With this test command, where one was given.
        tests: Option<String>,
        /// In this folder, where not at the top.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String,
        /// What the tests said before.
        before: Box<Baseline>,
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
        at_most: Amounts,
    },
    /// Open a workspace over what the agents of a run did so far.
    OpenOver {
        /// Which, and how.
        wanted: OverLine,
    },
    /// Begin the run of an agent.
    Begin {
        /// Its run.
        agent: RunId,
        /// What it is to do.
        task: Box<Task>,
        /// What it may spend.
        limits: Amounts,
    },
    /// Wait for one of these agents.
    Await {
        /// Their runs.
        agents: Vec<RunId>,
    },
    /// End these agents, whom nobody needs any more.
    Dismiss {
        /// Their runs.
        agents: Vec<RunId>,
    },
    /// Say what an agent wants changed in the plan it is part of.
    Propose {
        /// What it works on.
        job: JobId,
        /// In its words.
        arguments: Value,
    },
    /// Tell agents what was decided of their wishes.
    Answer {
        /// Each.
        answers: Vec<(EffectId, Said)>,
    },
    /// Keep what an agent did as a commit.
    Harvest {
        /// What.
        order: Harvest,
    },
    /// Bring such a commit into the line.
    Join {
        /// Which.
        order: Box<Joining>,
    },
    /// Take everything that is integrated to where it is judged as a whole.
    Lay {
        /// The line.
        line: Line,
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// Put the change into the repository.
    Deliver {
        /// How.
        order: Consignment,
    },
    /// Put the changes of several repositories into all of them, or into none.
    DeliverAll {
        /// What, and how.
        parts: Vec<Shipment>,
    },
    /// The same in the workspace of another repository of the run.
    Elsewhere {
        /// Which: a number in the list of the run's repositories.
        site: usize,
        /// What.
        act: Box<Deed>,
    },
}

/// What a change is, as a run keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// As a unified diff.
    pub diff: String,
    /// The files it touches.
    pub files: Vec<String>,
    /// The state of the workspace.
    pub tree: lula_protocol::Digest,
}

/// The workspace that a deed is about, to look at or to change.
macro_rules! workspace_in {
    ($deed:expr) => {
        match $deed {
            // What agents do is in workspaces of their own.
            Deed::Open { .. }
            | Deed::Ask { .. }
            | Deed::OpenOver { .. }
            | Deed::Begin { .. }
            | Deed::Await { .. }
            | Deed::Dismiss { .. }
            | Deed::Propose { .. }
            | Deed::Answer { .. }
            | Deed::Harvest { .. }
            | Deed::Join { .. }
            | Deed::DeliverAll { .. }
            | Deed::Elsewhere { .. } => None,
            Deed::Fence { workspace, .. }
            | Deed::Survey { workspace, .. }
            | Deed::Fetch { workspace, .. }
            | Deed::Act { workspace, .. }
            | Deed::Reset { workspace }
            | Deed::Lay { workspace, .. }
            | Deed::Examine { workspace, .. }
            | Deed::Repair { workspace, .. }
            | Deed::Change { workspace }
            | Deed::Pick { workspace, .. }
            | Deed::Weigh { workspace, .. }
            | Deed::Deliver {
                order: Consignment { workspace, .. },
            } => Some(workspace),
        }
    };
}

impl Deed {
    /// What it is called in the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Fence { .. } => "fence",
            Self::Survey { .. } => "survey",
            Self::Fetch { .. } => "fetch",
            Self::Act { action, .. } => action.tool(),
            Self::Reset { .. } => "reset",
            Self::Examine { .. } => "run_tests",
            Self::Repair { .. } => "search_patch",
            Self::Change { .. } => "take_change",
            Self::Pick { .. } => "pick_tests",
            Self::Weigh { .. } => "weigh",
            Self::Ask { .. } => "ask",
            Self::OpenOver { .. } => "open_over",
            Self::Begin { .. } => "begin_agent",
            Self::Await { .. } => "await_agent",
            Self::Dismiss { .. } => "dismiss_agents",
            Self::Propose { .. } => PROPOSE,
            Self::Answer { .. } => "answer_agents",
            Self::Harvest { .. } => "produce",
            Self::Join { .. } => "integrate",
            Self::Lay { .. } => "gather",
            Self::Deliver { .. } | Self::DeliverAll { .. } => "deliver",
            Self::Elsewhere { act, .. } => act.name(),
        }
    }

    /// What may be done again after a crash. Whatever happens in forks leaves nothing behind.
    pub fn class(&self) -> EffectClass {
        match self {
            Self::Open { .. }
            | Self::OpenOver { .. }
            | Self::Fence { .. }
            | Self::Survey { .. }
            | Self::Fetch { .. }
            | Self::Examine { .. }
            | Self::Repair { .. }
            | Self::Change { .. }
            | Self::Pick { .. }
            | Self::Weigh { .. } => EffectClass::Read,
            Self::Act { action, .. } if !action.mutates() => EffectClass::Read,
            Self::Act { .. } | Self::Reset { .. } | Self::Lay { .. } => EffectClass::Tree,
            Self::Ask { .. } => EffectClass::Model,
            // Ordered again, each finds what was done: a run by its name, a commit in the ledger.
            Self::Begin { .. }
            | Self::Await { .. }
            | Self::Dismiss { .. }
            | Self::Propose { .. }
            | Self::Answer { .. }
            | Self::Harvest { .. }
            | Self::Join { .. }
            | Self::Deliver { .. }
            | Self::DeliverAll { .. } => EffectClass::Cas,
            Self::Elsewhere { act, .. } => act.class(),
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
    pub fn effect(&self) -> Effect {
        let effect = Effect::new(self.class(), self.name(), self);
        match self {
            Self::Act { .. } if self.class() == EffectClass::Tree => {
                effect.reserving(Amounts::none().with(Dimension::ToolCalls, 1))
            }
            _ => effect,
        }
    }
}

/// A question to a model as an effect, with the most it may cost held back.
pub fn ask(mind: &Mind, request: ModelRequest) -> Effect {
    let body = serde_json::to_vec(&request).unwrap_or_default();
    let bound = input_bound(&body, None);
    // On the wire a request is written otherwise, and may be somewhat longer.
    let bound = bound.saturating_add(bound / 4);
    let bound = mind.context.map_or(bound, |context| bound.min(context));
    let worst = worst_case(&mind.rates.into(), bound, u64::from(request.max_tokens));
    let deed = Deed::Ask {
        mind: mind.name.clone(),
        request: Box::new(request),
        at_most: worst.clone(),
    };
    deed.effect().reserving(worst)
}
