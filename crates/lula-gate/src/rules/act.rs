//! What is judged.

use std::collections::HashSet;
use std::ops::Range;

use lula_protocol::ToolAction;
use lula_protocol::call::{ApplyPatch, GitAction};

use crate::findings::{self, FindingLabel};
use crate::globs::PathGlobs;
use crate::shell::ShellReading;

/// Something that is about to happen, as far as rules care.
#[derive(Debug, Clone, Default)]
pub struct GateAct {
    pub(super) tool: String,
    pub(super) mutates: bool,
    pub(super) reading: Option<ShellReading>,
    pub(super) writes: Vec<String>,
    pub(super) findings: Vec<FindingLabel>,
    pub(super) scope: Option<PathGlobs>,
}

impl GateAct {
    /// A program with its arguments.
    pub fn command(argv: &[String]) -> Self {
        Self::exec(ShellReading::of_argv(argv, &[], None))
    }

    pub fn shell(text: &str) -> Self {
        Self::exec(ShellReading::of_shell(text))
    }

    fn exec(reading: ShellReading) -> Self {
        Self {
            tool: "exec".to_owned(),
            mutates: true,
            reading: Some(reading),
            ..Self::default()
        }
    }

    /// A tool call that changes no file, or one of which nothing more is known.
    pub fn of(action: &ToolAction) -> Self {
        Self::over(action, |_| None)
    }

    /// A tool call over files that hold this now. What stood in a file before is not what the call
    /// adds: one operator in a file of example keys is no new key.
    pub fn over(action: &ToolAction, before: impl Fn(&str) -> Option<String>) -> Self {
        let mut act = Self {
            tool: action.tool().to_owned(),
            mutates: action.mutates(),
            ..Self::default()
        };
        match action {
            ToolAction::Exec(exec) => {
                let names: Vec<String> = exec.env.keys().cloned().collect();
                act.reading = Some(ShellReading::of_argv(
                    &exec.argv,
                    &names,
                    exec.stdin.as_deref(),
                ));
            }
            ToolAction::WriteFile(write) => {
                act.writes.push(write.path.clone());
                act.look_at_new(&write.content, || before(&write.path));
            }
            ToolAction::ApplyPatch(ApplyPatch::UnifiedDiff { diff }) => {
                act.writes = paths_of_diff(diff);
                act.look_at(&added_lines(diff));
            }
            ToolAction::ApplyPatch(ApplyPatch::SearchReplace { edits }) => {
                for edit in edits {
                    act.writes.push(edit.path.clone());
                    act.look_at_new(&edit.replace, || Some(edit.search.clone()));
                }
            }
            ToolAction::ApplyPatch(ApplyPatch::Any { patch }) => {
                act.writes = paths_of_patch(patch);
                let added = patch.lines().filter_map(|line| line.strip_prefix('+'));
                act.look_at(&added.collect::<Vec<_>>().join("\n"));
            }
            ToolAction::ApplyPatch(ApplyPatch::Texts { path, edits }) => {
                act.writes.push(path.clone());
                for edit in edits {
                    let stood = || format!("{}\n{}", before(path).unwrap_or_default(), edit.old);
                    act.look_at_new(&edit.new, || Some(stood()));
                }
            }
            ToolAction::ApplyPatch(ApplyPatch::Move { from, to }) => {
                act.writes.extend([from.clone(), to.clone()]);
            }
            ToolAction::ApplyPatch(ApplyPatch::Delete { path }) => act.writes.push(path.clone()),
            ToolAction::Git(GitAction::Commit { message }) => {
                let argv = ["git", "commit", "-m", message].map(str::to_owned);
                act.reading = Some(ShellReading::of_argv(&argv, &[], None));
            }
            ToolAction::Git(_)
            | ToolAction::Job(_)
            | ToolAction::ReadFile(_)
            | ToolAction::ListFiles(_)
            | ToolAction::Search(_)
            | ToolAction::Outline(_)
            | ToolAction::Snapshot(_)
            | ToolAction::Undo(_) => {}
        }
        act
    }

    /// Changes leaving a workspace for the user's tree: where they go, and the text they add.
    /// No matter what wrote it, a command included, it is looked at here.
    pub fn commit<S: AsRef<str>>(paths: Vec<String>, added: impl IntoIterator<Item = S>) -> Self {
        let argv = ["lula", "commit"].map(str::to_owned);
        let mut act = Self {
            tool: "commit".to_owned(),
            mutates: true,
            reading: Some(ShellReading::of_argv(&argv, &[], None)),
            writes: paths,
            ..Self::default()
        };
        for text in added {
            act.look_at(text.as_ref());
        }
        act
    }

    /// The same act by an agent that may write only there.
    #[must_use]
    pub fn within(mut self, scope: PathGlobs) -> Self {
        self.scope = Some(scope);
        self
    }

    /// The same act, knowing which paths it writes.
    #[must_use]
    pub fn writing<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.writes.extend(paths.into_iter().map(Into::into));
        self
    }

    /// The same act, knowing what was found in its text.
    #[must_use]
    pub fn finding(mut self, labels: impl IntoIterator<Item = FindingLabel>) -> Self {
        self.findings.extend(labels);
        self
    }

    /// Labels of what was found in the text it writes.
    pub fn findings(&self) -> &[FindingLabel] {
        &self.findings
    }

    /// The paths it writes.
    pub fn writes(&self) -> &[String] {
        &self.writes
    }

    fn look_at(&mut self, text: &str) {
        self.look_at_new(text, || None);
    }

    /// Looks at a text, and leaves out what stands on lines that were there before, word for word.
    fn look_at_new(&mut self, text: &str, before: impl FnOnce() -> Option<String>) {
        let found = findings::scan(text).findings;
        if found.is_empty() {
            return;
        }
        let before = before().unwrap_or_default();
        let known: HashSet<&str> = before.lines().collect();
        for finding in found {
            let stood = lines_at(text, &finding.span)
                .lines()
                .all(|line| known.contains(line));
            if !stood && !self.findings.contains(&finding.label) {
                self.findings.push(finding.label);
            }
        }
    }

    /// The first path that lies outside the declared scope.
    pub(super) fn outside_scope(&self) -> Option<&str> {
        let scope = self.scope.as_ref()?;
        let outside = |path: &&String| !scope.matches(path);
        self.writes.iter().find(outside).map(String::as_str)
    }
}

/// The whole lines that a place in a text lies on.
fn lines_at<'a>(text: &'a str, place: &Range<usize>) -> &'a str {
    let begin = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[place.end..]
        .find('\n')
        .map_or(text.len(), |at| place.end + at);
    &text[begin..end]
}

/// Every path a unified diff names, old and new.
pub fn paths_of_diff(diff: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut add = |path: &str, prefixed: bool| {
        let path = path.trim_end_matches(['\r', '\n']);
        // Anything after a tab is a time stamp.
        let path = path.split('\t').next().unwrap_or(path);
        if path == "/dev/null" {
            return;
        }
        let path = unquoted(path);
        let bare = ["a/", "b/"].iter().find_map(|side| path.strip_prefix(side));
        let path = match bare {
            Some(bare) if prefixed => bare.to_owned(),
            _ => path,
        };
        if !path.is_empty() && !paths.contains(&path) {
            paths.push(path);
        }
    };
    for line in diff.lines() {
        for head in ["--- ", "+++ "] {
            if let Some(path) = line.strip_prefix(head) {
                add(path, true);
            }
        }
        for head in ["rename from ", "rename to ", "copy from ", "copy to "] {
            if let Some(path) = line.strip_prefix(head) {
                add(path, false);
            }
        }
        // Changes of mode alone name their file only here.
        if let Some(both) = line.strip_prefix("diff --git ") {
            let middle = both.len() / 2;
            if both.is_char_boundary(middle) && both[middle..].starts_with(' ') {
                add(&both[..middle], true);
                add(&both[middle + 1..], true);
            }
        }
    }
    paths
}

/// Every path that a patch names, in whichever of its two forms it is written.
pub fn paths_of_patch(patch: &str) -> Vec<String> {
    let mut paths = paths_of_diff(patch);
    for line in patch.lines() {
        let heads = ["Update File:", "Add File:", "Delete File:", "Move to:"];
        let rest = line.strip_prefix("*** ");
        let named = rest.and_then(|rest| heads.iter().find_map(|head| rest.strip_prefix(head)));
        let name = named.map(str::trim).unwrap_or_default();
        let name = name.strip_prefix("./").unwrap_or(name);
        if !name.is_empty() && !paths.iter().any(|known| known == name) {
            paths.push(name.to_owned());
        }
    }
    paths
}

/// git writes unusual names between quotes.
fn unquoted(path: &str) -> String {
    let inner = path
        .strip_prefix('"')
        .and_then(|path| path.strip_suffix('"'));
    inner.map_or_else(
        || path.to_owned(),
        |inner| {
            let mut bytes = Vec::new();
            let mut rest = inner.bytes().peekable();
            while let Some(byte) = rest.next() {
                if byte != b'\\' {
                    bytes.push(byte);
                    continue;
                }
                let mut octal = String::new();
                while octal.len() < 3
                    && let Some(digit) = rest.peek().filter(|b| (b'0'..=b'7').contains(b))
                {
                    octal.push(char::from(*digit));
                    rest.next();
                }
                match u8::from_str_radix(&octal, 8) {
                    Ok(byte) => bytes.push(byte),
                    Err(_) => match rest.next() {
                        Some(b'n') => bytes.push(b'\n'),
                        Some(b't') => bytes.push(b'\t'),
                        Some(other) => bytes.push(other),
                        None => {}
                    },
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        },
    )
}

/// The text a unified diff adds.
pub fn added_lines(diff: &str) -> String {
    let mut text = String::new();
    let mut previous = "";
    for line in diff.lines() {
        // Only behind its twin is it a header; elsewhere it is text that starts with `++ `.
        let is_header = line.starts_with("+++ ") && previous.starts_with("--- ");
        if let Some(added) = line.strip_prefix('+')
            && !is_header
        {
            text.push_str(added);
            text.push('\n');
        }
        previous = line;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_a_diff_is_seen() {
        let diff = "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-a\n+b\n\
                    diff --git a/old b/new\nrename from old\nrename to new\n\
                    diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
                    --- /dev/null\n+++ \"b/sp\\303\\251cial\"\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(
            paths_of_diff(diff),
            ["x.rs", "old", "new", "run.sh", "spécial"]
        );
    }

    const KEY: &str = "aws_key = \"AKIAIOSFODNN7REALKEY\"\n";

    #[test]
    fn a_key_that_stood_in_the_file_before_is_not_one_that_a_write_adds() {
        let write = |content: String| {
            ToolAction::WriteFile(lula_protocol::call::WriteFile {
                path: "keys.py".to_owned(),
                content,
                executable: false,
            })
        };
        let over = |before: &str, after: String| {
            GateAct::over(&write(after), |_| Some(before.to_owned()))
                .findings()
                .to_vec()
        };
        let before = format!("limit = 1 < 2\n{KEY}");
        assert_eq!(over(&before, format!("limit = 1 <= 2\n{KEY}")), []);
        // The same key on a line of its own making, another key, a file that was not there.
        let said = over(&before, format!("limit = 1\nother = {KEY}"));
        assert_eq!(said, [FindingLabel::Secret]);
        assert_eq!(over("", KEY.to_owned()), [FindingLabel::Secret]);
        let unknown = GateAct::of(&write(KEY.to_owned()));
        assert_eq!(unknown.findings(), [FindingLabel::Secret]);
    }

    #[test]
    fn a_key_between_the_lines_of_an_edit_is_not_one_that_it_adds() {
        let edit = |search: String, replace: String| {
            let edit = lula_protocol::call::PatchEdit {
                path: "keys.py".to_owned(),
                search,
                replace,
            };
            let patch = ApplyPatch::SearchReplace { edits: vec![edit] };
            GateAct::of(&ToolAction::ApplyPatch(patch))
                .findings()
                .to_vec()
        };
        let (old, new) = (format!("a = 1\n{KEY}"), format!("a = 2\n{KEY}"));
        assert_eq!(edit(old, new), []);
        let new = format!("a = 2\n{KEY}");
        assert_eq!(edit("a = 1\n".to_owned(), new), [FindingLabel::Secret]);
    }

    #[test]
    fn a_patch_names_its_files_in_either_form() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: ./b.py\n@@\n-x\n+y\n\
                     *** Delete File: c.py\n*** Add File: d.py\n+1\n*** End Patch\n";
        assert_eq!(paths_of_patch(patch), ["a.py", "b.py", "c.py", "d.py"]);
        assert_eq!(paths_of_patch("--- a/x\n+++ b/x\n@@\n-1\n+2\n"), ["x"]);
    }

    #[test]
    fn only_what_is_added_is_looked_at() {
        assert_eq!(
            added_lines("--- a/x\n+++ b/x\n@@\n-old\n+new\n ctx\n"),
            "new\n"
        );
        assert_eq!(
            added_lines("--- a/x\n+++ b/x\n@@\n+++ hidden\n"),
            "++ hidden\n"
        );
    }
}
