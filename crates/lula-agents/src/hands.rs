//! The only way to a workspace: whoever does the work is behind this trait, and holds no keys.

use async_trait::async_trait;
use lula_protocol::{ApprovalId, Digest, EffectId, RunId, ToolCall, WorkspaceId};
use lula_repair::trial::{Baseline, Results};
pub use lula_runner::api::{IgnoredView, Trial, TrialResult};
use serde::{Deserialize, Serialize};

use crate::dag::JobId;
use crate::deeds::Taken;
use crate::recover::FailureClass;
use crate::task::Deliver;
use crate::world::Watch;

/// A workspace: a private copy of a repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its name.
    pub workspace: WorkspaceId,
    /// The commit it began with.
    pub commit: String,
    /// How many tracked files of the repository have changes that are not committed, and so are
    /// not part of it.
    pub uncommitted: usize,
    /// The subjects of the last commits, the newest first. Material, never an instruction.
    #[serde(default)]
    pub history: Vec<String>,
    /// What git ignores in the repository, and is shown read-only below the files of the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredView>,
}

/// What a tool said, as a model may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The text. Material, never an instruction.
    pub text: String,
    /// Whether the tool did not do what was asked.
    pub failed: bool,
    /// Who did not let it, where somebody did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

impl Said {
    /// That something did not work, and why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            failed: true,
            refused: None,
        }
    }
}

/// Who did not let something be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// A rule.
    ByRule,
    /// A person, or everybody's silence.
    ByPeople,
}

impl Refused {
    /// The class of a failure by it.
    pub const fn class(self) -> FailureClass {
        match self {
            Self::ByRule => FailureClass::PolicyDenied,
            Self::ByPeople => FailureClass::ApprovalRejected,
        }
    }
}

/// A file as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its path.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The files of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Relative to its top.
    pub files: Vec<Listed>,
    /// Whether there are more.
    pub more: bool,
}

/// A change on its way into a repository. The same order always makes the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consignment {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// How.
    pub deliver: Deliver,
    /// The branch to make.
    pub branch: String,
    /// The commit's message, trailers included.
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
    /// The state of the workspace that was judged; another one is not delivered.
    pub tree: Digest,
}

/// The change of one of several repositories on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shipment {
    /// Which: a number in the list of the run's repositories.
    pub site: usize,
    /// What, and how.
    pub order: Consignment,
}

/// A change that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivered {
    /// The branch, where one was made.
    pub branch: Option<String>,
    /// The commit, where one was made.
    pub commit: Option<String>,
    /// The directory whose files were changed, where some were.
    pub directory: Option<String>,
    /// What remembers how those files were, so that they can be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
}

/// The line that the agents of a run build on: what is integrated so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The run whose line it is.
    pub run: RunId,
    /// In which repository.
    pub repository: String,
    /// The commit it began with.
    pub base: String,
}

/// What a workspace over a line begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case", deny_unknown_fields)]
pub enum Footing {
    /// The line as it is.
    Line,
    /// The line with a commit merged over it, conflicts marked.
    Merge {
        /// The commit.
        commit: String,
    },
}

/// A workspace over a line, as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverLine {
    /// The line.
    pub line: Line,
    /// The name of the workspace.
    pub workspace: WorkspaceId,
    /// What may be written there; anything where nothing is said.
    pub scope: Vec<String>,
    /// Commits that have to be integrated already.
    pub contains: Vec<String>,
    /// What it begins with.
    pub footing: Footing,
}

/// What an agent did, to be kept as a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harvest {
    /// For this line.
    pub line: Line,
    /// By this job.
    pub job: JobId,
    /// In this workspace.
    pub workspace: WorkspaceId,
    /// The state that was judged.
    pub tree: Digest,
    /// The commit's message.
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
}

/// A commit of what an agent did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The commit.
    pub commit: String,
    /// Files it changes that it may not change.
    pub outside: Vec<String>,
}

/// A commit on its way into a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joining {
    /// The line.
    pub line: Line,
    /// The job.
    pub job: JobId,
    /// The commit.
    pub commit: String,
    /// The command that runs the tests, where one was given.
    pub tests: Option<String>,
    /// The folder that they belong to; empty for the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// What the tests say of the line. Where nothing is said they are not run: whatever is in the
    /// line is judged as a whole before it goes anywhere.
    pub before: Option<Box<Baseline>>,
    /// Commands that must succeed on the merged files.
    pub accept: Vec<String>,
    /// For at most so long.
    pub tests_ms: u64,
    /// The merge's message.
    pub message: String,
    /// The merge's time, Unix time in seconds.
    pub at: u64,
}

/// What came of it. Anything but the first changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "joined", rename_all = "snake_case", deny_unknown_fields)]
pub enum Joined {
    /// The line contains it.
    Integrated {
        /// The merge.
        commit: String,
        /// What the tests say of the merged files, where they were run.
        tests: Option<Box<Results>>,
    },
    /// It does not fit.
    Misfit {
        /// What shows it. Material, never an instruction.
        said: String,
        /// The files it is about.
        files: Vec<String>,
        /// Whether the same places were changed, rather than their meaning.
        textual: bool,
    },
    /// Nobody can tell.
    Unclear {
        /// Why.
        why: String,
    },
}

/// Why the hands did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandsError {
    /// It was tried and did not work, for certain.
    #[error("{0}")]
    Failed(String),
    /// Nobody knows whether it was done.
    #[error("{0}")]
    Lost(String),
    /// It was not tried, and cannot be now.
    #[error("{0}")]
    Unreachable(String),
    /// It was not done: people are asked first.
    #[error("{reason}")]
    Held {
        /// The question.
        approval: ApprovalId,
        /// Why it is asked.
        reason: String,
    },
    /// It was not done, and will not be.
    #[error("{why}")]
    Refused {
        /// Who said no.
        by: Refused,
        /// What they said.
        why: String,
    },
}

/// The workspace of a run.
pub fn workspace_of(run: &RunId) -> WorkspaceId {
    let body = run.as_str().trim_start_matches("run_");
    // Both kinds of names have the same body.
    format!("ws_{body}")
        .parse()
        .unwrap_or_else(|_| WorkspaceId::from_parts(0, [0; 10]))
}

/// Whose effect it is: what makes it happen once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The run.
    pub run: RunId,
    /// Its identity.
    pub id: EffectId,
    /// Who orders it.
    pub epoch: u64,
}

impl Effect {
    /// A part of it that only looks: its identity follows from what it is about.
    #[must_use]
    pub fn part(&self, about: &str) -> Self {
        let digest = Digest::of_bytes(format!("{}/{about}", self.id).as_bytes());
        let mut random = [0; 10];
        random.copy_from_slice(&digest.as_bytes()[..10]);
        Self {
            id: EffectId::from_parts(0, random),
            ..self.clone()
        }
    }
}

/// Where the work is done. Whoever is behind it keeps a ledger: an effect that was done is not done
/// again, its result is told; one that was cut off is taken back before it is done again.
#[async_trait]
pub trait Hands: Send + Sync + 'static {
    /// Opens the workspace of a run, or finds it again.
    async fn open(&self, run: &RunId, repository: &str) -> Result<Place, HandsError>;

    /// Opens a workspace of its own for a run that was forked, beginning as another began. One
    /// that is open already stays as it is.
    async fn adopt(&self, run: &RunId, of: &WorkspaceId) -> Result<(), HandsError>;

    /// The files of a workspace.
    async fn files(&self, effect: &Effect, workspace: &WorkspaceId) -> Result<Listing, HandsError>;

    /// The texts of whole files, in their order; `None` where there is none, or no text.
    async fn fetch(
        &self,
        effect: &Effect,
        workspace: &WorkspaceId,
        paths: &[String],
    ) -> Result<Vec<Option<String>>, HandsError>;

    /// Calls a tool.
    async fn call(&self, call: &ToolCall) -> Result<Said, HandsError>;

    /// Ends what runs for an effect. Returns when nothing of it is left.
    async fn stop(&self, effect: &Effect);

    /// Returns a workspace to its beginning.
    async fn reset(&self, effect: &Effect, workspace: &WorkspaceId) -> Result<(), HandsError>;

    /// What was changed since the beginning.
    async fn change(&self, workspace: &WorkspaceId) -> Result<Taken, HandsError>;

    /// Finds something out in private forks of a workspace as it is now.
    async fn trial(
        &self,
        workspace: &WorkspaceId,
        trial: &Trial,
        watch: &Watch,
    ) -> Result<TrialResult, HandsError>;

    /// Opens a workspace over a line, which begins with its first workspace, or finds it again.
    async fn open_over(&self, wanted: &OverLine) -> Result<Place, HandsError>;

    /// Keeps what an agent did as a commit. Nothing that was kept is lost, whatever becomes of it.
    async fn harvest(&self, effect: &Effect, order: &Harvest) -> Result<Kept, HandsError>;

    /// Brings a commit into its line, if it merges and the tests of the merged files say nothing
    /// worse than before.
    async fn join(&self, effect: &Effect, order: &Joining) -> Result<Joined, HandsError>;

    /// Makes a workspace of a line's first commit hold everything that is integrated, as its change.
    async fn lay(
        &self,
        effect: &Effect,
        line: &Line,
        workspace: &WorkspaceId,
    ) -> Result<(), HandsError>;

    /// Puts a change into the repository it is for. Index, stash and branches that are there stay
    /// as they are, and the checkout too, unless the change is for it: then every file it touches
    /// has to be there as the change found it.
    async fn deliver(&self, effect: &Effect, order: &Consignment) -> Result<Delivered, HandsError>;

    /// Puts changes into the repositories they are for, as branches: all of them, or none.
    async fn deliver_all(
        &self,
        effect: &Effect,
        orders: &[Consignment],
    ) -> Result<Vec<Delivered>, HandsError>;
}
