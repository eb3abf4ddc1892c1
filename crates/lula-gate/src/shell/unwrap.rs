//! Programs that run other programs, and how to find those in their arguments.

use super::word::Word;
use super::{MAX_DEPTH, Reader, git};

/// A program that runs the command behind its own options.
struct Wrapper {
    name: &'static str,
    /// Options that take the next word as their value.
    values: &'static [&'static str],
    /// Options that take none. Any other option makes the place of the command uncertain.
    flags: &'static str,
    /// Words before the command that are not options.
    before: usize,
    /// Whether `NAME=value` may stand before the command.
    assigns: bool,
}

const fn wrapper(
    name: &'static str,
    values: &'static [&'static str],
    flags: &'static str,
    before: usize,
) -> Wrapper {
    Wrapper {
        name,
        values,
        flags,
        before,
        assigns: false,
    }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        assigns: true,
        ..wrapper(
            "sudo",
            &[
                "-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user",
                "--group", "--host", "--prompt", "--chdir", "--chroot",
            ],
            "AbEeHiKkNnPSsVv",
            0,
        )
    },
    wrapper("doas", &["-u", "-C"], "nsL", 0),
    Wrapper {
        assigns: true,
        ..wrapper("env", &["-u", "-C", "--unset", "--chdir"], "iv0", 0)
    },
    wrapper("nice", &["-n", "--adjustment"], "0123456789", 0),
    wrapper("ionice", &["-c", "-n", "-P", "-p", "-u"], "t0123456789", 0),
    wrapper("nohup", &[], "", 0),
    wrapper("setsid", &[], "cfw", 0),
    wrapper("stdbuf", &["-i", "-o", "-e"], "", 0),
    wrapper("time", &["-f", "-o", "--format", "--output"], "apqvV", 0),
    wrapper(
        "timeout",
        &["-s", "-k", "--signal", "--kill-after"],
        "fpv",
        1,
    ),
    wrapper("command", &[], "pvV", 0),
    wrapper("builtin", &[], "", 0),
    wrapper("exec", &["-a"], "cl", 0),
    wrapper("chrt", &["-T", "-P", "-D"], "abdefiomprRv", 1),
    wrapper("taskset", &["-p"], "ac", 1),
    wrapper("chroot", &[], "", 1),
    wrapper("unshare", &["-S", "-G", "-R", "-w"], "mUuinpCTfrc", 0),
    wrapper("flock", &["-w", "-E", "--timeout", "--wait"], "censxuFv", 1),
    wrapper(
        "strace",
        &["-e", "-o", "-p", "-s", "-u", "-E", "-P", "-I"],
        "cCdDfFhiknqrtTvVxyYzZ",
        0,
    ),
    wrapper("busybox", &[], "", 0),
    wrapper("toybox", &[], "", 0),
    wrapper(
        "xargs",
        &["-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "-i", "-l"],
        "0oprtx",
        0,
    ),
];

const SHELLS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash",
];

impl Reader {
    /// A simple command, and every command it would run in turn.
    pub(super) fn simple(&mut self, mut words: Vec<Word>, input: Option<&str>, depth: usize) {
        if words.is_empty() {
            return;
        }
        if depth > MAX_DEPTH {
            self.doubt("commands run commands too deep to read", "");
            return;
        }
        let Some(program) = words[0].known().map(name_of) else {
            let shown = words.iter().map(Word::shown).collect::<Vec<_>>().join(" ");
            self.doubt("the program is known only when it runs", &shown);
            self.push(words);
            return;
        };
        words[0] = Word::Known(program.clone());
        if let Some(subcommand) = program.strip_prefix("git-")
            && git::is_command(subcommand)
        {
            words[0] = Word::Known(subcommand.to_owned());
            words.insert(0, Word::Known("git".to_owned()));
            return self.simple(words, input, depth + 1);
        }
        if program == "cargo"
            && words
                .get(1)
                .and_then(Word::known)
                .is_some_and(|word| word.starts_with('+'))
        {
            words.remove(1);
        }
        if program == "git" {
            return self.git(words, depth);
        }
        if !self.push(words.clone()) {
            return;
        }
        if SHELLS.contains(&program.as_str()) {
            self.runs_shell(&words, input, depth);
        } else if let Some(wrapper) = WRAPPERS.iter().find(|w| w.name == program) {
            self.runs_rest(wrapper, &words, input, depth);
        } else {
            self.runs_otherwise(&program, &words, depth);
        }
    }

    fn git(&mut self, words: Vec<Word>, depth: usize) {
        let read = git::without_global_options(words);
        for (why, part) in read.doubts {
            self.doubt(why, &part);
        }
        if !self.push(read.words.clone()) {
            return;
        }
        for text in read.shell {
            match text {
                Word::Known(text) => self.shell(&text, depth + 1),
                Word::Unknown => self.doubt("git runs a command known only then", "git"),
            }
        }
        if let Some(command) = read.command {
            self.simple(command, None, depth + 1);
        }
    }

    fn runs_shell(&mut self, words: &[Word], input: Option<&str>, depth: usize) {
        let mut reads_text = false;
        let mut rest = words.iter().skip(1).peekable();
        while let Some(word) = rest.peek() {
            match word {
                Word::Unknown => {
                    self.doubt("a shell is told what to do only then", words[0].shown());
                    return;
                }
                Word::Known(option) if option.starts_with("--") => {
                    let takes_value = matches!(option.as_str(), "--rcfile" | "--init-file");
                    rest.next();
                    if takes_value {
                        rest.next();
                    }
                }
                Word::Known(option) if option.len() > 1 && option.starts_with(['-', '+']) => {
                    reads_text |= option.starts_with('-') && option.contains('c');
                    let takes_value = option.ends_with(['o', 'O']);
                    rest.next();
                    if takes_value {
                        rest.next();
                    }
                }
                Word::Known(_) => break,
            }
        }
        match rest.next() {
            Some(Word::Known(text)) if reads_text => self.shell(text, depth + 1),
            Some(Word::Known(file)) if file != "-" && !file.starts_with("/dev/") => {
                // A script file runs like any other program of the workspace.
            }
            _ => {
                self.doubt("a shell reads commands from its input", words[0].shown());
                if let Some(text) = input {
                    self.shell(text, depth + 1);
                }
            }
        }
    }

    fn runs_rest(&mut self, wrapper: &Wrapper, words: &[Word], input: Option<&str>, depth: usize) {
        let mut at = 1;
        let mut uncertain = false;
        while let Some(word) = words.get(at) {
            let Some(text) = word.known() else {
                self.doubt("what runs is known only then", wrapper.name);
                break;
            };
            if text == "--" {
                at += 1;
                break;
            }
            if wrapper.assigns
                && let Some((name, _)) = text.split_once('=')
                && !name.is_empty()
                && !name.starts_with('-')
            {
                self.variable(name);
                at += 1;
            } else if wrapper.name == "env"
                && let Some(split) = text
                    .strip_prefix("--split-string=")
                    .or_else(|| text.strip_prefix("-S").filter(|rest| !rest.is_empty()))
            {
                self.shell(split, depth + 1);
                return;
            } else if wrapper.name == "env" && matches!(text, "-S" | "--split-string" | "-vS") {
                match words.get(at + 1) {
                    Some(Word::Known(split)) => self.shell(split, depth + 1),
                    _ => self.doubt("what runs is known only then", wrapper.name),
                }
                return;
            } else if text == "-" && wrapper.name == "env" {
                at += 1;
            } else if text.len() > 1 && text.starts_with('-') {
                at += 1;
                if wrapper.takes_next(text) {
                    at += 1;
                } else {
                    uncertain |= !wrapper.is_flag(text);
                }
            } else {
                break;
            }
        }
        at += wrapper.before;
        let mut candidates = vec![at];
        if uncertain {
            candidates.push(at + 1);
        }
        for start in candidates {
            let mut inner: Vec<Word> = words.get(start..).unwrap_or_default().to_vec();
            if inner.is_empty() {
                continue;
            }
            if wrapper.name == "flock" && inner[0].known() == Some("-c") {
                self.text_of(inner.get(1), depth);
                continue;
            }
            if wrapper.name == "xargs" {
                inner.push(Word::Unknown);
            }
            self.simple(inner, input, depth + 1);
        }
    }

    fn text_of(&mut self, word: Option<&Word>, depth: usize) {
        match word {
            Some(Word::Known(text)) => self.shell(text, depth + 1),
            Some(Word::Unknown) => self.doubt("shell text is known only then", ""),
            None => {}
        }
    }

    /// Programs that take commands in ways of their own.
    fn runs_otherwise(&mut self, program: &str, words: &[Word], depth: usize) {
        match program {
            "eval" | "watch" => {
                if program == "eval" {
                    self.doubt("text is run as a command", program);
                }
                let known: Option<Vec<_>> = words[1..].iter().map(Word::known).collect();
                match known {
                    Some(pieces) => self.shell(&pieces.join(" "), depth + 1),
                    None => self.doubt("text is run as a command", program),
                }
            }
            "source" | "." => self.doubt("a file is run in this shell", program),
            "alias" => self.doubt("a name gets a new meaning", program),
            "parallel" | "rush" => self.doubt("commands are put together only then", program),
            "trap" => self.text_of(words.get(1), depth),
            "su" | "script" | "runuser" => {
                let position = words
                    .iter()
                    .position(|word| matches!(word.known(), Some("-c" | "--command")));
                if let Some(position) = position {
                    self.text_of(words.get(position + 1), depth);
                }
            }
            "find" | "fd" | "fdfind" => self.find(words, depth),
            _ => {}
        }
    }

    fn find(&mut self, words: &[Word], depth: usize) {
        let runs = [
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-x",
            "-X",
            "--exec",
            "--exec-batch",
        ];
        let mut at = 1;
        while at < words.len() {
            let starts = words[at].known().is_some_and(|word| runs.contains(&word));
            at += 1;
            if starts {
                let end = words[at..]
                    .iter()
                    .position(|word| matches!(word.known(), Some(";" | "+")))
                    .map_or(words.len(), |length| at + length);
                let inner = words[at..end]
                    .iter()
                    .map(|word| match word.known() {
                        Some(text) if !text.contains("{}") => word.clone(),
                        _ => Word::Unknown,
                    })
                    .collect();
                self.simple(inner, None, depth + 1);
                at = end;
            }
        }
    }
}

impl Wrapper {
    fn takes_next(&self, option: &str) -> bool {
        if self.values.contains(&option) {
            return true;
        }
        // In `-nu root` the last letter takes the value.
        !option.starts_with("--")
            && self.values.iter().any(|value| {
                value.len() == 2
                    && option.ends_with(&value[1..])
                    && option[1..option.len() - 1]
                        .chars()
                        .all(|c| self.flags.contains(c))
            })
    }

    fn is_flag(&self, option: &str) -> bool {
        if option.starts_with("--") {
            return option.contains('=');
        }
        let mut letters = option.chars().skip(1);
        let first = letters.next();
        // A value may be glued to its option, as in `-n5`.
        let glued = self
            .values
            .iter()
            .any(|value| value.len() == 2 && value.chars().nth(1) == first);
        glued || option.chars().skip(1).all(|c| self.flags.contains(c))
    }
}

/// The name of a program, whatever directory it is taken from.
fn name_of(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    if name.is_empty() { program } else { name }.to_owned()
}
