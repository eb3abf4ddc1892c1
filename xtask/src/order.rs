//! `cargo xtask order`: which functions `lula exec` runs, in the order in which they had best lie.
//!
//! `lula` is large, and a command in a sandbox runs a thirtieth of its functions. Scattered over the
//! whole program, each costs a page of its own to be mapped, in three processes, and to be unmapped
//! again; laid together by the linker they cost a few dozen, and fewer still if what each of the three
//! runs lies together. The list is `crates/lula/order.txt`, which
//! `crates/lula/build.rs` hands to the linker. A name in it that is no more is ignored, and one that is
//! missing costs a page: it may be out of date, and is made anew when it has become so.
//!
//! Every function begins with a trap; a process that runs into one is noted, and the trap taken out.

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
        &mut repository.cargo("build --quiet --profile dist -p lula"),
        interrupt,
    )?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let program = repository.root().join("target/dist/lula");
    let functions = Functions::of(&program)?;
    let place = tempfile::tempdir()?;
    let mut seen = FirstCalls::default();
    // The first run makes what later ones find.
    for round in 1..=3 {
        let mut run = Run::start(&program, place.path(), &functions)?;
        let new = run.follow(&functions)?;
        println!(
            "run {round}: {} of {} functions",
            new.laid_out().len(),
            functions.0.len()
        );
        if round > 1 {
            seen.extend(&new);
        }
    }
    let order = seen.laid_out();
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

/// The processes of `lula exec`: itself, its helper, and the first process of the sandbox.
const PROCESSES: usize = 3;

/// The functions that each process ran, in the order in which it first did.
#[derive(Default)]
struct FirstCalls([Vec<String>; PROCESSES]);

impl FirstCalls {
    fn note(&mut self, process: usize, name: &str) {
        let list = &mut self.0[process];
        if !list.iter().any(|one| one == name) {
            list.push(name.to_owned());
        }
    }

    fn extend(&mut self, other: &Self) {
        for (process, names) in other.0.iter().enumerate() {
            for name in names {
                self.note(process, name);
            }
        }
    }

    /// All of them, so that those of every process lie as close together as can be.
    fn laid_out(&self) -> Vec<String> {
        // By who runs them, one bit for each: first what only the first does, last what only the last.
        const GROUPS: [usize; 7] = [0b001, 0b011, 0b010, 0b111, 0b101, 0b110, 0b100];
        let mut runners: HashMap<&str, usize> = HashMap::new();
        for (process, names) in self.0.iter().enumerate() {
            for name in names {
                *runners.entry(name).or_default() |= 1 << process;
            }
        }
        let mut order = Vec::new();
        for group in GROUPS {
            // Everyone of a group is in the list of its first.
            let first = &self.0[group.trailing_zeros() as usize];
            order.extend(first.iter().filter(|name| runners[name.as_str()] == group));
        }
        order.into_iter().cloned().collect()
    }
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
    /// Where a process ran into one, which is taken out then.
    met: HashSet<u64>,
    /// Which process is which.
    known: HashMap<Pid, usize>,
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
            met: HashSet::new(),
            known: HashMap::from([(main, 0)]),
        })
    }

    fn follow(&mut self, functions: &Functions) -> Result<FirstCalls> {
        let mut seen = FirstCalls::default();
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
                    if let Some(name) = place.and_then(|place| functions.0.get(&place)) {
                        seen.note(self.which(pid)?, name);
                    }
                    (pid, place.is_none().then_some(Signal::SIGTRAP))
                }
                // A new process or thread begins with that.
                WaitStatus::Stopped(pid, Signal::SIGSTOP) => {
                    self.which(pid)?;
                    (pid, None)
                }
                WaitStatus::PtraceEvent(pid, ..) => (pid, None),
                WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
                _ => continue,
            };
            // A process that was killed meanwhile needs nothing.
            let _ = ptrace::cont(pid, signal);
        }
    }

    /// Which process of `lula exec` a process or thread is, by how far it descends from the first. One
    /// that is new gets the traps back that those before it ran into.
    fn which(&mut self, pid: Pid) -> Result<usize> {
        if let Some(process) = self.known.get(&pid) {
            return Ok(*process);
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().parse().ok())
                .map(Pid::from_raw)
                .context("a process does not say whose it is")
        };
        let whole = number("Tgid:")?;
        let process = if whole == pid {
            let parent = self.which(number("PPid:")?)?;
            let memory = memory(pid)?;
            for place in &self.met {
                memory.write_all_at(&[TRAP], self.base + place)?;
            }
            (parent + 1).min(PROCESSES - 1)
        } else {
            self.which(whole)?
        };
        self.known.insert(pid, process);
        Ok(process)
    }

    /// Takes the trap out that a process ran into, and has it run what was there. Where that is.
    fn step_back(&mut self, pid: Pid) -> Result<Option<u64>> {
        let mut registers = ptrace::getregs(pid)?;
        let address = registers.rip.wrapping_sub(1);
        let place = address.wrapping_sub(self.base);
        let Some(byte) = self.beneath.get(&place) else {
            return Ok(None);
        };
        memory(pid)?.write_all_at(&[*byte], address)?;
        self.met.insert(place);
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
    fn what_a_process_runs_lies_together() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect();
        let seen = FirstCalls([
            list("main args shared wait"),
            list("args mount shared clone"),
            list("shared lock wait clone"),
        ]);
        let order = seen.laid_out().join(" ");
        assert_eq!(order, "main args mount shared wait clone lock");
    }

    #[test]
    fn a_list_that_fits_no_longer_is_told() {
        let list = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
        let names = |text: &'static str| text.split(' ').collect::<HashSet<_>>();
        assert_eq!(warning(list, &names("a b c d e f g h i z")), None);
        let told = warning(list, &names("a b c d e f g h z")).unwrap();
        assert!(told.starts_with("8 of 10 names"), "{told}");
    }
}
