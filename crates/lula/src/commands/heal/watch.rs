//! `lula heal --watch`: looks again whenever there is another commit. Each look is a process of its
//! own, because whoever drives a run locks itself out of the repository for good.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lula_protocol::{Code, Exit};
use lula_workspace::Git;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::session::Session;
use crate::term::{DIM, paint};

/// How often it is looked whether somebody wants an end.
const TICK: Duration = Duration::from_millis(100);

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Internal, Exit::Environment, error.to_string())
}

/// Counts how often an end was asked for.
fn ends() -> Result<Arc<AtomicUsize>, Failure> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(|error| internal(&error))?;
    std::thread::spawn(move || {
        for _ in &mut signals {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok(asked)
}

/// Looks after a repository until somebody ends it. Tells how the last look ended.
pub(super) fn watch(
    git: &Git,
    repository: &Path,
    interval: Duration,
    session: &Session,
) -> Result<Exit, Failure> {
    let asked = ends()?;
    let text = format!(
        "watching {}, a new commit is looked at within {} s; Ctrl-C ends it",
        repository.display(),
        interval.as_secs_f32()
    );
    session.screen.note(&paint(DIM, text));
    let mut last: Option<(String, Exit)> = None;
    loop {
        let head = head(git, repository)?;
        let looked = last
            .as_ref()
            .filter(|(commit, exit)| *commit == head && !worth_another_look(*exit));
        if looked.is_none() {
            let exit = look(&asked)?;
            last = Some((head, exit));
        }
        let until = Instant::now() + interval;
        while Instant::now() < until && asked.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(TICK.min(interval));
        }
        if asked.load(Ordering::SeqCst) > 0 {
            session.screen.note(&paint(DIM, "no longer watching"));
            return Ok(last.map_or(Exit::Inconclusive, |(_, exit)| exit));
        }
    }
}

/// Whether the same commit may do otherwise the next time: a limit passes, a machine is mended.
const fn worth_another_look(exit: Exit) -> bool {
    matches!(exit, Exit::Budget | Exit::Environment)
}

fn head(git: &Git, repository: &Path) -> Result<String, Failure> {
    let arguments = ["rev-parse", "--verify", "HEAD^{commit}"];
    let head = git.run(repository, &arguments)?;
    Ok(head.trim().to_owned())
}

/// One look in a process of its own. An end is passed on to it, as often as it is asked for.
fn look(asked: &AtomicUsize) -> Result<Exit, Failure> {
    let program = std::env::current_exe().map_err(|error| internal(&error))?;
    // Everything this process was asked, but to watch.
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.filter(|argument| argument != "--watch");
    let mut child = Command::new(program)
        .args(arguments)
        .arg("--watched")
        .stdin(Stdio::null())
        // Ctrl-C is for this process, which passes it on once.
        .process_group(0)
        .spawn()
        .map_err(|error| internal(&error))?;
    let mut passed_on = 0;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| internal(&error))? {
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

fn exit_of(status: Option<i32>) -> Exit {
    let known = [
        Exit::Verified,
        Exit::Failed,
        Exit::Usage,
        Exit::WaitingForApproval,
        Exit::Budget,
        Exit::Inconclusive,
    ];
    let is = |exit: &Exit| status == Some(i32::from(exit.status()));
    // One that was killed says nothing of the repository: the next look is another try.
    known.into_iter().find(is).unwrap_or(Exit::Environment)
}
