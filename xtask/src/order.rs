//! `cargo xtask order`: which functions `lula exec` runs, in the order in which it first does.
//!
//! `lula` is large, and a command in a sandbox runs a thirtieth of its functions. Scattered over the
//! whole program, each costs a page of its own to be mapped, in three processes, and to be unmapped
//! again; laid together by the linker they cost a few dozen. The list is `crates/lula/order.txt`, which
//! `crates/lula/build.rs` hands to the linker. A name in it that is no more is ignored, and one that is
//! missing costs a page: it may be out of date, and is made anew when it has become so.
//!
//! Every function begins with a trap; whoever runs into one is noted, and the trap taken out.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::command;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// The instruction that stops a program.
const TRAP: u8 = 0xcc;

pub(crate) fn run(repository: &Repository, interrupt: &Interrupt) -> Result<ExitCode> {
    let built = command::run(
        &mut repository.cargo("build --quiet --release -p lula"),
        interrupt,
    )?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let program = repository.root().join("target/release/lula");
    let functions = Functions::of(&program)?;
    let place = tempfile::tempdir()?;
    let mut order: Vec<String> = Vec::new();
    // The first run makes what later ones find.
    for round in 1..=3 {
        let run = Run::start(&program, place.path(), &functions)?;
        let seen = run.to_its_end(&functions)?;
        println!(
            "run {round}: {} of {} functions",
            seen.len(),
            functions.0.len()
        );
        if round == 1 {
            continue;
        }
        let new: Vec<_> = seen
            .into_iter()
            .filter(|one| !order.contains(one))
            .collect();
        order.extend(new);
    }
    let list = list(repository);
    let mut text = order.join("\n");
    text.push('\n');
    fs::write(&list, text)?;
    println!("{} names in {}", order.len(), list.display());
    Ok(ExitCode::SUCCESS)
}

/// Says so where the list fits a program so badly that `lula exec` is slower than it could be.
pub(crate) fn warn_if_old(repository: &Repository, program: &Path) -> Result<()> {
    let list = fs::read_to_string(list(repository))?;
    let functions = Functions::of(program)?;
    let names: HashSet<&str> = functions.0.values().map(String::as_str).collect();
    if let Some(warning) = warning(&list, &names) {
        writeln!(io::stderr(), "{warning}")?;
    }
    Ok(())
}

fn warning(list: &str, names: &HashSet<&str>) -> Option<String> {
    let all = list.lines().count();
    let there = list.lines().filter(|name| names.contains(name)).count();
    (there * 10 < all * 9).then(|| {
        format!(
            "{there} of {all} names in crates/lula/order.txt are in the program: `cargo xtask order` \
             lists anew what `lula exec` runs"
        )
    })
}

fn list(repository: &Repository) -> PathBuf {
    repository.root().join("crates/lula/order.txt")
}

/// Has this process traced by its parent, and becomes the program given.
pub(crate) fn become_traced(command: &[std::ffi::OsString]) -> Result<ExitCode> {
    let Some((program, arguments)) = command.split_first() else {
        bail!("no program is named");
    };
    ptrace::traceme()?;
    Err(Command::new(program).args(arguments).exec().into())
}

/// The functions of a program, by where they begin in it.
struct Functions(HashMap<u64, String>);

impl Functions {
    fn of(program: &Path) -> Result<Self> {
        let listed = Command::new("nm").arg(program).output();
        let listed = listed.context("cannot run `nm`, which comes with a C compiler")?;
        let text = String::from_utf8(listed.stdout)?;
        let functions = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let place = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_function = matches!(words.next()?, "t" | "T" | "w" | "W");
            is_function.then_some((place, words.next()?.to_owned()))
        });
        let functions: HashMap<_, _> = functions.collect();
        if functions.is_empty() {
            bail!("{} does not name its functions", program.display());
        }
        Ok(Self(functions))
    }
}

/// `lula exec` with a trap at the beginning of every function.
struct Run {
    main: Pid,
    /// Where the program was loaded.
    base: u64,
    /// What is in the place of a trap.
    beneath: HashMap<u64, u8>,
}

impl Run {
    fn start(program: &Path, place: &Path, functions: &Functions) -> Result<Self> {
        let workspace = place.join("workspace");
        fs::create_dir_all(&workspace)?;
        let child = Command::new(std::env::current_exe()?)
            .args(["traced", "--"])
            .arg(program)
            .args(["exec", "--workspace"])
            .arg(&workspace)
            .args(["--", "/bin/true"])
            .env("XDG_STATE_HOME", place.join("state"))
            .stdin(Stdio::null())
            .spawn()?;
        let main = Pid::from_raw(i32::try_from(child.id())?);
        // It stops when it has become the program.
        waitpid(main, None)?;
        ptrace::setoptions(
            main,
            Options::PTRACE_O_TRACEFORK
                | Options::PTRACE_O_TRACEVFORK
                | Options::PTRACE_O_TRACECLONE
                | Options::PTRACE_O_TRACEEXEC
                | Options::PTRACE_O_EXITKILL,
        )?;
        let maps = fs::read_to_string(format!("/proc/{main}/maps"))?;
        let name = program.to_string_lossy();
        let first = maps.lines().find(|line| line.ends_with(&*name));
        let base = first
            .and_then(|line| u64::from_str_radix(line.split_once('-')?.0, 16).ok())
            .context("the program is not where it should be")?;
        let memory = memory(main)?;
        let mut beneath = HashMap::new();
        for place in functions.0.keys() {
            let mut byte = [0];
            if memory.read_exact_at(&mut byte, base + place).is_ok() {
                memory.write_all_at(&[TRAP], base + place)?;
                beneath.insert(*place, byte[0]);
            }
        }
        ptrace::cont(main, None)?;
        Ok(Self {
            main,
            base,
            beneath,
        })
    }

    /// The functions that ran, in the order in which they first did.
    fn to_its_end(&self, functions: &Functions) -> Result<Vec<String>> {
        let mut seen = Vec::new();
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Ok(status) => status,
                Err(Errno::ECHILD) => return Ok(seen),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let (pid, signal) = match status {
                WaitStatus::Exited(pid, status) if pid == self.main && status != 0 => {
                    bail!("`lula exec` ended with {status}")
                }
                WaitStatus::Stopped(pid, Signal::SIGTRAP) => {
                    let place = self.step_back(pid)?;
                    let name = place.and_then(|place| functions.0.get(&place));
                    if let Some(name) = name.filter(|name| !seen.contains(*name)) {
                        seen.push(name.clone());
                    }
                    (pid, place.is_none().then_some(Signal::SIGTRAP))
                }
                // A new process or thread begins with that.
                WaitStatus::Stopped(pid, Signal::SIGSTOP) | WaitStatus::PtraceEvent(pid, ..) => {
                    (pid, None)
                }
                WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
                _ => continue,
            };
            // Whoever was killed meanwhile needs nothing.
            let _ = ptrace::cont(pid, signal);
        }
    }

    /// Takes the trap out that a process ran into, and has it run what was there. Where that is.
    fn step_back(&self, pid: Pid) -> Result<Option<u64>> {
        let mut registers = ptrace::getregs(pid)?;
        let address = registers.rip.wrapping_sub(1);
        let place = address.wrapping_sub(self.base);
        let Some(byte) = self.beneath.get(&place) else {
            return Ok(None);
        };
        memory(pid)?.write_all_at(&[*byte], address)?;
        registers.rip = address;
        ptrace::setregs(pid, registers)?;
        Ok(Some(place))
    }
}

/// The memory of a process that is stopped.
fn memory(pid: Pid) -> Result<File> {
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"));
    memory.context("cannot reach the memory of a process")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_fits_no_longer_is_told() {
        let list = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
        let names = |text: &'static str| text.split(' ').collect::<HashSet<_>>();
        assert_eq!(warning(list, &names("a b c d e f g h i z")), None);
        let told = warning(list, &names("a b c d e f g h z")).unwrap();
        assert!(told.starts_with("8 of 10 names"), "{told}");
    }
}
