//! What can go wrong here: what happened, by which code and exit status it is known, what to do.

mod advice;
mod foreign;
mod place;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use lula_agents::guidelines::GuidelineFileError;
use lula_audit::AuditError;
use lula_config::ConfigError;
use lula_gate::approvals::ApprovalsError;
use lula_gate::rules::RulesFileError;
use lula_graph::EngineError;
use lula_graph::bundle::BundleError;
use lula_models::secret::ModelKeyError;
use lula_protocol::{ApprovalId, FailureReport, RunId};
use lula_repair::RepairError;
use lula_runner::RunnerStartError;
use lula_runner_api::client::RunnerClientError;
use lula_sandbox::SandboxError;
use lula_sandbox::probes::TierAttackError;
use lula_store::StoreError;
use lula_workspace::checkout::CheckoutError;
use lula_workspace::scratch::ScratchError;
use lula_workspace::{ForkError, GitError, WorkspaceError};

pub use place::MistakeLocation;

/// What is said of a process that said nothing.
const ENDED: &str = "the process that was to go on with it ended at once";

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The store refuses, or cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log of a run does not allow it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The runner refuses, or cannot be reached.
    #[error(transparent)]
    Runner(#[from] RunnerClientError),
    /// The audit log cannot be written or read.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A rules file says something wrong.
    #[error(transparent)]
    Rules(#[from] RulesFileError),
    /// A guidelines file says something wrong.
    #[error(transparent)]
    Guidelines(#[from] GuidelineFileError),
    /// git refuses, or is not there.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A sandbox refuses, or broke.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A network by name is not given.
    #[error(transparent)]
    Network(#[from] crate::network::NetworkError),
    /// An environment is not built, or not found.
    #[error(transparent)]
    Environment(#[from] lula_runner::environments::EnvironmentError),
    /// A recipe is not carried out.
    #[error(transparent)]
    Build(#[from] crate::environment::BuildRefusal),
    /// A held workspace cannot be used as asked.
    #[error(transparent)]
    Held(#[from] WorkspaceError),
    /// The checkout of a run refuses.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// A directory cannot be copied for a trial.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// A throw-away repository cannot be made.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// Tests cannot be repaired.
    #[error(transparent)]
    Repair(#[from] RepairError),
    /// A question cannot be answered.
    #[error(transparent)]
    Approvals(#[from] ApprovalsError),
    /// A key that answers questions cannot be used.
    #[error(transparent)]
    Keyring(#[from] lula_gate::approvals::ApprovalKeyError),
    /// An exported run cannot be trusted, or made.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A change would add a secret.
    #[error("{path} would add a secret ({kind}); nothing was committed")]
    AddsSecret {
        /// The changed file, so that nothing of its name acts on a terminal.
        path: String,
        /// What kind of secret.
        kind: &'static str,
    },
    /// No workspace of a directory waits.
    #[error("no changes wait for a decision in {}", .0.display())]
    NothingWaits(PathBuf),
    /// A run has no integration branch.
    #[error("{0} has no integration branch")]
    NoBranches(String),
    /// A run is over.
    #[error("{0} is over")]
    RunOver(RunId),
    /// A run was asked to end, and did not yet.
    #[error("{0} was asked to end and has not ended yet")]
    NotEnded(RunId),
    /// A run has no delivery that could be taken back.
    #[error("{0}")]
    NotUndone(String),
    /// A run asks nothing.
    #[error("{0} asks nothing")]
    NoQuestion(RunId),
    /// A note for a run is empty or too long.
    #[error("{0}")]
    NoteRefused(String),
    /// A run cannot be worked on in the background.
    #[error("{run} cannot be worked on in the background: {error}")]
    Background {
        run: RunId,
        /// What the system says.
        error: io::Error,
    },
    /// The process that was to go on with a run in the background ended.
    #[error("{run} was begun and no driver works on it: {}", report.as_ref().map_or(ENDED, |report| &report.message))]
    NotTakenUp {
        run: RunId,
        /// What it reported before it ended.
        report: Option<Box<FailureReport>>,
    },
    /// The files of a project cannot be listed.
    #[error("cannot list {}: {error}", path.display())]
    Unlisted {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The configuration refuses a value, or cannot be written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no place for a person's configuration.
    #[error("no home directory is known")]
    NoUserConfiguration,
    /// There is no place for state.
    #[error("there is no place to keep state: neither HOME nor XDG_STATE_HOME is set")]
    NoStateDirectory,
    /// The store cannot be opened as the configuration says.
    #[error("{0}")]
    StoreAddress(String),
    /// The address of the store would put a password into configuration.
    #[error("the address of the store holds a password, and configuration is no place for one")]
    PasswordInAddress,
    /// No run is meant by a name, or several are.
    #[error("{0}")]
    NoSuchRun(String),
    /// Another process drives the run.
    #[error("{run} is being worked on by {owner}")]
    RunBusy {
        run: RunId,
        /// Name of the worker that has the run.
        owner: String,
    },
    /// A step of the run could not be done, again and again.
    #[error("{why}")]
    RunStuck {
        run: RunId,
        /// What kept the step from being done.
        why: String,
    },
    /// A run waits for no choice.
    #[error("{0} waits for no choice")]
    NoChoice(RunId),
    /// A run is no chat.
    #[error("{0} is no chat: its coder is not talked with")]
    NoChat(RunId),
    /// A run does not offer that.
    #[error("{choice:?} is nothing {run} offers")]
    NotOffered {
        run: RunId,
        choice: String,
        options: Vec<String>,
    },
    /// Another process looks after the repository.
    #[error("another `lula heal` is looking after {0}")]
    HealerBusy(String),
    /// What is remembered of a repository cannot be used.
    #[error("the history {} cannot be used: {why}", path.display())]
    HealHistory {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The runner did not do what a look at a repository needs.
    #[error(transparent)]
    RunnerPort(#[from] lula_agents::RunnerPortError),
    /// A file or a directory of the installation cannot be used.
    #[error("{} cannot be used: {error}", path.display())]
    File {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The key that seals logs cannot be used.
    #[error("the key {} cannot be used: {why}", path.display())]
    SealKey {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The state directory cannot be made.
    #[error("cannot make {}: {error}", path.display())]
    NoDirectory {
        /// Where it was to be.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A rules file that is named is not there.
    #[error("the rules file {} does not exist", path.display())]
    NoRulesFile {
        path: PathBuf,
        /// Whether the configuration names it, or the command.
        configured: bool,
    },
    /// A rules file cannot be read.
    #[error("the rules file {} cannot be read: {why}", path.display())]
    UnreadableRules {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No model is called like that.
    #[error("{0}")]
    ModelName(String),
    /// The key of a model cannot be had.
    #[error("{error}")]
    ModelKey {
        /// Whose model it is.
        provider: String,
        /// What the place of the key says.
        error: ModelKeyError,
    },
    /// Models cannot be asked from here.
    #[error("{0}")]
    ModelUnusable(String),
    /// `models.capabilities` says what no model can.
    #[error("models.capabilities says {word:?} for {model}")]
    BadCapability {
        model: String,
        /// What is said of it.
        word: String,
    },
    /// `models.effort` says what is none.
    #[error("models.effort says {0:?}")]
    BadEffort(String),
    /// `models.keys` is not a list of references.
    #[error("{0}")]
    BadKeys(String),
    /// The price table cannot be used.
    #[error("{0}")]
    BadPrices(String),
    /// `runner.address` is no address.
    #[error("{0}")]
    RunnerAddress(String),
    /// A runner of its own rules was to hold commits back.
    #[error(
        "the runner at {0} decides about commits by its own rules: they cannot be held back from here"
    )]
    CommitsNotHeld(String),
    /// A sandbox's policy cannot be read.
    #[error("cannot use {} as a policy: {error}", path.display())]
    PolicyFile {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A sandbox's policy lies where the sandboxed command could have written it.
    #[error("cannot use {} as a policy: it lies in the workspace it is for", .0.display())]
    PolicyInWorkspace(PathBuf),
    /// A sandbox's policy says something wrong.
    #[error("cannot use {} as a policy: {mistakes}", path.display())]
    BadPolicy {
        path: PathBuf,
        /// What is wrong, line by line.
        mistakes: String,
    },
    /// A directory cannot be a workspace.
    #[error("cannot use {} as a workspace: {error}", path.display())]
    Workspace {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A workspace would show the person's credentials to commands.
    #[error("{} is or holds your home directory", .0.display())]
    WorkspaceTooWide(PathBuf),
    /// What is asked for contradicts itself, or cannot be done here.
    #[error("{why}")]
    TaskRefused {
        why: String,
        /// What to ask for instead.
        remedy: &'static str,
    },
    /// A run that is part of another cannot be gone on with alone.
    #[error("{run} is an agent's part of {parent}")]
    PartOfAnother {
        run: RunId,
        /// The run that leads it.
        parent: RunId,
    },
    /// A directory that is named is not there.
    #[error("cannot use {}: {error}", path.display())]
    NoSuchDirectory {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A directory belongs to no repository.
    #[error("{} is no git repository ({error})", path.display())]
    NotARepository { path: PathBuf, error: GitError },
    /// A repository has nothing to work on.
    #[error("{} has no commit yet", .0.display())]
    EmptyRepository(PathBuf),
    /// The key of a runner cannot be used.
    #[error("cannot take the key from {}: {why}", path.display())]
    RunnerKey {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A runner does not serve.
    #[error("{}", foreign::served(.0))]
    Serving(#[from] RunnerStartError),
    /// A runner cannot be started again.
    #[error("the runner cannot be started again: {0}")]
    Supervisor(io::Error),
    /// A runner is killed again and again.
    #[error("the runner was killed {times} times in a row ({status})")]
    RunnerKilled {
        /// How often it was killed in a row.
        times: u32,
        /// How it ended last.
        status: ExitStatus,
    },
    /// What the diagnostic log is to hold is not understood.
    #[error("{filter:?} in LULA_LOG is no log filter: {why}")]
    BadLogFilter {
        filter: String,
        /// What is wrong with it.
        why: String,
    },
    /// The form of the diagnostic log is none.
    #[error("{0:?} in LULA_LOG_FORMAT is no form of the log")]
    BadLogFormat(String),
    /// A file that is named for a result cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Output {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// There is no repository whose configuration could be changed.
    #[error("this directory is in no git repository")]
    NoRepositoryConfiguration,
    /// No lesson, or more than one, has that id.
    #[error("{0}")]
    NoLesson(String),
    /// A file cannot be a backup.
    #[error("{why}")]
    BackupFile {
        why: String,
        /// What to name instead.
        remedy: &'static str,
    },
    /// A text cannot be read.
    #[error("the text cannot be read: {0}")]
    TextUnreadable(io::Error),
    /// A runner elsewhere does not take an answer.
    #[error("{0}")]
    VoteRefused(RunnerClientError),
    /// A runner shows something else than it asks about.
    #[error("what the runner shows for {0} is not what it asks about")]
    ApprovalForged(ApprovalId),
    /// No tier that is a boundary works.
    #[error("no tier that is a boundary works here, so there is nothing to attack")]
    NothingToAttack,
    /// An attack could not be made.
    #[error(transparent)]
    Attack(#[from] TierAttackError),
    /// The program cannot be found.
    #[error("this program cannot find its own file: {0}")]
    OwnProgram(io::Error),
    /// A repository cannot be watched.
    #[error("{0}")]
    Watch(io::Error),
    /// A person could not be asked.
    #[error("the person at the terminal cannot be asked: {0}")]
    Answer(io::Error),
    /// The process cannot be locked out of the repository.
    #[error("this process cannot lock itself out of the repository: {0}")]
    Fence(io::Error),
    /// The process cannot wait for anything.
    #[error("this process cannot wait for anything: {0}")]
    NoRuntime(io::Error),
    /// A server refuses, or cannot be reached.
    #[error("{}", .0.message)]
    Server(Box<FailureReport>),
    /// Something that cannot happen did.
    #[error("{0}")]
    Internal(String),
}
