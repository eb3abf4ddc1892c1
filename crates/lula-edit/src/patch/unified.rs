//! Unified diffs.

use super::{FilePatch, PatchError, PatchHunk};

/// Every file of a diff.
pub(super) fn parse(diff: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut patches: Vec<FilePatch> = Vec::new();
    let mut current: Option<FilePatch> = None;
    let mut lines = diff.split('\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        let bad = |why: &str| PatchError::at(index, why);
        let plain = line.trim_end_matches('\r');
        if let Some(names) = plain.strip_prefix("diff --git ") {
            patches.extend(current.take().filter(FilePatch::does_something));
            let (old, new) = git_names(names).ok_or_else(|| bad("two file names expected"))?;
            current = Some(FilePatch {
                old: Some(old),
                new: Some(new),
                ..FilePatch::default()
            });
        } else if plain.starts_with("GIT binary patch") || plain.starts_with("Binary files ") {
            return Err(bad(
                "binary patches are not applied; write the file instead",
            ));
        } else if let Some(mode) = plain
            .strip_prefix("new file mode ")
            .or_else(|| plain.strip_prefix("new mode "))
        {
            let patch = current
                .as_mut()
                .ok_or_else(|| bad("a mode without a file"))?;
            patch.mode = Some(match mode {
                "100644" => 0o644,
                "100755" => 0o755,
                _ => return Err(bad("only regular files and programs can be made")),
            });
            if plain.starts_with("new file") {
                patch.old = None;
            }
        } else if plain.starts_with("deleted file mode ") {
            current
                .as_mut()
                .ok_or_else(|| bad("a mode without a file"))?
                .new = None;
        } else if let Some(name) = plain.strip_prefix("rename from ") {
            current
                .as_mut()
                .ok_or_else(|| bad("a rename without a file"))?
                .old = Some(name.to_owned());
        } else if let Some(name) = plain.strip_prefix("rename to ") {
            current
                .as_mut()
                .ok_or_else(|| bad("a rename without a file"))?
                .new = Some(name.to_owned());
        } else if plain.starts_with("copy from ") || plain.starts_with("copy to ") {
            return Err(bad("copies are not applied; write the file instead"));
        } else if let Some(old) = plain.strip_prefix("--- ")
            && let Some(new) = lines
                .peek()
                .and_then(|(_, next)| next.trim_end_matches('\r').strip_prefix("+++ "))
        {
            let (old, new) = (named(old), named(new));
            let (old, new) = without_prefixes(old, new);
            lines.next();
            if let Some(patch) = current.as_mut().filter(|patch| patch.hunks.is_empty()) {
                (patch.old, patch.new) = (old, new);
            } else {
                patches.extend(current.take().filter(FilePatch::does_something));
                current = Some(FilePatch {
                    old,
                    new,
                    ..FilePatch::default()
                });
            }
        } else if let Some(header) = plain.strip_prefix("@@") {
            let patch = current
                .as_mut()
                .ok_or_else(|| bad("a hunk without a file above it"))?;
            let mut hunk = PatchHunk {
                at: start_of(header),
                line: number,
                ..PatchHunk::default()
            };
            while let Some((_, line)) = lines.peek() {
                if !hunk.take(line, patch_ends(line)) {
                    break;
                }
                lines.next();
            }
            hunk.drop_trailing_blank(lines.peek().is_none());
            if hunk.old == hunk.new {
                return Err(bad("a hunk that changes nothing"));
            }
            patch.hunks.push(hunk);
        }
        // Anything else between files is what people and git write around diffs.
    }
    patches.extend(current.take().filter(FilePatch::does_something));
    for patch in &patches {
        if patch.old.is_none() && patch.new.is_none() {
            return Err(PatchError::at(
                0,
                "a file that neither is nor becomes anything",
            ));
        }
    }
    Ok(patches)
}

/// Lines that begin another file, even inside a hunk of a diff with wrong counts.
fn patch_ends(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("@@ ")
}

impl PatchHunk {
    /// Takes a line of the diff's body; says whether it belongs to the hunk.
    fn take(&mut self, line: &str, ends: bool) -> bool {
        if ends {
            return false;
        }
        // A next file without a `diff --git` line above it. A removed line `-- x` looks the same
        // but is not followed by one; counts of models cannot be trusted to tell.
        if line.starts_with("--- ") && (self.old.len(), self.new.len()) != (0, 0) {
            let name = line[4..].trim();
            if name.starts_with("a/") || name == "/dev/null" {
                return false;
            }
        }
        match line.as_bytes().first() {
            Some(b' ') => {
                self.old.push(line[1..].to_owned());
                self.new.push(line[1..].to_owned());
            }
            Some(b'-') => self.old.push(line[1..].to_owned()),
            Some(b'+') => {
                self.new.push(line[1..].to_owned());
                self.open_end = false;
            }
            // Editors strip the blank of an empty context line.
            None | Some(b'\r') => {
                self.old.push(line.to_owned());
                self.new.push(line.to_owned());
            }
            Some(b'\\') => self.open_end = true,
            _ => return false,
        }
        true
    }

    /// The newline at the end of a diff is no line of its last hunk.
    fn drop_trailing_blank(&mut self, at_the_end: bool) {
        if at_the_end
            && self
                .old
                .last()
                .is_some_and(|line| line.trim_end_matches('\r').is_empty())
            && self
                .new
                .last()
                .is_some_and(|line| line.trim_end_matches('\r').is_empty())
        {
            self.old.pop();
            self.new.pop();
        }
    }
}

/// `a/x b/x`, where names may hold blanks: both halves are the same but for their prefixes.
fn git_names(names: &str) -> Option<(String, String)> {
    let half = (0..names.len()).filter(|at| names.as_bytes()[*at] == b' ');
    let mut splits = half.map(|at| (&names[..at], &names[at + 1..]));
    let same = splits.clone().find(|(old, new)| {
        old.strip_prefix("a/")
            .is_some_and(|old| new.strip_prefix("b/") == Some(old))
    });
    let (old, new) = same.or_else(|| splits.next())?;
    let (old, new) = without_prefixes(Some(old.to_owned()), Some(new.to_owned()));
    Some((old?, new?))
}

/// A name as it stands after `---`, without the time some programs write behind it.
fn named(text: &str) -> Option<String> {
    let name = text.split('\t').next().unwrap_or_default().trim_end();
    (name != "/dev/null").then(|| name.to_owned())
}

/// Takes `a/` and `b/` off, if each side that is there has its own.
fn without_prefixes(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let has = |name: &Option<String>, prefix: &str| {
        name.as_ref().is_none_or(|name| name.starts_with(prefix))
    };
    if has(&old, "a/") && has(&new, "b/") {
        let cut = |name: Option<String>| name.map(|name| name[2..].to_owned());
        return (cut(old), cut(new));
    }
    (old, new)
}

/// The old start in `-12,3 +14,4 @@`.
fn start_of(header: &str) -> usize {
    header
        .trim_start()
        .strip_prefix('-')
        .map(|rest| {
            rest.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        })
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}
