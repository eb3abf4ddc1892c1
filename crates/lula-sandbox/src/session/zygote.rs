//! A running helper, as the engine holds it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use super::link::setup_error;
use crate::blueprint::{MOST_TEMPLATES, RootPlan, SandboxBlueprint};
use crate::error::SandboxError;
use crate::helper::{EarlyHelper, HelperChild, HelperProgram};
use crate::sys::socket;
use crate::zygote::{SocketOrder, ZygoteReply, kill, remains};

#[derive(Debug)]
pub(super) struct ZygoteProcess {
    line: Mutex<Line>,
    /// Taken when it is ended.
    child: Option<HelperChild>,
}

/// A sandbox that was begun.
pub(super) struct BuiltSandbox {
    /// The pid of its first process, and what it is held by.
    pub(super) pid: u32,
    pub(super) held: OwnedFd,
    pub(super) network: BuiltNetwork,
}

/// What came of the network of a sandbox.
pub(super) struct BuiltNetwork {
    /// The number of the sandbox, which no other of its helper has.
    pub(super) sandbox: u64,
    /// Routes to its listeners, and these, where it has any.
    pub(super) routes: Vec<String>,
    pub(super) listeners: Vec<OwnedFd>,
}

/// The line to a helper, and which roots it was told about.
#[derive(Debug)]
struct Line {
    control: OwnedFd,
    announced: VecDeque<(u32, RootPlan)>,
    last: u32,
}

impl Line {
    /// The number of the template for that root, which the helper is told about where it is new. The
    /// plan is long and seldom another: sandboxes refer to it.
    fn template(&mut self, root: &RootPlan) -> Result<u32, SandboxError> {
        if let Some((number, _)) = self.announced.iter().find(|(_, known)| known == root) {
            return Ok(*number);
        }
        self.last += 1;
        socket::send(&self.control, &root.announce(self.last), &[])
            .map_err(|_| SandboxError::HelperGone)?;
        if self.announced.len() >= MOST_TEMPLATES {
            self.announced.pop_front();
        }
        self.announced.push_back((self.last, root.clone()));
        Ok(self.last)
    }
}

impl Drop for ZygoteProcess {
    fn drop(&mut self) {
        // The engine that drops this has closed every sandbox; the helper has nothing to tidy.
        let Some(child) = self.child.take() else {
            return;
        };
        child.kill();
        // The kernel takes its namespaces apart meanwhile; no thread needs to wait for that. Where no
        // thread can be had, or this process ends first, the process that adopts it buries it.
        let _ = std::thread::Builder::new()
            .name("lula-sandbox-bury".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || child.wait());
    }
}

impl ZygoteProcess {
    pub(super) fn start(helper: &HelperProgram, namespaces: bool) -> Result<Self, SandboxError> {
        let (child, control) = helper.start(namespaces)?;
        Ok(Self::of(child, control))
    }

    /// One that runs already, with namespaces.
    pub(super) fn early(helper: EarlyHelper) -> Self {
        Self::of(helper.child, helper.control)
    }

    fn of(child: HelperChild, control: OwnedFd) -> Self {
        Self {
            line: Mutex::new(Line {
                control,
                announced: VecDeque::new(),
                last: 0,
            }),
            child: Some(child),
        }
    }

    /// Has the helper prepare for sandboxes with that root, without waiting.
    pub(super) fn make_ready(&self, root: &RootPlan) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it is still there, the first sandbox finds out.
        let _ = line.template(root);
    }

    /// Has the helper remove control groups of that name from the directories given; whether it will.
    pub(super) fn remove_groups(&self, name: &str, homes: &[BorrowedFd<'_>]) -> bool {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        socket::send(&line.control, &remains::hand_over(name), homes).is_ok()
    }

    /// Has the helper kill the first process of a sandbox. If the helper is gone, so is that.
    pub(super) fn kill(&self, pid: u32) {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = socket::send(&line.control, &kill::ask_for(pid), &[]);
    }

    /// A socket in the network of a sandbox that has a door and still stands.
    pub(super) fn socket(&self, sandbox: u64, order: SocketOrder) -> io::Result<OwnedFd> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        socket::send(&line.control, &order.encode(sandbox), &[])?;
        let mut buffer = [0; 4096];
        let (length, received) = socket::receive(&line.control, &mut buffer)?;
        let answer = ZygoteReply::decode(&buffer[..length]).map_err(io::Error::other)?;
        match (answer, received.into_iter().next()) {
            (ZygoteReply::Socket, Some(socket)) => Ok(socket),
            (ZygoteReply::Failed(failure), _) if failure.errno != 0 => {
                Err(io::Error::from_raw_os_error(failure.errno.cast_signed()))
            }
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Has a sandbox begun. Without a root it sees the host's own tree.
    pub(super) fn build(
        &self,
        blueprint: &mut SandboxBlueprint,
        root: Option<&RootPlan>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<BuiltSandbox, SandboxError> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        blueprint.template = root.map_or(Ok(0), |root| line.template(root))?;
        let control = &line.control;
        socket::send(control, &blueprint.encode(), descriptors)
            .map_err(|_| SandboxError::HelperGone)?;
        let mut buffer = [0; 4096];
        let (length, received) =
            socket::receive(control, &mut buffer).map_err(|_| SandboxError::HelperGone)?;
        if length == 0 {
            return Err(SandboxError::HelperGone);
        }
        match ZygoteReply::decode(&buffer[..length])? {
            ZygoteReply::Failed(failure) => {
                Err(setup_error(failure.stage, failure.detail, failure.errno))
            }
            // It answers in order, and that was not asked for.
            ZygoteReply::Socket => Err(SandboxError::HelperGone),
            ZygoteReply::Cloned {
                pid,
                number,
                routes,
            } => {
                let mut received = received.into_iter();
                Ok(BuiltSandbox {
                    pid,
                    held: received.next().ok_or(SandboxError::HelperGone)?,
                    network: BuiltNetwork {
                        sandbox: number,
                        routes,
                        listeners: received.collect(),
                    },
                })
            }
        }
    }
}
