//! One group for one sandbox, in every hierarchy that carries something.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lula_protocol::receipt::UnappliedProtection;
use rustix::process::{Pid, Signal};

use super::backend::CgroupBase;
use super::dir::CgroupDirectory;
use super::layout::{CgroupController, CgroupVersion};
use super::limits::{agrees, close_swap, keyed, number, read, setting};
use super::{CgroupError, CgroupLimitEvents, CgroupLimits, CgroupUsage};

/// How long processes may take to die or to stand still.
const PATIENCE: Duration = Duration::from_secs(5);

/// Memory of an earlier sandbox that a group may still be charged with when it is used again: what
/// the kernel itself keeps for a while.
const NEXT_TO_NOTHING: u64 = 1 << 20;

/// One group. Dropping it kills what is in it and removes it if that is quick;
/// [`CgroupLeaf::remove`] waits, and says if it could not.
#[derive(Debug)]
pub struct CgroupLeaf {
    name: String,
    groups: Vec<Group>,
    /// Whether its limits were set, as far as they can be.
    limited: bool,
    not_applied: Vec<UnappliedProtection>,
    /// Whether the whole group was killed once.
    killed: AtomicBool,
}

#[derive(Debug)]
struct Group {
    version: CgroupVersion,
    controllers: BTreeSet<CgroupController>,
    base: Arc<CgroupDirectory>,
    dir: CgroupDirectory,
}

impl CgroupLeaf {
    pub(super) fn make(bases: &[CgroupBase], name: &str) -> Result<Self, CgroupError> {
        let mut leaf = Self {
            name: name.to_owned(),
            groups: Vec::new(),
            limited: false,
            not_applied: Vec::new(),
            killed: AtomicBool::new(false),
        };
        for base in bases {
            let dir = base.home.make(name)?;
            let (controllers, base_dir) = (base.controllers.clone(), Arc::clone(&base.home));
            leaf.groups.push(Group {
                version: base.version,
                controllers,
                base: base_dir,
                dir,
            });
        }
        Ok(leaf)
    }

    /// Sets the limits, unless that was done.
    pub(super) fn limit_to(&mut self, limits: &CgroupLimits, absent: impl Fn() -> String) {
        if std::mem::replace(&mut self.limited, true) {
            return;
        }
        for controller in [
            CgroupController::Memory,
            CgroupController::Cpu,
            CgroupController::Pids,
        ] {
            self.limit(controller, limits, &absent);
        }
    }

    /// Sets a limit and believes only what reads back.
    fn limit(
        &mut self,
        controller: CgroupController,
        limits: &CgroupLimits,
        absent: &impl Fn() -> String,
    ) {
        let carrier = self
            .groups
            .iter()
            .find(|group| group.controllers.contains(&controller));
        let version = carrier.map_or(CgroupVersion::V2, |group| group.version);
        let Some(setting) = setting(version, controller, limits) else {
            return;
        };
        let failure = match carrier {
            None => Some(absent()),
            Some(group) => group.set(controller, &setting.files, setting.asked).err(),
        };
        if failure.is_none()
            && controller == CgroupController::Memory
            && let Some(group) = carrier
            && let Some((file, value)) = close_swap(version, limits)
            && group.dir.has(file)
            && let Err(error) = group.dir.write(file, &value)
        {
            let asked = "no swap beyond the memory limit".to_owned();
            self.not_applied.push(UnappliedProtection {
                asked,
                reason: error.to_string(),
            });
        }
        self.not_applied
            .extend(failure.map(|reason| UnappliedProtection {
                asked: format!("{} limit {}", setting.name, setting.asked),
                reason,
            }));
    }

    /// What was asked for and is not in force.
    pub fn not_applied(&self) -> &[UnappliedProtection] {
        &self.not_applied
    }

    /// The v2 directory for `CLONE_INTO_CGROUP`, where there is one.
    pub fn v2_dir_fd(&self) -> Option<BorrowedFd<'_>> {
        self.unified().map(|group| group.dir.as_fd())
    }

    /// Puts a process into every hierarchy of the group.
    pub fn attach(&self, pid: Pid) -> Result<(), CgroupError> {
        self.groups.iter().try_for_each(|group| group.attach(pid))
    }

    /// Puts a process that was cloned into [`CgroupLeaf::v2_dir_fd`] into the other hierarchies. Nothing
    /// to do, and no cost, on a pure v2 machine.
    pub fn attach_rest(&self, pid: Pid) -> Result<(), CgroupError> {
        let rest = self
            .groups
            .iter()
            .filter(|group| group.version == CgroupVersion::V1);
        rest.into_iter().try_for_each(|group| group.attach(pid))
    }

    /// The files of the v1 hierarchies through which a process joins by itself: it writes `0` to
    /// each while it has one thread. That takes no lock, where [`CgroupLeaf::attach_rest`] waits for one
    /// of the whole machine. Empty on a pure v2 machine.
    pub fn join_files(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        let rest = self
            .groups
            .iter()
            .filter(|group| group.version == CgroupVersion::V1);
        rest.map(|group| group.dir.open_to_write_often("tasks"))
            .collect()
    }

    /// The limits as the kernel reports them now.
    pub fn read_back(&self) -> Result<CgroupLimits, CgroupError> {
        let limit = |controller| match self.carrier(controller) {
            Some(group) => read(&group.dir, group.version, controller),
            None => Ok(None),
        };
        Ok(CgroupLimits {
            memory_bytes: limit(CgroupController::Memory)?,
            cpu_millicores: limit(CgroupController::Cpu)?,
            pids: limit(CgroupController::Pids)?,
        })
    }

    /// What the tree used so far.
    pub fn usage(&self) -> CgroupUsage {
        let text =
            |group: Option<&Group>, file| group.and_then(|group| group.dir.read_often(file).ok());
        let unified = text(self.unified(), "cpu.stat").and_then(|stat| keyed(&stat, "usage_usec"));
        let nanoseconds = || {
            text(
                self.carrier(CgroupController::CpuAccounting),
                "cpuacct.usage",
            )
        };
        let memory = self.carrier(CgroupController::Memory);
        let peak = match memory.map(|group| group.version) {
            Some(CgroupVersion::V1) => text(memory, "memory.max_usage_in_bytes"),
            _ => text(memory, "memory.peak"),
        };
        CgroupUsage {
            cpu_us: unified.or_else(|| Some(number(&nanoseconds()?)? / 1_000)),
            peak_memory_bytes: peak.and_then(|text| number(&text)),
        }
    }

    /// How many processes and threads are in the group, those included that have ended and were not
    /// buried. `None` where nothing counts them.
    pub fn members(&self) -> Option<u64> {
        let counter = self.carrier(CgroupController::Pids)?;
        number(&counter.dir.read_often("pids.current").ok()?)
    }

    /// How often limits were met.
    pub fn events(&self) -> CgroupLimitEvents {
        let count = |controller, v1, v2, key| {
            let group = self.carrier(controller)?;
            let file = if group.version == CgroupVersion::V1 {
                v1
            } else {
                v2
            };
            keyed(&group.dir.read_often(file).ok()?, key)
        };
        let memory = CgroupController::Memory;
        CgroupLimitEvents {
            oom_kills: count(memory, "memory.oom_control", "memory.events", "oom_kill")
                .unwrap_or(0),
            pids_refused: count(CgroupController::Pids, "pids.events", "pids.events", "max")
                .unwrap_or(0),
        }
    }

    /// Kills every process in the group, those being born included.
    pub fn kill(&self) -> Result<(), CgroupError> {
        self.killed.store(true, Ordering::Relaxed);
        match self.unified().or_else(|| self.groups.first()) {
            Some(group) => kill(&group.dir, group.version),
            None => Err(absent("kill")),
        }
    }

    /// Stops every process in the group, and waits until they stand still.
    pub fn freeze(&self) -> Result<(), CgroupError> {
        self.set_frozen(true)
    }

    /// Lets a frozen group run.
    pub fn thaw(&self) -> Result<(), CgroupError> {
        self.set_frozen(false)
    }

    fn set_frozen(&self, frozen: bool) -> Result<(), CgroupError> {
        let act = if frozen { "freeze" } else { "thaw" };
        if let Some(group) = self.unified() {
            let value = if frozen { "1" } else { "0" };
            group.dir.write("cgroup.freeze", value)?;
            wait(act, &group.dir, || {
                let events = group.dir.read("cgroup.events")?;
                Ok(keyed(&events, "frozen") == Some(u64::from(frozen)))
            })
        } else if let Some(group) = self.carrier(CgroupController::Freezer) {
            let state = if frozen { "FROZEN" } else { "THAWED" };
            group.dir.write("freezer.state", state)?;
            wait(act, &group.dir, || {
                Ok(group.dir.read("freezer.state")?.trim() == state)
            })
        } else {
            Err(absent(act))
        }
    }

    /// Makes a used group as good as new, or gives it back to be removed. As good as new means that
    /// nothing lives in it, that its limits are what they were, and that its record of memory begins
    /// anew, with next to nothing of the last sandbox's in it.
    pub(crate) fn renew(self) -> Result<Self, Self> {
        if self.is_renewed().unwrap_or(false) {
            Ok(self)
        } else {
            Err(self)
        }
    }

    fn is_renewed(&self) -> Result<bool, CgroupError> {
        // Some kernels kill what is born into a group that was killed before.
        if self.killed.load(Ordering::Relaxed) {
            return Ok(false);
        }
        for group in &self.groups {
            if !group.dir.read("cgroup.procs")?.is_empty() {
                return Ok(false);
            }
        }
        let Some(memory) = self.carrier(CgroupController::Memory) else {
            return Ok(false);
        };
        // The unified hierarchy cannot begin its record anew for everybody who reads it.
        if memory.version == CgroupVersion::V2 {
            return Ok(false);
        }
        let record = "memory.max_usage_in_bytes";
        memory.dir.write(record, "0")?;
        let left = number(&memory.dir.read(record)?);
        Ok(left.is_some_and(|left| left <= NEXT_TO_NOTHING))
    }

    /// Kills what is left in the group and removes it.
    pub fn remove(mut self) -> Result<(), CgroupError> {
        let mut groups = std::mem::take(&mut self.groups).into_iter();
        groups.try_for_each(|group| remove_tree(&group.base, &self.name, group.version))
    }

    /// Has the helper remove the group: `to` gets its name and the directories it is in, and says
    /// whether it will.
    pub(crate) fn hand_over(mut self, to: impl FnOnce(&str, &[BorrowedFd<'_>]) -> bool) -> bool {
        let homes: Vec<_> = self.groups.iter().map(|group| group.base.as_fd()).collect();
        let taken = to(&self.name, &homes);
        if taken {
            self.groups.clear();
        }
        taken
    }

    fn unified(&self) -> Option<&Group> {
        self.groups
            .iter()
            .find(|group| group.version == CgroupVersion::V2)
    }

    fn carrier(&self, controller: CgroupController) -> Option<&Group> {
        self.groups
            .iter()
            .find(|group| group.controllers.contains(&controller))
    }
}

impl Drop for CgroupLeaf {
    fn drop(&mut self) {
        if !self.groups.is_empty() {
            let _ = self.kill();
        }
        for group in &self.groups {
            let _ = group.base.remove(&self.name);
        }
    }
}

impl Group {
    fn attach(&self, pid: Pid) -> Result<(), CgroupError> {
        self.dir
            .write("cgroup.procs", &pid.as_raw_nonzero().to_string())
    }

    fn set(
        &self,
        controller: CgroupController,
        files: &[(&str, String)],
        asked: u64,
    ) -> Result<(), String> {
        for (file, value) in files {
            self.dir
                .write(file, value)
                .map_err(|error| error.to_string())?;
        }
        match read(&self.dir, self.version, controller).map_err(|error| error.to_string())? {
            reported if agrees(controller, asked, reported) => Ok(()),
            Some(reported) => Err(format!("the kernel reports {reported} instead")),
            None => Err("the kernel reports no limit".to_owned()),
        }
    }
}

fn absent(act: &'static str) -> CgroupError {
    CgroupError::Absent {
        act,
        reason: "no hierarchy carries it".to_owned(),
    }
}

/// Kills every process of a group and of the groups below it.
fn kill(dir: &CgroupDirectory, version: CgroupVersion) -> Result<(), CgroupError> {
    if version == CgroupVersion::V2 && dir.has("cgroup.kill") {
        return dir.write("cgroup.kill", "1");
    }
    // No new process while the old ones die, where the hierarchy can say so.
    let _ = dir.write("pids.max", "0");
    for name in dir.children()? {
        kill(&dir.child(&name)?, version)?;
    }
    wait("kill", dir, || {
        let pids = dir.read("cgroup.procs")?;
        let pids = pids
            .lines()
            .filter_map(|line| Pid::from_raw(line.trim().parse().ok()?));
        let mut empty = true;
        for pid in pids {
            empty = false;
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        Ok(empty)
    })
}

/// Kills and removes a group with everything below it. One that is gone already is fine.
pub(super) fn remove_tree(
    parent: &CgroupDirectory,
    name: &str,
    version: CgroupVersion,
) -> Result<(), CgroupError> {
    // The common case: everything in it is dead and reaped.
    if parent.remove(name).is_ok() {
        return Ok(());
    }
    let dir = match parent.child(name) {
        Ok(dir) => dir,
        Err(CgroupError::Refused { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    kill(&dir, version)?;
    for below in dir.children()? {
        remove_tree(&dir, &below, version)?;
    }
    wait("empty", &dir, || Ok(parent.remove(name).is_ok()))
}

/// Asks until the answer is yes: at once, then at growing intervals.
fn wait(
    act: &'static str,
    dir: &CgroupDirectory,
    mut done: impl FnMut() -> Result<bool, CgroupError>,
) -> Result<(), CgroupError> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_micros(20);
    loop {
        if done()? {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(CgroupError::Slow {
                act,
                group: dir.shown().to_owned(),
            });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}
