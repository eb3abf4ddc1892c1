//! The helper process: which program it is, and how it knows that it is one.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::built_in::BuiltIn;
use crate::error::SandboxError;
use crate::sys::process::own_number;
use crate::sys::socket::packet_pair;
use crate::zygote;

/// What the helper is called, in place of a program name. No shell and no person starts a program
/// under this name by accident.
const NAME: &str = "lula-sandbox-zygote";

/// Asks the helper to move into namespaces of its own before the first request.
const NAMESPACES: &str = "namespaces";

/// The program that becomes the helper. It must call [`helper_main_if_asked`] first thing in its
/// `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper(PathBuf);

impl Helper {
    /// This very program.
    pub fn this_program() -> Self {
        Self(PathBuf::from("/proc/self/exe"))
    }

    /// Another program.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Starts it, with the other end of the socket returned as its standard input and nothing else
    /// of ours: no variables, no streams. The standard library does this without forking.
    pub(crate) fn start(&self, namespaces: bool) -> Result<(Child, OwnedFd), SandboxError> {
        use std::os::unix::process::CommandExt;
        let failed = |source| SandboxError::Helper {
            program: self.0.clone(),
            source,
        };
        let (ours, theirs) = packet_pair().map_err(failed)?;
        let child = Command::new(&self.0)
            .arg0(NAME)
            .args(namespaces.then_some(NAMESPACES))
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        Ok((child, ours))
    }
}

/// Becomes the sandbox helper if this process was started as one, and then never returns. Must be
/// called first thing in `main`, before any thread exists.
///
/// `built_ins` are programs that sandboxes can run without a file; see
/// [`crate::Command::built_in`].
pub fn helper_main_if_asked(built_ins: &'static [BuiltIn]) {
    crate::probes::run_body_if_asked();
    if std::env::args_os().next().is_none_or(|name| name != NAME) {
        return;
    }
    let prepare = std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == NAMESPACES);
    let served = own_number(0).and_then(|control| zygote::serve(control, prepare, built_ins));
    std::process::exit(i32::from(served.is_err()))
}
