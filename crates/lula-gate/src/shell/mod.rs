//! What a command line would run, as far as that can be told without running it.
//!
//! A [`Reading`] lists every simple command in a command line, with quotes resolved, wrappers such
//! as `sudo` and `sh -c` looked through, and every reason to doubt the list. What cannot be told
//! is a doubt, never an omission.

mod git;
mod scan;
mod unwrap;
mod word;

use serde::Serialize;

pub(crate) use word::Word;

/// Longer command lines are doubted as a whole.
pub const MAX_TEXT: usize = 64 * 1024;
/// Shell text inside shell text, at most this deep.
const MAX_DEPTH: usize = 8;
/// More simple commands than any honest command line has.
const MAX_COMMANDS: usize = 512;

/// One simple command: a program and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    pub(crate) words: Vec<Word>,
}

impl Simple {
    /// For people: unknown words are written `…`.
    pub fn text(&self) -> String {
        let words: Vec<_> = self.words.iter().map(Word::shown).collect();
        words.join(" ")
    }
}

/// Why a reading may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// What cannot be told.
    pub why: &'static str,
    /// The part of the command line.
    pub part: String,
}

/// What a command line would run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Every simple command found.
    pub commands: Vec<Simple>,
    /// Why there may be more.
    pub doubts: Vec<Doubt>,
}

impl Reading {
    /// Reads a program with its arguments, as they reach the kernel.
    pub fn of_argv(argv: &[String], variables: &[String], stdin: Option<&str>) -> Self {
        let mut reader = Reader::default();
        let words = argv.iter().cloned().map(Word::Known).collect();
        for name in variables {
            reader.variable(name);
        }
        reader.simple(words, stdin, 0);
        reader.reading
    }

    /// Reads shell text.
    pub fn of_shell(text: &str) -> Self {
        let mut reader = Reader::default();
        reader.shell(text, 0);
        reader.reading
    }
}

#[derive(Debug, Default)]
struct Reader {
    reading: Reading,
}

impl Reader {
    fn doubt(&mut self, why: &'static str, part: &str) {
        let part: String = part.chars().take(120).collect();
        let doubt = Doubt { why, part };
        if self.reading.doubts.len() < MAX_COMMANDS && !self.reading.doubts.contains(&doubt) {
            self.reading.doubts.push(doubt);
        }
    }

    /// Returns whether there is room for more.
    fn push(&mut self, words: Vec<Word>) -> bool {
        if self.reading.commands.len() >= MAX_COMMANDS {
            self.doubt("there are too many commands to read", "");
            return false;
        }
        self.reading.commands.push(Simple { words });
        true
    }

    /// A variable that is set for a command.
    fn variable(&mut self, name: &str) {
        const DECIDES: [&str; 16] = [
            "PATH",
            "LD_PRELOAD",
            "LD_AUDIT",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "PROMPT_COMMAND",
            "IFS",
            "PERL5OPT",
            "PYTHONSTARTUP",
            "GIT_SSH",
            "GIT_EXTERNAL_DIFF",
            "GIT_EXEC_PATH",
            "GIT_ASKPASS",
            "PAGER",
        ];
        let decides = DECIDES.contains(&name)
            || name.starts_with("GIT_CONFIG")
            || name.starts_with("BASH_FUNC_")
            || name.ends_with("_COMMAND") && name.starts_with("GIT_")
            || name.ends_with("_EDITOR")
            || name.ends_with("_PAGER");
        if decides {
            self.doubt("a variable decides what runs", name);
        }
    }
}

#[cfg(test)]
mod tests;
