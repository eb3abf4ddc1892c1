//! Writing files and applying patches.

use std::collections::BTreeMap;

use lula_edit::PassageEdit;
use lula_edit::patch::FilePatch;
use lula_edit::syntax::SyntaxVerdict;
use lula_protocol::call::{ApplyPatch, PatchEdit, TextReplacement, WriteFile};
use lula_protocol::{TextOrigin, ToolAction, ToolOutput, ToolOutputDetails};

use super::change::ToolboxChange;
use super::error::ToolError;
use super::frame::ToolboxPlan;
use super::limits;
use super::read;
use super::root::{FileContent, ToolboxPath, WorkspaceRoot};

/// Lines shown around one that would not parse.
const AROUND: usize = 3;

/// What a change is, and what is to be said about it.
struct PatchPlan {
    change: ToolboxChange,
    notes: Vec<String>,
}

pub(super) fn write(root: &WorkspaceRoot, asked: &WriteFile) -> Result<ToolOutput, ToolError> {
    done(root, plan_write(root, asked)?, false)
}

pub(super) fn apply(root: &WorkspaceRoot, asked: &ApplyPatch) -> Result<ToolOutput, ToolError> {
    let places = matches!(asked, ApplyPatch::Any { .. } | ApplyPatch::Texts { .. });
    done(root, plan_patch(root, asked)?, places)
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

fn done(root: &WorkspaceRoot, planned: PatchPlan, places: bool) -> Result<ToolOutput, ToolError> {
    let mut text = planned.change.told(places);
    let files = planned.change.write(root)?;
    if files.is_empty() {
        "nothing had to be changed\n".clone_into(&mut text);
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
        ApplyPatch::UnifiedDiff { diff } => plan_diff(root, diff, false),
        ApplyPatch::SearchReplace { edits } => plan_edits(root, edits),
        ApplyPatch::Any { patch } => plan_diff(root, patch, true),
        ApplyPatch::Texts { path, edits } => plan_texts(root, path, edits),
        ApplyPatch::Move { from, to } => plan_move(root, from, to),
        ApplyPatch::Delete { path } => plan_delete(root, path),
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

/// Texts of one file, replaced in memory; the file has to parse as it did.
fn plan_texts(
    root: &WorkspaceRoot,
    path: &str,
    edits: &[TextReplacement],
) -> Result<PatchPlan, ToolError> {
    check_size(
        edits
            .iter()
            .map(|edit| edit.old.len() + edit.new.len())
            .sum(),
    )?;
    if edits.is_empty() {
        return Err(ToolError::NoChange);
    }
    let path = ToolboxPath::writable(path)?;
    let mut texts = TextFileCache::new(root);
    let before = texts.get(&path)?.cloned();
    let passages: Vec<PassageEdit> = edits
        .iter()
        .map(|edit| PassageEdit {
            old: edit.old.clone(),
            new: edit.new.clone(),
            all: edit.all,
        })
        .collect();
    let current = before.as_ref().map(|(text, _)| text.as_str());
    let after = lula_edit::replace_passages(path.as_str(), current, &passages)
        .map_err(|failures| ToolError::edits(failures.into_iter()))?;
    if current == Some(after.as_str()) {
        return Err(ToolError::NoChange);
    }
    if let Some(broken) = broken(&path, current, &after) {
        return Err(broken);
    }
    let mode = before.map_or(0o644, |(_, mode)| mode);
    let mut change = ToolboxChange::default();
    let bytes = after.into_bytes();
    change.set(root, path, Some(FileContent { bytes, mode }))?;
    Ok(PatchPlan {
        change,
        notes: Vec::new(),
    })
}

fn plan_move(root: &WorkspaceRoot, from: &str, to: &str) -> Result<PatchPlan, ToolError> {
    let (from, to) = (ToolboxPath::writable(from)?, ToolboxPath::writable(to)?);
    if from == to {
        return Err(ToolError::NoChange);
    }
    let content = root.read(&from)?;
    if root.kind(&to)?.is_some() {
        return Err(ToolError::Exists {
            path: to.as_str().to_owned(),
        });
    }
    let mut change = ToolboxChange::default();
    change.set(root, to, Some(content))?;
    change.set(root, from, None)?;
    Ok(PatchPlan {
        change,
        notes: Vec::new(),
    })
}

fn plan_delete(root: &WorkspaceRoot, path: &str) -> Result<PatchPlan, ToolError> {
    let path = ToolboxPath::writable(path)?;
    root.read(&path)?;
    let mut change = ToolboxChange::default();
    change.set(root, path, None)?;
    Ok(PatchPlan {
        change,
        notes: Vec::new(),
    })
}

/// That a file would no longer parse, if so.
fn broken(path: &ToolboxPath, before: Option<&str>, after: &str) -> Option<ToolError> {
    let verdict = lula_edit::syntax::check(path.as_str(), before, after);
    let SyntaxVerdict::Broken { line, .. } = verdict else {
        return None;
    };
    let first = line.saturating_sub(AROUND).max(1);
    let around = after
        .lines()
        .skip(first - 1)
        .take(line + AROUND + 1 - first);
    let around: Vec<&str> = around
        .map(|line| read::cut(line, limits::MATCH_LINE))
        .collect();
    Some(ToolError::Broken {
        path: path.as_str().to_owned(),
        line,
        shown: lula_edit::numbered(first, &around.join("\n")),
    })
}

fn told(path: &str, verdict: &SyntaxVerdict) -> String {
    match verdict {
        SyntaxVerdict::Broken { line, .. } => {
            format!("warning: {path} no longer parses, at line {line}")
        }
        _ => String::new(),
    }
}

fn plan_diff(root: &WorkspaceRoot, diff: &str, strict: bool) -> Result<PatchPlan, ToolError> {
    check_size(diff.len())?;
    let mut files = PatchedFiles {
        root,
        texts: TextFileCache::new(root),
        change: ToolboxChange::default(),
        judged: BTreeMap::new(),
    };
    let mut failures = Vec::new();
    for patch in lula_edit::patch::parse(diff)? {
        failures.extend(files.add(&patch)?);
    }
    if !failures.is_empty() {
        return Err(ToolError::NotPlaced(failures));
    }
    // Parts about one file are judged by what they come to together.
    let mut notes = Vec::new();
    for (path, (before, after)) in &files.judged {
        match broken(path, before.as_deref(), after) {
            Some(broken) if strict => return Err(broken),
            Some(ToolError::Broken { line, .. }) => {
                notes.push(format!("warning: {path} no longer parses, at line {line}"));
            }
            _ => {}
        }
    }
    Ok(PatchPlan {
        change: files.change,
        notes,
    })
}

/// The files of a patch as they become, part by part.
struct PatchedFiles<'a> {
    root: &'a WorkspaceRoot,
    texts: TextFileCache<'a>,
    change: ToolboxChange,
    /// Texts that are to parse as they did: before the patch, and after it.
    judged: BTreeMap<ToolboxPath, (Option<String>, String)>,
}

impl PatchedFiles<'_> {
    /// Adds what a patch does to one file; what of it has no place.
    fn add(&mut self, part: &FilePatch) -> Result<Vec<String>, ToolError> {
        let writable =
            |path: &Option<String>| path.as_deref().map(ToolboxPath::writable).transpose();
        let (old, new) = (writable(&part.old)?, writable(&part.new)?);
        if let (Some(path), true) = (&old, part.outright) {
            self.root.read(path)?;
            self.remove(path.clone())?;
            return Ok(Vec::new());
        }
        let before = match &old {
            Some(path) => {
                let text = self.texts.get(path)?.cloned();
                let missing = || ToolError::Missing {
                    path: path.as_str().to_owned(),
                };
                Some(text.ok_or_else(missing)?)
            }
            None => None,
        };
        if let Some(path) = new.as_ref().filter(|path| old.as_ref() != Some(path))
            && (self.root.kind(path)?.is_some() || self.judged.contains_key(path))
        {
            return Err(ToolError::Exists {
                path: path.as_str().to_owned(),
            });
        }
        let current = before.as_ref().map(|(text, _)| text.as_str());
        let text = match part.apply(current.unwrap_or_default()) {
            Ok(text) => text,
            Err(failed) => return Ok(failed),
        };
        let first = old.as_ref().and_then(|path| self.judged.remove(path));
        let first = first.map_or_else(|| current.map(str::to_owned), |(first, _)| first);
        if let Some(path) = &new {
            let mode = part.mode.or(before.as_ref().map(|(_, mode)| *mode));
            let mode = mode.unwrap_or(0o644);
            let bytes = text.clone().into_bytes();
            let content = FileContent { bytes, mode };
            self.change.set(self.root, path.clone(), Some(content))?;
            let known = Some((text.clone(), mode));
            self.texts.known.insert(path.clone(), known);
            self.judged.insert(path.clone(), (first, text));
        } else if !text.is_empty() {
            let name = old.as_ref().map_or("", ToolboxPath::as_str);
            return Ok(vec![format!(
                "{name}: the diff removes it but not all its lines"
            )]);
        }
        if let Some(path) = old.filter(|path| new.as_ref() != Some(path)) {
            self.remove(path)?;
        }
        Ok(Vec::new())
    }

    fn remove(&mut self, path: ToolboxPath) -> Result<(), ToolError> {
        self.texts.known.insert(path.clone(), None);
        self.judged.remove(&path);
        self.change.set(self.root, path, None)
    }
}
