//! Small acts that bodies are made of.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::probe::{AttackBodyResult, AttackObservation};
use crate::seccomp::SyscallAbi;
use crate::sys::attempt::attempt;

/// Makes a system call by name.
pub(super) fn call(name: &str, args: &[u64]) -> Result<u64, AttackObservation> {
    let number = SyscallAbi::native().and_then(|abi| abi.number_of(name));
    let number = number
        .ok_or_else(|| AttackObservation::Ended(format!("no call {name} on this processor")))?;
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Ok(attempt(number, all)?)
}

/// The same, when success is all there is to tell.
pub(super) fn done(name: &str, args: &[u64]) -> AttackBodyResult {
    call(name, args).map(|_| String::new())
}

/// A path for a system call. Must outlive it.
pub(super) fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// The address of a path.
pub(super) fn at(text: &CString) -> u64 {
    text.as_ptr().addr() as u64
}

/// `AT_FDCWD` as an argument.
pub(super) const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

/// Opens for reading and reads a little.
pub(super) fn read(path: impl AsRef<Path>) -> AttackBodyResult {
    use std::io::Read;
    let mut file = std::fs::File::open(path)?;
    let mut buffer = [0; 256];
    let count = file.read(&mut buffer)?;
    Ok(format!("{} bytes", count.min(1)))
}

pub(super) fn list(path: impl AsRef<Path>) -> AttackBodyResult {
    std::fs::read_dir(path)?;
    Ok(String::new())
}

/// Opens an existing file for writing and writes nothing.
pub(super) fn open_to_write(path: impl AsRef<Path>) -> AttackBodyResult {
    std::fs::OpenOptions::new().write(true).open(path)?;
    Ok(String::new())
}

/// Creates a new file where it could do harm. It never gets its name, so that an attack that
/// succeeds leaves nothing behind.
pub(super) fn plant(place: impl AsRef<Path>) -> AttackBodyResult {
    let folder = path(place.as_ref().parent().unwrap_or(Path::new("/")));
    let flags = libc::O_TMPFILE | libc::O_WRONLY | libc::O_CLOEXEC;
    done(
        "openat",
        &[HERE, at(&folder), flags.cast_unsigned().into(), 0o600],
    )
}

/// Creates a new file.
pub(super) fn create(path: impl AsRef<Path>) -> AttackBodyResult {
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?;
    Ok(String::new())
}

/// A field of `/proc/self/status`.
pub(super) fn status(field: &str) -> AttackBodyResult {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    Ok(value.unwrap_or("missing").trim().to_owned())
}

/// Works in throw-away namespaces, so that a control changes nothing on the machine.
pub(super) fn apart(namespaces: i32) -> Result<(), AttackObservation> {
    let flags = |flags: i32| u64::from(flags.unsigned_abs());
    if rustix::process::geteuid().is_root() {
        call("unshare", &[flags(namespaces)])?;
    } else {
        call("unshare", &[flags(namespaces | libc::CLONE_NEWUSER)])?;
    }
    if namespaces & libc::CLONE_NEWNS != 0 {
        let root = CString::from(c"/");
        let private = libc::MS_REC | libc::MS_PRIVATE;
        call("mount", &[0, at(&root), 0, private, 0])?;
    }
    Ok(())
}
