//! Programs that run other programs, and how to find those in their arguments.

use super::word::Word;
use super::{MAX_DEPTH, MAX_READINGS, MAX_WORDS, Reader, git};

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
    wrapper("setpriv", &[], "d", 0),
    wrapper("prlimit", &[], "", 0),
    wrapper("runcon", &["-t", "-u", "-r", "-l"], "c", 0),
    wrapper("unbuffer", &[], "p", 0),
    wrapper("xvfb-run", &["-e", "-f", "-n", "-p", "-s", "-w"], "al", 0),
    wrapper("dbus-run-session", &[], "", 0),
    wrapper("systemd-run", &["-p", "-u", "-E"], "dGPqSt", 0),
    wrapper("systemd-inhibit", &[], "", 0),
    wrapper("proxychains", &["-f"], "q", 0),
    wrapper("proxychains4", &["-f"], "q", 0),
    wrapper("torsocks", &[], "", 0),
    wrapper("firejail", &[], "", 0),
    wrapper("bwrap", &[], "", 0),
    wrapper("nsenter", &["-t", "-S", "-G"], "amuinpCUTrwF", 0),
    wrapper("chronic", &[], "ev", 0),
    wrapper("numactl", &["-C", "-m", "-N", "-i", "-p"], "l", 0),
    wrapper("faketime", &["-f"], "m", 1),
    wrapper("valgrind", &[], "qv", 0),
    wrapper("ltrace", &["-e", "-o", "-p", "-s", "-u"], "cCfiLSrtT", 0),
    wrapper("catchsegv", &[], "", 0),
    wrapper("fakeroot", &["-l", "-s", "-i", "-b"], "uvh", 0),
    wrapper("npx", &["-p", "--package"], "yq", 0),
    wrapper("bunx", &[], "", 0),
    wrapper("uvx", &["--from", "--with", "-p"], "q", 0),
    wrapper("busybox", &[], "", 0),
    wrapper("toybox", &[], "", 0),
    wrapper(
        "xargs",
        &["-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "-i", "-l"],
        "0oprtx",
        0,
    ),
];

/// Programs one of whose subcommands runs the rest.
const RUNNERS: [(&str, &str); 16] = [
    ("poetry", "run"),
    ("uv", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("rye", "run"),
    ("hatch", "run"),
    ("conda", "run"),
    ("rustup", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("yarn", "exec"),
    ("mise", "exec"),
    ("asdf", "exec"),
    ("direnv", "exec"),
    ("docker", "exec"),
];

const SHELLS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash",
];

impl Reader {
    /// A simple command, and every command it would run in turn.
    pub(super) fn simple(&mut self, mut words: Vec<Word>, input: Option<&str>, depth: usize) {
        if words.is_empty() || self.is_full() {
            return;
        }
        if words.len() > MAX_WORDS {
            self.doubt("a command has too many words to read", "");
            words.truncate(MAX_WORDS);
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

    /// Looks for the command behind a wrapper's options. An option not known here may take the
    /// next word or not: both readings count.
    fn runs_rest(&mut self, wrapper: &Wrapper, words: &[Word], input: Option<&str>, depth: usize) {
        let mut reached = vec![false; words.len() + 3];
        reached[1] = true;
        let mut readings = 0;
        for at in 1..words.len() {
            if !reached[at] {
                continue;
            }
            if readings >= MAX_READINGS || depth >= MAX_DEPTH {
                self.doubt("it can be read in too many ways", wrapper.name);
                return;
            }
            let Some(text) = words[at].known() else {
                self.doubt("what runs is known only then", wrapper.name);
                readings += 1;
                self.runs_from(wrapper, words, at, input, depth);
                continue;
            };
            match wrapper.step(text) {
                Step::Command => {
                    readings += 1;
                    self.runs_from(wrapper, words, at, input, depth);
                }
                Step::CommandNext => {
                    readings += 1;
                    self.runs_from(wrapper, words, at + 1, input, depth);
                }
                Step::Skip => reached[at + 1] = true,
                Step::SkipTwo => reached[at + 2] = true,
                Step::SkipOneOrTwo => {
                    reached[at + 1] = true;
                    reached[at + 2] = true;
                }
                Step::Assigns(name) => {
                    self.variable(name);
                    reached[at + 1] = true;
                }
                Step::Text("") => self.text_of(words.get(at + 1), depth),
                Step::Text(split) => self.shell(split, depth + 1),
            }
        }
    }

    fn runs_from(
        &mut self,
        wrapper: &Wrapper,
        words: &[Word],
        at: usize,
        input: Option<&str>,
        depth: usize,
    ) {
        if self.is_full() {
            return;
        }
        let rest = words.get(at + wrapper.before..).unwrap_or_default();
        let Some(first) = rest.first() else { return };
        if wrapper.name == "flock" && first.known() == Some("-c") {
            return self.text_of(rest.get(1), depth);
        }
        let mut inner = rest.to_vec();
        if wrapper.name == "xargs" {
            inner.push(Word::Unknown);
        }
        self.simple(inner, input, depth + 1);
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
            "python" | "python3" | "perl" | "ruby" | "node" | "php" => {
                let pushes = |text: &str| text.contains("git") && text.contains("push");
                let mut texts = words.iter().skip(1).filter_map(Word::known);
                if texts.any(pushes) {
                    self.doubt("a program text speaks of git push", program);
                }
            }
            _ => {
                let subcommand = words.get(1).and_then(Word::known).unwrap_or_default();
                if RUNNERS.contains(&(program, subcommand)) {
                    // `rustup run` and `direnv exec` name something else first.
                    for before in [0, 1] {
                        let runner = wrapper("run", &[], "", before);
                        self.runs_rest(&runner, &words[1..], None, depth);
                    }
                }
            }
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

/// What a word before the wrapped command does.
enum Step<'a> {
    Command,
    CommandNext,
    Skip,
    SkipTwo,
    SkipOneOrTwo,
    Assigns(&'a str),
    /// Shell text: this, or the next word where it is empty.
    Text(&'a str),
}

impl Wrapper {
    fn step<'a>(&self, word: &'a str) -> Step<'a> {
        if word == "--" {
            return Step::CommandNext;
        }
        if self.assigns
            && let Some((name, _)) = word.split_once('=')
            && !name.is_empty()
            && !name.starts_with('-')
        {
            return Step::Assigns(name);
        }
        if self.name == "env" {
            if word == "-" {
                return Step::Skip;
            }
            if let Some(text) = word.strip_prefix("--split-string") {
                return Step::Text(text.trim_start_matches('='));
            }
            if let Some((before, text)) = word.split_once('S')
                && let Some(flags) = before.strip_prefix('-')
                && flags.chars().all(|c| self.flags.contains(c))
            {
                return Step::Text(text);
            }
        }
        if word.len() < 2 || !word.starts_with('-') {
            Step::Command
        } else if self.takes_next(word) {
            Step::SkipTwo
        } else if self.is_flag(word) {
            Step::Skip
        } else {
            Step::SkipOneOrTwo
        }
    }

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
