//! Finding a way to make groups on this machine, by making one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dir::CgroupDirectory;
use super::layout::{self, CgroupController, CgroupHierarchy, CgroupVersion};
use super::leaf::CgroupLeaf;
use super::{CgroupError, CgroupKind, CgroupLimits};
use crate::owner::OwnerProcess;

/// The directory below which all groups of this program live.
const HOME: &str = "lula";
/// The group this process moves to where it stands in the way of its own children.
const SELF: &str = "lula-runner";
const WANTED: [(CgroupController, &str); 3] = [
    (CgroupController::Memory, "memory"),
    (CgroupController::Pids, "pids"),
    (CgroupController::Cpu, "cpu"),
];
/// Small and odd, so that reading them back proves something.
const TRIAL: CgroupLimits = CgroupLimits {
    memory_bytes: Some(33 << 20),
    cpu_millicores: Some(130),
    pids: Some(37),
};

/// The way to make control groups on this machine.
#[derive(Debug)]
pub struct CgroupBackend {
    kind: CgroupKind,
    /// Whose groups these are; every name begins with it.
    owner: String,
    hierarchies: Vec<CgroupBase>,
    refusals: Vec<CgroupRefusal>,
}

/// Why a way does not work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupRefusal {
    pub kind: CgroupKind,
    pub reason: String,
}

/// One hierarchy that groups are made in.
#[derive(Debug)]
pub(super) struct CgroupBase {
    pub(super) version: CgroupVersion,
    pub(super) controllers: BTreeSet<CgroupController>,
    /// Holds the groups of all runners. One level is enough: a group costs twice as much with one
    /// of its own around it.
    pub(super) home: Arc<CgroupDirectory>,
}

impl CgroupBackend {
    /// Tries every way, best first: make a group, set limits, read them back.
    pub fn detect() -> Self {
        let backend = Self::find(&layout::of_this_process());
        match backend.trial() {
            Ok(()) => backend,
            Err(reason) => backend.given_up(reason),
        }
    }

    /// As [`CgroupBackend::detect`] without making a group: the maker of the first one finds out whether
    /// that works.
    pub(crate) fn find(found: &[CgroupHierarchy]) -> Self {
        let mut refusals = Vec::new();
        let unified_kind = if rustix::process::geteuid().is_root() {
            CgroupKind::V2Root
        } else {
            CgroupKind::V2Delegated
        };
        let Some(owner) = OwnerProcess::this() else {
            let reason = "/proc/self/stat and /proc/self/ns/pid cannot be read, which groups are \
                          named after";
            return Self {
                kind: CgroupKind::None,
                owner: String::new(),
                hierarchies: Vec::new(),
                refusals: vec![CgroupRefusal {
                    kind: unified_kind,
                    reason: reason.to_owned(),
                }],
            };
        };
        let unified = found.iter().find(|one| one.version == CgroupVersion::V2);
        let unified = unified
            .ok_or_else(|| "no v2 hierarchy is mounted here".to_owned())
            .and_then(|hierarchy| unified_base(hierarchy).map_err(|error| error.to_string()));
        let mut hierarchies = Vec::new();
        match unified {
            Ok(base) => hierarchies.push(base),
            Err(reason) => refusals.push(CgroupRefusal {
                kind: unified_kind,
                reason,
            }),
        }
        let mut kind = if hierarchies.is_empty() {
            CgroupKind::None
        } else {
            unified_kind
        };
        if hierarchies.iter().all(|base| base.controllers.is_empty()) {
            if !hierarchies.is_empty() {
                let reason = "the v2 hierarchy has no memory, pids or cpu controller".to_owned();
                refusals.push(CgroupRefusal {
                    kind: unified_kind,
                    reason,
                });
            }
            let split_kind = if hierarchies.is_empty() {
                CgroupKind::V1
            } else {
                CgroupKind::Hybrid
            };
            let (split, reasons) = split_bases(found, split_kind == CgroupKind::V1);
            refusals.extend(reasons.into_iter().map(|reason| CgroupRefusal {
                kind: split_kind,
                reason,
            }));
            if !split.is_empty() {
                kind = split_kind;
                hierarchies.extend(split);
            }
        }
        Self {
            kind,
            owner: owner.to_string(),
            hierarchies,
            refusals,
        }
    }

    /// No control groups, because this way turned out not to work.
    pub(crate) fn given_up(&self, reason: String) -> Self {
        let refusal = CgroupRefusal {
            kind: self.kind,
            reason,
        };
        Self {
            kind: CgroupKind::None,
            owner: self.owner.clone(),
            hierarchies: Vec::new(),
            refusals: self.refusals.iter().cloned().chain([refusal]).collect(),
        }
    }

    /// Makes a group and removes it.
    fn trial(&self) -> Result<(), String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if self.kind == CgroupKind::None {
            return Ok(());
        }
        let name = format!("trial-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let leaf = self
            .create(&name, &TRIAL)
            .map_err(|error| error.to_string())?;
        leaf.remove().map_err(|error| error.to_string())
    }

    /// Which way it is.
    pub const fn kind(&self) -> CgroupKind {
        self.kind
    }

    /// Why each better way does not work here.
    pub fn refusals(&self) -> &[CgroupRefusal] {
        &self.refusals
    }

    /// A new empty group with those limits. A limit that could not be set or did not read back is
    /// in [`CgroupLeaf::not_applied`]; with no control groups at all, every limit is.
    pub fn create(&self, name: &str, limits: &CgroupLimits) -> Result<CgroupLeaf, CgroupError> {
        let mut leaf = self.make(name)?;
        self.limit(&mut leaf, limits);
        Ok(leaf)
    }

    /// A new empty group without any limit yet.
    pub(crate) fn make(&self, name: &str) -> Result<CgroupLeaf, CgroupError> {
        let plain = name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        if !plain || name.is_empty() || name.len() > 64 {
            return Err(CgroupError::Name(name.chars().take(80).collect()));
        }
        CgroupLeaf::make(&self.hierarchies, &format!("{}.{name}", self.owner))
    }

    /// Limits a group that has no limits yet.
    pub(crate) fn limit(&self, leaf: &mut CgroupLeaf, limits: &CgroupLimits) {
        leaf.limit_to(limits, || match self.refusals.last() {
            Some(refusal) => refusal.reason.clone(),
            None => "its controller is not available".to_owned(),
        });
    }

    /// Removes the groups of runners that are certainly dead, with every process in them. Returns
    /// how many runners were swept.
    pub fn sweep(&self) -> usize {
        let mut swept = BTreeSet::new();
        for base in &self.hierarchies {
            for name in base.home.children().unwrap_or_default() {
                let owner = name.split_once('.').map_or(&*name, |(owner, _)| owner);
                let dead = OwnerProcess::from_name(owner).is_some_and(OwnerProcess::is_dead);
                if dead && super::leaf::remove_tree(&base.home, &name, base.version).is_ok() {
                    swept.insert(owner.to_owned());
                }
            }
        }
        swept.len()
    }
}

fn base(
    parent: &CgroupDirectory,
    version: CgroupVersion,
    controllers: BTreeSet<CgroupController>,
    prepare: impl Fn(&CgroupDirectory) -> Result<(), CgroupError>,
) -> Result<CgroupBase, CgroupError> {
    let home = parent.child_or_make(HOME)?;
    // It may be another user's.
    if !home.may_write(".") {
        return Err(CgroupError::Absent {
            act: "be made",
            reason: format!("{} is not writable for this user", home.shown()),
        });
    }
    prepare(&home)?;
    Ok(CgroupBase {
        version,
        controllers,
        home: Arc::new(home),
    })
}

/// The v2 base: in this process's own group, or in the nearest group above it that lets us.
fn unified_base(hierarchy: &CgroupHierarchy) -> Result<CgroupBase, CgroupError> {
    let mut candidates = path(hierarchy)?;
    let mut first_error = None;
    let mut without_controllers = None;
    while let Some(candidate) = candidates.pop() {
        match unified_base_in(&candidate) {
            Ok(base) if !base.controllers.is_empty() => return Ok(base),
            Ok(base) => without_controllers = without_controllers.or(Some(base)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    without_controllers.ok_or_else(|| {
        first_error.unwrap_or_else(|| CgroupError::Absent {
            act: "be made",
            reason: "the mount of the v2 hierarchy is empty".to_owned(),
        })
    })
}

fn unified_base_in(candidate: &CgroupDirectory) -> Result<CgroupBase, CgroupError> {
    if !candidate.may_write("cgroup.procs") {
        return Err(CgroupError::Absent {
            act: "be joined",
            reason: format!(
                "{}/cgroup.procs is not writable for this user",
                candidate.shown()
            ),
        });
    }
    let available = candidate.read("cgroup.controllers")?;
    let wanted: Vec<_> = WANTED
        .into_iter()
        .filter(|(_, name)| available.split_whitespace().any(|one| one == *name))
        .collect();
    let enable = |dir: &CgroupDirectory| {
        let on = dir.read("cgroup.subtree_control")?;
        for (_, name) in &wanted {
            if !on.split_whitespace().any(|one| one == *name) {
                dir.write("cgroup.subtree_control", &format!("+{name}"))?;
            }
        }
        Ok(())
    };
    if let Err(error) = enable(candidate) {
        // A group with processes cannot share its controllers with children. If the only process
        // is this one, it steps aside.
        let alone = candidate.read("cgroup.procs")?.trim() == std::process::id().to_string();
        if !alone {
            return Err(error);
        }
        let aside = candidate.child_or_make(SELF)?;
        aside.write("cgroup.procs", "0")?;
        enable(candidate)?;
    }
    let controllers = wanted.iter().map(|(controller, _)| *controller).collect();
    base(candidate, CgroupVersion::V2, controllers, enable)
}

/// A base in each v1 hierarchy that limits something; without v2 also in those that stop and count.
fn split_bases(found: &[CgroupHierarchy], alone: bool) -> (Vec<CgroupBase>, Vec<String>) {
    let mut bases = Vec::new();
    let mut reasons = Vec::new();
    for hierarchy in found.iter().filter(|one| one.version == CgroupVersion::V1) {
        let limits = WANTED
            .iter()
            .any(|(one, _)| hierarchy.controllers.contains(one));
        if !limits && !alone {
            continue;
        }
        let made = path(hierarchy).and_then(|mut path| match path.pop() {
            Some(own) => base(
                &own,
                CgroupVersion::V1,
                hierarchy.controllers.clone(),
                |_| Ok(()),
            ),
            None => Err(CgroupError::Name(hierarchy.mount_point.clone())),
        });
        match made {
            Ok(base) => bases.push(base),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    if bases.iter().all(|base| {
        WANTED
            .iter()
            .all(|(one, _)| !base.controllers.contains(one))
    }) {
        bases.clear();
        reasons.push("no v1 hierarchy with a memory, pids or cpu controller".to_owned());
    }
    (bases, reasons)
}

/// The directories from the mount point down to this process's own group.
fn path(hierarchy: &CgroupHierarchy) -> Result<Vec<CgroupDirectory>, CgroupError> {
    let root = CgroupDirectory::open(&hierarchy.mount_point)?;
    if !root.is_control_group() {
        return Err(CgroupError::Absent {
            act: "be made",
            reason: format!(
                "{} is not a control group filesystem",
                hierarchy.mount_point
            ),
        });
    }
    let mut path = vec![root];
    for name in &hierarchy.own {
        if let Some(last) = path.last() {
            path.push(last.child(name)?);
        }
    }
    Ok(path)
}
