//! The runner as its callers see it: what travels between a caller and the runner, and the client.
//!
//! The types here are said over HTTP beside tool calls and their results; the client and the server
//! share them, and the OpenAPI document is made from them. The [`client`] asks a runner that
//! listens, or starts one of its own as a child by the path of the program. This crate must never
//! open a workspace or start a tool, and knows neither the sandbox, nor the workspaces, nor the
//! gate behind the runner: it depends on the wire types, and on those of test runs.
#![forbid(unsafe_code)]

mod approvals;
mod branches;
pub mod client;
mod deliveries;
mod effects;
mod rulings;
mod service;
mod sessions;
mod test_runs;
mod workspaces;

pub use approvals::{ApprovalList, ApprovalView, EXPIRED, REJECTED, VoteView};
pub use branches::{
    BranchWorkspaceStart, CommitAgentChange, CommittedAgentChangeView, CommittedChangeState,
    ConflictFile, ConflictHunk, FailedCommand, FillWorkspaceFromBranch, FilledWorkspaceView,
    IntegrationBranchList, IntegrationBranchRef, IntegrationBranchView, MergeAgentChange,
    MergeAgentChangeResult, MergeTestRequirement, OpenWorkspaceOnBranch,
};
pub use deliveries::{
    ChangeDelivery, DeliverChanges, DeliveredChanges, DeliveredView, TaskCommit, TaskHistory,
};
pub use effects::EffectCall;
pub use rulings::{ActRuling, ActRulings, ForeseenAct, JudgeActs, RulingView};
pub use service::{RunnerCapabilities, RunnerHealth, RunnerProblem};
pub use sessions::{
    SessionControl, SessionEvent, SessionList, SessionView, StartSession, StreamName, TerminalSize,
    ToolCallBatch, ToolCallBatchItem, ToolCallBatchMode, ToolCallBatchResult,
};
pub use test_runs::{TestRunEvent, TestRunRequest, TestRunResult};
pub use workspaces::{
    ChangeView, CheckoutOriginView, CheckoutRequest, CommitWorkspace, CommittedChangeView,
    CommittedWorkspace, DiffView, IgnoredFilesView, OpenWorkspace, RestoreSnapshot, START,
    SnapshotView, TakeSnapshot, UndoCommit, WorkspaceList, WorkspaceState, WorkspaceView,
};
