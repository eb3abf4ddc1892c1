//! A running helper, as the engine holds it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use super::link::setup_error;
use crate::blueprint::RootPlan;
use crate::error::SandboxError;
use crate::helper::Helper;
use crate::sys::socket;
use crate::zygote::Answer;

/// A running helper.
#[derive(Debug)]
pub(super) struct Zygote {
    control: Mutex<OwnedFd>,
    /// Taken when it is ended.
    child: Mutex<Option<Child>>,
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Whoever drops this has closed every sandbox; the helper has nothing to tidy.
        let Some(mut child) = child.take() else {
            return;
        };
        let _ = child.kill();
        // The kernel takes its namespaces apart meanwhile; nobody needs to wait for that. Where no
        // thread can be had, or this process ends first, whoever adopts it buries it.
        let _ = std::thread::Builder::new()
            .name("lula-sandbox-bury".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || child.wait());
    }
}

impl Zygote {
    pub(super) fn start(helper: &Helper, namespaces: bool) -> Result<Self, SandboxError> {
        let (child, control) = helper.start(namespaces)?;
        Ok(Self {
            control: Mutex::new(control),
            child: Mutex::new(Some(child)),
        })
    }

    /// Has the helper prepare for sandboxes with that root, without waiting.
    pub(super) fn make_ready(&self, root: &RootPlan) {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it is still there, the first sandbox finds out.
        let _ = socket::send(&*control, &root.encode_preparation(), &[]);
    }

    /// Has a sandbox begun, and does something else while the helper is at it.
    pub(super) fn build(
        &self,
        blueprint: &[u8],
        descriptors: &[BorrowedFd<'_>],
        meanwhile: impl FnOnce(),
    ) -> Result<OwnedFd, SandboxError> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        socket::send(&*control, blueprint, descriptors).map_err(|_| SandboxError::HelperGone)?;
        meanwhile();
        let mut buffer = [0; 4096];
        let (length, received) =
            socket::receive(&*control, &mut buffer).map_err(|_| SandboxError::HelperGone)?;
        if length == 0 {
            return Err(SandboxError::HelperGone);
        }
        match Answer::decode(&buffer[..length])? {
            Answer::Failed(failure) => {
                Err(setup_error(failure.stage, failure.detail, failure.errno))
            }
            Answer::Cloned { .. } => received.into_iter().next().ok_or(SandboxError::HelperGone),
        }
    }
}
