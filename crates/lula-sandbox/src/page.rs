//! Reading pages of `/proc` and `/sys`: files that say nothing about their size, and that the kernel
//! writes anew for every reader.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// More than the longest page of a usual machine.
const USUAL: usize = 16 * 1024;

/// The text of a page, in as few reads as can be.
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<String> {
    read_at(rustix::fs::CWD, path)
}

/// The same of a `/proc` that is held.
pub(crate) fn read_at(proc: impl AsFd, path: impl AsRef<Path>) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let page = rustix::fs::openat(proc, path.as_ref(), flags, Mode::empty())?;
    let mut text = Vec::with_capacity(USUAL);
    while rustix::io::read(&page, rustix::buffer::spare_capacity(&mut text))? > 0 {
        text.reserve(USUAL / 2);
    }
    String::from_utf8(text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_is_read_to_its_end() {
        let whole = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert_eq!(super::read("/proc/self/mountinfo").unwrap(), whole);
        assert!(super::read("/proc/self/no-such-page").is_err());
    }
}
