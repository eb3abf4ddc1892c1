//! A change over several files: all of it, or none of it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lula_protocol::Digest;
use lula_protocol::output::WrittenFile;
use similar::TextDiff;

use super::error::ToolError;
use super::frame::{FileImage, ToolboxPlan};
use super::limits;
use super::read::is_binary;
use super::root::{FileContent, ToolboxPath, WorkspaceRoot};

/// What each file is to become by a change.
#[derive(Debug, Default)]
pub(super) struct ToolboxChange {
    files: BTreeMap<ToolboxPath, FileTransition>,
}

#[derive(Debug)]
struct FileTransition {
    before: Option<FileContent>,
    after: Option<FileContent>,
}

impl ToolboxChange {
    /// `path` becomes `after`, or goes away. What it is now is read here, for the way back.
    pub(super) fn set(
        &mut self,
        root: &WorkspaceRoot,
        path: ToolboxPath,
        after: Option<FileContent>,
    ) -> Result<(), ToolError> {
        if let Some(content) = &after
            && content.bytes.len() as u64 > limits::FILE
        {
            return Err(ToolError::file_too_large(
                path.as_str(),
                content.bytes.len() as u64,
            ));
        }
        let before = match root.read(&path) {
            Ok(content) => Some(content),
            Err(ToolError::Missing { .. }) => None,
            Err(error) => return Err(error),
        };
        self.files.insert(path, FileTransition { before, after });
        if self.files.len() > limits::PATCH_FILES {
            return Err(ToolError::TooMany {
                what: "files in one change",
                count: self.files.len(),
                most: limits::PATCH_FILES,
            });
        }
        Ok(())
    }

    /// Does it. Where one file cannot be written, those written before it are put back; a crash in
    /// between is undone by the workspace's own snapshot.
    pub(super) fn write(self, root: &WorkspaceRoot) -> Result<Vec<WrittenFile>, ToolError> {
        let mut done: Vec<(&ToolboxPath, &FileTransition)> = Vec::new();
        for (path, fate) in &self.files {
            if fate.before == fate.after {
                continue;
            }
            if let Err(error) = put(root, path, fate.after.as_ref()) {
                for (path, fate) in done.into_iter().rev() {
                    // What was just written can be written again; if not, the error stands anyway.
                    let _ = put(root, path, fate.before.as_ref());
                }
                return Err(not_written(error));
            }
            done.push((path, fate));
        }
        let written = done.into_iter().map(|(path, fate)| WrittenFile {
            path: path.as_str().to_owned(),
            digest: fate
                .after
                .as_ref()
                .map(|content| Digest::of_bytes(&content.bytes)),
        });
        Ok(written.collect())
    }

    /// The files it touches, as they are.
    pub(super) fn images(&self, root: &WorkspaceRoot) -> Result<Vec<FileImage>, ToolError> {
        let replaced: usize = self
            .files
            .values()
            .filter_map(|fate| fate.before.as_ref())
            .map(|content| content.bytes.len())
            .sum();
        if replaced > limits::REPLACED {
            return Err(ToolError::TooLarge {
                what: "what one change replaces".to_owned(),
                size: replaced as u64,
                most: limits::REPLACED as u64,
            });
        }
        let touched = self
            .files
            .iter()
            .filter(|(_, fate)| fate.before != fate.after);
        touched
            .map(|(path, fate)| {
                Ok(FileImage {
                    path: path.as_str().to_owned(),
                    content: fate
                        .before
                        .as_ref()
                        .map(|content| (BASE64.encode(&content.bytes), content.mode)),
                    missing: root.missing_above(path)?,
                })
            })
            .collect()
    }

    /// What it does to each file, in a line; with `places`, how the changed lines are to be.
    pub(super) fn told(&self, places: bool) -> String {
        use std::fmt::Write as _;
        let (mut lines, mut shown) = (String::new(), String::new());
        for (path, fate) in &self.files {
            if fate.before == fate.after {
                continue;
            }
            let text = |content: &Option<FileContent>| {
                let bytes = content.as_ref().map_or(&[][..], |content| &content.bytes);
                (!is_binary(bytes)).then(|| String::from_utf8_lossy(bytes).into_owned())
            };
            let texts = text(&fate.before).zip(text(&fate.after));
            let counts = texts.as_ref().map_or_else(
                || "no text".to_owned(),
                |(before, after)| {
                    let (added, removed) = lula_edit::changed_lines(before, after);
                    format!("+{added} -{removed}")
                },
            );
            let _ = match (&fate.before, &fate.after) {
                (Some(_), None) => writeln!(lines, "removed {path}"),
                (None, _) => writeln!(lines, "wrote {path} (new, {counts})"),
                (Some(_), Some(_)) => writeln!(lines, "wrote {path} ({counts})"),
            };
            if let Some((before, after)) = texts.filter(|_| places)
                && fate.before.is_some()
                && fate.after.is_some()
            {
                let room = limits::PLACES.saturating_sub(shown.len());
                let place = lula_edit::changed_places(&before, &after, room);
                let _ = write!(shown, "{path} is now\n{place}");
            }
        }
        lines + &shown
    }

    /// The change as a unified diff.
    pub(super) fn diff(&self) -> String {
        use std::fmt::Write as _;
        let mut diff = String::new();
        for (path, fate) in &self.files {
            if fate.before == fate.after {
                continue;
            }
            let name = |side: &str, content: &Option<FileContent>| match content {
                Some(_) => format!("{side}/{path}"),
                None => "/dev/null".to_owned(),
            };
            let (old, new) = (name("a", &fate.before), name("b", &fate.after));
            let text = |content: &Option<FileContent>| {
                let bytes = content.as_ref().map_or(&[][..], |content| &content.bytes);
                (!is_binary(bytes)).then(|| String::from_utf8_lossy(bytes).into_owned())
            };
            let mode = |content: &Option<FileContent>| content.as_ref().map(|content| content.mode);
            if let (Some(before), Some(after)) = (mode(&fate.before), mode(&fate.after))
                && before != after
            {
                let _ = writeln!(diff, "{path}: mode {before:o} becomes {after:o}");
            } else if let (None, Some(0o755)) = (mode(&fate.before), mode(&fate.after)) {
                let _ = writeln!(diff, "{path}: a program");
            }
            if let (Some(before), Some(after)) = (text(&fate.before), text(&fate.after)) {
                let lines = TextDiff::from_lines(&before, &after);
                let _ = write!(diff, "{}", lines.unified_diff().header(&old, &new));
            } else {
                let _ = writeln!(diff, "Binary files {old} and {new} differ");
            }
        }
        diff
    }
}

impl ToolboxPlan {
    /// What a file that would change holds now; nothing where it holds no text.
    pub(crate) fn text_before(&self, path: &str) -> Option<String> {
        let image = self.images.iter().find(|image| image.path == path)?;
        let (content, _) = image.content.as_ref()?;
        String::from_utf8(BASE64.decode(content).ok()?).ok()
    }
}

/// Puts files back as they were, and removes directories that were made for them.
pub(super) fn put_back(root: &WorkspaceRoot, images: &[FileImage]) -> Result<(), ToolError> {
    for image in images {
        let path = ToolboxPath::writable(&image.path)?;
        match &image.content {
            Some((text, mode)) => {
                let bytes = BASE64.decode(text).map_err(|_| ToolError::BadPath {
                    path: image.path.clone(),
                    why: "its image is no base64",
                })?;
                let content = FileContent {
                    bytes,
                    mode: mode & 0o777,
                };
                if root.read(&path).ok().as_ref() != Some(&content) {
                    root.replace(&path, &content)?;
                }
            }
            None if root.kind(&path)?.is_some() => root.remove(&path)?,
            None => {}
        }
    }
    for directory in images.iter().flat_map(|image| &image.missing) {
        root.remove_empty(&ToolboxPath::writable(directory)?);
    }
    Ok(())
}

fn put(
    root: &WorkspaceRoot,
    path: &ToolboxPath,
    content: Option<&FileContent>,
) -> Result<(), ToolError> {
    match content {
        Some(content) => root.replace(path, content),
        None => root.remove(path),
    }
}

fn not_written(error: ToolError) -> ToolError {
    match error {
        ToolError::Io { path, source } => ToolError::NotWritten { path, source },
        error => error,
    }
}
