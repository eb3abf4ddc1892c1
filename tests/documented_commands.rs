//! The commands that pages and help texts name, and whether a command line really takes them.
//!
//! Tests of `lula` and of `xtask` include this file: each judges the commands of its own program with
//! its own clap definitions.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A command as a page names it.
#[derive(Debug)]
pub(crate) struct DocumentedCommand {
    pub(crate) page: String,
    /// Its words; the first is the program.
    pub(crate) words: Vec<String>,
    /// Whether it stands in a code block: then it must be complete.
    pub(crate) whole: bool,
}

/// Every command of these programs (such as `lula` or `cargo xtask`) on every page of the repository
/// but the changelog, which also tells of commands that are gone.
pub(crate) fn on_all_pages(programs: &[&str]) -> Vec<DocumentedCommand> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top = top.ancestors().find(|one| one.join("docs").is_dir());
    let top = top.expect("the repository around this crate");
    let mut pages: Vec<PathBuf> = ["", "docs", "docs/errors"]
        .iter()
        .flat_map(|folder| fs::read_dir(top.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .filter(|path| !path.ends_with("CHANGELOG.md"))
        .collect();
    pages.sort();
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(top).unwrap().to_string_lossy();
        on_page(&name, &fs::read_to_string(path).unwrap(), programs)
    };
    pages.iter().flat_map(read).collect()
}

/// Every command of these programs on one page.
pub(crate) fn on_page(page: &str, text: &str, programs: &[&str]) -> Vec<DocumentedCommand> {
    let mut found = Vec::new();
    let mut add = |script: &str, whole| {
        let commands = commands_of(script).into_iter();
        found.extend(commands.filter_map(|words| {
            let words = as_program(words, programs)?;
            let page = page.to_owned();
            Some(DocumentedCommand { page, words, whole })
        }));
    };
    let mut prose = String::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            block = match block.take() {
                Some(script) => {
                    add(&script, true);
                    None
                }
                None => Some(String::new()),
            };
        } else if let Some(script) = &mut block {
            // A terminal sample shows what was typed after a prompt.
            script.push_str(line.trim_start().trim_start_matches("$ "));
            script.push('\n');
        } else {
            prose.push_str(line);
            prose.push(if line.is_empty() { '\n' } else { ' ' });
        }
    }
    for paragraph in prose.lines() {
        for code in paragraph.split('`').skip(1).step_by(2) {
            add(code, false);
        }
    }
    found
}

/// What is wrong with a command, if something is.
pub(crate) fn mistake(documented: &DocumentedCommand, command: &clap::Command) -> Option<String> {
    let error = command
        .clone()
        .try_get_matches_from(&documented.words)
        .err()?;
    let fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        // Prose names a command without all that it needs.
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !documented.whole,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            // The rest is looked at with the placeholder and its flag taken out.
            return match placeholder(documented, &error) {
                Some(rest) => mistake(&rest, command),
                None => Some(describe(documented, &error)),
            };
        }
        _ => false,
    };
    (!fine).then(|| describe(documented, &error))
}

fn describe(documented: &DocumentedCommand, error: &clap::Error) -> String {
    let line = documented.words.join(" ");
    format!("{}: {line}\n{error}", documented.page)
}

/// The command without the value that a page leaves to the reader (`N`, `$(…)`), and its flag.
fn placeholder(documented: &DocumentedCommand, error: &clap::Error) -> Option<DocumentedCommand> {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    let written = value
        .chars()
        .all(|c| c.is_ascii_uppercase() || "_-:=".contains(c));
    // `--flag` before another word, in prose, names the flag alone.
    let left_out = value.is_empty() && !documented.whole;
    if !(written && !value.is_empty() || value.starts_with("$(") || value.contains('…') || left_out)
    {
        return None;
    }
    let at = documented.words.iter().rposition(|word| word == value);
    let mut words = documented.words.clone();
    match at {
        Some(at) => drop(words.remove(at)),
        None => drop(words.pop()),
    }
    let flag = at.and_then(|at| at.checked_sub(1));
    if let Some(flag) = flag.filter(|flag| words[*flag].starts_with('-')) {
        words.remove(flag);
    }
    (words.len() < documented.words.len()).then(|| DocumentedCommand {
        page: documented.page.clone(),
        words,
        whole: false,
    })
}

/// The words of a command of one of the programs, with the program as one word.
fn as_program(mut words: Vec<String>, programs: &[&str]) -> Option<Vec<String>> {
    // Variables before a command.
    while words.first().is_some_and(|word| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    }) {
        words.remove(0);
    }
    // `cargo run … -- try` is `lula try`.
    if words.len() > 2 && words[0] == "cargo" && words[1] == "run" {
        let end = words.iter().position(|word| word == "--")?;
        words.splice(..=end, ["lula".to_owned()]);
    }
    let program = programs.iter().find(|program| {
        let mut parts = program.split(' ').enumerate();
        parts.all(|(n, part)| words.get(n).is_some_and(|word| word == part))
    })?;
    words.splice(..program.split(' ').count(), [(*program).to_owned()]);
    // The program alone is a name, no command.
    (words.len() > 1).then_some(words)
}

/// The simple commands of shell text, each as its words.
fn commands_of(script: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut inner = Vec::new();
    let text: Vec<char> = script.chars().collect();
    let mut at = 0;
    let mut quote: Option<char> = None;
    while at < text.len() {
        let c = text[at];
        at += 1;
        if c == '$' && text.get(at) == Some(&'(') && quote != Some('\'') {
            let end = closing(&text, at);
            let script: String = text[at + 1..end].iter().collect();
            inner.extend(commands_of(&script));
            word.get_or_insert_default().push_str("$(…)");
            at = (end + 1).min(text.len());
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_some() {
            word.get_or_insert_default().push(c);
        } else if c == '\'' || c == '"' {
            quote = Some(c);
            word.get_or_insert_default();
        } else if c == '\\' && text.get(at) == Some(&'\n') {
            at += 1;
        } else if c == '#' && word.is_none() {
            while text.get(at).is_some_and(|c| *c != '\n') {
                at += 1;
            }
        } else if c.is_whitespace() || "|;&<>()".contains(c) {
            let command = commands.last_mut().expect("there is one");
            command.extend(word.take());
            if c == '\n' || "|;&()".contains(c) {
                commands.push(Vec::new());
            } else if c == '<' || c == '>' {
                // Where it goes is no word of the command.
                commands.push(vec!["redirected".to_owned()]);
            }
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    commands.last_mut().expect("there is one").extend(word);
    commands.extend(inner);
    commands.retain(|words| !words.is_empty());
    commands
}

/// Where the bracket that opens there is closed.
fn closing(text: &[char], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.iter().enumerate().skip(open) {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return at,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}
