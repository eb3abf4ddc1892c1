//! Listing files.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use lula_protocol::call::ListFiles;
use lula_protocol::output::{DirectoryEntry, DirectoryEntryKind};
use lula_protocol::{TextOrigin, ToolOutput, ToolOutputDetails};
use rustix::fs::FileType;

use super::error::ToolError;
use super::limits;
use super::root::{ToolboxPath, WorkspaceRoot};
use super::walk::{DirectoryWalk, WalkEnding, WalkGlob};

pub(super) fn files(root: &WorkspaceRoot, asked: &ListFiles) -> Result<ToolOutput, ToolError> {
    let start = ToolboxPath::parse(&asked.path)?;
    let glob = asked.glob.as_deref().map(WalkGlob::parse).transpose()?;
    let mut entries = Vec::new();
    let mut left_out = 0;
    let mut text = String::new();
    let ended = DirectoryWalk::new(asked.depth).run(root, &start, &mut |met| {
        // With a glob, directories are only the way to files.
        let wanted = match &glob {
            Some(glob) => met.kind != FileType::Directory && glob.matches(met.path),
            None => true,
        };
        if !wanted {
            return ControlFlow::Continue(());
        }
        if entries.len() >= limits::ENTRIES || text.len() > limits::TEXT {
            left_out += 1;
            return ControlFlow::Continue(());
        }
        let kind = match met.kind {
            FileType::RegularFile => DirectoryEntryKind::File,
            FileType::Directory => DirectoryEntryKind::Directory,
            FileType::Symlink => DirectoryEntryKind::Link,
            _ => DirectoryEntryKind::Other,
        };
        let mark = match kind {
            DirectoryEntryKind::Directory => "/",
            DirectoryEntryKind::Link => "@",
            DirectoryEntryKind::Other => "|",
            DirectoryEntryKind::File => "",
        };
        let _ = writeln!(text, "{}{mark}", met.path);
        entries.push(DirectoryEntry {
            path: met.path.to_owned(),
            kind,
            bytes: if kind == DirectoryEntryKind::File {
                met.bytes
            } else {
                0
            },
        });
        ControlFlow::Continue(())
    })?;
    let details = ToolOutputDetails::Files { entries, left_out };
    let mut output = ToolOutput::new(text, TextOrigin::Repository).with(details);
    output.truncated = left_out > 0 || ended == WalkEnding::Early;
    Ok(output)
}
