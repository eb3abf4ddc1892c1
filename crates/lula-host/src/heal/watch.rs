//! Looks again whenever there is another commit. Each look is a process of its own, because a driver
//! locks its process out of the repository for good.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lula_protocol::RunExit;
use lula_workspace::GitProgram;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::HostError;

/// How often it is looked whether an end is wanted.
const TICK: Duration = Duration::from_millis(100);

/// Looks after a repository until `asked` counts an end, each time by this very program with these
/// arguments. Tells how the last look ended.
pub fn watch(
    git: &GitProgram,
    repository: &Path,
    interval: Duration,
    arguments: &[OsString],
    asked: &AtomicUsize,
) -> Result<RunExit, HostError> {
    let mut last: Option<(String, RunExit)> = None;
    loop {
        let head = head(git, repository)?;
        let looked = last
            .as_ref()
            .filter(|(commit, exit)| *commit == head && !worth_another_look(*exit));
        if looked.is_none() {
            let exit = look(arguments, asked)?;
            last = Some((head, exit));
        }
        let until = Instant::now() + interval;
        while Instant::now() < until && asked.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(TICK.min(interval));
        }
        if asked.load(Ordering::SeqCst) > 0 {
            return Ok(last.map_or(RunExit::Inconclusive, |(_, exit)| exit));
        }
    }
}

/// Whether the same commit may do otherwise the next time: a limit passes, a machine is mended.
const fn worth_another_look(exit: RunExit) -> bool {
    matches!(exit, RunExit::Budget | RunExit::Environment)
}

fn head(git: &GitProgram, repository: &Path) -> Result<String, HostError> {
    let arguments = ["rev-parse", "--verify", "HEAD^{commit}"];
    let head = git.run(repository, &arguments)?;
    Ok(head.trim().to_owned())
}

/// One look in a process of its own. An end is passed on to it, as often as it is asked for.
fn look(arguments: &[OsString], asked: &AtomicUsize) -> Result<RunExit, HostError> {
    let program = std::env::current_exe().map_err(HostError::Watch)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        // Ctrl-C is for this process, which passes it on once.
        .process_group(0)
        .spawn()
        .map_err(HostError::Watch)?;
    let mut passed_on = 0;
    loop {
        if let Some(status) = child.try_wait().map_err(HostError::Watch)? {
            return Ok(exit_of(status.code()));
        }
        let wanted = asked.load(Ordering::SeqCst);
        while passed_on < wanted {
            pass_on(&child);
            passed_on += 1;
        }
        std::thread::sleep(TICK);
    }
}

fn pass_on(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // One that has just ended needs no telling.
        let _ = kill_process(pid, Signal::INT);
    }
}

fn exit_of(status: Option<i32>) -> RunExit {
    let known = [
        RunExit::Verified,
        RunExit::Failed,
        RunExit::Usage,
        RunExit::WaitingForApproval,
        RunExit::Budget,
        RunExit::Inconclusive,
    ];
    let is = |exit: &RunExit| status == Some(i32::from(exit.status()));
    // One that was killed says nothing of the repository: the next look is another try.
    known.into_iter().find(is).unwrap_or(RunExit::Environment)
}
