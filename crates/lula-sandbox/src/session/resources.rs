//! What a sandbox holds until it is gone.

use std::sync::{Arc, Mutex, PoisonError};

use super::door::OpenDoor;
use super::private::PrivateDirectory;
use super::stock::CgroupStock;
use super::zygote::ZygoteProcess;

/// What must live as long as a sandbox.
#[derive(Debug)]
pub(crate) struct SandboxResources {
    pub(super) _zygote: Arc<ZygoteProcess>,
    pub(super) groups: CgroupStock,
    pub(super) _private: Option<PrivateDirectory>,
    /// What answers in its network, where anything does.
    pub(super) door: Mutex<Option<Arc<dyn OpenDoor>>>,
}

impl SandboxResources {
    /// What answers in its network, while it stands.
    pub(super) fn door(&self) -> Option<Arc<dyn OpenDoor>> {
        self.door
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Ends what answers in its network.
    pub(super) fn shut(&self) {
        drop(
            self.door
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

impl Drop for SandboxResources {
    /// Everything else of the sandbox was let go before: the thread that does that does not wait behind the
    /// thread this wakes.
    fn drop(&mut self) {
        self.groups.tidy();
    }
}
