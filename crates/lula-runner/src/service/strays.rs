//! Puts back what a command changed outside of the files of its agent, and tells it.
//!
//! Formatters and generators write where they please. An agent whose files are declared is told what
//! was put back, in the result of the command, and goes on; what cannot be put back is told too, and
//! is held against the agent's commit, which is not merged then.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lula_protocol::{ToolOutcome, ToolOutputDetails};
use lula_workspace::{PathContent, PathReplacement};

use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::{RunnerService, scope};
use crate::toolbox::frame::{FileImage, ToolboxAnswer, ToolboxQuestion};

/// Most bytes of files that are put back with one request.
const AT_ONCE: usize = 4 << 20;
/// Most names that are told.
const NAMED: usize = 40;

/// Puts back what a command that ended left outside of what may be written in a workspace.
pub(super) fn put_back(service: &RunnerService, room: &RunnerWorkspace, outcome: &mut ToolOutcome) {
    match strays(service, room) {
        Ok(found) if found.is_empty() => {}
        Ok(found) => tell(outcome, &found.told()),
        // The agent's commit is judged in any case.
        Err(error) => {
            tracing::debug!(workspace = %room.id, %error, "strays could not be looked for");
        }
    }
}

/// What was outside, and what became of it.
#[derive(Debug, Default)]
struct PutBackStrays {
    restored: Vec<String>,
    left: Vec<String>,
}

impl PutBackStrays {
    const fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.left.is_empty()
    }

    fn told(&self) -> String {
        let mut text = String::new();
        if !self.restored.is_empty() {
            let names = listed(&self.restored);
            let _ = writeln!(
                text,
                "[put back as they were, because this task may not write them: {names}]"
            );
        }
        if !self.left.is_empty() {
            let names = listed(&self.left);
            let _ = writeln!(
                text,
                "[this task may not write these, and they could not be put back; undo them, or the \
                 change is not taken: {names}]"
            );
        }
        text
    }
}

fn listed(names: &[String]) -> String {
    let mut text = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        let _ = write!(text, " and {more} more");
    }
    text
}

fn strays(
    service: &RunnerService,
    room: &RunnerWorkspace,
) -> Result<PutBackStrays, RequestRefusal> {
    let mut found = PutBackStrays::default();
    let invariants = room.invariants();
    if invariants.write_scope.is_none() {
        return Ok(found);
    }
    let Ok(checkout) = service.checkout(&room.id) else {
        return Ok(found);
    };
    if checkout.origin().line.is_none() {
        return Ok(found);
    }
    let taken = checkout.take(&room.workspace())?;
    let files: Vec<String> = taken.files.iter().map(|file| file.path.clone()).collect();
    let outside = scope::outside(&invariants, &files);
    if outside.is_empty() {
        return Ok(found);
    }
    let pieces = checkout.pieces(&taken)?;
    let pieces = pieces
        .iter()
        .filter(|piece| outside.contains(&piece.path.to_string()));
    let mut images: Vec<FileImage> = Vec::new();
    let mut bytes = 0;
    for piece in pieces {
        let Some(image) = image(piece, &checkout.tree()) else {
            found.left.push(piece.path.to_string());
            continue;
        };
        let size = image.content.as_ref().map_or(0, |(text, _)| text.len());
        if bytes + size > AT_ONCE {
            restore(room, &mut images, &mut found);
            bytes = 0;
        }
        bytes += size;
        images.push(image);
    }
    restore(room, &mut images, &mut found);
    Ok(found)
}

/// Puts these files back, through the toolbox of the sandbox that stands around them.
fn restore(room: &RunnerWorkspace, images: &mut Vec<FileImage>, found: &mut PutBackStrays) {
    if images.is_empty() {
        return;
    }
    let images = std::mem::take(images);
    let names = images.iter().map(|image| image.path.clone()).collect();
    let done = room.ask(ToolboxQuestion::PutBack(images));
    let list: &mut Vec<String> = match done {
        Ok(Ok(ToolboxAnswer::PutBack)) => &mut found.restored,
        _ => &mut found.left,
    };
    let mut names: Vec<String> = names;
    list.append(&mut names);
}

/// The file as the workspace began with it; nothing for what no image can hold.
fn image(piece: &PathReplacement, began: &Path) -> Option<FileImage> {
    let path = piece.path.to_string();
    let content = match &piece.before {
        Some(PathContent::File { bytes, executable }) => {
            let mode = if *executable { 0o755 } else { 0o644 };
            Some((BASE64.encode(bytes), mode))
        }
        Some(PathContent::Link(_)) => return None,
        None => None,
    };
    let above = Path::new(&path).ancestors().skip(1);
    let missing = above
        .filter(|directory| !directory.as_os_str().is_empty() && !began.join(directory).exists())
        .map(|directory| directory.display().to_string());
    Some(FileImage {
        missing: missing.collect(),
        content,
        path,
    })
}

/// Tells it with what the command printed.
fn tell(outcome: &mut ToolOutcome, told: &str) {
    let ToolOutcome::Done { output } = outcome else {
        return;
    };
    for text in [
        Some(&mut output.text),
        match &mut output.details {
            Some(ToolOutputDetails::Command { stderr, .. }) => Some(stderr),
            _ => None,
        },
    ]
    .into_iter()
    .flatten()
    {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(told);
    }
}
