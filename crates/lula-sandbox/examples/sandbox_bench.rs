//! Times our sandbox against its rivals, interleaved in one run; prints JSON.
//!
//! `cargo xtask bench sandbox` builds what this needs, starts it and draws the result. Arguments:
//! rounds, the static no-op program, the `lula` binary, sandboxes for the leak check.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a report is its purpose"
)]

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use lula_protocol::IsolationTier;
use lula_sandbox::policy::Profile;
use lula_sandbox::{
    BuiltInProgram, HostToolchains, Sandbox, SandboxCommand, SandboxEngine, SandboxProcess,
    SandboxSession,
};
use serde_json::{Map, Value, json};

const BUILT_INS: &[BuiltInProgram] = &[BuiltInProgram {
    name: "echo",
    main: echo,
}];

/// Gives back what it gets.
fn echo(_: &[String]) -> i32 {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = input.read(&mut bytes) {
        if output
            .write_all(&bytes[..count])
            .and_then(|()| output.flush())
            .is_err()
        {
            return 1;
        }
    }
    0
}

/// Before every turn: what one leaves to the kernel, such as a network to take apart, is not to slow
/// down the next.
const PAUSE: Duration = Duration::from_millis(2);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    lula_sandbox::helper_main_if_asked(BUILT_INS);
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("{what} is missing"));
    let rounds: usize = next("the number of rounds")?.parse()?;
    let noop = PathBuf::from(next("the no-op program")?).canonicalize()?;
    let lula = PathBuf::from(next("the lula binary")?).canonicalize()?;
    let soak: usize = next("the number of sandboxes for the leak check")?.parse()?;

    let ground = Ground::new(&noop)?;
    let mut contenders = contenders(&ground, &lula)?;
    // One round to warm caches and to find out who cannot run here.
    for contender in &mut contenders {
        if contender.reason.is_none()
            && let Err(error) = contender.act.go()
        {
            contender.reason = Some(error.to_string());
        }
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..rounds {
        // What ran last leaves caches warm for some and cold for others: none always follows the
        // same one.
        dice.shuffle(&mut contenders);
        for contender in contenders.iter_mut().filter(|one| one.reason.is_none()) {
            std::thread::sleep(PAUSE);
            let took = contender.act.go()?;
            contender.times.push(took);
        }
        if round % 50 == 49 {
            eprintln!("round {} of {rounds}", round + 1);
        }
    }
    let mut report: Map<String, Value> = contenders
        .iter_mut()
        .map(|one| (one.name.to_owned(), one.row()))
        .collect();
    drop(contenders);
    report.insert("idle".to_owned(), idle_memory(&ground)?);
    report.insert("leaks".to_owned(), leaks(&ground, soak)?);
    println!("{}", serde_json::to_string_pretty(&Value::Object(report))?);
    Ok(())
}

/// The same throws in every run of the benchmark.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        // Xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }
}

/// Where the sandboxes stand.
struct Ground {
    engine: SandboxEngine,
    workspace: PathBuf,
    noop: PathBuf,
    /// What `lula` keeps: the person's own stays as it is, and is as long as it may be.
    state: tempfile::TempDir,
}

impl Ground {
    fn new(noop: &Path) -> Outcome<Self> {
        let workspace = std::env::temp_dir().join(format!("lula-bench-{}", std::process::id()));
        fs::create_dir_all(&workspace)?;
        let inside = workspace.join("noop");
        fs::copy(noop, &inside)?;
        Ok(Self {
            engine: SandboxEngine::start()?,
            workspace,
            noop: inside,
            state: tempfile::tempdir()?,
        })
    }

    /// A complete sandbox: every layer of the strict profile, in the namespace tier.
    fn sandbox(&self) -> Sandbox {
        Sandbox::new(Profile::Strict.policy(), &self.workspace)
            .tier(IsolationTier::Namespace)
            .toolchains(HostToolchains::none())
    }

    fn program(&self, line: &str) -> Act<'_> {
        let words = line.split(' ').map(str::to_owned);
        Act::Program(words.collect(), self.state.path())
    }

    fn open(&self) -> Outcome<SandboxSession> {
        Ok(self.engine.open(&self.sandbox())?)
    }

    fn run(&self, session: &SandboxSession) -> Outcome<()> {
        let finished = session.run(&SandboxCommand::new(&self.noop))?;
        if finished.succeeded() {
            Ok(())
        } else {
            Err("the no-op failed".into())
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.workspace);
    }
}

struct Contender<'a> {
    name: &'static str,
    command: String,
    act: Act<'a>,
    times: Vec<Duration>,
    reason: Option<String>,
}

enum Act<'a> {
    /// A program of its own, and where it keeps what it keeps.
    Program(Vec<String>, &'a Path),
    /// A sandbox for one command, built and ended.
    Cold(&'a Ground),
    /// Run and close; opened before the clock starts.
    Warm(&'a Ground),
    /// Run in a sandbox that stands.
    InSession(&'a Ground, SandboxSession),
    /// A question to a built-in program that stays, and its answer.
    Ask(
        SandboxProcess,
        #[expect(dead_code, reason = "it lives as long as its program")] SandboxSession,
    ),
}

impl Act<'_> {
    fn go(&self) -> Outcome<Duration> {
        match self {
            Self::Program(words, state) => {
                let mut program = Program::new(&words[0]);
                program
                    .args(&words[1..])
                    .env("XDG_STATE_HOME", state)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null());
                let begun = Instant::now();
                let output = program.stderr(Stdio::piped()).spawn()?.wait_with_output()?;
                let took = begun.elapsed();
                if output.status.success() {
                    return Ok(took);
                }
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.lines().last().unwrap_or_default();
                Err(format!("{} ended with {}: {last}", words[0], output.status).into())
            }
            Self::Cold(ground) => {
                let (sandbox, command) = (ground.sandbox(), SandboxCommand::new(&ground.noop));
                let begun = Instant::now();
                let finished = ground.engine.run(&sandbox, &command)?;
                let took = begun.elapsed();
                if finished.succeeded() {
                    Ok(took)
                } else {
                    Err("the no-op failed".into())
                }
            }
            Self::Warm(ground) => {
                let session = ground.open()?;
                let begun = Instant::now();
                ground.run(&session)?;
                session.close()?;
                Ok(begun.elapsed())
            }
            Self::Ask(process, _) => {
                let question = [b'x'; 100];
                let begun = Instant::now();
                process.write_input(&question)?;
                let mut heard = 0;
                while heard < question.len() {
                    let answer = process.next_output()?.ok_or("the built-in program ended")?;
                    heard += answer.bytes.len();
                }
                Ok(begun.elapsed())
            }
            Self::InSession(ground, session) => {
                let begun = Instant::now();
                ground.run(session)?;
                Ok(begun.elapsed())
            }
        }
    }
}

impl Contender<'_> {
    fn row(&mut self) -> Value {
        if let Some(reason) = &self.reason {
            return json!({"reason": reason, "command": self.command});
        }
        self.times.sort();
        let at = |share: usize| {
            let index = (self.times.len() * share / 100).min(self.times.len() - 1);
            u64::try_from(self.times[index].as_nanos() / 100).unwrap_or(u64::MAX)
        };
        #[expect(clippy::cast_precision_loss, reason = "microseconds fit")]
        let us = |tenths: u64| tenths as f64 / 10.0;
        json!({
            "p50_us": us(at(50)),
            "p95_us": us(at(95)),
            "min_us": us(at(0)),
            "n": self.times.len(),
            "command": self.command,
        })
    }
}

fn contenders<'a>(ground: &'a Ground, lula: &Path) -> Outcome<Vec<Contender<'a>>> {
    let noop = ground
        .noop
        .to_str()
        .ok_or("the temporary directory is not text")?;
    let lula = lula.to_str().ok_or("the path of lula is not text")?;
    let inside = ground
        .workspace
        .to_str()
        .ok_or("the temporary directory is not text")?;
    let bare = "bwrap --ro-bind / / --";
    let full = "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp";
    // The workspace lies in the temporary directory, which the tmpfs would hide.
    let full_noop = format!("{full} --bind {inside} {inside} -- {noop}");
    let lines = [
        ("vfork_exec", noop.to_owned()),
        (
            "cli_exec",
            format!("{lula} exec --workspace {inside} -- /bin/true"),
        ),
        ("bwrap_minimal", format!("{bare} {noop}")),
        ("bwrap_unshare_all", full_noop),
        ("bwrap_unshare_all_true", format!("{full} -- /bin/true")),
        (
            "runsc",
            "runsc --rootless --network=none --platform=ptrace --ignore-cgroups do /bin/true"
                .to_owned(),
        ),
    ];
    let mut all: Vec<Contender<'a>> = lines
        .into_iter()
        .map(|(name, line)| Contender {
            name,
            act: ground.program(&line),
            command: line,
            times: Vec::new(),
            reason: None,
        })
        .collect();
    let talk = ground.open()?;
    let echo = talk.start(&SandboxCommand::built_in("echo").open_input().streamed())?;
    let ours = [
        (
            "built_in",
            "100 bytes to a built-in program and back",
            Act::Ask(echo, talk),
        ),
        (
            "cold",
            "a complete sandbox for the no-op",
            Act::Cold(ground),
        ),
        (
            "warm",
            "run the no-op in a sandbox opened before, close",
            Act::Warm(ground),
        ),
        (
            "session_exec",
            "run the no-op in a live session",
            Act::InSession(ground, ground.open()?),
        ),
    ];
    all.extend(ours.into_iter().map(|(name, command, act)| Contender {
        name,
        command: command.to_owned(),
        act,
        times: Vec::new(),
        reason: None,
    }));
    all.push(crun(ground));
    Ok(all)
}

/// crun wants a bundle: the host's root, read-only, and the no-op.
fn crun(ground: &Ground) -> Contender<'_> {
    let bundle = ground.workspace.join("bundle");
    let prepared = prepare_bundle(&bundle);
    let id = format!("lula-bench-{}", std::process::id());
    let line = format!("crun run --bundle {} {id}", bundle.display());
    Contender {
        name: "crun",
        act: ground.program(&line),
        command: line,
        times: Vec::new(),
        reason: prepared.err().map(|error| error.to_string()),
    }
}

fn prepare_bundle(bundle: &Path) -> Outcome<()> {
    fs::create_dir_all(bundle)?;
    let spec = Program::new("crun")
        .arg("spec")
        .current_dir(bundle)
        .output()?;
    if !spec.status.success() {
        return Err(String::from_utf8_lossy(&spec.stderr).into_owned().into());
    }
    let path = bundle.join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path)?)?;
    config["root"] = json!({"path": "/", "readonly": true});
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(["/bin/true"]);
    fs::write(&path, serde_json::to_vec(&config)?)?;
    Ok(())
}

/// What an idle sandbox holds in memory: the proportional share of its processes.
fn idle_memory(ground: &Ground) -> Outcome<Value> {
    const COUNT: usize = 20;
    let before = tree_memory_kb()?;
    let sessions = (0..COUNT)
        .map(|_| ground.open())
        .collect::<Outcome<Vec<_>>>()?;
    let after = tree_memory_kb()?;
    drop(sessions);
    Ok(json!({"sandboxes": COUNT, "kb_each": after.saturating_sub(before) / COUNT}))
}

/// Opens, uses and closes many, and counts what is left.
fn leaks(ground: &Ground, count: usize) -> Outcome<Value> {
    for _ in 0..20.min(count) {
        ground.run(&ground.open()?)?;
    }
    let before = Counts::take()?;
    let begun = Instant::now();
    for number in 0..count {
        let session = ground.open()?;
        ground.run(&session)?;
        session.close()?;
        if number % 1000 == 999 {
            eprintln!("{} of {count} sandboxes", number + 1);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = Counts::take()?;
    Ok(json!({
        "sandboxes": count,
        "seconds": seconds,
        "before": before.json(),
        "after": after.json(),
        "clean": after.is_no_more_than(&before),
    }))
}

struct Counts {
    processes: usize,
    mounts: usize,
    cgroups: usize,
    descriptors: usize,
    memory_kb: usize,
}

impl Counts {
    fn take() -> Outcome<Self> {
        // What ended is reaped in the background; give it a moment, bounded.
        std::thread::sleep(Duration::from_millis(200));
        Ok(Self {
            processes: tree()?.len(),
            mounts: fs::read_to_string("/proc/self/mountinfo")?.lines().count(),
            cgroups: cgroups(),
            descriptors: fs::read_dir("/proc/self/fd")?.count(),
            memory_kb: tree_memory_kb()?,
        })
    }

    fn json(&self) -> Value {
        json!({
            "processes": self.processes,
            "mounts": self.mounts,
            "cgroups": self.cgroups,
            "descriptors": self.descriptors,
            "memory_kb": self.memory_kb,
        })
    }

    /// Memory may breathe by a megabyte; nothing else may grow.
    fn is_no_more_than(&self, before: &Self) -> bool {
        self.processes <= before.processes
            && self.mounts <= before.mounts
            && self.cgroups <= before.cgroups
            && self.descriptors <= before.descriptors
            && self.memory_kb <= before.memory_kb + 1024
    }
}

/// Control groups below every hierarchy.
fn cgroups() -> usize {
    let text = fs::read_to_string("/proc/cgroups").unwrap_or_default();
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().nth(2)?.parse::<usize>().ok())
        .max()
        .unwrap_or(0)
}

/// This process and everything below it.
fn tree() -> Outcome<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // A process that ended between the two reads is not there any more.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if let Some(parent) = parent {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![std::process::id()];
    let mut position = 0;
    while position < found.len() {
        let parent = found[position];
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        position += 1;
    }
    Ok(found)
}

fn tree_memory_kb() -> Outcome<usize> {
    let mut total = 0;
    for pid in tree()? {
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
            continue;
        };
        let line = text.lines().find(|line| line.starts_with("Pss:"));
        total += line
            .and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok())
            .unwrap_or(0);
    }
    Ok(total)
}
