//! A ground of plain directories, with no isolation whatever: for tests and benchmarks that run
//! code written in this repository, and for nothing else.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lula_repair::{ForkCommand, ForkCommandOutput, ForkSource, ForkSourceError, ProjectFork};
use tempfile::TempDir;

/// Most that is kept of each output stream.
const MAX_OUTPUT: u64 = 32 << 20;
/// How long the pipes of a program that has ended are read on.
const PARTING: Duration = Duration::from_secs(2);

/// A project in a directory.
pub(crate) struct UnsandboxedGround {
    root: PathBuf,
}

/// A copy of it in a temporary directory.
pub(crate) struct UnsandboxedFork {
    root: TempDir,
    /// Where what runs in it puts temporary files.
    scratch: TempDir,
}

impl UnsandboxedGround {
    /// The project below this directory.
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

pub(crate) fn failed(action: &str, path: &Path) -> impl FnOnce(std::io::Error) -> ForkSourceError {
    move |error| ForkSourceError::new(format!("{action} {}", path.display()), error)
}

/// Copies a tree, version control and build products left out.
pub(crate) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == ".git" || entry.file_name() == "target" {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if entry.path().is_dir() {
            // A link to a folder elsewhere, such as installed packages, stays one.
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn list(root: &Path, below: &Path, out: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(below)? {
        let entry = entry?;
        if entry.file_name() == ".git" || entry.file_name() == "target" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list(root, &entry.path(), out)?;
        } else if let Ok(path) = entry.path().strip_prefix(root) {
            out.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// What comes out of a pipe, read by a thread of its own.
struct Drain {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Drain {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = std::sync::mpsc::channel();
        let kept = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let _end = end;
            let mut pipe = pipe?.take(MAX_OUTPUT);
            let mut chunk = vec![0; 1 << 16];
            // A stream that breaks off is as long as it is.
            while let Ok(read @ 1..) = pipe.read(&mut chunk) {
                kept.lock().ok()?.extend_from_slice(&chunk[..read]);
            }
            Some(())
        });
        Self { bytes, ended }
    }

    /// Everything, once the program has ended. What left its group without a sandbox to hold it may
    /// keep the pipe open for ever; it is not waited for.
    fn take(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(PARTING);
        self.bytes
            .lock()
            .map(|mut bytes| std::mem::take(&mut *bytes))
            .unwrap_or_default()
    }
}

impl ForkSource for UnsandboxedGround {
    fn fork(&self) -> Result<Box<dyn ProjectFork>, ForkSourceError> {
        let root = tempfile::tempdir().map_err(failed("forking", &self.root))?;
        copy(&self.root, root.path()).map_err(failed("forking", &self.root))?;
        let scratch = tempfile::tempdir().map_err(failed("forking", &self.root))?;
        Ok(Box::new(UnsandboxedFork { root, scratch }))
    }
}

impl ProjectFork for UnsandboxedFork {
    fn files(&self) -> Result<Vec<String>, ForkSourceError> {
        let mut found = Vec::new();
        list(self.root.path(), self.root.path(), &mut found)
            .map_err(failed("listing", self.root.path()))?;
        found.sort();
        Ok(found)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ForkSourceError> {
        fs::read(self.root.path().join(path)).map_err(failed("reading", Path::new(path)))
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), ForkSourceError> {
        fs::write(self.root.path().join(path), bytes).map_err(failed("writing", Path::new(path)))
    }

    fn remove(&mut self, path: &str) -> Result<(), ForkSourceError> {
        fs::remove_file(self.root.path().join(path)).map_err(failed("removing", Path::new(path)))
    }

    fn root(&self) -> String {
        self.root.path().display().to_string()
    }

    fn run(&mut self, command: &ForkCommand) -> Result<ForkCommandOutput, ForkSourceError> {
        run(command, self.root.path(), self.scratch.path())
    }
}

/// Where programs are looked for: the project's virtual environment comes first, as in the sandbox.
fn path_in(folder: &Path) -> std::ffi::OsString {
    let mut path = std::ffi::OsString::new();
    let own = folder.join(".venv/bin");
    if own.is_dir() {
        path.push(own);
        path.push(":");
    }
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Runs a command below a directory.
pub(crate) fn run(
    command: &ForkCommand,
    root: &Path,
    scratch: &Path,
) -> Result<ForkCommandOutput, ForkSourceError> {
    {
        let started = Instant::now();
        let failed = |error| ForkSourceError::new(format!("running {}", command.argv[0]), error);
        let program = if command.argv[0].contains('/') {
            root.join(&command.argv[0])
        } else {
            PathBuf::from(&command.argv[0])
        };
        let mut child = std::process::Command::new(program);
        child
            .args(&command.argv[1..])
            .current_dir(root.join(&command.folder))
            .env_clear()
            .envs(
                [
                    "PATH",
                    "HOME",
                    "CARGO_HOME",
                    "RUSTUP_HOME",
                    "RUSTUP_TOOLCHAIN",
                ]
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .env("TMPDIR", scratch)
            .env("PATH", path_in(&root.join(&command.folder)))
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = child.spawn().map_err(failed)?;
        let group = i32::try_from(child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let input = command.stdin.clone();
        let stdin = child.stdin.take();
        std::thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(&input)));
        let out = Drain::of(child.stdout.take());
        let err = Drain::of(child.stderr.take());
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let deadline = command.deadline;
        let watchdog = std::thread::spawn(move || {
            let late =
                wait.recv_timeout(deadline) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
            if late && let Some(group) = group {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            late
        });
        let status = child.wait();
        drop(done);
        let timed_out = watchdog.join().unwrap_or(false);
        if let Some(group) = group {
            // Nothing of its group outlives it.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let status = status.map_err(failed)?;
        Ok(ForkCommandOutput {
            stdout: out.take(),
            stderr: err.take(),
            exit: status.code(),
            timed_out,
            took: started.elapsed(),
        })
    }
}
