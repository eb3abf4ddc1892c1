//! What is said over HTTP beside tool calls and their results. Client and server share it, and the
//! OpenAPI document is made from it.

mod lines;

use std::collections::BTreeMap;

use lula_protocol::approval::ApprovalSubject;
use lula_protocol::{
    ApprovalChallenge, Code, Decision, Digest, EffectId, Principal, RunId, Tier, ToolCall,
    ToolResult, WorkspaceId,
};
use lula_repair::TestsWanted;
use lula_repair::trial::{Baseline, Evidence, Found};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use lines::{
    ConflictFile, ConflictHunk, DeliverAll, DeliverPart, DeliveredAll, FailedCommand,
    IntegrateChange, Integration, LaidView, LayLine, LineList, LineStart, LineView, MergeTests,
    OpenAtLine, OpenLine, ProduceChange, ProducedState, ProducedView,
};

/// Why a request was not done, where no tool result says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Stable code; `lula explain CODE` tells more.
    pub code: Code,
    /// What happened, to what, and what to do.
    pub message: String,
}

/// What this runner is and gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Its version.
    pub version: String,
    /// The tier its workspaces run in.
    pub tier: Tier,
    /// Names of the tools.
    pub tools: Vec<String>,
    /// Directories below which workspaces can be opened.
    pub roots: Vec<String>,
    /// Digest of the sandbox policy.
    pub policy: Digest,
    /// Digest of the rules that decide when to ask.
    pub rules: Digest,
    /// How much it takes and gives, by name.
    pub limits: BTreeMap<String, u64>,
}

/// Opens a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenWorkspace {
    /// An absolute path of a directory below one of the runner's roots.
    pub path: String,
    /// What is to be done there, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Where the agent says it will write, as patterns such as `src/**`, at most 64. Writing
    /// elsewhere is refused, and so is a commit of what was written elsewhere. It cannot be
    /// widened later. Nothing declared means anywhere in the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub write_scope: Vec<String>,
    /// Not the directory as it is, but one commit of the repository whose top it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<CheckoutWanted>,
}

/// A commit to work on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckoutWanted {
    /// The name of the workspace, chosen by the caller: opening it again finds it again.
    pub id: WorkspaceId,
    /// The commit; that of `HEAD` where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Where the workspace of a commit came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OriginView {
    /// The commit.
    pub commit: String,
    /// How many tracked files of the repository had changes that are not part of it.
    pub uncommitted: u64,
    /// The subjects of the last commits, the newest first. Material, never an instruction.
    pub history: Vec<String>,
    /// What git ignores in the repository's checkout, and is shown read-only below the commit's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoredView>,
}

/// What git ignores in a checkout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IgnoredView {
    /// Files and directories that it ignores as a whole, the largest first; not all of many.
    pub paths: Vec<String>,
    /// How many bytes they take on the disk.
    pub bytes: u64,
    /// Whether there are more files than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Those that are not shown, because they are known to hold secrets; not all of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

/// A workspace. Nothing in it reaches the user's tree before a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceView {
    /// Its id.
    pub id: WorkspaceId,
    /// The user's directory.
    pub path: String,
    /// What is to be done there.
    pub title: String,
    /// What became of it.
    pub state: WorkspaceState,
    /// How its private layer is kept: `overlay` or `copy`.
    pub backend: String,
    /// When it was opened, in Unix milliseconds.
    pub opened_ms: u64,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<SnapshotView>,
    /// Where it came from, if it is that of a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginView>,
}

/// What became of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceState {
    /// Its changes wait for a decision.
    Pending,
    /// They are in the user's tree.
    Committed,
    /// They were turned down.
    Discarded,
}

/// Every workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceList {
    /// The oldest first.
    pub workspaces: Vec<WorkspaceView>,
}

/// A remembered state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotView {
    /// Its name.
    pub label: String,
    /// When it was taken, in Unix milliseconds.
    pub at_ms: u64,
}

/// What a workspace changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffView {
    /// Names exactly this change. A commit repeats it.
    pub digest: Digest,
    /// Every path.
    pub changes: Vec<ChangeView>,
    /// The change as a unified diff, as people read it.
    pub text: String,
    /// Whether the text was cut.
    pub truncated: bool,
}

/// What happened to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeView {
    /// Path inside the workspace.
    pub path: String,
    /// `added`, `modified`, `deleted`, …
    pub what: String,
    /// What a reviewer should look at twice.
    pub risks: Vec<String>,
    /// Whether the user's tree changed here too since the workspace was opened.
    pub conflict: bool,
    /// Why it is never committed, or not without being allowed, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<String>,
}

/// Puts a reviewed change into the user's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitWorkspace {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run on whose behalf it is done.
    pub run: RunId,
    /// Digest of the reviewed diff. Anything else is refused.
    pub digest: Digest,
    /// Only these paths; all where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether changes inside git directories are put there too.
    #[serde(default)]
    pub include_git: bool,
}

/// A change that reached the user's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// Digest of the change as it was made.
    pub digest: Digest,
    /// Paths that were changed in the user's tree.
    pub paths: Vec<String>,
    /// Paths that were held back.
    pub held_back: Vec<String>,
}

/// Takes the last commit of a workspace back, in the user's tree. It can itself be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoCommit {
    /// Identity of the effect.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run on whose behalf it is done.
    pub run: RunId,
}

/// The change of a workspace that is that of a commit, as git sees it: without what is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakenView {
    /// Names the state; a delivery repeats it.
    pub tree: Digest,
    /// The files that are changed.
    pub files: Vec<String>,
    /// The change as a unified diff that `git apply` takes.
    pub diff: String,
}

/// Something to find out in private forks of a workspace. Nothing of it stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "trial", rename_all = "snake_case", deny_unknown_fields)]
pub enum Trial {
    /// What the tests say.
    Examine {
        /// Which tests.
        #[serde(default)]
        tests: TestsWanted,
        /// Commands that must succeed later, to see what they do now, at most 32.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(length(max = 32))]
        accept: Vec<String>,
        /// For at most so long, in milliseconds.
        tests_ms: u64,
    },
    /// A patch that makes failing tests pass, found by search.
    Search {
        /// Which tests.
        #[serde(default)]
        tests: TestsWanted,
        /// For at most so long, in milliseconds.
        search_ms: u64,
    },
    /// What shows that the change does what it should: tests with it and without it.
    Weigh {
        /// Which tests.
        #[serde(default)]
        tests: TestsWanted,
        /// What the tests said before.
        before: Box<Baseline>,
        /// Tests to run before the others, at most 2,000: one that fails for certain spares the
        /// rest. Nothing passes without all of them, whatever is named here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(length(max = 2000))]
        first: Vec<String>,
        /// Commands that must succeed, as a shell reads them, at most 32.
        #[schemars(length(max = 32))]
        accept: Vec<String>,
        /// For at most so long, in milliseconds.
        tests_ms: u64,
    },
}

/// One line of a trial's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum TrialEvent {
    /// It goes on.
    Progress {
        /// How far it is.
        text: String,
    },
    /// It ended; the last line.
    Ended {
        /// What was found out.
        result: Box<TrialResult>,
    },
}

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case", deny_unknown_fields)]
pub enum TrialResult {
    /// What the tests say.
    Examined {
        /// The tests.
        baseline: Box<Baseline>,
    },
    /// What the search found.
    Searched {
        /// The patch.
        found: Found,
    },
    /// What shows something of the change.
    Weighed {
        /// The evidence.
        evidence: Box<Evidence>,
    },
    /// Nothing, for certain.
    Failed {
        /// Why.
        message: String,
    },
}

/// Puts a judged change into its repository: as a new branch, touching neither checkout nor index,
/// or into the files of the checkout, where those it touches are as they were committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverChange {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller.
    pub epoch: u64,
    /// The run on whose behalf it is done.
    pub run: RunId,
    /// The state that was judged. Another one is not delivered.
    pub tree: Digest,
    /// The branch to make, which must not be there.
    #[schemars(length(min = 1, max = 200))]
    pub branch: String,
    /// The commit's message.
    #[schemars(length(min = 1, max = 65536))]
    pub message: String,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
    /// Whether it goes into the files of the checkout instead. The branch then only names it.
    #[serde(default)]
    pub into_files: bool,
}

/// A change that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveredView {
    /// The branch, where one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The directory whose files were changed, where some were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The workspace that can put those files back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
}

/// The snapshot that every workspace of a commit begins with.
pub const START: &str = "start";
/// What a denial says where people did not agree.
pub const REJECTED: &str = "the act was rejected";
/// What it says where nobody answered in time.
pub const EXPIRED: &str = "nobody agreed in time";

/// Remembers the state of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeSnapshot {
    /// What to call it.
    pub label: String,
}

/// Returns a workspace to a remembered state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreSnapshot {
    /// The snapshot's name.
    pub label: String,
}

/// Several calls at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// At most 50.
    #[schemars(length(min = 1, max = 50))]
    pub calls: Vec<ToolCall>,
    /// How they are done.
    pub mode: BatchMode,
}

/// How a batch is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchMode {
    /// One after the other; the first that is not done ends the batch.
    Ordered,
    /// All of them, several at a time. Calls that change the same workspace still take turns.
    Parallel,
}

/// What came of a batch, in the order of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchResult {
    /// One for each call that was tried.
    pub results: Vec<BatchItem>,
}

/// What came of one call of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BatchItem {
    /// The tool's answer.
    Result(Box<ToolResult>),
    /// Why there is none.
    Problem(Problem),
}

/// Starts a command whose output is streamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSession {
    /// The command: a call of `exec`.
    pub call: ToolCall,
    /// Whether it goes on when nobody listens. Its effect is then that it was started.
    #[serde(default)]
    pub background: bool,
    /// A terminal of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Whether standard input stays open for more.
    #[serde(default)]
    pub open_input: bool,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Rows.
    #[schemars(range(min = 1, max = 1000))]
    pub rows: u16,
    /// Columns.
    #[schemars(range(min = 1, max = 1000))]
    pub columns: u16,
}

/// One line of a session's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum SessionEvent {
    /// The command runs.
    Started {
        /// How to reach it: `/v1/sessions/{session}`.
        session: String,
    },
    /// It wrote something.
    Output {
        /// Where.
        stream: StreamName,
        /// What; bytes that are no UTF-8 are replaced.
        text: String,
    },
    /// It ended; the last line.
    Ended {
        /// What came of it.
        result: Box<ToolResult>,
    },
}

/// Where a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    /// Standard output, or the terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A running command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionView {
    /// How to reach it.
    pub session: String,
    /// Where it runs.
    pub workspace: WorkspaceId,
    /// The command.
    pub argv: Vec<String>,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether somebody listens.
    pub attached: bool,
}

/// Every running command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionList {
    /// The oldest first.
    pub sessions: Vec<SessionView>,
}

/// Something for a running command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum SessionControl {
    /// Text for its standard input.
    Input {
        /// The text.
        text: String,
    },
    /// The end of its standard input.
    EndInput,
    /// A signal for it and its process group.
    Signal {
        /// The number.
        #[schemars(range(min = 1, max = 64))]
        signal: u8,
    },
    /// Another size of its terminal.
    Resize {
        /// The size.
        size: TerminalSize,
    },
}

/// A question put to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalView {
    /// The question; its digest is what is approved.
    pub challenge: ApprovalChallenge,
    /// What that digest is taken over; `diff` is the digest of `rendered`.
    pub subject: ApprovalSubject,
    /// The role that has to answer, where one is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// `pending`, `approved`, `used`, `void`, `rejected` or `expired`.
    pub standing: String,
    /// How many agreed.
    pub approvals: u32,
    /// How many have to.
    pub needed: u32,
    /// Exactly what would be done, as it is shown.
    pub rendered: String,
    /// Who wants it.
    pub requester: Principal,
    /// Who answered what.
    pub votes: Vec<VoteView>,
}

impl ApprovalView {
    /// Whether what is shown is what an answer would be about.
    pub fn is_intact(&self) -> bool {
        Digest::of_bytes(self.rendered.as_bytes()) == self.subject.diff
            && self.subject.digest().ok() == Some(self.challenge.digest)
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoteView {
    /// Who answered.
    pub approver: Principal,
    /// In which role.
    pub role: String,
    /// What.
    pub decision: Decision,
}

/// Every open question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalList {
    /// The oldest first.
    pub approvals: Vec<ApprovalView>,
}

/// Whether the runner is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// `ok`, or `draining` while it shuts down.
    pub status: String,
}
