//! What of a workspace is read, and how it is brought back to its beginning, by calls of its tools.

use lula_protocol::call::{ListFiles, ReadFile, UndoToSnapshot};
use lula_protocol::output::{DirectoryEntry, DirectoryEntryKind};
use lula_protocol::{
    ProtocolVersion, RunId, ToolAction, ToolCall, ToolOutcome, ToolOutput, ToolOutputDetails,
    ToolResult, WorkspaceId,
};
use lula_runner_api::{START, ToolCallBatchItem};

use super::reply::{held, refused};
use super::{AgentWorkspace, EffectIdentity, Reply, RunnerPort, RunnerPortError, USUAL, opening};

/// Most files that are asked for at once.
const AT_ONCE: usize = 40;
/// Most pieces that one file is read in.
const PIECES: usize = 64;

/// Opens a workspace of its own for a run that was forked, beginning as another began. One that is
/// open already stays as it is.
pub(crate) async fn adopt(
    runner: &dyn RunnerPort,
    run: &RunId,
    of: &WorkspaceId,
) -> Result<(), RunnerPortError> {
    let parent = runner.workspace(of).await?;
    let repository = parent.path.clone();
    let commit = AgentWorkspace::of(parent)?.origin.commit;
    let order = opening(run, &repository, Some(commit));
    runner.open(&order).await.map(drop)
}

/// Returns a workspace to its beginning.
pub(crate) async fn reset(
    runner: &dyn RunnerPort,
    effect: &EffectIdentity,
    workspace: &WorkspaceId,
) -> Result<(), RunnerPortError> {
    let to = Some(START.to_owned());
    let call = call(effect, workspace, ToolAction::Undo(UndoToSnapshot { to }));
    let reply = Reply::of(runner.call(&call).await?, USUAL)?;
    match reply {
        Reply {
            refused: Some(by),
            text: why,
            ..
        } => Err(RunnerPortError::Refused { by, why }),
        Reply {
            failed: true, text, ..
        } => Err(RunnerPortError::Failed(text)),
        _ => Ok(()),
    }
}

/// The files of a workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceListing {
    /// Relative to its top.
    pub(crate) files: Vec<DirectoryEntry>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// The files of a workspace.
pub(crate) async fn files(
    runner: &dyn RunnerPort,
    effect: &EffectIdentity,
    workspace: &WorkspaceId,
) -> Result<WorkspaceListing, RunnerPortError> {
    let list = ToolAction::ListFiles(ListFiles {
        path: String::new(),
        glob: None,
        depth: None,
    });
    let found = output(runner.call(&look(effect, workspace, list)).await?)?;
    let found = found.map_err(RunnerPortError::Failed)?;
    let Some(ToolOutputDetails::Files {
        entries: mut files, ..
    }) = found.details
    else {
        return Err(RunnerPortError::Failed(
            "a listing without files".to_owned(),
        ));
    };
    files.retain(|entry| entry.kind == DirectoryEntryKind::File);
    Ok(WorkspaceListing {
        files,
        more: found.truncated,
    })
}

/// The texts of whole files, in their order; `None` where there is none, or no text.
pub(crate) async fn fetch(
    runner: &dyn RunnerPort,
    effect: &EffectIdentity,
    workspace: &WorkspaceId,
    paths: &[String],
) -> Result<Vec<Option<String>>, RunnerPortError> {
    let mut texts = Vec::with_capacity(paths.len());
    for part in paths.chunks(AT_ONCE) {
        let reads = part
            .iter()
            .map(|path| look(effect, workspace, read(path, None)));
        let came = runner.batch(reads.collect()).await?;
        for (path, item) in part.iter().zip(came) {
            let found = match item {
                ToolCallBatchItem::Result(result) => output(*result)?,
                ToolCallBatchItem::Problem(problem) => Err(problem.message),
            };
            texts.push(match found {
                Ok(first) => rest(runner, (effect, workspace), path, first).await?,
                Err(_) => None,
            });
        }
    }
    Ok(texts)
}

/// The whole of a file of which the first piece was read.
async fn rest(
    runner: &dyn RunnerPort,
    (effect, workspace): (&EffectIdentity, &WorkspaceId),
    path: &str,
    first: ToolOutput,
) -> Result<Option<String>, RunnerPortError> {
    let mut text = String::new();
    let mut piece = first;
    for _ in 0..PIECES {
        let Some(ToolOutputDetails::File {
            lines,
            to_line,
            binary: false,
            lossy: false,
            ..
        }) = piece.details
        else {
            return Ok(None);
        };
        text.push_str(&piece.text);
        if !piece.truncated || to_line >= lines {
            // A line that was cut is not the whole text.
            return Ok((!piece.truncated).then_some(text));
        }
        let more = look(effect, workspace, read(path, Some(to_line + 1)));
        match output(runner.call(&more).await?)? {
            Ok(next) => piece = next,
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

fn read(path: &str, from_line: Option<u32>) -> ToolAction {
    ToolAction::ReadFile(ReadFile {
        path: path.to_owned(),
        from_line,
        ..ReadFile::default()
    })
}

/// A call that only looks. Its identity follows from the effect it is part of and what it asks for.
fn look(effect: &EffectIdentity, workspace: &WorkspaceId, action: ToolAction) -> ToolCall {
    let part = effect.part(&serde_json::to_string(&action).unwrap_or_default());
    call(&part, workspace, action)
}

fn call(effect: &EffectIdentity, workspace: &WorkspaceId, action: ToolAction) -> ToolCall {
    ToolCall {
        protocol: ProtocolVersion,
        effect: effect.id.clone(),
        epoch: effect.epoch,
        run: effect.run.clone(),
        workspace: workspace.clone(),
        action,
    }
}

/// The output of a result, or why there is none.
fn output(result: ToolResult) -> Result<Result<ToolOutput, String>, RunnerPortError> {
    match result.outcome {
        ToolOutcome::Done { output } => Ok(Ok(output)),
        ToolOutcome::Failed { message, .. } => Ok(Err(message)),
        ToolOutcome::Denied { denials } => Ok(Err(refused(&denials).1)),
        ToolOutcome::NeedsApproval { challenge } => Err(held(&challenge)),
    }
}
