//! Listing files.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use lula_protocol::call::ListFiles;
use lula_protocol::output::{Entry, EntryKind};
use lula_protocol::{Details, Origin, Output};
use rustix::fs::FileType;

use super::error::ToolError;
use super::limits;
use super::root::{Inside, Root};
use super::walk::{Ended, Glob, Walk};

pub(super) fn files(root: &Root, asked: &ListFiles) -> Result<Output, ToolError> {
    let start = Inside::parse(&asked.path)?;
    let glob = asked.glob.as_deref().map(Glob::parse).transpose()?;
    let mut entries = Vec::new();
    let mut text = String::new();
    let ended = Walk::new(asked.depth).run(root, &start, &mut |met| {
        // With a glob, directories are only the way to files.
        let wanted = match &glob {
            Some(glob) => met.kind != FileType::Directory && glob.matches(met.path),
            None => true,
        };
        if !wanted {
            return ControlFlow::Continue(());
        }
        if entries.len() >= limits::ENTRIES || text.len() > limits::TEXT {
            return ControlFlow::Break(());
        }
        let kind = match met.kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let mark = match kind {
            EntryKind::Directory => "/",
            EntryKind::Link => "@",
            EntryKind::Other => "|",
            EntryKind::File => "",
        };
        let _ = writeln!(text, "{}{mark}", met.path);
        entries.push(Entry {
            path: met.path.to_owned(),
            kind,
            bytes: if kind == EntryKind::File {
                met.bytes
            } else {
                0
            },
        });
        ControlFlow::Continue(())
    })?;
    let mut output = Output::new(text, Origin::Repository).with(Details::Files { entries });
    output.truncated = ended == Ended::Early;
    Ok(output)
}
