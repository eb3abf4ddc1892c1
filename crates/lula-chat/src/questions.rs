//! What a run asks on its way: whether exactly this may be done, which of several answers, more of a
//! budget. One key answers; what is agreed to for the chat is a rule that can be seen and forgotten.

use std::io;

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use lula_gate::approvals::StoredApproval;
use lula_host::text::{plain, visible};
use lula_protocol::EffectClass;

use crate::code::diff_rows;
use crate::screen::ChatScreen;
use crate::style::{DIM, STRONG, WARN, paint, wrapped};

/// Tools of which a rule is about exactly the same text, whatever it looks like.
const COMMANDS: [&str; 3] = ["exec", "job", "git"];
/// Most rows of what is asked about that are shown at once; the rest is a key away.
const SHOWN: usize = 200;

/// What was agreed to, or refused, for as long as this chat is open here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChatRule {
    pub(crate) allows: bool,
    /// What is to be done, as the runner calls it.
    tool: String,
    subject: RuleSubject,
}

/// What exactly a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RuleSubject {
    /// Exactly these bytes: a command as it was shown.
    Exactly(Vec<u8>),
    /// Changes of these files, and of no other.
    Files(Vec<String>),
}

impl ChatRule {
    /// The smallest rule that holds for a question, where one may be made: what leaves the workspace is
    /// asked about each time.
    fn of(name: &str, question: &StoredApproval, allows: bool) -> Option<Self> {
        if question.approval.class != EffectClass::Tree {
            return None;
        }
        let files = if COMMANDS.contains(&name) {
            Vec::new()
        } else {
            files_of(&question.rendered)
        };
        let subject = if files.is_empty() {
            RuleSubject::Exactly(question.rendered.clone())
        } else {
            RuleSubject::Files(files)
        };
        Some(Self {
            allows,
            tool: name.to_owned(),
            subject,
        })
    }

    /// In words, for a person.
    pub(crate) fn told(&self) -> String {
        let what = match &self.subject {
            RuleSubject::Exactly(bytes) => plain(&String::from_utf8_lossy(bytes), 120),
            RuleSubject::Files(files) => visible(&files.join(", ")),
        };
        let word = if self.allows { "allow" } else { "refuse" };
        format!("{word} {} {what}", self.tool)
    }
}

/// What earlier answers say about a question.
pub(crate) fn remembered<'a>(
    rules: &'a [ChatRule],
    name: &str,
    question: &StoredApproval,
) -> Option<&'a ChatRule> {
    let asked = ChatRule::of(name, question, true)?;
    let same = |rule: &&ChatRule| rule.tool == asked.tool && rule.subject == asked.subject;
    rules.iter().rev().find(same)
}

/// The files that a diff changes; none where it is anything else. Lines of a file are counted as its
/// hunks say, so that no text in a file passes for the name of another one.
fn files_of(rendered: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(rendered) else {
        return Vec::new();
    };
    let mut files: Vec<String> = Vec::new();
    let (mut old, mut new) = (0_u64, 0_u64);
    for line in text.lines() {
        if old > 0 || new > 0 {
            match line.as_bytes().first() {
                Some(b'-') if old > 0 => old -= 1,
                Some(b'+') if new > 0 => new -= 1,
                Some(b' ') | None if old > 0 && new > 0 => {
                    old -= 1;
                    new -= 1;
                }
                Some(b'\\') => {}
                _ => return Vec::new(),
            }
        } else if let Some(range) = line.strip_prefix("@@ ") {
            let Some(counts) = hunk(range) else {
                return Vec::new();
            };
            (old, new) = counts;
        } else if let Some(name) = line
            .strip_prefix("--- ")
            .or_else(|| line.strip_prefix("+++ "))
        {
            let path = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
            match path {
                Some(path) => files.push(path.to_owned()),
                None if name == "/dev/null" => {}
                None => return Vec::new(),
            }
        } else if !HEADERS.iter().any(|header| line.starts_with(header)) && !line.starts_with('\\')
        {
            return Vec::new();
        }
    }
    files.sort();
    files.dedup();
    files
}

/// Lines that stand before the names in a diff.
const HEADERS: [&str; 4] = [
    "diff --git ",
    "index ",
    "new file mode ",
    "deleted file mode ",
];

/// How many lines a hunk has of the old file and of the new one.
fn hunk(range: &str) -> Option<(u64, u64)> {
    let (ranges, _) = range.split_once(" @@")?;
    let (old, new) = ranges.split_once(' ')?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((
        count(old.strip_prefix('-')?)?,
        count(new.strip_prefix('+')?)?,
    ))
}

/// The answer to a question of the runner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    Yes,
    No,
    /// Not now: the run waits on.
    Later,
}

/// Shows exactly what would be done, and asks.
pub(crate) fn approve(
    screen: &mut ChatScreen,
    name: &str,
    reason: &str,
    question: &StoredApproval,
    rules: &mut Vec<ChatRule>,
) -> io::Result<Agreement> {
    let columns = screen.columns();
    let mut rows = wrapped(
        WARN,
        &format!("? {}: {}", name, plain(reason, 400)),
        columns,
    );
    let mut shown = rendered_rows(&question.rendered);
    let rest = shown.split_off(shown.len().min(SHOWN));
    rows.extend(shown);
    screen.print(&rows)?;
    ChatScreen::bell();
    let once_only = ChatRule::of(name, question, true).is_none();
    let mut rest = Some(rest).filter(|rest| !rest.is_empty());
    loop {
        let mut keys: Vec<(char, String)> = vec![('y', "yes, once".to_owned())];
        if !once_only {
            keys.push(('a', "yes, for this chat".to_owned()));
        }
        keys.push(('n', "no".to_owned()));
        if !once_only {
            keys.push(('N', "no, for this chat".to_owned()));
        }
        if let Some(rest) = &rest {
            keys.push(('v', format!("view {} more lines", rest.len())));
        }
        let remember = |rules: &mut Vec<ChatRule>, allows| {
            if let Some(rule) = ChatRule::of(name, question, allows) {
                rules.retain(|known| known.subject != rule.subject || known.tool != rule.tool);
                rules.push(rule);
            }
        };
        match key(screen, "Do exactly this?", &keys)? {
            Some('y') => return Ok(Agreement::Yes),
            Some('a') => {
                remember(rules, true);
                return Ok(Agreement::Yes);
            }
            Some('n') => return Ok(Agreement::No),
            Some('N') => {
                remember(rules, false);
                return Ok(Agreement::No);
            }
            Some('v') => screen.print(&rest.take().unwrap_or_default())?,
            _ => return Ok(Agreement::Later),
        }
    }
}

fn rendered_rows(rendered: &[u8]) -> Vec<String> {
    match std::str::from_utf8(rendered) {
        Ok(text) => diff_rows(text),
        Err(_) => vec![rendered.escape_ascii().to_string()],
    }
}

/// Asks for one of several answers; its place in the list.
pub(crate) fn choose(
    screen: &mut ChatScreen,
    question: &str,
    options: &[String],
) -> io::Result<Option<usize>> {
    let columns = screen.columns();
    let mut rows = Vec::new();
    for (at, line) in question.lines().enumerate() {
        let mark = if at == 0 { "? " } else { "  " };
        rows.extend(wrapped(WARN, &format!("{mark}{}", visible(line)), columns));
    }
    for (at, option) in options.iter().enumerate() {
        let text = format!("  {}) {}", at + 1, plain(option, 400));
        rows.extend(wrapped(STRONG, &text, columns));
    }
    screen.print(&rows)?;
    ChatScreen::bell();
    let digits = ('1'..='9')
        .zip(options)
        .map(|(digit, _)| (digit, String::new()));
    let keys: Vec<(char, String)> = digits.collect();
    let chosen = key(screen, "Which?", &keys)?;
    let place = chosen.and_then(|digit| digit.to_digit(10));
    Ok(place.and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1)))
}

/// Asks for one of these keys; none where the person does not answer now.
pub(crate) fn key(
    screen: &mut ChatScreen,
    question: &str,
    keys: &[(char, String)],
) -> io::Result<Option<char>> {
    let told: Vec<String> = keys
        .iter()
        .map(|(key, what)| {
            if what.is_empty() {
                paint(STRONG, key)
            } else {
                format!("{} {what}", paint(STRONG, key))
            }
        })
        .collect();
    let row = format!(
        "{} {}{}",
        paint(WARN, question),
        told.join(&paint(DIM, " · ")),
        paint(DIM, " · Esc later")
    );
    screen.draw(&[], vec![row.clone()])?;
    let answer = loop {
        let Event::Key(pressed) = event::read()? else {
            screen.measure();
            continue;
        };
        if pressed.kind == KeyEventKind::Release {
            continue;
        }
        let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
        match pressed.code {
            KeyCode::Esc => break None,
            KeyCode::Char('c' | 'd') if control => break None,
            KeyCode::Char(c) if keys.iter().any(|(key, _)| *key == c) => break Some(c),
            _ => {}
        }
    };
    let said = match answer {
        Some(key) => {
            keys.iter()
                .find(|(one, _)| *one == key)
                .map_or_else(String::new, |(key, what)| {
                    if what.is_empty() {
                        key.to_string()
                    } else {
                        what.clone()
                    }
                })
        }
        None => "later".to_owned(),
    };
    screen.print(&[format!("{} {}", paint(WARN, question), paint(STRONG, said))])?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_about_a_change_is_about_its_files_alone() {
        let diff = b"--- a/guarded/a.txt\n+++ b/guarded/a.txt\n@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(files_of(diff), ["guarded/a.txt"]);
        assert!(files_of(b"deploy --now").is_empty());
        let added = b"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+y\n";
        assert_eq!(files_of(added), ["new.txt"]);
        // Lines of a file that look like the names of another one.
        let hides = b"--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,2 @@\n--- a/secret\n+++ b/secret\n same\n";
        assert_eq!(files_of(hides), ["x.md"]);
        let more = b"--- a/x.md\n+++ b/x.md\n@@ -1 +1 @@\n-x\n+y\nrm -rf /\n";
        assert!(files_of(more).is_empty());
    }
}
