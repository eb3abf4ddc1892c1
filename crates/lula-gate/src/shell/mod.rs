//! What a command line would run, as far as that can be told without running it.
//!
//! A [`ShellReading`] lists every simple command in a command line, with quotes resolved, wrappers such
//! as `sudo` and `sh -c` looked through, and every reason to doubt the list. What cannot be told
//! is a doubt, never an omission.
//!
//! It is our own reader and not the tree-sitter grammar, whose C scanner crashes on some texts;
//! these texts come from sources that are not trusted.

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
/// More words than one command is read to.
const MAX_WORDS: usize = 2048;
/// Places where a wrapper's command may start, at most.
const MAX_READINGS: usize = 8;
/// More simple commands than any honest command line has.
const MAX_COMMANDS: usize = 256;

/// One simple command: a program and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    pub(crate) words: Vec<Word>,
}

impl SimpleCommand {
    /// For people: unknown words are written `…`.
    pub fn text(&self) -> String {
        let words: Vec<_> = self.words.iter().map(Word::shown).collect();
        words.join(" ")
    }
}

/// Why a reading may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShellReadingDoubt {
    /// What cannot be told.
    pub why: &'static str,
    /// The part of the command line.
    pub part: String,
}

/// What a command line would run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellReading {
    /// Every simple command found.
    pub commands: Vec<SimpleCommand>,
    /// Why there may be more.
    pub doubts: Vec<ShellReadingDoubt>,
}

impl ShellReading {
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

    pub fn of_shell(text: &str) -> Self {
        let mut reader = Reader::default();
        reader.shell(text, 0);
        reader.reading
    }
}

#[derive(Debug, Default)]
struct Reader {
    reading: ShellReading,
}

impl Reader {
    fn doubt(&mut self, why: &'static str, part: &str) {
        let part: String = part.chars().take(120).collect();
        let doubt = ShellReadingDoubt { why, part };
        if self.reading.doubts.len() < MAX_COMMANDS && !self.reading.doubts.contains(&doubt) {
            self.reading.doubts.push(doubt);
        }
    }

    /// Whether there is no room for more commands. Those that follow are doubted, not read.
    fn is_full(&mut self) -> bool {
        let full = self.reading.commands.len() >= MAX_COMMANDS;
        if full {
            self.doubt("there are too many commands to read", "");
        }
        full
    }

    /// Returns whether there was room for it.
    fn push(&mut self, words: Vec<Word>) -> bool {
        if self.is_full() {
            return false;
        }
        self.reading.commands.push(SimpleCommand { words });
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
