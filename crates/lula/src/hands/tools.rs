//! The tools on a room.

use std::fmt::Write;

use lula_agents::HandsError;
use lula_agents::hands::Said;
use lula_protocol::call::{Exec, ListFiles, ReadFile, Search};
use lula_protocol::receipt::Ended;
use lula_protocol::{Action, ToolCall};
use lula_sandbox::policy::AbsolutePath;
use lula_sandbox::{Command, Sandbox};
use lula_workspace::{Folder, Project};

use super::room::Room;
use super::{Inner, failed};

/// Most files that are listed.
const LISTED: usize = 1000;
/// Most lines that a search returns.
const FOUND: usize = 200;
/// Longest output of a command that is kept of each stream.
const KEPT: usize = 24_000;

fn done(text: impl Into<String>) -> Said {
    Said {
        text: text.into(),
        failed: false,
    }
}

fn refused(text: impl std::fmt::Display) -> Said {
    Said {
        text: text.to_string(),
        failed: true,
    }
}

/// Does what a call asks for.
pub(super) fn call(hands: &Inner, call: &ToolCall) -> Result<Said, HandsError> {
    let room = hands.room(&call.workspace)?;
    let tree = room.tree()?;
    Ok(match &call.action {
        Action::ReadFile(read) => read_file(&tree, read),
        Action::ListFiles(list) => list_files(&tree, list)?,
        Action::Search(search) => find(&tree, search)?,
        Action::Outline(outline) => match text(&tree, &outline.path) {
            Ok(text) => done(lula_edit::functions::show(&outline.path, &text)),
            Err(why) => refused(why),
        },
        Action::WriteFile(write) => {
            let new = tree.read(&write.path).is_err();
            let program = (new || write.executable).then_some(write.executable);
            match tree.write(&write.path, write.content.as_bytes(), program) {
                Ok(()) => done(format!("{} is written", write.path)),
                Err(error) => refused(error),
            }
        }
        Action::Exec(exec) => execute(hands, &room, exec)?,
        other => refused(format!("{} cannot be used in a run", other.tool())),
    })
}

fn text(tree: &Folder, path: &str) -> Result<String, String> {
    let bytes = tree.read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| format!("{path} is not text"))
}

fn read_file(tree: &Folder, read: &ReadFile) -> Said {
    let text = match text(tree, &read.path) {
        Ok(text) => text,
        Err(why) => return refused(why),
    };
    if read.from_line.is_none() && read.to_line.is_none() {
        return done(text);
    }
    let from = read.from_line.unwrap_or(1).max(1) as usize;
    let to = read.to_line.map_or(usize::MAX, |line| line as usize);
    let lines = text
        .lines()
        .skip(from - 1)
        .take((to + 1).saturating_sub(from));
    done(lines.collect::<Vec<_>>().join("\n"))
}

fn list_files(tree: &Folder, list: &ListFiles) -> Result<Said, HandsError> {
    let below = list.path.trim_matches('/').trim_start_matches("./");
    let inside =
        |path: &&String| below.is_empty() || below == "." || path.starts_with(&format!("{below}/"));
    let fits = |path: &&String| list.glob.as_deref().is_none_or(|glob| matches(glob, path));
    let files = tree.files().map_err(failed)?;
    let found: Vec<&String> = files.iter().filter(inside).filter(fits).collect();
    let mut text = String::new();
    for path in found.iter().take(LISTED) {
        let _ = writeln!(text, "{path}");
    }
    if found.len() > LISTED {
        let _ = writeln!(text, "… and {} more", found.len() - LISTED);
    }
    Ok(done(text))
}

fn find(tree: &Folder, search: &Search) -> Result<Said, HandsError> {
    let pattern = if search.literal {
        regex::escape(&search.pattern)
    } else {
        search.pattern.clone()
    };
    let pattern = match regex::RegexBuilder::new(&pattern)
        .size_limit(1 << 20)
        .build()
    {
        Ok(pattern) => pattern,
        Err(error) => return Ok(refused(error)),
    };
    let mut out = String::new();
    let mut count = 0;
    'files: for path in tree.files().map_err(failed)? {
        if search
            .glob
            .as_deref()
            .is_some_and(|glob| !matches(glob, &path))
        {
            continue;
        }
        let Ok(text) = text(tree, &path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if pattern.is_match(line) {
                let line: String = line.chars().take(300).collect();
                let _ = writeln!(out, "{path}:{}:{line}", number + 1);
                count += 1;
                if count == FOUND {
                    out.push_str("… and more: search for something narrower\n");
                    break 'files;
                }
            }
        }
    }
    Ok(done(if out.is_empty() {
        "nothing matches".to_owned()
    } else {
        out
    }))
}

/// Whether a path matches a glob: `*` within a name, `**` across names, `?` one character. A glob
/// without a slash is about the name alone.
fn matches(glob: &str, path: &str) -> bool {
    fn fits(glob: &[u8], path: &[u8]) -> bool {
        match (glob, path) {
            ([], []) => true,
            ([b'*', b'*', b'/', rest @ ..], _) => {
                fits(rest, path)
                    || path
                        .iter()
                        .position(|byte| *byte == b'/')
                        .is_some_and(|slash| fits(glob, &path[slash + 1..]))
            }
            ([b'*', b'*', rest @ ..], _) => {
                fits(rest, path) || (!path.is_empty() && fits(glob, &path[1..]))
            }
            ([b'*', rest @ ..], _) => {
                fits(rest, path)
                    || (path.first().is_some_and(|byte| *byte != b'/') && fits(glob, &path[1..]))
            }
            ([b'?', rest @ ..], [byte, more @ ..]) if *byte != b'/' => fits(rest, more),
            ([one, rest @ ..], [other, more @ ..]) if one == other => fits(rest, more),
            _ => false,
        }
    }
    let subject = if glob.contains('/') {
        path
    } else {
        path.rsplit('/').next().unwrap_or(path)
    };
    fits(glob.as_bytes(), subject.as_bytes())
}

fn execute(hands: &Inner, room: &Room, exec: &Exec) -> Result<Said, HandsError> {
    let Some((program, arguments)) = exec.argv.split_first() else {
        return Ok(refused("the command is empty"));
    };
    let mut policy = hands.policy.clone();
    let shown = Project::at(room.tree_path())
        .map_err(failed)?
        .dependencies();
    let shown = shown
        .iter()
        .filter_map(|path| path.to_str()?.parse::<AbsolutePath>().ok());
    policy.paths.read.extend(shown);
    let mut command = Command::new(program)
        .arguments(arguments)
        .variable("TZ", "UTC")
        .variable("LC_ALL", "C.UTF-8");
    if let Some(input) = &exec.stdin {
        command = command.input(input.clone().into_bytes());
    }
    if let Some(ms) = exec.timeout_ms {
        command = command.timeout(std::time::Duration::from_millis(ms));
    }
    for (name, value) in &exec.env {
        command = command.variable(name, value);
    }
    if !exec.cwd.is_empty() {
        command = command.directory(room.tree_path().join(&exec.cwd));
    }
    let sandbox = Sandbox::new(policy, room.tree_path());
    let finished = match hands.engine()?.run(&sandbox, &command) {
        Ok(finished) => finished,
        Err(error) => return Ok(refused(error)),
    };
    let ended = match &finished.receipt.ended {
        Ended::Exited { status } => format!("exit status {status}"),
        Ended::TimedOut => "its time ran out".to_owned(),
        other => format!("{other:?}"),
    };
    let mut text = format!("{ended}\n");
    for (name, stream) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        let stream = stream.text();
        if !stream.trim().is_empty() {
            let end = lula_agents::trial::tail(&stream, KEPT);
            let _ = write!(text, "<{name}>\n{end}\n</{name}>\n");
        }
    }
    Ok(Said {
        text,
        failed: !finished.succeeded(),
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs_are_about_names_or_whole_paths() {
        assert!(matches("*.py", "a/b/c.py"));
        assert!(!matches("*.py", "a/b/c.pyc"));
        assert!(matches("src/*.rs", "src/lib.rs"));
        assert!(!matches("src/*.rs", "src/a/lib.rs"));
        assert!(matches("src/**/*.rs", "src/lib.rs"));
        assert!(matches("src/**/*.rs", "src/a/b/lib.rs"));
        assert!(matches("**/test_?.py", "x/test_1.py"));
    }
}
