//! Drawing a sandbox: from what is asked for to a blueprint, and what the receipt will say about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lula_protocol::IsolationTier;
use lula_protocol::receipt::UnappliedProtection;

use super::disk;
use super::door::{self, DoorPlan};
use super::private::PrivateDirectory;
use super::sandbox::Sandbox;
use crate::blueprint::{RootPlan, SandboxBlueprint, WorkspacePlan};
use crate::error::SandboxError;
use crate::frames::UnavailableProtection;
use crate::mounts::{
    self, CERTIFICATES, HOME, JAVA_CERTIFICATES, SYSTEM_CERTIFICATES, SystemDirectories,
};
use crate::policy::{LayerName, Network, ResolvedLimits};
use crate::receipt::human;
use crate::seccomp::{RefusedCallReply, SeccompProgram, SeccompRules, SignalRule, WatchedCalls};

/// A blueprint and what the receipt will say about it.
pub(super) struct PlannedSandbox {
    pub(super) blueprint: SandboxBlueprint,
    /// Where it has one of its own.
    pub(super) root: Option<RootPlan>,
    pub(super) read_only: Vec<String>,
    pub(super) writable: Vec<String>,
    pub(super) not_applied: Vec<UnappliedProtection>,
    pub(super) home: String,
    /// Variables that tell tools where their caches are.
    pub(super) caches: BTreeMap<String, String>,
    pub(super) private: Option<PrivateDirectory>,
}

/// The seccomp program of a sandbox, and the rules it was made from.
pub(super) struct PlannedFilter<'a> {
    pub(super) program: &'a SeccompProgram,
    pub(super) rules: &'a SeccompRules,
}

impl PlannedSandbox {
    pub(super) fn draw(
        tier: IsolationTier,
        sandbox: &Sandbox,
        workspace: WorkspacePlan,
        granted: &ResolvedLimits,
        filter: &PlannedFilter<'_>,
        system: &SystemDirectories,
    ) -> Result<Self, SandboxError> {
        let mut blueprint = SandboxBlueprint {
            tier,
            template: 0,
            placed: Vec::new(),
            workspace,
            private: Vec::new(),
            caches: Vec::new(),
            masks: Vec::new(),
            scratch_bytes: granted.disk_bytes,
            open_files: granted.open_files,
            file_size: Some(granted.disk_bytes),
            grants: Vec::new(),
            landlock_abi: sandbox.landlock_abi(),
            program: filter.program.instructions().to_vec(),
            signal_key: match filter.rules.signals {
                SignalRule::Inside { key } => Some(key),
                SignalRule::Any => None,
            },
            listened: filter.rules.refusals == RefusedCallReply::Notify,
            watched: filter.rules.watched == WatchedCalls::ConnectionsAndPaths,
            switches: sandbox.switches(),
            door: None,
            born_in_cgroup: false,
        };
        let disk = disk_limit(sandbox, granted);
        let on_host = (sandbox.policy.network == Network::Host).then(on_host_network);
        let elsewhere = sandbox
            .copy_of
            .as_ref()
            .map(|original| UnappliedProtection {
                asked: format!("the workspace at {}", original.display()),
                reason: format!(
                    "it is a copy at {}: this sandbox has no mounts of its own",
                    blueprint.workspace.path
                ),
            });
        let place = mounts::MountedWorkspace::of(&blueprint.workspace);
        if tier == IsolationTier::Namespace {
            let plan = sandbox.surroundings(system)?.plan(place)?;
            let (mut read_only, mut writable) = (plan.read_only(), plan.writable());
            blueprint.placed = plan.placed;
            // After the workspace that they are in, and each after what it is in.
            for within in &sandbox.within {
                let placed = within.placed(&blueprint.workspace.path)?;
                let told = if placed.writable {
                    &mut writable
                } else {
                    &mut read_only
                };
                told.push(placed.bind.target.clone());
                blueprint.placed.push(placed);
            }
            blueprint.private = plan.private;
            blueprint.caches = plan.caches;
            blueprint.masks = plan.masks;
            blueprint.grants = plan.grants;
            let missing = plan.held_back.into_iter().map(not_applied);
            return Ok(Self {
                blueprint,
                root: Some(plan.root),
                read_only,
                writable,
                not_applied: missing
                    .chain([disk])
                    .chain(elsewhere)
                    .chain(on_host)
                    .collect(),
                home: HOME.to_owned(),
                caches: plan.environment,
                private: None,
            });
        }
        let private = PrivateDirectory::make()?;
        let home = private.path().to_string_lossy().into_owned();
        let (grants, held_back) =
            mounts::shared_grants(&sandbox.policy, place, sandbox.tools(), private.path())?;
        blueprint.grants = grants;
        let mut writable = vec![home.clone()];
        if place.writable {
            writable.push(blueprint.workspace.path.clone());
        }
        Ok(Self {
            blueprint,
            root: None,
            read_only: Vec::new(),
            writable,
            not_applied: held_back
                .into_iter()
                .map(not_applied)
                .chain([disk])
                .chain(elsewhere)
                .chain(on_host)
                .chain(sandbox.unguarded(tier))
                .collect(),
            home,
            caches: BTreeMap::new(),
            private: Some(private),
        })
    }
}

/// Adds a door: its ports, and its certificates at a place of their own, and in place of the system's where
/// these are one file.
pub(super) fn cut_door(
    blueprint: &mut SandboxBlueprint,
    door: &DoorPlan,
) -> Result<(), SandboxError> {
    blueprint.door = Some(door::checked(&door.ports)?);
    if let Some(file) = &door.certificates {
        let mut targets = of_system(&SYSTEM_CERTIFICATES);
        targets.insert(PathBuf::from(CERTIFICATES));
        for target in &targets {
            blueprint.placed.push(mounts::placed_file(file, target)?);
        }
    }
    if let Some(file) = &door.java_certificates {
        for target in &of_system(&JAVA_CERTIFICATES) {
            blueprint.placed.push(mounts::placed_file(file, target)?);
        }
    }
    Ok(())
}

/// The files of certificates among these that the system has and sandboxes see.
fn of_system(paths: &[&str]) -> BTreeSet<PathBuf> {
    let real = paths.iter().filter_map(|path| {
        let real = Path::new(path).canonicalize().ok()?;
        let shown = real.starts_with("/etc/ssl") || real.starts_with("/etc/pki");
        shown.then_some(real)
    });
    real.collect()
}

/// What a sandbox on the host's network does without.
fn on_host_network() -> UnappliedProtection {
    UnappliedProtection {
        asked: "a network of its own".to_owned(),
        reason: "`network = \"host\"` was asked for: commands reach every host that this machine \
                 reaches, and the machine itself"
            .to_owned(),
    }
}

fn not_applied(held: UnavailableProtection) -> UnappliedProtection {
    UnappliedProtection {
        asked: held.asked,
        reason: held.reason,
    }
}

/// What the disk limit is not: it cannot be set on one directory of an ordinary filesystem.
fn disk_limit(sandbox: &Sandbox, granted: &ResolvedLimits) -> UnappliedProtection {
    let size = human(granted.disk_bytes);
    if sandbox.is_measured() {
        return UnappliedProtection {
            asked: format!("disk limit {size} for the workspace at every moment"),
            reason: format!(
                "it is measured while commands run, every {} ms at best, and a command is ended once \
                 it is exceeded",
                disk::INTERVAL.as_millis()
            ),
        };
    }
    UnappliedProtection {
        asked: format!("disk limit {size} for the workspace as a whole"),
        reason: "the workspace is written directly; the limit holds for each file and for the \
                 private directories together"
            .to_owned(),
    }
}

/// The whole environment, built from nothing.
pub(super) fn environment(
    sandbox: &Sandbox,
    home: &str,
    caches: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let temporary = if home == HOME { "/tmp" } else { home };
    let mut variables: BTreeMap<String, String> = [
        ("HOME", home),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", "user"),
        ("SHELL", "/bin/sh"),
        ("TERM", "dumb"),
        ("TMPDIR", temporary),
        ("USER", "user"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    variables.insert("PATH".to_owned(), sandbox.tools().search_path());
    variables.extend(sandbox.tools().environment().clone());
    variables.extend(caches.clone());
    if let Some(made) = sandbox.tools().project_environment() {
        variables.extend(made.variables.clone());
    }
    if sandbox.without.contains(&LayerName::CleanEnvironment) {
        variables.extend(std::env::vars());
    }
    for (name, value) in &sandbox.policy.environment {
        variables.insert(name.as_str().to_owned(), value.clone());
    }
    variables
}
