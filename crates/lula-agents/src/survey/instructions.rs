//! What a project says to those who change it: files for agents, at its top and in the folders that
//! matter, and of a guide for people what is about code and tests.

use std::collections::BTreeSet;

/// Files for agents. Each is material like any other file.
const FOR_AGENTS: [&str; 5] = [
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
];
/// Those of them that folders have of their own.
const IN_FOLDERS: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Guides that projects have for people who contribute.
const GUIDES: [&str; 5] = [
    "CONTRIBUTING.md",
    ".github/CONTRIBUTING.md",
    "docs/CONTRIBUTING.md",
    "CONTRIBUTING.rst",
    "CONTRIBUTING",
];
/// Most files that are read.
const FILES: usize = 8;
/// A guide that is longer is shown in part.
const LONG_GUIDE: usize = 2_000;
/// No file gets more than this, in bytes.
const MOST_OF_ONE: usize = 6_000;
/// Headings of what is about code and tests hold one of these.
const ABOUT_CODE: [&str; 22] = [
    "test",
    "code",
    "coding",
    "style",
    "develop",
    "build",
    "lint",
    "format",
    "setup",
    "set up",
    "setting up",
    "install",
    "environment",
    "convention",
    "guideline",
    "commit",
    "pull request",
    "check",
    "type",
    "run",
    "structure",
    "architecture",
];

/// Which of these files say something to those who change the project, the nearest to its top first:
/// those at its top, and those of the folders of the files that matter.
pub(super) fn named(files: &BTreeSet<&str>, matter: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |path: String| {
        if files.contains(path.as_str()) && !found.contains(&path) {
            found.push(path);
        }
    };
    for name in FOR_AGENTS {
        add(name.to_owned());
    }
    let mut folders: Vec<&str> = matter.iter().flat_map(|path| folders_of(path)).collect();
    folders.sort_by_key(|folder| folder.matches('/').count());
    for folder in folders {
        for name in IN_FOLDERS {
            add(format!("{folder}/{name}"));
        }
    }
    let guide = GUIDES.into_iter().find(|name| files.contains(name));
    found.extend(guide.map(str::to_owned));
    found.truncate(FILES);
    found
}

/// The folders that a file is in, the outermost first, without the top.
fn folders_of(path: &str) -> Vec<&str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).collect()
}

/// The texts as they are shown, in so many bytes together: each with its head, and what was left out
/// said. One that says what another says is left out.
pub(super) fn shown(texts: Vec<(String, String)>, most: usize) -> Vec<(String, String)> {
    let mut known: Vec<String> = Vec::new();
    let mut left = most;
    let mut shown = Vec::new();
    for (path, text) in texts {
        let text = text.trim();
        if text.is_empty() || known.iter().any(|other| other == text) {
            continue;
        }
        known.push(text.to_owned());
        let is_guide = GUIDES.contains(&path.as_str());
        let said = if is_guide && text.len() > LONG_GUIDE {
            about_code(text)
        } else {
            text.to_owned()
        };
        let room = left.min(MOST_OF_ONE);
        let said = headed(&path, &said, room);
        left = left.saturating_sub(said.len());
        if !said.is_empty() {
            shown.push((path, said));
        }
    }
    shown
}

/// The head of a text that is too long, with what is left out.
fn headed(path: &str, text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // A line is whole or not there.
    let end = text[..end].rfind('\n').unwrap_or(0);
    if end == 0 {
        return String::new();
    }
    let (head, rest) = text.split_at(end);
    format!(
        "{head}\n[{} of {} bytes are left out here; read {path} for the rest]",
        rest.len(),
        text.len()
    )
}

/// The sections of a guide whose headings are about code and tests, with the names of the others.
fn about_code(text: &str) -> String {
    let sections = sections(text);
    let wanted = |heading: &str| {
        let heading = heading.to_lowercase();
        ABOUT_CODE.iter().any(|word| heading.contains(word))
    };
    if !sections.iter().any(|(heading, _)| wanted(heading)) {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut others = Vec::new();
    for (heading, body) in sections {
        if wanted(heading) {
            kept.push_str(body);
            kept.push('\n');
        } else if !heading.is_empty() {
            others.push(heading);
        }
    }
    if !others.is_empty() {
        kept.push_str("[left out: ");
        kept.push_str(&others.join("; "));
        kept.push(']');
    }
    kept
}

/// A text by its headings, each section with its own.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut starts: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    let mut before: Option<(usize, &str)> = None;
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        fenced ^= bare.trim_start().starts_with("```");
        let hashed = bare.trim_start_matches('#');
        if !fenced && hashed.len() < bare.len() && hashed.starts_with(' ') {
            starts.push((at, hashed.trim()));
        } else if is_underline(bare)
            && let Some((start, heading)) = before.filter(|(_, heading)| !heading.trim().is_empty())
        {
            starts.push((start, heading.trim()));
        }
        before = Some((at, bare));
        at += line.len();
    }
    if starts.first().is_none_or(|(start, _)| *start > 0) {
        starts.insert(0, (0, ""));
    }
    let ends: Vec<usize> = starts
        .iter()
        .skip(1)
        .map(|(start, _)| *start)
        .chain([text.len()])
        .collect();
    starts
        .into_iter()
        .zip(ends)
        .map(|((start, heading), end)| (heading, text[start..end].trim_end()))
        .collect()
}

fn is_underline(line: &str) -> bool {
    let mut marks = line.chars();
    let first = marks.next();
    line.len() >= 3
        && matches!(first, Some('=' | '-' | '~'))
        && marks.all(|mark| Some(mark) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_files_that_matter_speak_too() {
        let files = [
            "AGENTS.md",
            "pkg/AGENTS.md",
            "pkg/a/CLAUDE.md",
            "other/AGENTS.md",
            "CONTRIBUTING.md",
        ];
        let files: BTreeSet<&str> = files.into_iter().collect();
        let named = named(&files, &["pkg/a/x.py".to_owned()]);
        assert_eq!(
            named,
            [
                "AGENTS.md",
                "pkg/AGENTS.md",
                "pkg/a/CLAUDE.md",
                "CONTRIBUTING.md"
            ]
        );
    }

    #[test]
    fn a_long_file_keeps_its_head_and_says_what_is_left_out() {
        let text = "line\n".repeat(1_000);
        let shown = shown(vec![("AGENTS.md".to_owned(), text)], 100);
        let (_, said) = &shown[0];
        assert!(said.starts_with("line\nline\n"), "{said}");
        assert!(
            said.ends_with("of 4999 bytes are left out here; read AGENTS.md for the rest]"),
            "{said}"
        );
    }

    #[test]
    fn of_a_long_guide_only_what_is_about_code_and_tests_is_shown() {
        let guide = format!(
            "# Contributing\n\n{}\n## Running the tests\n\nUse `make test`.\n\n## Conduct\n\nBe kind.\n",
            "Thank you for your time.\n".repeat(100)
        );
        let shown = shown(vec![("CONTRIBUTING.md".to_owned(), guide)], 9_000);
        assert_eq!(
            shown[0].1,
            "## Running the tests\n\nUse `make test`.\n[left out: Contributing; Conduct]"
        );
    }

    #[test]
    fn the_same_words_under_two_names_are_shown_once() {
        let same = |name: &str| (name.to_owned(), "Use tabs.".to_owned());
        assert_eq!(
            shown(vec![same("AGENTS.md"), same("CLAUDE.md")], 900).len(),
            1
        );
    }
}
