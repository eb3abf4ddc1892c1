//! The program in another process: begun, interrupted, killed, waited for.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::env::{LulaEnv, Ran};

/// Begins a command whose output is not read.
pub(crate) fn begin(world: &LulaEnv, line: &[&str]) -> Child {
    world
        .command(line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Begins a command whose words are read when it has ended.
pub(crate) fn begin_heard(world: &LulaEnv, line: &[&str]) -> Child {
    world
        .command(line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
}

/// What a command said and how it ended.
pub(crate) fn ended(child: Child) -> Ran {
    Ran::from(child.wait_with_output().unwrap())
}

/// Kills a process as a power cut would. Whether there was one to kill: it may have ended by itself.
#[must_use]
pub(crate) fn strike(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    let alive = state.is_some_and(|state| state != 'Z');
    let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) else {
        return false;
    };
    alive && rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok()
}

/// Kills a child and waits for it. Whether the kill is what ended it.
#[must_use]
pub(crate) fn kill_child(child: &mut Child) -> bool {
    let _ = child.kill();
    child.wait().unwrap().signal() == Some(SIGKILL)
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_mins(3);
    while !is_so() {
        assert!(Instant::now() < patience, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether somewhere on this machine a `sleep` of exactly so many seconds runs.
pub(crate) fn is_asleep(seconds: u32) -> bool {
    let wanted = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.filter_map(Result::ok).any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).ends_with(&wanted)
    })
}

/// A small generator: the same number gives the same sequence.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The runners of a driver that do the work: those that do not keep another one running.
pub(crate) fn runners_of(world: &LulaEnv) -> Vec<u32> {
    let kept = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !String::from_utf8_lossy(&line).contains("--supervised")
    };
    processes_of(world).into_iter().filter(kept).collect()
}

/// The signal that ends a process at once.
const SIGKILL: i32 = 9;

/// So many blows to one run.
pub(crate) const BLOWS: u64 = 3;

/// What blows to a run came to.
pub(crate) struct Struck<'a> {
    /// How the run is gone on with.
    pub(crate) next: Vec<&'a str>,
    /// How many events the run had after each blow.
    pub(crate) moments: Vec<u64>,
    /// How many processes were killed, rather than found dead.
    pub(crate) kills: u64,
}

/// How many events the log of the last run holds.
pub(crate) fn events(world: &LulaEnv) -> u64 {
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    runs[0]["events"].as_u64().unwrap_or(0)
}

/// Begins a run and goes on with it, and each time kills its driver, its runner, or both, a random moment
/// after its log has grown to a random length. By its log and not by the clock: a run that was left alone
/// takes longer than one that is struck where the machine was busier then, and a blow by the clock would
/// come after the end.
pub(crate) fn blows<'a>(
    world: &LulaEnv,
    line: &[&'a str],
    (dice, whole): (&mut Dice, u64),
    after_each: impl Fn(),
) -> Struck<'a> {
    let mut next = line.to_vec();
    let mut moments = Vec::new();
    let mut kills = 0;
    for _ in 0..BLOWS {
        let before = events(world);
        let at = before + dice.roll(whole.saturating_sub(before).max(1));
        let mut driver = begin(world, &next);
        while driver.try_wait().unwrap().is_none() && events(world) < at {}
        std::thread::sleep(Duration::from_micros(dice.roll(50_000)));
        let whom = dice.roll(3);
        if whom != 0 {
            let struck = runners_of(world).into_iter().filter(|pid| strike(*pid));
            kills += struck.count() as u64;
        }
        // A driver whose runner died goes on with another.
        if whom == 1 {
            driver.wait().unwrap();
        } else {
            kills += u64::from(kill_child(&mut driver));
        }
        let struck = events(world);
        moments.push(struck);
        after_each();
        if struck > 0 {
            next = vec!["resume", "last"];
        }
    }
    Struck {
        next,
        moments,
        kills,
    }
}

/// Processes of this world, by their command lines.
pub(crate) fn processes_of(world: &LulaEnv) -> Vec<u32> {
    let home = world.home().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(&home) && line.contains("runner") {
            found.push(pid);
        }
    }
    found
}

/// Waits until the log of the last run says something.
pub(crate) fn until(world: &LulaEnv, what: impl Fn(&[Value]) -> bool) {
    let patience = Instant::now() + Duration::from_mins(2);
    loop {
        let logs = logs(world);
        if what(&logs) {
            return;
        }
        assert!(Instant::now() < patience, "{logs:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What happened in the last run, as far as there is one.
pub(crate) fn logs(world: &LulaEnv) -> Vec<Value> {
    let ran = world.run(&["logs", "last", "--json"]);
    if ran.status != 0 {
        return Vec::new();
    }
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
