//! What is told about workspaces and their changes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lula_protocol::{Digest, IsolationTier};
use lula_workspace::{
    LayerBackend, PathChange, Workspace, WorkspaceDiff, WorkspaceRecord, WorkspaceStatus,
};
use similar::TextDiff;

use super::RunnerSetup;
use super::refusal::RequestRefusal;
use super::snapshots::is_ours;
use crate::toolbox::limits;
use lula_runner_api::{
    ChangeView, DiffView, RunnerCapabilities, SnapshotView, WorkspaceState, WorkspaceView,
};

/// Longest file that is shown in a diff, in bytes.
const SHOWN: u64 = 512 << 10;
/// Longest text of a diff, in bytes.
const TEXT: usize = 4 << 20;

const TOOLS: [&str; 11] = [
    "read_file",
    "list_files",
    "search",
    "outline",
    "write_file",
    "apply_patch",
    "exec",
    "job",
    "git",
    "snapshot",
    "undo",
];

pub(super) fn capabilities(
    setup: &RunnerSetup,
    tier: IsolationTier,
    rules: Digest,
) -> Result<RunnerCapabilities, RequestRefusal> {
    let internal = |error| RequestRefusal::Internal(format!("the policy has no digest: {error}"));
    let number = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    let limits = BTreeMap::from([
        ("file_bytes".to_owned(), limits::FILE),
        ("text_bytes".to_owned(), number(limits::TEXT)),
        ("patch_bytes".to_owned(), number(limits::PATCH)),
        ("patch_files".to_owned(), number(limits::PATCH_FILES)),
        ("list_entries".to_owned(), number(limits::ENTRIES)),
        ("search_matches".to_owned(), number(limits::MATCHES)),
        ("batch_calls".to_owned(), 50),
        ("wall_ms".to_owned(), setup.policy.limits.wall.millis()),
    ]);
    Ok(RunnerCapabilities {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tier,
        tools: TOOLS.map(str::to_owned).to_vec(),
        roots: setup
            .roots
            .iter()
            .map(|root| root.display().to_string())
            .collect(),
        policy: setup.policy.digest().map_err(internal)?,
        rules,
        limits,
    })
}

pub(super) fn workspace(record: &WorkspaceRecord) -> WorkspaceView {
    WorkspaceView {
        origin: None,
        id: record.id.clone(),
        path: record.base().display().to_string(),
        title: record.title.clone(),
        state: match record.state {
            WorkspaceStatus::Pending => WorkspaceState::Pending,
            WorkspaceStatus::Committed => WorkspaceState::Committed,
            WorkspaceStatus::Discarded => WorkspaceState::Discarded,
        },
        backend: match record.backend {
            LayerBackend::Overlay => "overlay",
            LayerBackend::Copy { .. } => "copy",
        }
        .to_owned(),
        opened_ms: record.opened_ms,
        snapshots: record
            .snapshots
            .iter()
            .filter(|snapshot| !is_ours(&snapshot.label))
            .map(|snapshot| SnapshotView {
                label: snapshot.label.clone(),
                at_ms: snapshot.at_ms,
            })
            .collect(),
    }
}

pub(super) fn diff(workspace: &Workspace, diff: &WorkspaceDiff) -> DiffView {
    let mut text = String::new();
    let mut truncated = false;
    for change in &diff.changes {
        if text.len() > TEXT {
            truncated = true;
            break;
        }
        show(workspace, change, &mut text);
    }
    DiffView {
        digest: diff.digest,
        changes: diff.changes.iter().map(self::change).collect(),
        text,
        truncated,
    }
}

/// The text a change adds; nothing where it is not text, or too long to be shown.
pub(super) fn added(workspace: &Workspace, change: &PathChange) -> String {
    let mut text = String::new();
    show(workspace, change, &mut text);
    lula_gate::rules::added_lines(&text)
}

/// As words on the wire: `git_hook`, `added`.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

fn change(change: &PathChange) -> ChangeView {
    ChangeView {
        path: change.path.to_string(),
        what: word(&change.what),
        risks: change.risks.iter().map(word).collect(),
        conflict: change.conflict,
        held_back: change.held_back.as_ref().map(word),
    }
}

/// What a reviewer should look at twice at a path, as one line; nothing where there is nothing.
pub(super) fn labels(path: &str) -> String {
    let labels = lula_workspace::risks_of(path);
    if labels.is_empty() {
        return String::new();
    }
    let labels: Vec<&str> = labels.iter().map(|risk| risk.label()).collect();
    format!(
        "# look twice at {}: {}\n",
        path.escape_debug(),
        labels.join(", ")
    )
}

fn show(workspace: &Workspace, change: &PathChange, text: &mut String) {
    let path = &change.path;
    let name = |side: &str, there: bool| {
        if there {
            format!("{side}/{path}")
        } else {
            "/dev/null".to_owned()
        }
    };
    let (old, new) = (
        name("a", change.old.is_some()),
        name("b", change.new.is_some()),
    );
    let plain = |bytes: Option<Vec<u8>>, there: bool| match bytes {
        Some(bytes) if !bytes.contains(&0) => String::from_utf8(bytes).ok(),
        None if !there => Some(String::new()),
        _ => None,
    };
    let sides = workspace.sides(change, SHOWN).ok().and_then(|sides| {
        Some((
            plain(sides.old, change.old.is_some())?,
            plain(sides.new, change.new.is_some())?,
        ))
    });
    if let Some((before, after)) = sides.filter(|(before, after)| before != after) {
        let lines = TextDiff::from_lines(&before, &after);
        let _ = write!(text, "{}", lines.unified_diff().header(&old, &new));
    } else {
        let _ = writeln!(text, "{} {path}", word(&change.what));
    }
}
