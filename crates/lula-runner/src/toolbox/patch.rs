//! Writing files and applying patches.

use std::collections::BTreeMap;

use lula_edit::syntax::SyntaxVerdict;
use lula_protocol::call::{ApplyPatch, PatchEdit, WriteFile};
use lula_protocol::{TextOrigin, ToolAction, ToolOutput, ToolOutputDetails};

use super::change::ToolboxChange;
use super::error::ToolError;
use super::frame::ToolboxPlan;
use super::limits;
use super::read;
use super::root::{FileContent, ToolboxPath, WorkspaceRoot};
use super::unified;

/// What a change is, and what is to be said about it.
struct PatchPlan {
    change: ToolboxChange,
    notes: Vec<String>,
}

pub(super) fn write(root: &WorkspaceRoot, asked: &WriteFile) -> Result<ToolOutput, ToolError> {
    done(root, plan_write(root, asked)?)
}

pub(super) fn apply(root: &WorkspaceRoot, asked: &ApplyPatch) -> Result<ToolOutput, ToolError> {
    done(root, plan_patch(root, asked)?)
}

/// What the action would change.
pub(super) fn plan(root: &WorkspaceRoot, action: &ToolAction) -> Result<ToolboxPlan, ToolError> {
    let planned = match action {
        ToolAction::WriteFile(asked) => plan_write(root, asked)?,
        ToolAction::ApplyPatch(asked) => plan_patch(root, asked)?,
        other => return Err(ToolError::NotHere(other.tool())),
    };
    let diff = planned.change.diff();
    let shown = read::cut(&diff, limits::DIFF);
    Ok(ToolboxPlan {
        truncated: shown.len() < diff.len(),
        diff: shown.to_owned(),
        images: planned.change.images(root)?,
    })
}

fn done(root: &WorkspaceRoot, planned: PatchPlan) -> Result<ToolOutput, ToolError> {
    let files = planned.change.write(root)?;
    let mut text = if files.is_empty() {
        "nothing had to be changed\n".to_owned()
    } else {
        String::new()
    };
    for file in &files {
        text.push_str(match file.digest {
            Some(_) => "wrote ",
            None => "removed ",
        });
        text.push_str(&file.path);
        text.push('\n');
    }
    for note in planned.notes {
        text.push_str(&note);
        text.push('\n');
    }
    Ok(ToolOutput::new(text, TextOrigin::Lula).with(ToolOutputDetails::Written { files }))
}

fn plan_write(root: &WorkspaceRoot, asked: &WriteFile) -> Result<PatchPlan, ToolError> {
    let path = ToolboxPath::writable(&asked.path)?;
    let mut change = ToolboxChange::default();
    let bytes = asked.content.clone().into_bytes();
    let mode = match (asked.executable, root.read(&path)) {
        (true, _) => 0o755,
        (false, Ok(before)) => before.mode,
        (false, Err(_)) => 0o644,
    };
    change.set(root, path, Some(FileContent { bytes, mode }))?;
    Ok(PatchPlan {
        change,
        notes: Vec::new(),
    })
}

fn plan_patch(root: &WorkspaceRoot, asked: &ApplyPatch) -> Result<PatchPlan, ToolError> {
    match asked {
        ApplyPatch::UnifiedDiff { diff } => plan_diff(root, diff),
        ApplyPatch::SearchReplace { edits } => plan_edits(root, edits),
    }
}

fn check_size(size: usize) -> Result<(), ToolError> {
    if size > limits::PATCH {
        return Err(ToolError::TooLarge {
            what: "the patch".to_owned(),
            size: size as u64,
            most: limits::PATCH as u64,
        });
    }
    Ok(())
}

/// Text files as they are now, each read once.
struct TextFileCache<'a> {
    root: &'a WorkspaceRoot,
    known: BTreeMap<ToolboxPath, Option<(String, u32)>>,
}

impl<'a> TextFileCache<'a> {
    fn new(root: &'a WorkspaceRoot) -> Self {
        Self {
            root,
            known: BTreeMap::new(),
        }
    }

    fn get(&mut self, path: &ToolboxPath) -> Result<Option<&(String, u32)>, ToolError> {
        if !self.known.contains_key(path) {
            let text = match read::text(self.root, path) {
                Ok(text) => Some(text),
                Err(ToolError::Missing { .. }) => None,
                Err(error) => return Err(error),
            };
            self.known.insert(path.clone(), text);
        }
        Ok(self.known.get(path).and_then(Option::as_ref))
    }
}

fn plan_edits(root: &WorkspaceRoot, edits: &[PatchEdit]) -> Result<PatchPlan, ToolError> {
    check_size(
        edits
            .iter()
            .map(|edit| edit.search.len() + edit.replace.len())
            .sum(),
    )?;
    let mut texts = TextFileCache::new(root);
    let mut replacements = Vec::new();
    for edit in edits {
        let path = ToolboxPath::writable(&edit.path)?;
        texts.get(&path)?;
        replacements.push(lula_edit::FileEdit::Replace {
            path: path.as_str().to_owned(),
            search: edit.search.clone(),
            replace: edit.replace.clone(),
        });
    }
    let before = |path: &str| {
        let path = ToolboxPath::parse(path).ok()?;
        texts
            .known
            .get(&path)?
            .as_ref()
            .map(|(text, _)| text.clone())
    };
    let batch = lula_edit::apply_all(&replacements, before);
    if !batch.is_whole() {
        return Err(ToolError::edits(batch.failures()));
    }
    if batch.files.is_empty() {
        return Err(ToolError::NoChange);
    }
    let broken = batch.broken(before).into_iter();
    let notes = broken
        .map(|(path, verdict)| told(&path, &verdict))
        .collect();
    let mut change = ToolboxChange::default();
    for (path, text) in batch.files {
        let path = ToolboxPath::parse(&path)?;
        let mode = texts.get(&path)?.map_or(0o644, |(_, mode)| *mode);
        let bytes = text.into_bytes();
        change.set(root, path, Some(FileContent { bytes, mode }))?;
    }
    Ok(PatchPlan { change, notes })
}

fn told(path: &str, verdict: &SyntaxVerdict) -> String {
    match verdict {
        SyntaxVerdict::Broken { line, .. } => {
            format!("warning: {path} no longer parses, at line {line}")
        }
        _ => String::new(),
    }
}

fn plan_diff(root: &WorkspaceRoot, diff: &str) -> Result<PatchPlan, ToolError> {
    check_size(diff.len())?;
    let patches = unified::parse(diff)?;
    if patches.is_empty() {
        return Err(ToolError::NoChange);
    }
    let mut texts = TextFileCache::new(root);
    let mut change = ToolboxChange::default();
    let mut failures = Vec::new();
    let mut notes = Vec::new();
    for patch in patches {
        let old = patch
            .old
            .as_deref()
            .map(ToolboxPath::writable)
            .transpose()?;
        let new = patch
            .new
            .as_deref()
            .map(ToolboxPath::writable)
            .transpose()?;
        let before = match &old {
            Some(path) => Some(
                texts
                    .get(path)?
                    .cloned()
                    .ok_or_else(|| ToolError::Missing {
                        path: path.as_str().to_owned(),
                    })?,
            ),
            None => None,
        };
        if let Some(path) = new.as_ref().filter(|path| old.as_ref() != Some(path))
            && root.kind(path)?.is_some()
        {
            return Err(ToolError::Exists {
                path: path.as_str().to_owned(),
            });
        }
        let name = new
            .as_ref()
            .or(old.as_ref())
            .map_or("", ToolboxPath::as_str);
        let current = before.as_ref().map_or("", |(text, _)| text.as_str());
        match unified::apply(name, current, &patch.hunks) {
            Err(failed) => failures.extend(failed),
            Ok(text) => {
                if let Some(path) = &new {
                    let verdict = lula_edit::syntax::check(
                        path.as_str(),
                        before.as_ref().map(|(text, _)| text.as_str()),
                        &text,
                    );
                    if matches!(verdict, SyntaxVerdict::Broken { .. }) {
                        notes.push(told(path.as_str(), &verdict));
                    }
                    let mode = patch
                        .mode
                        .or(before.as_ref().map(|(_, mode)| *mode))
                        .unwrap_or(0o644);
                    let bytes = text.into_bytes();
                    change.set(root, path.clone(), Some(FileContent { bytes, mode }))?;
                } else if !text.is_empty() {
                    failures.push(format!("{name}: the diff removes it but not all its lines"));
                }
                if let Some(path) = old.filter(|path| new.as_ref() != Some(path)) {
                    change.set(root, path, None)?;
                }
            }
        }
    }
    if failures.is_empty() {
        Ok(PatchPlan { change, notes })
    } else {
        Err(ToolError::NotPlaced(failures))
    }
}
