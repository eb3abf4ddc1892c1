//! Asking the tools of this machine where they go: their own programs and their own files, never those of
//! the project at hand.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a tool may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes of an answer.
const LONGEST: u64 = 1 << 20;

/// Asks tools from a directory in which no project configures them.
#[derive(Debug)]
pub(super) struct ToolQuestions<'a> {
    /// The project at hand, whose programs are not asked.
    project: &'a Path,
    search: Vec<PathBuf>,
}

impl<'a> ToolQuestions<'a> {
    pub(super) fn beside(project: &'a Path) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let apart = |directory: &PathBuf| {
            let real = directory.canonicalize();
            directory.is_absolute() && real.is_ok_and(|real| !real.starts_with(project))
        };
        let search = std::env::split_paths(&path).filter(apart).collect();
        Self { project, search }
    }

    pub(super) fn project(&self) -> &Path {
        self.project
    }

    /// Where a program is.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        let mut found = self.search.iter().map(|directory| directory.join(name));
        found.find(|path| path.is_file())
    }

    /// What a program prints, where it is there and succeeds in time.
    pub(super) fn ask(&self, program: &str, arguments: &[&str]) -> Option<String> {
        answer(&self.program(program)?, arguments)
    }
}

/// A directory of the operator's, by what it is called below their home or where a variable says.
pub(super) fn own_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from)?;
        Some(home.join(below_home))
    })
}

/// A file in such a directory.
pub(super) fn own_file(variable: &str, below_home: &str, name: &str) -> Option<String> {
    std::fs::read_to_string(own_directory(variable, below_home)?.join(name)).ok()
}

/// What a program prints, where it succeeds in time.
pub(crate) fn answer(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let (tell, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.take(LONGEST).read_to_string(&mut text);
        // The one who asked may have lost patience.
        let _ = tell.send(read.map(|_| text));
    });
    let text = heard.recv_timeout(PATIENCE);
    if text.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    text.ok()?.ok().filter(|_| status.success())
}
