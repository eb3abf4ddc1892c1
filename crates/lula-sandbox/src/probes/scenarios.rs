//! Attacks that take more than one act: floods, trees that outlive their command, neighbours.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use lula_protocol::IsolationTier;
use lula_protocol::receipt::CommandEnding;

use super::attack::{TierAttack, output_within};
use super::probe::{
    AttackBodyResult, AttackFamily, AttackObservation, AttackOutcome, AttackResult,
};
use super::scene::AttackScene;
use super::stage::AttackStage;
use super::{ARGUMENT, act, parse};
use crate::{HostToolchains, Sandbox, SandboxCommand, SandboxEngine, SandboxError};

/// `PR_SET_PTRACER` and its `PR_SET_PTRACER_ANY`.
const SET_PTRACER: u64 = 0x5961_6d61;
const ANY_PROCESS: u64 = u64::MAX;

pub(super) struct AttackScenario {
    pub(super) name: &'static str,
    pub(super) family: AttackFamily,
    pub(super) attempts: &'static str,
    pub(super) tiers: &'static [IsolationTier],
    expected: &'static str,
    /// Held with what was seen, or not.
    play: fn(&TierAttack<'_>, &AttackStage) -> Result<ScenarioEnding, String>,
}

enum ScenarioEnding {
    Held(String),
    Broken(String),
}

impl AttackScenario {
    pub(super) fn judge(&self, attack: &TierAttack<'_>, stage: &AttackStage) -> AttackResult {
        let (outcome, observed) = match (self.play)(attack, stage) {
            Ok(ScenarioEnding::Held(seen)) => (AttackOutcome::Held, seen),
            Ok(ScenarioEnding::Broken(seen)) => (AttackOutcome::Broken, seen),
            Err(error) => (AttackOutcome::Error, error),
        };
        AttackResult {
            name: self.name.to_owned(),
            family: self.family,
            outcome,
            expected: self.expected.to_owned(),
            observed,
        }
    }
}

const BOTH: &[IsolationTier] = &[IsolationTier::Namespace, IsolationTier::Landlock];

pub(super) const ALL: &[AttackScenario] = &[
    AttackScenario {
        name: "outlive_timeout",
        family: AttackFamily::Resources,
        attempts: "outlive the command's timeout by setsid and a double fork",
        tiers: BOTH,
        expected: "timed out and silent",
        play: outlive_timeout,
    },
    AttackScenario {
        name: "outlive_session",
        family: AttackFamily::Resources,
        attempts: "outlive the sandbox itself",
        tiers: BOTH,
        expected: "silent",
        play: outlive_session,
    },
    AttackScenario {
        name: "outlive_runner",
        family: AttackFamily::Resources,
        attempts: "outlive a runner that is killed",
        tiers: BOTH,
        expected: "silent",
        play: outlive_runner,
    },
    AttackScenario {
        name: "flood",
        family: AttackFamily::Resources,
        attempts: "fill the runner's memory with output",
        tiers: BOTH,
        expected: "kept within the limit, the rest counted",
        play: flood,
    },
    AttackScenario {
        name: "inbound",
        family: AttackFamily::Network,
        attempts: "be reached from the host on a port inside",
        tiers: &[IsolationTier::Namespace],
        expected: "refused",
        play: inbound,
    },
    AttackScenario {
        name: "neighbour",
        family: AttackFamily::Network,
        attempts: "reach a service in a neighbouring sandbox",
        tiers: &[IsolationTier::Namespace],
        expected: "refused",
        play: neighbour,
    },
    AttackScenario {
        name: "floor",
        family: AttackFamily::Honesty,
        attempts: "be run in a weaker tier than the policy demands",
        tiers: BOTH,
        expected: "refused",
        play: floor,
    },
];

/// Small parts that other processes play.
pub(super) fn part(name: &str, scene: &AttackScene) -> Option<AttackBodyResult> {
    match name {
        "runner" => Some(runner(scene)),
        "heart" => Some(start_heart(scene)),
        "heart-parent" => Some(leave_heart(scene)),
        "heart-itself" => Some(beat(scene)),
        "pour" => Some(pour(scene)),
        "landlock-layers" => {
            Some(super::honesty::free_landlock_layers().map(|free| free.to_string()))
        }
        // Waits until its maker lets go of its standard input.
        "victim" => {
            // Yama lets no process look into another that does not ask for it.
            let _ = act::call("prctl", &[SET_PTRACER, ANY_PROCESS, 0, 0, 0]);
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            Some(Ok(String::new()))
        }
        // Serves one port, tells which, and waits.
        "listen" => {
            let served = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            Some(
                served
                    .and_then(|listener| listener.local_addr().map(|at| (listener, at)))
                    .map_or_else(
                        |error| Err(AttackObservation::from(error)),
                        |(_listener, at)| {
                            super::report(Ok(at.port().to_string()));
                            std::thread::sleep(Duration::from_secs(20));
                            Ok(String::new())
                        },
                    ),
            )
        }
        port => port
            .strip_prefix("connect-")
            .and_then(|port| port.parse::<u16>().ok())
            .map(|port| {
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(AttackObservation::from)?;
                Ok(String::new())
            }),
    }
}

/// What starts a process that outlives its maker and writes a heartbeat to this file in the workspace; it
/// goes on for so long itself.
fn heart(stage: &AttackScene, file: &Path, lasting: Duration) -> AttackScene {
    let scene = stage.clone().with("target", file.display());
    scene.with("for", lasting.as_millis())
}

/// The maker: a process of a session of its own is left behind, whose parent goes at once.
fn start_heart(scene: &AttackScene) -> AttackBodyResult {
    let detached = |part: &str| {
        std::process::Command::new(std::env::current_exe()?)
            .args([ARGUMENT, "help", part])
            .args(scene.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    };
    let mut between = detached("heart-parent")?;
    between.wait()?;
    std::thread::sleep(scene.duration());
    Ok(String::new())
}

fn leave_heart(scene: &AttackScene) -> AttackBodyResult {
    rustix::process::setsid()?;
    std::process::Command::new(std::env::current_exe()?)
        .args([ARGUMENT, "help", "heart-itself"])
        .args(scene.arguments())
        .spawn()?;
    Ok(String::new())
}

fn beat(scene: &AttackScene) -> AttackBodyResult {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(scene.target())?;
    std::fs::write(
        scene.target().with_extension("pid"),
        std::process::id().to_string(),
    )?;
    loop {
        file.write_all(b"x")?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes that many bytes to standard output, or as many as are taken.
fn pour(scene: &AttackScene) -> AttackBodyResult {
    let block = vec![b'y'; 64 * 1024];
    let mut output = std::io::stdout().lock();
    let mut left = scene.amount();
    while left > 0 {
        let part = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        output.write_all(&block[..part])?;
        left -= part as u64;
    }
    output.flush()?;
    std::process::exit(0)
}

fn beats(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |meta| meta.len())
}

fn begins(file: &Path) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while beats(file) == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    beats(file) > 0
}

fn still_beating(file: &Path) -> bool {
    let before = beats(file);
    std::thread::sleep(Duration::from_millis(400));
    beats(file) > before
}

/// Outside, the heart goes on after the process that started it has ended.
fn heart_outlives_outside(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<(), String> {
    let file = stage.outside().workspace().join("heart");
    let _ = std::fs::remove_file(&file);
    let mut maker = std::process::Command::new(attack.program());
    maker
        .args([ARGUMENT, "help", "heart"])
        .args(heart(&stage.outside(), &file, Duration::ZERO).arguments());
    output_within(&mut maker, Duration::from_secs(5)).map_err(|error| error.to_string())?;
    let outlived = begins(&file) && still_beating(&file);
    let pid = std::fs::read_to_string(file.with_extension("pid")).unwrap_or_default();
    if let Some(pid) = pid
        .trim()
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    if outlived {
        Ok(())
    } else {
        Err("control: the heart does not outlive its maker".to_owned())
    }
}

/// The command that starts a heart inside.
fn maker(
    attack: &TierAttack<'_>,
    stage: &AttackStage,
    file: &Path,
    lasting: Duration,
) -> SandboxCommand {
    let scene = heart(&stage.inside(), file, lasting);
    attack
        .attacker("help", "heart")
        .arguments(scene.arguments())
}

fn outlive_timeout(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<ScenarioEnding, String> {
    heart_outlives_outside(attack, stage)?;
    let session = attack.open(stage).map_err(|error| error.to_string())?;
    let file = stage.workspace().join("heart-timeout");
    let command = maker(attack, stage, &file, Duration::from_secs(30));
    // A slow machine takes longer to make it beat at all.
    let mut patience = Duration::from_millis(700);
    let finished = loop {
        let finished = session
            .run(&command.clone().timeout(patience))
            .map_err(|error| error.to_string())?;
        if beats(&file) > 0 {
            break finished;
        }
        patience *= 3;
        if patience > Duration::from_secs(20) {
            return Err("the heart never beat".to_owned());
        }
    };
    let alive = still_beating(&file);
    Ok(match finished.receipt.ended {
        CommandEnding::TimedOut if !alive => {
            ScenarioEnding::Held("timed out and silent".to_owned())
        }
        ended => ScenarioEnding::Broken(format!("{ended:?}, still beating: {alive}")),
    })
}

fn outlive_session(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<ScenarioEnding, String> {
    heart_outlives_outside(attack, stage)?;
    let session = attack.open(stage).map_err(|error| error.to_string())?;
    let file = stage.workspace().join("heart-session");
    let command = maker(attack, stage, &file, Duration::from_millis(300));
    session
        .run(&command.timeout(Duration::from_secs(30)))
        .map_err(|error| error.to_string())?;
    if !begins(&file) {
        return Err("the heart never beat".to_owned());
    }
    session.close().map_err(|error| error.to_string())?;
    Ok(if still_beating(&file) {
        ScenarioEnding::Broken("still beating".to_owned())
    } else {
        ScenarioEnding::Held("silent".to_owned())
    })
}

/// A runner with one sandbox in which a heart beats. It waits to be killed.
fn runner(scene: &AttackScene) -> AttackBodyResult {
    let failed = |error: &dyn std::fmt::Display| AttackObservation::Ended(error.to_string());
    let engine = SandboxEngine::start().map_err(|error| failed(&error))?;
    let program = std::env::current_exe()?;
    let attack = TierAttack::new(&engine, program, scene.tier());
    let policy = attack.policy().map_err(|error| failed(&error))?;
    let sandbox = Sandbox::new(policy, scene.workspace())
        .tier(scene.tier())
        .toolchains(HostToolchains::none());
    let session = engine.open(&sandbox).map_err(|error| failed(&error))?;
    let heart = heart(scene, &scene.target(), Duration::from_secs(30));
    let command = attack
        .attacker("help", "heart")
        .arguments(heart.arguments());
    session.run(&command).map_err(|error| failed(&error))?;
    Ok(String::new())
}

fn outlive_runner(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<ScenarioEnding, String> {
    heart_outlives_outside(attack, stage)?;
    let file = stage.workspace().join("heart-runner");
    let scene = stage
        .inside()
        .with("tier", attack.tier)
        .with("target", file.display());
    let mut runner = std::process::Command::new(attack.program())
        .args([ARGUMENT, "help", "runner"])
        .args(scene.arguments())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let began = begins(&file);
    let _ = runner.kill();
    let _ = runner.wait();
    if !began {
        return Err("the heart never beat".to_owned());
    }
    // The news travels from the runner to its helper and from there to the sandbox.
    let deadline = Instant::now() + Duration::from_secs(2);
    while still_beating(&file) {
        if Instant::now() > deadline {
            return Ok(ScenarioEnding::Broken("still beating".to_owned()));
        }
    }
    Ok(ScenarioEnding::Held("silent".to_owned()))
}

fn flood(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<ScenarioEnding, String> {
    let policy = attack.policy().map_err(|error| error.to_string())?;
    let limit = policy.limits.output.bytes();
    let wanted = limit * 4;
    let scene = stage.inside().with("amount", wanted);
    let poured = std::process::Command::new(attack.program())
        .args([ARGUMENT, "help", "pour"])
        .args(scene.arguments())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let counted = poured.stdout.len() as u64;
    if counted != wanted {
        return Err(format!("control: the flood has {counted} bytes"));
    }
    let session = attack.open(stage).map_err(|error| error.to_string())?;
    let command = attack.attacker("help", "pour").arguments(scene.arguments());
    let finished = session
        .run(&command.timeout(Duration::from_secs(10)))
        .map_err(|error| error.to_string())?;
    let (kept, total) = (
        finished.stdout.bytes().len() as u64,
        finished.stdout.total(),
    );
    // The mark between head and tail is ours.
    Ok(if kept <= limit + 4096 && total == wanted {
        ScenarioEnding::Held(format!("kept {kept} of {total} bytes"))
    } else {
        ScenarioEnding::Broken(format!("kept {kept} of {total} bytes"))
    })
}

/// Starts a service in a sandbox of its own and proves it by reaching it from the same sandbox.
fn serve(attack: &TierAttack<'_>, session: &crate::SandboxSession) -> Result<u16, String> {
    let process = session
        .start_in_background(&attack.attacker("help", "listen").streamed())
        .map_err(|error| error.to_string())?;
    let next = process
        .next_output_within(Duration::from_secs(5))
        .map_err(|error| error.to_string())?;
    let output = match next {
        crate::NextOutput::Output(output) => output,
        crate::NextOutput::NothingYet => return Err("the service said nothing in time".to_owned()),
        crate::NextOutput::End => return Err("the service ended".to_owned()),
    };
    let said = String::from_utf8_lossy(&output.bytes).into_owned();
    let Some(AttackObservation::Done(port)) = parse(&said) else {
        return Err(format!("the service said {said:?}"));
    };
    let port = port
        .parse()
        .map_err(|_| format!("the service said {said:?}"))?;
    match visit(attack, session, port)? {
        AttackObservation::Done(_) => Ok(port),
        other => Err(format!(
            "control: the service is not reached from its own sandbox: {other}"
        )),
    }
}

fn visit(
    attack: &TierAttack<'_>,
    session: &crate::SandboxSession,
    port: u16,
) -> Result<AttackObservation, String> {
    let finished = session
        .run(
            &attack
                .attacker("help", &format!("connect-{port}"))
                .timeout(Duration::from_secs(5)),
        )
        .map_err(|error| error.to_string())?;
    parse(&finished.stdout.text()).ok_or_else(|| "the visitor said nothing".to_owned())
}

fn refused(seen: &AttackObservation) -> ScenarioEnding {
    match seen {
        AttackObservation::Errno(libc::ECONNREFUSED) => ScenarioEnding::Held("refused".to_owned()),
        other => ScenarioEnding::Broken(other.to_string()),
    }
}

fn inbound(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<ScenarioEnding, String> {
    let session = attack.open(stage).map_err(|error| error.to_string())?;
    let port = serve(attack, &session)?;
    let mut visitor = std::process::Command::new(attack.program());
    visitor.args([ARGUMENT, "help", &format!("connect-{port}")]);
    let said =
        output_within(&mut visitor, Duration::from_secs(5)).map_err(|error| error.to_string())?;
    parse(&said)
        .map(|seen| refused(&seen))
        .ok_or_else(|| "the visitor said nothing".to_owned())
}

fn neighbour(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<ScenarioEnding, String> {
    let session = attack.open(stage).map_err(|error| error.to_string())?;
    let port = serve(attack, &session)?;
    let other = attack.open(stage).map_err(|error| error.to_string())?;
    Ok(refused(&visit(attack, &other, port)?))
}

fn floor(attack: &TierAttack<'_>, stage: &AttackStage) -> Result<ScenarioEnding, String> {
    let mut policy = attack.policy().map_err(|error| error.to_string())?;
    policy.min_tier = IsolationTier::Microvm;
    let sandbox = Sandbox::new(policy, stage.workspace()).tier(attack.tier);
    Ok(match attack.engine.open(&sandbox) {
        Err(SandboxError::FloorNotMet { .. }) => ScenarioEnding::Held("refused".to_owned()),
        Err(error) => return Err(error.to_string()),
        Ok(session) => ScenarioEnding::Broken(format!("opened in {}", session.tier())),
    })
}
