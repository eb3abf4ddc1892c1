//! The coder's tools for callers that are no run: what they are, what a call of one asks of a workspace, and
//! what its answer says. One table, so that an agent from elsewhere works with the tools that a coder has.

use lula_models::normal::{ModelTool, ModelToolCall};
use lula_protocol::{ToolAction, ToolResult};

use crate::coder::tools::{self, AnswerRoom};
use crate::runner_port::{Reply, RunnerPortError};
use crate::work::TestBaseline;

/// The tools of these names, in this order.
pub fn definitions(names: &[&str]) -> Vec<ModelTool> {
    let all = tools::offered();
    let wanted = names.iter();
    wanted
        .filter_map(|name| all.iter().find(|tool| tool.name == *name).cloned())
        .collect()
}

/// What a call asks for, where its answer may take so many bytes. Nothing in a call speaks about permission.
pub fn action(call: &ModelToolCall, bytes: usize) -> Result<ToolAction, String> {
    let room = AnswerRoom {
        bytes,
        pictures: Some(1),
    };
    tools::action(call, room)
}

/// What a result says, in about so many bytes. Where an approver is asked first there is none yet.
pub fn reply(result: ToolResult, bytes: usize) -> Result<Reply, RunnerPortError> {
    Reply::of(result, bytes)
}

/// What the tests say now, and what of it they did not say before, where that is known. Of failing tests only
/// those whose names hold one of `names` are shown, where some are given.
pub fn test_report(
    now: &TestBaseline,
    before: Option<&TestBaseline>,
    names: &[String],
    bytes: usize,
) -> Reply {
    tools::test_report(now, before, names, bytes)
}

/// As much of a unified diff as there is room for, cut at hunks, below the size of each file's change.
pub fn diff_report(diff: &str, bytes: usize) -> String {
    tools::diff_report(diff, bytes)
}
