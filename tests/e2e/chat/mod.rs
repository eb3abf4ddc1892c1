//! `lula chat` as a person meets it: the real program in a real terminal (tmux), with scripted models.

mod flow;
mod keys;
mod lines;
mod story;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::LulaEnv;

/// How long something may take to appear on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A terminal in which a chat goes on.
pub(crate) struct ChatTerminal {
    socket: PathBuf,
    /// The directory of the socket goes with the terminal.
    _directory: tempfile::TempDir,
}

impl ChatTerminal {
    /// `lula chat` with these arguments, in a terminal of 80 columns.
    pub(crate) fn begin(world: &LulaEnv, arguments: &[&str]) -> Self {
        Self::sized(world, (80, 30), &[], &[&["chat"], arguments].concat())
    }

    /// `lula` with these arguments and variables, in a terminal of so many columns and rows.
    pub(crate) fn sized(
        world: &LulaEnv,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let program = env!("CARGO_BIN_EXE_lula").to_owned();
        Self::of(world, (columns, rows), variables, vec![program], arguments)
    }

    /// The same with a program that starts `lula`.
    pub(crate) fn of(
        world: &LulaEnv,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
        program: Vec<String>,
        arguments: &[&str],
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let terminal = Self {
            socket: directory.path().join("tmux"),
            _directory: directory,
        };
        let mut line = vec!["env".to_owned(), "-i".to_owned()];
        line.push(format!("HOME={}", world.home().display()));
        line.push(format!("PATH={}", std::env::var("PATH").unwrap()));
        line.push("TERM=screen-256color".to_owned());
        line.push("LANG=C.UTF-8".to_owned());
        line.extend(
            variables
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        line.extend(program);
        line.extend(arguments.iter().map(|&argument| argument.to_owned()));
        let quoted: Vec<String> = line.iter().map(|word| quoted(word)).collect();
        // What the program leaves on the screen stays there.
        let shell = format!("{}; echo \"[left with $?]\"; sleep 600", quoted.join(" "));
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let work = world.work();
        let began = terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "chat",
            "-x",
            &columns,
            "-y",
            &rows,
            "-c",
            work.to_str().unwrap(),
            &shell,
        ]);
        let said = String::from_utf8_lossy(&began.stderr).into_owned();
        assert!(
            began.status.success(),
            "tmux is needed for this test: {said}"
        );
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").arg("-S").arg(&self.socket);
        command.env("LANG", "C.UTF-8").arg("-u");
        command.args(arguments).output().unwrap()
    }

    /// Everything that is and was on the screen.
    pub(crate) fn text(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-p", "-J", "-S", "-5000", "-t", "chat"]);
        String::from_utf8(captured.stdout).unwrap()
    }

    /// What is on the screen now, row by row.
    pub(crate) fn screen(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-p", "-t", "chat"]);
        String::from_utf8(captured.stdout).unwrap()
    }

    /// The same with its colours.
    pub(crate) fn coloured(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-e", "-p", "-t", "chat"]);
        String::from_utf8(captured.stdout).unwrap()
    }

    /// Presses keys, as tmux calls them.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "chat"], keys].concat());
    }

    /// Types a line.
    pub(crate) fn say(&self, text: &str) {
        self.tmux(&["send-keys", "-t", "chat", "-l", text]);
        self.press(&["Enter"]);
    }

    /// Pastes a text, as a terminal does it.
    pub(crate) fn paste(&self, text: &str) {
        let file = self.socket.with_extension("paste");
        std::fs::write(&file, text).unwrap();
        self.tmux(&["load-buffer", file.to_str().unwrap()]);
        self.tmux(&["paste-buffer", "-p", "-t", "chat"]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-t", "chat", "-x", &columns, "-y", &rows]);
    }

    /// Waits until something is true of everything that is and was on the screen.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if is_so(&text) {
                return text;
            }
            assert!(Instant::now() < end, "no {what} on the screen:\n{text}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until this is on the screen, or was.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) -> String {
        self.wait(text, |seen| seen.contains(text))
    }

    /// Waits until it is the person's turn for the so many-th time.
    #[track_caller]
    pub(crate) fn turn(&self, number: usize) -> String {
        let is_prompt = |line: &&str| line.starts_with('›');
        // Nothing is typed yet: at most the model and its price stand at the end of the row.
        let is_empty = |line: &str| {
            let typed = line.strip_prefix('›');
            typed.is_some_and(|text| text.trim().is_empty() || text.starts_with("    "))
        };
        self.wait(&format!("prompt {number}"), |seen| {
            let last = seen.trim_end().lines().last().unwrap_or_default();
            is_empty(last) && seen.lines().filter(is_prompt).count() >= number
        })
    }

    /// The process of the program.
    pub(crate) fn process(&self) -> u32 {
        let listed = self.tmux(&["list-panes", "-t", "chat", "-F", "#{pane_pid}"]);
        let shell: u32 = String::from_utf8(listed.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let children = std::fs::read_to_string(children).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for ChatTerminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
