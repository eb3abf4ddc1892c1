//! The right to make what has a name that the caller chose. A runner whose driver was killed may still be at
//! it when the next runner begins: one of them makes it, and the other finds it made.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lula_protocol::WorkspaceId;

/// Held until it is dropped; the kernel gives it up for a process that was killed.
pub(crate) struct CreationLock {
    _file: File,
    path: PathBuf,
}

impl CreationLock {
    /// Waits for any other process that makes the same. What is there by then has to be looked for anew.
    pub(crate) fn begin(home: &Path, id: &WorkspaceId) -> io::Result<Self> {
        std::fs::create_dir_all(home)?;
        let path = home.join(id.as_str());
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)?;
        file.lock()?;
        Ok(Self { _file: file, path })
    }

    /// Takes the file away once what it was for is there: a process that waits at it finds that made.
    pub(crate) fn end(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
