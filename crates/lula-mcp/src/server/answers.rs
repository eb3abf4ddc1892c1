//! Answers as MCP has them. What a model reads is text; what programs may want beside it is structured, and never
//! holds anything that the text leaves out.

use lula_agents::runner_port::Reply;
use lula_host::HostError;
use lula_protocol::{ApprovalChallenge, SandboxReceipt};
use lula_runner_api::client::RunnerClientError;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};

/// Why a call was not done, for the model.
#[derive(Debug)]
pub(super) struct CallFailure(pub(super) String);

impl From<RunnerClientError> for CallFailure {
    fn from(error: RunnerClientError) -> Self {
        Self(error.to_string())
    }
}

impl From<HostError> for CallFailure {
    fn from(error: HostError) -> Self {
        let advice = error.remedy().map(|advice| format!("; {advice}"));
        Self(format!("{error}{}", advice.unwrap_or_default()))
    }
}

impl From<String> for CallFailure {
    fn from(text: String) -> Self {
        Self(text)
    }
}

pub(super) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(super) fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// A text, and the same for programs.
pub(super) fn with_data(shown: impl Into<String>, data: Value) -> CallToolResult {
    let mut result = text(shown);
    result.structured_content = Some(data);
    result
}

/// What a tool of the workspace said, with the receipt of its sandbox for programs.
pub(super) fn reply(reply: Reply, receipt: Option<&SandboxReceipt>) -> CallToolResult {
    let mut content = vec![ContentBlock::text(reply.text)];
    if let Some(picture) = reply.picture
        && let Some(data) = picture.base64
    {
        content.push(ContentBlock::image(data, picture.media_type));
    }
    let mut result = if reply.failed {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    if let Some(Ok(receipt)) = receipt.map(serde_json::to_value) {
        let mut meta = MetaObject::default();
        meta.0.insert("lula/receipt".to_owned(), receipt);
        result.meta = Some(meta);
    }
    result
}

/// Nothing was done, because an approver is asked first: which approval, and how to go on. It needs no client that
/// can ask its user, and works with every one.
pub(super) fn held(challenge: &ApprovalChallenge) -> CallToolResult {
    let id = &challenge.id;
    let mut result = failed(format!(
        "Nothing was done yet: {}.\nThis waits for the approval {id}. Ask the user to look at it and answer, in a \
         terminal of their own:\n  lula approvals show {id}\n  lula approve {id}   (or: lula reject {id})\nThen \
         make the same call again.",
        challenge.reason
    ));
    result.structured_content = Some(json!({
        "status": "needs_approval",
        "approval": id,
        "digest": challenge.digest,
        "reason": challenge.reason,
        "expires_ms": challenge.expires_ms,
        "answer_with": format!("lula approve {id}"),
    }));
    result
}
