//! Every path there is, once: requests are matched against this table, and the OpenAPI document is
//! made from it.

use hyper::Method;
use lula_protocol::{ApprovalToken, ToolCall, ToolResult};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use lula_runner_api::{
    ActRulings, ApprovalList, ApprovalView, CommitAgentChange, CommitWorkspace,
    CommittedAgentChangeView, CommittedChangeView, CommittedWorkspace, DeliverChanges,
    DeliveredChanges, DiffView, EffectCall, FillWorkspaceFromBranch, FilledWorkspaceView,
    IntegrationBranchList, IntegrationBranchRef, IntegrationBranchView, JudgeActs,
    MergeAgentChange, MergeAgentChangeResult, OpenWorkspace, OpenWorkspaceOnBranch,
    RestoreSnapshot, RunnerCapabilities, RunnerHealth, SessionControl, SessionEvent, SessionList,
    SessionView, StartSession, TakeSnapshot, TestRunEvent, TestRunRequest, ToolCallBatch,
    ToolCallBatchResult, UndoCommit, WorkspaceList, WorkspaceView,
};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunnerOperation {
    Health,
    Metrics,
    OpenApi,
    Capabilities,
    OpenWorkspace,
    ListWorkspaces,
    ViewWorkspace,
    RemoveWorkspace,
    DiffWorkspace,
    CommitWorkspace,
    DiscardWorkspace,
    SnapshotWorkspace,
    RestoreWorkspace,
    ForkWorkspace,
    UndoCommit,
    TakeChange,
    Judge,
    RunTests,
    OpenBranch,
    ListBranches,
    ViewBranch,
    OpenOnBranch,
    CommitAgentChange,
    Merge,
    Fill,
    ArchiveBranch,
    Deliver,
    Execute,
    BatchExecute,
    StopEffect,
    StartSession,
    ListSessions,
    ViewSession,
    SessionEvents,
    ControlSession,
    CloseSession,
    ListApprovals,
    ViewApproval,
    Vote,
}

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What an operation answers with.
pub(super) enum RunnerReply {
    Json(MakeSchema),
    /// A stream of these, one on each line, or as server-sent events.
    Events(MakeSchema),
    Text(&'static str),
    /// A JSON document without a schema of its own.
    Document,
    Nothing,
}

/// One path with one method.
pub(super) struct RunnerRoute {
    pub(super) operation: RunnerOperation,
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) body: Option<MakeSchema>,
    pub(super) status: u16,
    pub(super) reply: RunnerReply,
    /// Whether a rule can refuse it or ask first; both answers carry a tool's result.
    pub(super) gated: bool,
}

macro_rules! routes {
    ($($operation:ident $method:ident $path:literal $id:literal $summary:literal
        ($($body:ty)?) => $status:literal $reply:expr $(, $gated:ident)?;)*) => {
        /// Every operation of the interface, in the order of its document.
        pub(super) const ROUTES: &[RunnerRoute] = &[$(RunnerRoute {
            operation: RunnerOperation::$operation,
            method: Method::$method,
            path: $path,
            id: $id,
            summary: $summary,
            body: routes!(@body $($body)?),
            status: $status,
            reply: $reply,
            gated: routes!(@gated $($gated)?),
        }),*];
    };
    (@body) => { None };
    (@body $body:ty) => { Some(schema::<$body>) };
    (@gated) => { false };
    (@gated gated) => { true };
}

routes! {
    Health GET "/healthz" "health" "Whether the runner is well"
        () => 200 RunnerReply::Json(schema::<RunnerHealth>);
    Metrics GET "/metrics" "metrics" "Counters in Prometheus' text format"
        () => 200 RunnerReply::Text("text/plain; version=0.0.4; charset=utf-8");
    OpenApi GET "/v1/openapi.json" "openapi" "This document"
        () => 200 RunnerReply::Document;
    Capabilities GET "/v1/capabilities" "capabilities" "What this runner is and gives"
        () => 200 RunnerReply::Json(schema::<RunnerCapabilities>);
    OpenWorkspace POST "/v1/workspaces" "open_workspace" "Open a private view of a directory"
        (OpenWorkspace) => 201 RunnerReply::Json(schema::<WorkspaceView>);
    ListWorkspaces GET "/v1/workspaces" "list_workspaces" "Every workspace"
        () => 200 RunnerReply::Json(schema::<WorkspaceList>);
    ViewWorkspace GET "/v1/workspaces/{workspace}" "view_workspace" "One workspace"
        () => 200 RunnerReply::Json(schema::<WorkspaceView>);
    RemoveWorkspace DELETE "/v1/workspaces/{workspace}" "remove_workspace"
        "Discard a workspace and keep nothing of it"
        () => 200 RunnerReply::Json(schema::<WorkspaceView>);
    DiffWorkspace POST "/v1/workspaces/{workspace}/diff" "diff_workspace" "What it changed"
        () => 200 RunnerReply::Json(schema::<DiffView>);
    CommitWorkspace POST "/v1/workspaces/{workspace}/commit" "commit_workspace"
        "Put exactly the reviewed change into the user's tree"
        (CommitWorkspace) => 200 RunnerReply::Json(schema::<CommittedWorkspace>), gated;
    DiscardWorkspace POST "/v1/workspaces/{workspace}/discard" "discard_workspace"
        "Turn its changes down"
        () => 200 RunnerReply::Json(schema::<WorkspaceView>);
    SnapshotWorkspace POST "/v1/workspaces/{workspace}/snapshot" "snapshot_workspace"
        "Remember the workspace as it is"
        (TakeSnapshot) => 200 RunnerReply::Json(schema::<WorkspaceView>);
    RestoreWorkspace POST "/v1/workspaces/{workspace}/restore" "restore_workspace"
        "Return it to a remembered state"
        (RestoreSnapshot) => 200 RunnerReply::Json(schema::<WorkspaceView>);
    ForkWorkspace POST "/v1/workspaces/{workspace}/fork" "fork_workspace"
        "A second workspace that starts with its changes"
        () => 201 RunnerReply::Json(schema::<WorkspaceView>);
    UndoCommit POST "/v1/workspaces/{workspace}/undo" "undo_commit"
        "Take its last commit back, in the user's tree"
        (UndoCommit) => 200 RunnerReply::Json(schema::<CommittedWorkspace>);
    TakeChange POST "/v1/workspaces/{workspace}/change" "take_change"
        "What was changed since the commit it is that of, as git sees it"
        () => 200 RunnerReply::Json(schema::<CommittedChangeView>);
    Judge POST "/v1/workspaces/{workspace}/rulings" "judge"
        "What its rules say about acts, none of which is done"
        (JudgeActs) => 200 RunnerReply::Json(schema::<ActRulings>);
    RunTests POST "/v1/workspaces/{workspace}/test-runs" "run_tests"
        "Run tests, verify a change, or search for a patch, in private forks of it"
        (TestRunRequest) => 200 RunnerReply::Events(schema::<TestRunEvent>);
    OpenBranch POST "/v1/branches" "open_branch"
        "Begin the integration branch of a run in a repository, or find it"
        (IntegrationBranchRef) => 201 RunnerReply::Json(schema::<IntegrationBranchView>);
    ListBranches GET "/v1/branches" "list_branches"
        "Every integration branch, and what was set aside"
        () => 200 RunnerReply::Json(schema::<IntegrationBranchList>);
    ViewBranch GET "/v1/branches/{branch}" "view_branch"
        "One integration branch, and the commits that were made for it"
        () => 200 RunnerReply::Json(schema::<IntegrationBranchView>);
    OpenOnBranch POST "/v1/branch-workspaces" "open_on_branch"
        "Open a workspace over an integration branch"
        (OpenWorkspaceOnBranch) => 201 RunnerReply::Json(schema::<WorkspaceView>);
    CommitAgentChange POST "/v1/agent-commits" "commit_agent_change"
        "Make a commit of what an agent changed, and keep it"
        (EffectCall<CommitAgentChange>) => 200
        RunnerReply::Json(schema::<CommittedAgentChangeView>);
    Merge POST "/v1/merges" "merge"
        "Merge an agent's commit into the integration branch, if its tests say nothing worse"
        (EffectCall<MergeAgentChange>) => 200 RunnerReply::Json(schema::<MergeAgentChangeResult>);
    Fill POST "/v1/fills" "fill"
        "Make a workspace of its first commit hold what the integration branch holds now"
        (EffectCall<FillWorkspaceFromBranch>) => 200
        RunnerReply::Json(schema::<FilledWorkspaceView>);
    ArchiveBranch POST "/v1/branches/{branch}/archive" "archive_branch"
        "Put the commits of a branch into one file, and give its space back"
        () => 200 RunnerReply::Json(schema::<IntegrationBranchView>);
    Deliver POST "/v1/deliveries" "deliver"
        "Put judged changes into their repositories: into all of them or into none"
        (EffectCall<DeliverChanges>) => 200 RunnerReply::Json(schema::<DeliveredChanges>), gated;
    Execute POST "/v1/tools/execute" "execute" "Call a tool, once"
        (ToolCall) => 200 RunnerReply::Json(schema::<ToolResult>), gated;
    BatchExecute POST "/v1/tools/batch_execute" "batch_execute" "Call up to 50 tools"
        (ToolCallBatch) => 200 RunnerReply::Json(schema::<ToolCallBatchResult>);
    StopEffect POST "/v1/effects/{effect}/stop" "stop_effect"
        "End what runs for a call, and what would"
        () => 204 RunnerReply::Nothing;
    StartSession POST "/v1/sessions" "start_session" "Start a command and stream its output"
        (StartSession) => 200 RunnerReply::Events(schema::<SessionEvent>), gated;
    ListSessions GET "/v1/sessions" "list_sessions" "Commands that were started and not closed"
        () => 200 RunnerReply::Json(schema::<SessionList>);
    ViewSession GET "/v1/sessions/{session}" "view_session" "One of them"
        () => 200 RunnerReply::Json(schema::<SessionView>);
    SessionEvents GET "/v1/sessions/{session}/events" "session_events"
        "Listen to a command, from what is still kept of its output"
        () => 200 RunnerReply::Events(schema::<SessionEvent>);
    ControlSession POST "/v1/sessions/{session}/control" "control_session"
        "Send it input, a signal or a size"
        (SessionControl) => 204 RunnerReply::Nothing;
    CloseSession DELETE "/v1/sessions/{session}" "close_session"
        "End it with everything it started"
        () => 204 RunnerReply::Nothing;
    ListApprovals GET "/v1/approvals" "list_approvals" "Every open question"
        () => 200 RunnerReply::Json(schema::<ApprovalList>);
    ViewApproval GET "/v1/approvals/{approval}" "view_approval"
        "One question, with exactly what would be done"
        () => 200 RunnerReply::Json(schema::<ApprovalView>);
    Vote POST "/v1/approvals/{approval}/votes" "vote" "Hand in a signed answer"
        (ApprovalToken) => 200 RunnerReply::Json(schema::<ApprovalView>);
}

/// What a path and a method lead to.
pub(super) enum RouteMatch<'a> {
    /// This, with the one variable part of the path.
    Route(&'static RunnerRoute, &'a str),
    /// The path is there with other methods.
    OtherMethods(Vec<&'static Method>),
    /// No operation has this path.
    Nowhere,
}

/// Finds the route of a request.
pub(super) fn find<'a>(method: &Method, path: &'a str) -> RouteMatch<'a> {
    let mut others = Vec::new();
    for route in ROUTES {
        let Some(variable) = matched(route.path, path) else {
            continue;
        };
        if route.method == *method {
            return RouteMatch::Route(route, variable);
        }
        others.push(&route.method);
    }
    if others.is_empty() {
        RouteMatch::Nowhere
    } else {
        RouteMatch::OtherMethods(others)
    }
}

/// The variable part of a path that fits; empty where there is none.
fn matched<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let mut variable = "";
    let mut parts = path.split('/');
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        if wanted.starts_with('{') {
            if part.is_empty() {
                return None;
            }
            variable = part;
        } else if wanted != part {
            return None;
        }
    }
    parts.next().is_none().then_some(variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_one_operation_with_its_variable() {
        let RouteMatch::Route(route, id) = find(&Method::POST, "/v1/workspaces/ws_1/diff") else {
            panic!();
        };
        assert_eq!(
            (route.operation, id),
            (RunnerOperation::DiffWorkspace, "ws_1")
        );
        assert!(matches!(
            find(&Method::POST, "/v1/workspaces/ws_1/diff/x"),
            RouteMatch::Nowhere
        ));
        assert!(matches!(
            find(&Method::GET, "/v1/workspaces/"),
            RouteMatch::Nowhere
        ));
        let RouteMatch::OtherMethods(methods) = find(&Method::PUT, "/v1/workspaces") else {
            panic!();
        };
        assert_eq!(methods, [&Method::POST, &Method::GET]);
    }

    #[test]
    fn no_two_routes_answer_the_same_request() {
        for (index, route) in ROUTES.iter().enumerate() {
            for other in &ROUTES[..index] {
                assert!(
                    (route.path, &route.method) != (other.path, &other.method)
                        && route.id != other.id,
                    "{} {}",
                    route.method,
                    route.path
                );
            }
        }
    }
}
