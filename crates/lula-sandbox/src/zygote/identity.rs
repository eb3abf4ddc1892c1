//! Who sandboxes are outside, and the user namespaces they live in and that shift a workspace's owner to
//! them.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::{BuildStepContext, BuildStepFailure};
use crate::blueprint::{INSIDE_ID, SandboxBlueprint};
use crate::frames::{SetupStage, UnavailableProtection};
use crate::idmap::{self, SandboxIds};
use crate::init::OuterIdentity;
use crate::sys::process::{self, EndingProcess, NamespaceFlags};

/// How many user namespaces for id maps are kept.
const KEPT: usize = 64;

pub(crate) struct Identities {
    /// `/proc` as it was before the root changed.
    proc: OwnedFd,
    /// Where privileged: an id of its own for each sandbox.
    ids: Option<SandboxIds>,
    shifts: HashMap<(u32, (u32, u32)), OwnedFd>,
    /// User namespaces for sandboxes, by their outside id: one knows that id only and owns nothing, so
    /// the next sandbox with the id finds in it what the last one found.
    homes: HashMap<u32, OwnedFd>,
    /// Filesystems that refused an id map once, by device.
    refusing: Vec<u64>,
    /// The process the last map was made with, unless its end was seen.
    leaving: Option<EndingProcess>,
}

impl Identities {
    /// Finds out what this process may do, and takes a user namespace where it may do little.
    pub(crate) fn take_over() -> Result<Self, BuildStepFailure> {
        let proc = crate::sys::mount::hold_host(Path::new("/proc"))
            .during(SetupStage::MountNamespace, || "/proc".to_owned())?;
        let mut identities = Self {
            proc,
            ids: None,
            shifts: HashMap::new(),
            homes: HashMap::new(),
            refusing: Vec::new(),
            leaving: None,
        };
        let ids = SandboxIds::of_engine(std::process::id());
        // Root of a container's user namespace has neither that many ids nor the rights of the machine's.
        if rustix::process::geteuid().is_root()
            && ids.ends().into_iter().all(process::is_known_user)
            && process::unshare(NamespaceFlags::MOUNT).is_ok()
        {
            identities.ids = Some(ids);
            return Ok(identities);
        }
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        process::unshare(NamespaceFlags::USER)
            .during(SetupStage::UserNamespace, || format!("as user {uid}"))?;
        let map = || "its id map".to_owned();
        write(identities.proc.as_fd(), "self/setgroups", "deny")
            .during(SetupStage::UserNamespace, map)?;
        write(
            identities.proc.as_fd(),
            "self/gid_map",
            &idmap::line(0, gid),
        )
        .during(SetupStage::UserNamespace, map)?;
        write(
            identities.proc.as_fd(),
            "self/uid_map",
            &idmap::line(0, uid),
        )
        .during(SetupStage::UserNamespace, map)?;
        process::unshare(NamespaceFlags::MOUNT)
            .during(SetupStage::MountNamespace, || format!("as user {uid}"))?;
        Ok(identities)
    }

    pub(crate) const fn privileged(&self) -> bool {
        self.ids.is_some()
    }

    pub(crate) fn give_back(&mut self, id: u32) {
        if let Some(ids) = &mut self.ids {
            ids.give_back(id);
        }
    }

    /// Who the sandbox will be, and the id to give back after it.
    pub(crate) fn choose(
        &mut self,
        blueprint: &SandboxBlueprint,
        held_back: &mut Vec<UnavailableProtection>,
    ) -> Result<(OuterIdentity, Option<u32>), BuildStepFailure> {
        let Some(ids) = &mut self.ids else {
            return Ok((OuterIdentity::Own, None));
        };
        // A filesystem that cannot shift owners leaves one way to write there: as the owner.
        if let Some(stubborn) = blueprint
            .shifted()
            .find(|placed| self.refusing.contains(&placed.device))
        {
            let (uid, gid) = stubborn.owner;
            held_back.push(UnavailableProtection {
                asked: "an outside user of its own".to_owned(),
                reason: format!(
                    "the filesystem of {} cannot map ids, so the sandbox runs as its owner ({uid}), \
                     without capabilities",
                    stubborn.bind.source
                ),
            });
            return Ok((OuterIdentity::Taken { uid, gid }, None));
        }
        let id = ids.take().ok_or_else(|| BuildStepFailure {
            stage: SetupStage::Identity,
            detail: "every outside id of this engine is in use".to_owned(),
            errno: 0,
        })?;
        Ok((OuterIdentity::Taken { uid: id, gid: id }, Some(id)))
    }

    /// The `/proc` that a sandbox of that identity writes its own id map to: one that has no user namespace
    /// made for it.
    pub(crate) fn proc_for(&self, identity: OuterIdentity) -> io::Result<Option<OwnedFd>> {
        match identity {
            OuterIdentity::Own => self.proc.try_clone().map(Some),
            OuterIdentity::Taken { .. } => Ok(None),
        }
    }

    /// Makes ahead of time what a next sandbox on a directory of this very user needs before it begins.
    /// What cannot be made is missed, and reported, by that one.
    pub(crate) fn get_ready(&mut self) {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        self.for_the_next(|identities, id| {
            let _ = identities.shift(OuterIdentity::Taken { uid: id, gid: id }, (user, group));
        });
    }

    /// Makes the user namespace of a next sandbox, in the same way.
    pub(crate) fn house_the_next(&mut self) {
        self.for_the_next(|identities, id| {
            let _ = identities.home(id);
        });
    }

    fn for_the_next(&mut self, make: impl FnOnce(&mut Self, u32)) {
        if let Some(id) = self.ids.as_mut().and_then(SandboxIds::take) {
            make(self, id);
            self.give_back(id);
        }
    }

    /// Takes note that a child of this process was reaped.
    pub(crate) fn reaped(&mut self, pid: i32) {
        if let Some(leaving) = &mut self.leaving {
            leaving.reaped(pid);
        }
    }

    /// How many filesystems are known to refuse id maps.
    pub(crate) fn refusing(&self) -> usize {
        self.refusing.len()
    }

    /// Remembers that a filesystem cannot map ids.
    pub(crate) fn refuses_maps(&mut self, device: u64) {
        self.refusing.push(device);
    }

    /// A user namespace whose id map turns `owner` into `identity`.
    pub(crate) fn shift(
        &mut self,
        identity: OuterIdentity,
        owner: (u32, u32),
    ) -> io::Result<Option<BorrowedFd<'_>>> {
        let OuterIdentity::Taken { uid, gid } = identity else {
            return Ok(None);
        };
        if (uid, gid) == owner {
            return Ok(None);
        }
        let key = (uid, owner);
        if !self.shifts.contains_key(&key) {
            if self.shifts.len() >= KEPT {
                self.shifts.clear();
            }
            let made = self.make_shift(owner, (uid, gid))?;
            self.shifts.insert(key, made);
        }
        Ok(self.shifts.get(&key).map(AsFd::as_fd))
    }

    /// Whether the sandbox with that outside id does not have to wait for its user namespace.
    pub(crate) fn has_home(&self, id: u32) -> bool {
        self.homes.contains_key(&id)
    }

    /// The user namespace of the sandbox with that outside id.
    pub(crate) fn home(&mut self, id: u32) -> io::Result<OwnedFd> {
        if !self.homes.contains_key(&id) {
            if self.homes.len() >= KEPT {
                self.homes.clear();
            }
            let made = self.make_shift((INSIDE_ID, INSIDE_ID), (id, id))?;
            self.homes.insert(id, made);
        }
        self.homes[&id].try_clone()
    }

    /// A process is needed to make one; the namespace outlives it.
    fn make_shift(&mut self, from: (u32, u32), to: (u32, u32)) -> io::Result<OwnedFd> {
        let proc = self.proc.as_fd();
        let (made, leaving) = process::with_bystander(NamespaceFlags::USER, |pid| {
            write(proc, &format!("{pid}/setgroups"), "deny")?;
            write(proc, &format!("{pid}/uid_map"), &idmap::line(from.0, to.0))?;
            write(proc, &format!("{pid}/gid_map"), &idmap::line(from.1, to.1))?;
            Ok(rustix::fs::openat(
                proc,
                format!("{pid}/ns/user"),
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?)
        })?;
        self.leaving = Some(leaving);
        Ok(made)
    }
}

/// Writes a small file of `/proc` in one call, as id maps demand.
fn write(proc: BorrowedFd<'_>, path: &str, text: &str) -> io::Result<()> {
    let file = rustix::fs::openat(proc, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}
