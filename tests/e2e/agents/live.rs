//! The plan on a terminal while agents work on it.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{TASK, builds_after, line, module, plan, project, runs, scripted};
use crate::support::{LulaEnv, Models};

/// A terminal of 80 columns: our end, and the program's.
fn terminal() -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (ours, theirs)
}

/// Two agents, one after the other.
fn script() -> lula_models::mock::MockModelServer {
    scripted(vec![
        plan(TASK, &[module("alpha", &[]), module("beta", &["alpha"])]),
        builds_after("alpha", &[runs("sleep 0.3")]),
        builds_after("beta", &[runs("sleep 0.3")]),
    ])
}

#[test]
fn on_a_terminal_each_task_has_a_line_that_changes() {
    let world = LulaEnv::new();
    project(&world);
    let server = script();
    let model = Models::strong(&server);
    let (ours, theirs) = terminal();
    let mut child = world
        .command(&line(&model, &[]))
        .env("TERM", "xterm")
        .stdout(Stdio::null())
        .stderr(theirs)
        .spawn()
        .unwrap();
    // What it writes is read while it runs, until no process has the other end any more.
    let reading = std::thread::spawn(move || {
        let mut seen = Vec::new();
        let mut ours = File::from(ours);
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = ours.read(&mut piece) {
            seen.extend_from_slice(&piece[..count]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    });
    assert!(child.wait().unwrap().success());
    let seen = reading.join().unwrap();
    let words = anstream::adapter::strip_str(&seen).to_string();
    // Each drawn more than once, over what was there before.
    for (task, state) in [
        ("alpha", "runs sleep 0.3"),
        ("beta", "waits for alpha"),
        ("alpha", "merged"),
        ("beta", "runs sleep 0.3"),
    ] {
        let drawn = words.lines().any(|line| {
            let mut cells = line.split_whitespace();
            cells.any(|cell| cell == task) && line.contains("coder") && line.contains(state)
        });
        assert!(drawn, "{task} {state}:\n{words}");
    }
    assert!(seen.contains("\u{1b}["), "nothing was drawn over");
    let told = words.lines().filter(|line| line.contains("begins as run_"));
    assert_eq!(
        told.count(),
        0,
        "what the board shows is not told beside it"
    );
}

#[test]
fn elsewhere_what_happens_is_told_line_by_line() {
    let world = LulaEnv::new();
    project(&world);
    let server = script();
    let model = Models::strong(&server);
    let ran = world.run(&line(&model, &[])).exits(0);
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    for line in [
        "scheduler       alpha begins as run_",
        "  alpha: runs sleep 0.3",
        "scheduler       alpha is merged",
        "  beta: writes beta.py",
    ] {
        assert_eq!(
            ran.stderr.matches(line).count(),
            1,
            "{line}:\n{}",
            ran.stderr
        );
    }
}
