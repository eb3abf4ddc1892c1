//! One directory of a control group filesystem, by handle. Every access goes through the handle;
//! the path is kept for messages only.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::CgroupError;

/// Control files are short; anything longer is not one.
const LONGEST_FILE: usize = 256 * 1024;

const OPEN_DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(super) struct CgroupDirectory {
    handle: OwnedFd,
    shown: String,
    /// Control files that every sandbox or command needs, kept open: finding one by its name costs
    /// more than reading it.
    held: Mutex<Vec<(&'static str, OwnedFd)>>,
}

impl CgroupDirectory {
    /// Opens a mount point.
    pub(super) fn open(path: &str) -> Result<Self, CgroupError> {
        let handle = rustix::fs::open(path, OPEN_DIRECTORY, Mode::empty());
        let handle = handle.map_err(|error| refused("open", path, error))?;
        Ok(Self {
            handle,
            shown: path.to_owned(),
            held: Mutex::default(),
        })
    }

    /// Opens a group directly below. Symbolic links are refused.
    pub(super) fn child(&self, name: &str) -> Result<Self, CgroupError> {
        let shown = format!("{}/{name}", self.shown);
        // One component at a time: a name with a slash could lead through a link.
        if name.contains('/') || matches!(name, "" | "." | "..") {
            return Err(CgroupError::Name(name.to_owned()));
        }
        let handle = rustix::fs::openat(&self.handle, name, OPEN_DIRECTORY, Mode::empty());
        let handle = handle.map_err(|error| refused("open", &shown, error))?;
        Ok(Self {
            handle,
            shown,
            held: Mutex::default(),
        })
    }

    /// Makes a new group directly below.
    pub(super) fn make(&self, name: &str) -> Result<Self, CgroupError> {
        let mode = Mode::from_raw_mode(0o755);
        rustix::fs::mkdirat(&self.handle, name, mode)
            .map_err(|error| refused("make the group", &format!("{}/{name}", self.shown), error))?;
        self.child(name)
    }

    /// Opens a group directly below, made now if it was not there.
    pub(super) fn child_or_make(&self, name: &str) -> Result<Self, CgroupError> {
        self.make(name).or_else(|_| self.child(name))
    }

    /// Reads a control file.
    pub(super) fn read(&self, file: &str) -> Result<String, CgroupError> {
        self.read_all(&self.open_to_read(file)?, file)
    }

    /// Reads a control file that is going to be read again: it stays open.
    pub(super) fn read_often(&self, file: &'static str) -> Result<String, CgroupError> {
        self.with_held(file, Self::open_to_read, |handle| {
            self.read_all(handle, file)
        })
    }

    /// Opens a control file for writing that is going to be opened again.
    pub(super) fn open_to_write_often(&self, file: &'static str) -> Result<OwnedFd, CgroupError> {
        self.with_held(file, Self::open_to_write, |handle| {
            rustix::io::fcntl_dupfd_cloexec(handle, 0)
                .map_err(|error| self.refused(&format!("open {file}"), error))
        })
    }

    /// Does something with a file that is open already, or opened now. No file is both read and
    /// written often.
    fn with_held<T>(
        &self,
        file: &'static str,
        open: impl FnOnce(&Self, &str) -> Result<OwnedFd, CgroupError>,
        act: impl FnOnce(&OwnedFd) -> Result<T, CgroupError>,
    ) -> Result<T, CgroupError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let known = held.iter().position(|(name, _)| *name == file);
        let place = if let Some(place) = known {
            place
        } else {
            held.push((file, open(self, file)?));
            held.len() - 1
        };
        act(&held[place].1)
    }

    fn open_to_read(&self, file: &str) -> Result<OwnedFd, CgroupError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, file, flags, Mode::empty())
            .map_err(|error| self.refused(&format!("read {file}"), error))
    }

    fn read_all(&self, handle: &OwnedFd, file: &str) -> Result<String, CgroupError> {
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        while text.len() < LONGEST_FILE {
            match rustix::io::pread(handle, &mut buffer, text.len() as u64) {
                Ok(count) => {
                    text.extend_from_slice(&buffer[..count]);
                    // The kernel gives as much as there is of these.
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(self.refused(&format!("read {file}"), error)),
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Opens a control file for writing. It must exist: making it would mean that this is no
    /// control group.
    pub(super) fn open_to_write(&self, file: &str) -> Result<OwnedFd, CgroupError> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, file, flags, Mode::empty())
            .map_err(|error| self.refused(&format!("open {file}"), error))
    }

    /// Writes a control file that exists.
    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), CgroupError> {
        let fail = |error| self.refused(&format!("write {value:?} to {file}"), error);
        let handle = self.open_to_write(file)?;
        loop {
            match rustix::io::write(&handle, value.as_bytes()) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(written) if written == value.len() => return Ok(()),
                Ok(_) => return Err(fail(rustix::io::Errno::IO)),
                Err(error) => return Err(fail(error)),
            }
        }
    }

    pub(super) fn has(&self, file: &str) -> bool {
        rustix::fs::accessat(
            &self.handle,
            file,
            rustix::fs::Access::EXISTS,
            AtFlags::empty(),
        )
        .is_ok()
    }

    pub(super) fn may_write(&self, file: &str) -> bool {
        let access = rustix::fs::Access::WRITE_OK;
        rustix::fs::accessat(&self.handle, file, access, AtFlags::EACCESS).is_ok()
    }

    /// Removes an empty group directly below.
    pub(super) fn remove(&self, name: &str) -> Result<(), CgroupError> {
        rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
            .map_err(|error| refused("remove the group", &format!("{}/{name}", self.shown), error))
    }

    /// The groups directly below.
    pub(super) fn children(&self) -> Result<Vec<String>, CgroupError> {
        let fail = |error| self.refused("list groups", error);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.handle).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name: &CStr = entry.file_name();
            let directory = entry.file_type() == rustix::fs::FileType::Directory;
            if let Ok(name) = name.to_str()
                && directory
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Whether this is a control group filesystem, by the kernel's word.
    pub(super) fn is_control_group(&self) -> bool {
        const CGROUP: u64 = 0x0027_e0eb;
        const CGROUP2: u64 = 0x6367_7270;
        rustix::fs::fstatfs(&self.handle).is_ok_and(|stat| {
            let magic = u64::try_from(stat.f_type).unwrap_or(0);
            magic == CGROUP || magic == CGROUP2
        })
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    fn refused(&self, act: &str, error: rustix::io::Errno) -> CgroupError {
        refused(act, &self.shown, error)
    }
}

impl AsFd for CgroupDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

fn refused(act: &str, group: &str, error: rustix::io::Errno) -> CgroupError {
    CgroupError::Refused {
        act: act.to_owned(),
        group: group.to_owned(),
        source: io::Error::from(error),
    }
}
