//! Running every probe against a tier.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use lula_protocol::IsolationTier;
use lula_protocol::receipt::CommandEnding;

use super::probe::{
    AttackExpectation, AttackFamily, AttackObservation, AttackOutcome, AttackProbe, AttackReport,
    AttackResult, KILLED, KILLED_BY_FILTER,
};
use super::stage::AttackStage;
use super::{ARGUMENT, parse, probes, scenarios};
#[cfg(feature = "test-switches")]
use crate::policy::LayerName;
use crate::policy::{ByteSize, Profile, SandboxPolicy};
use crate::tiers::OWN_PROC;
use crate::{Sandbox, SandboxCommand, SandboxEngine, SandboxError, SandboxSession};

/// The signal by which a seccomp filter kills.
const SIGSYS: u8 = 31;

/// No attempt takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why an attack could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum TierAttackError {
    /// The stage could not be set.
    #[error(
        "cannot set the stage for the attack: {0}; check that the temporary directory, /dev/shm and /dev/pts are usable"
    )]
    Stage(#[from] std::io::Error),
    /// There is no sandbox to attack.
    #[error("there is no sandbox to attack: {0}")]
    Sandbox(#[from] SandboxError),
    /// A tier these probes are not written for.
    #[error("the probes attack the tiers namespace and landlock, not {0}")]
    Tier(IsolationTier),
    /// The program's own path cannot be shown inside.
    #[error("the path of this program, {0:?}, cannot be shown in a sandbox: use one of plain text")]
    Program(PathBuf),
}

/// Name, kind and purpose of every probe.
pub fn catalogue() -> Vec<(&'static str, AttackFamily, &'static str)> {
    let acts = probes().map(|probe| (probe.name, probe.family, probe.attempts));
    let scenes = scenarios::ALL
        .iter()
        .map(|one| (one.name, one.family, one.attempts));
    acts.chain(scenes).collect()
}

/// An attack on one tier.
pub struct TierAttack<'a> {
    pub(super) engine: &'a SandboxEngine,
    program: PathBuf,
    pub(super) tier: IsolationTier,
    only: Option<BTreeSet<String>>,
    #[cfg(feature = "test-switches")]
    without: Vec<LayerName>,
    #[cfg(feature = "test-switches")]
    newest_landlock: u32,
}

impl<'a> TierAttack<'a> {
    /// An attack through that engine. The program is the attacker: it must call
    /// [`crate::helper_main_if_asked`] first thing.
    pub fn new(
        engine: &'a SandboxEngine,
        program: impl Into<PathBuf>,
        tier: IsolationTier,
    ) -> Self {
        Self {
            engine,
            program: program.into(),
            tier,
            only: None,
            #[cfg(feature = "test-switches")]
            without: Vec::new(),
            #[cfg(feature = "test-switches")]
            newest_landlock: u32::MAX,
        }
    }

    /// Runs only the probes of these names.
    #[must_use]
    pub fn only<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.only = Some(names.into_iter().map(str::to_owned).collect());
        self
    }

    fn includes(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(name))
    }

    /// Attacks a sandbox that lacks a layer, to show that some probe depends on it.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub fn without(mut self, layer: LayerName) -> Self {
        self.without.push(layer);
        self
    }

    /// Attacks a sandbox on a kernel whose Landlock is older.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub const fn newest_landlock(mut self, abi: u32) -> Self {
        self.newest_landlock = abi;
        self
    }

    /// Runs every probe that applies to the tier.
    pub fn run(&self) -> Result<AttackReport, TierAttackError> {
        if !matches!(
            self.tier,
            IsolationTier::Namespace | IsolationTier::Landlock
        ) {
            return Err(TierAttackError::Tier(self.tier));
        }
        let stage = AttackStage::set(&self.program)?;
        let session = self.open(&stage)?;
        let own_proc = !session.not_applied().any(|one| one.asked == OWN_PROC);
        let mut verdicts = Vec::new();
        for probe in probes().filter(|probe| self.includes(probe.name)) {
            let Some(expected) = probe.expected(self.tier, own_proc) else {
                continue;
            };
            verdicts.push(match unlimited(probe, expected, &session) {
                Some(unlimited) => unlimited,
                None => self.judge(probe, expected, &stage, &session)?,
            });
        }
        for scenario in scenarios::ALL {
            if scenario.tiers.contains(&self.tier) && self.includes(scenario.name) {
                verdicts.push(scenario.judge(self, &stage));
            }
        }
        Ok(AttackReport {
            tier: self.tier,
            probes: verdicts,
        })
    }

    /// What the attacked sandbox may use: little, so that limits are met soon.
    pub(super) fn policy(&self) -> Result<SandboxPolicy, TierAttackError> {
        let unusable = || TierAttackError::Program(self.program.clone());
        let mut policy = Profile::Strict.policy();
        let program = self.program.to_str().ok_or_else(unusable)?;
        policy
            .paths
            .read
            .insert(program.parse().map_err(|_| unusable())?);
        policy.limits.disk = ByteSize::mib(64);
        // As the tier is here: what it lacks of a floor, the receipt says, and the probes find out.
        policy.min_tier = self.tier.min(IsolationTier::Landlock);
        // Every layer is asked for; whether it is there is what the probes find out.
        policy.required_layers.clear();
        Ok(policy)
    }

    pub(super) fn open(&self, stage: &AttackStage) -> Result<SandboxSession, TierAttackError> {
        let sandbox = Sandbox::new(self.policy()?, stage.workspace())
            .tier(self.tier)
            .toolchains(crate::HostToolchains::none());
        #[cfg(feature = "test-switches")]
        let sandbox = self
            .without
            .iter()
            .fold(sandbox, |sandbox, layer| sandbox.without(*layer))
            .newest_landlock(self.newest_landlock);
        Ok(self.engine.open(&sandbox)?)
    }

    fn judge(
        &self,
        probe: &AttackProbe,
        expected: AttackExpectation,
        stage: &AttackStage,
        session: &SandboxSession,
    ) -> Result<AttackResult, TierAttackError> {
        stage.renew_targets()?;
        let control = self.outside(probe, stage);
        // Who may not do it outside either, or has a kernel without it, cannot do it inside.
        let refused = match control {
            AttackObservation::Errno(libc::EPERM | libc::EACCES) => probe.privileged,
            AttackObservation::Errno(libc::ENOSYS) => true,
            _ => false,
        };
        // Below the filter of a container engine, or on a machine without a network, some things are seen
        // outside as they are inside.
        let same_outside = expected.met_by(&control)
            || (expected == AttackExpectation::Killed
                && matches!(control, AttackObservation::Ended(_)));
        let as_wanted = probe.outside.met_by(&control);
        let moot = !as_wanted && (refused || same_outside || stage.refuses(probe, &control));
        let controlled = moot || as_wanted;

        let own_session;
        let session = if probe.destructive {
            own_session = self.open(stage)?;
            &own_session
        } else {
            session
        };
        let seen = self.inside(probe, stage, session);
        let (outcome, observed) = match seen {
            Err(error) => (AttackOutcome::Error, error),
            Ok(_) if !controlled => {
                let wanted = probe.outside;
                (
                    AttackOutcome::Error,
                    format!("control: expected {wanted} outside, saw {control}"),
                )
            }
            Ok(_) if !stage.is_untouched() => (
                AttackOutcome::Broken,
                "something outside was changed".to_owned(),
            ),
            // What outside came to the same end proves nothing about the sandbox.
            Ok(seen) if moot && seen == control => (
                AttackOutcome::Untried,
                format!("cannot be tried here: outside it comes to {control} as well"),
            ),
            Ok(seen) if stage.refused_first(&seen) => (
                AttackOutcome::Untried,
                format!("cannot be tried here: {seen}, from further out (outside: {control})"),
            ),
            // The sandbox refused it by itself, in its own way.
            Ok(seen) if expected.met_by(&seen) && moot => {
                (AttackOutcome::Held, format!("{seen} (outside: {control})"))
            }
            Ok(seen) if expected.met_by(&seen) => (AttackOutcome::Held, seen.to_string()),
            Ok(seen) => (AttackOutcome::Broken, seen.to_string()),
        };
        Ok(AttackResult {
            name: probe.name.to_owned(),
            family: probe.family,
            outcome,
            expected: expected.to_string(),
            observed,
        })
    }

    /// The attempt, made inside the sandbox.
    fn inside(
        &self,
        probe: &AttackProbe,
        stage: &AttackStage,
        session: &SandboxSession,
    ) -> Result<AttackObservation, String> {
        let names: Vec<_> = session
            .layers()
            .into_iter()
            .find_map(variables)
            .unwrap_or_default();
        let scene = stage.inside().with("variables", names.join(","));
        let command = self
            .attacker("inside", probe.name)
            .arguments(scene.arguments());
        let finished = session
            .run(&command.timeout(PATIENCE))
            .map_err(|error| error.to_string())?;
        match (&finished.receipt.ended, parse(&finished.stdout.text())) {
            (CommandEnding::Exited { status: 0 }, Some(seen)) => Ok(seen),
            (CommandEnding::Signalled { signal: 9 } | CommandEnding::LimitReached { .. }, _) => {
                Ok(AttackObservation::Ended(KILLED.to_owned()))
            }
            (CommandEnding::Signalled { signal: SIGSYS }, _) => {
                Ok(AttackObservation::Ended(KILLED_BY_FILTER.to_owned()))
            }
            (ended, _) => Err(format!("the attempt ended without a word: {ended:?}")),
        }
    }

    pub(super) fn attacker(&self, side: &str, name: &str) -> SandboxCommand {
        SandboxCommand::new(&self.program).arguments([ARGUMENT, side, name])
    }

    /// The positive control: the same act outside, which must work there.
    fn outside(&self, probe: &AttackProbe, stage: &AttackStage) -> AttackObservation {
        let mut command = std::process::Command::new(&self.program);
        command
            .args([ARGUMENT, "outside", probe.name])
            .args(stage.outside().arguments())
            .env("LULA_ATTACK_SECRET", &stage.token)
            .env("LD_LIBRARY_PATH", "/nonexistent")
            .current_dir(stage.workspace());
        match output_within(&mut command, PATIENCE) {
            Ok(text) => {
                parse(&text).unwrap_or_else(|| AttackObservation::Ended("no answer".to_owned()))
            }
            Err(error) => AttackObservation::Ended(error.to_string()),
        }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }
}

/// The verdict on a probe of a limit that, as the receipt says, is not in force here.
fn unlimited(
    probe: &AttackProbe,
    expected: AttackExpectation,
    session: &SandboxSession,
) -> Option<AttackResult> {
    let limit = probe.limit?;
    let missing = session
        .not_applied()
        .find(|one| one.asked.starts_with(&format!("{limit} limit ")))?;
    Some(AttackResult {
        name: probe.name.to_owned(),
        family: probe.family,
        outcome: AttackOutcome::Unlimited,
        expected: expected.to_string(),
        observed: format!("{}: {}", missing.asked, missing.reason),
    })
}

/// The names the sandbox says it set.
fn variables(layer: lula_protocol::ProtectionLayer) -> Option<Vec<String>> {
    match layer {
        lula_protocol::ProtectionLayer::CleanEnvironment { names } => Some(names),
        _ => None,
    }
}

/// Runs a program to its end, or kills it. Its output is one short line.
pub(super) fn output_within(
    command: &mut std::process::Command,
    patience: Duration,
) -> std::io::Result<String> {
    use std::io::Read;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    let deadline = Instant::now() + patience;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut text = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut text)?;
    }
    Ok(text)
}
