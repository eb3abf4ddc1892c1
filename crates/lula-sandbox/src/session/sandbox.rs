//! A sandbox as it is asked for.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lula_protocol::receipt::UnappliedProtection;
use lula_protocol::{Digest, IsolationTier};

use super::disk::MeasuredDirectory;
use super::workspace::{DirectoryWithin, OverlayWorkspace, SessionWorkspace};
use crate::blueprint::{LayerSwitches, WorkspacePlan};
use crate::cgroup;
use crate::error::SandboxError;
use crate::landlock;
use crate::mounts::{HostToolchains, PolicySurroundings, ProjectEnvironment, SystemDirectories};
use crate::policy::{LayerName, Network, SandboxPolicy};
use crate::receipt::ReceiptContext;
use crate::seccomp::{RefusedCallReply, SeccompRules, SignalRule, TruncationRule, WatchedCalls};
use crate::sys::{refusals, signal};

/// A sandbox to be opened: what is allowed in it, around which workspace.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(super) policy: SandboxPolicy,
    pub(super) workspace: SessionWorkspace,
    pub(super) tier: Option<IsolationTier>,
    /// Those of this process, where the caller named no others.
    toolchains: OnceLock<HostToolchains>,
    pub(super) without: Vec<LayerName>,
    /// No version of Landlock after this one is used.
    newest_landlock: u32,
    pub(super) writable: bool,
    owned: bool,
    pub(super) copy_of: Option<PathBuf>,
    pub(super) within: Vec<DirectoryWithin>,
    unflushed: bool,
    pub(super) watched: WatchedCalls,
    pub(super) name: Option<String>,
    /// What the policy shows around the workspace, where the caller has just looked.
    seen: Option<Arc<PolicySurroundings>>,
}

impl Sandbox {
    /// A sandbox under that policy with that directory writable. Toolchains on this process's
    /// `PATH` are shown read-only.
    pub fn new(policy: SandboxPolicy, workspace: impl Into<PathBuf>) -> Self {
        Self::around(policy, SessionWorkspace::Directory(workspace.into()))
    }

    /// As [`Sandbox::new`], but what is written goes to a layer of its own: the real tree is seen at
    /// its path and never changes. [`SandboxError::OverlayNeedsNamespaces`] where the tier has no
    /// mounts of its own.
    pub fn over(policy: SandboxPolicy, workspace: OverlayWorkspace) -> Self {
        Self::around(policy, SessionWorkspace::Overlay(workspace))
    }

    fn around(policy: SandboxPolicy, workspace: SessionWorkspace) -> Self {
        Self {
            policy,
            workspace,
            tier: None,
            toolchains: OnceLock::new(),
            without: Vec::new(),
            newest_landlock: u32::MAX,
            writable: true,
            owned: false,
            copy_of: None,
            within: Vec::new(),
            unflushed: false,
            watched: WatchedCalls::Connections,
            name: None,
            seen: None,
        }
    }

    /// The same around another directory.
    #[must_use]
    pub fn on(mut self, workspace: impl Into<PathBuf>) -> Self {
        self.workspace = SessionWorkspace::Directory(workspace.into());
        self
    }

    /// The same as [`Sandbox::over`] makes it.
    #[must_use]
    pub fn laid_over(mut self, workspace: OverlayWorkspace) -> Self {
        self.workspace = SessionWorkspace::Overlay(workspace);
        self
    }

    /// Says that the workspace is a copy no other process writes to: the policy's disk limit then holds for
    /// what it grows by as a whole. A workspace in layers is always taken so.
    #[must_use]
    pub fn owned_workspace(mut self) -> Self {
        self.owned = true;
        self
    }

    /// Says that the workspace stands for another directory and lies elsewhere, which the receipt then
    /// tells: what knows the other path by name, installed packages and build results for instance, leads
    /// to the other directory or nowhere.
    #[must_use]
    pub fn copy_of(mut self, original: impl Into<PathBuf>) -> Self {
        self.copy_of = Some(original.into());
        self
    }

    /// Shows a directory of the host inside a workspace in layers, at a path below it where a directory
    /// is already. Nothing of it is part of the workspace's layer, and what is written there counts
    /// towards the same limit.
    #[must_use]
    pub fn showing_within(
        mut self,
        source: impl Into<PathBuf>,
        at: impl Into<PathBuf>,
        writable: bool,
    ) -> Self {
        self.within.push(DirectoryWithin {
            source: source.into(),
            at: at.into(),
            writable,
        });
        self
    }

    /// Leaves a workspace in layers unflushed: the end of the sandbox then does not wait until the whole
    /// filesystem of the layer is on disk, and a command that asks for that inside asks in vain. Who
    /// keeps the layer flushes it. The kernel marks it in its working directory (`work/incompat`) and
    /// does not mount it again before that mark is removed.
    #[must_use]
    pub fn unflushed_layer(mut self) -> Self {
        self.unflushed = true;
        self
    }

    /// Shows the workspace read-only.
    #[must_use]
    pub fn read_only_workspace(mut self) -> Self {
        self.writable = false;
        self
    }

    /// Has every path that commands open, change or start looked at, so that receipts say which of them
    /// were hidden or read-only, and what would grant them. It changes nothing of what they may do, and
    /// slows down commands that open many files.
    #[must_use]
    pub fn watch_paths(mut self) -> Self {
        self.watched = WatchedCalls::ConnectionsAndPaths;
        self
    }

    /// Tells what its caller calls it, for who answers for its network.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Exactly this tier, or nothing. The only way to get `process`.
    #[must_use]
    pub fn tier(mut self, tier: IsolationTier) -> Self {
        self.tier = Some(tier);
        self
    }

    /// Uses these toolchains instead of those found on the machine.
    #[must_use]
    pub fn toolchains(mut self, toolchains: HostToolchains) -> Self {
        self.toolchains = OnceLock::from(toolchains);
        self.seen = None;
        self
    }

    /// Leaves a layer out, to show that something depends on it. The receipt says so, and a policy
    /// that requires the layer refuses.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub fn without(mut self, layer: LayerName) -> Self {
        self.without.push(layer);
        self
    }

    /// Uses Landlock as an older kernel has it.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub const fn newest_landlock(mut self, abi: u32) -> Self {
        self.newest_landlock = abi;
        self
    }

    pub(super) fn tools(&self) -> &HostToolchains {
        self.toolchains.get_or_init(HostToolchains::of_this_process)
    }

    /// Where the workspace is seen, and what it is made of.
    pub(super) fn plan(&self) -> Result<WorkspacePlan, SandboxError> {
        let made = self.tools().project_environment();
        self.workspace.plan(self.writable, self.unflushed, made)
    }

    /// The environment of the project, where one was built.
    pub fn environment(&self) -> Option<&ProjectEnvironment> {
        self.tools().project_environment()
    }

    /// The digest of the project's environment, where the workspace shows it.
    pub(super) fn environment_digest(&self) -> Option<Digest> {
        let shown = matches!(self.workspace, SessionWorkspace::Overlay(_));
        let made = self.tools().project_environment().filter(|_| shown);
        made.and_then(|made| made.digest)
    }

    /// What the policy shows around the workspace.
    pub(super) fn surroundings(
        &self,
        system: &SystemDirectories,
    ) -> Result<PolicySurroundings, SandboxError> {
        match &self.seen {
            Some(seen) => Ok(PolicySurroundings::clone(seen)),
            None => PolicySurroundings::look(&self.policy, self.tools(), system),
        }
    }

    /// Looks at that now, for the sandbox that is going to be opened.
    pub(super) fn look_around(&mut self, system: &SystemDirectories) -> Result<(), SandboxError> {
        let seen = PolicySurroundings::look(&self.policy, self.tools(), system)?;
        self.seen = Some(Arc::new(seen));
        Ok(())
    }

    /// The version of Landlock that is used.
    pub(super) fn landlock_abi(&self) -> u32 {
        landlock::version().min(self.newest_landlock)
    }

    /// What the tier lacks on a kernel whose Landlock is too old for it and where no listener can be had.
    pub(super) fn unguarded(&self, tier: IsolationTier) -> Option<UnappliedProtection> {
        let shared = tier == IsolationTier::Landlock;
        let unguarded =
            shared && !landlock::guards_signals(self.landlock_abi()) && !refusals::can_be_heard();
        unguarded.then(|| UnappliedProtection {
            asked: "signals that stay inside".to_owned(),
            reason:
                "Landlock keeps them inside from Linux 6.12 on, and below the filter around this \
                     one nothing else can: a command can end other processes of its user"
                    .to_owned(),
        })
    }

    /// What each system call may do.
    pub(super) fn seccomp_rules(&self, tier: IsolationTier) -> SeccompRules {
        let heard = refusals::can_be_heard();
        let abi = self.landlock_abi();
        let rules = if tier == IsolationTier::Namespace {
            SeccompRules::NAMESPACE
        } else {
            SeccompRules {
                internet_sockets: self.policy.network == Network::Host,
                signals: if heard && !landlock::guards_signals(abi) {
                    SignalRule::Inside { key: signal::key() }
                } else {
                    SignalRule::Any
                },
                truncation: if landlock::guards_truncation(abi) {
                    TruncationRule::Any
                } else {
                    TruncationRule::Written
                },
                ..SeccompRules::SHARED
            }
        };
        SeccompRules {
            nested_userns: self.policy.nested_userns,
            refusals: if heard {
                RefusedCallReply::Notify
            } else {
                RefusedCallReply::Errno
            },
            watched: if heard {
                self.watched
            } else {
                WatchedCalls::Nothing
            },
            ..rules
        }
    }

    /// A required layer that cannot be in force, by what is known before the sandbox stands.
    pub(super) fn unpromised(&self, context: &ReceiptContext) -> Option<LayerName> {
        let promised = |layer: LayerName| {
            let by_tier = match layer {
                LayerName::Namespaces | LayerName::PrivateRoot => {
                    context.tier == IsolationTier::Namespace
                }
                LayerName::Cgroup => context
                    .cgroup
                    .is_some_and(|(_, limits)| limits != cgroup::CgroupLimits::default()),
                LayerName::Rlimits | LayerName::CleanEnvironment => true,
                LayerName::NoNetwork => {
                    context.tier != IsolationTier::Process && self.policy.network == Network::None
                }
                LayerName::Egress => self.policy.network == Network::Allowlist,
                _ => context.tier != IsolationTier::Process,
            };
            by_tier && !self.without.contains(&layer)
        };
        let required = self.policy.required_layers.iter().copied();
        required.into_iter().find(|layer| !promised(*layer))
    }

    /// Whether the size of the workspace is measured while commands run.
    pub(super) fn is_measured(&self) -> bool {
        self.writable && (self.owned || matches!(self.workspace, SessionWorkspace::Overlay(_)))
    }

    pub(super) fn measured(&self, limit: u64) -> Result<Option<MeasuredDirectory>, SandboxError> {
        match &self.workspace {
            _ if !self.is_measured() => Ok(None),
            SessionWorkspace::Overlay(overlay) => {
                let mut measured = MeasuredDirectory::whole(&overlay.upper, limit)?;
                for within in self.within.iter().filter(|within| within.writable) {
                    measured.count_too(&within.source)?;
                }
                let made = self.tools().project_environment();
                if let Some(home) = made
                    .filter(|made| made.being_made)
                    .and_then(|made| made.home.as_ref())
                {
                    measured.count_too(home)?;
                }
                Ok(Some(measured))
            }
            SessionWorkspace::Directory(path) => MeasuredDirectory::growth(path, limit).map(Some),
        }
    }

    pub(super) fn switches(&self) -> LayerSwitches {
        let on = |layer| !self.without.contains(&layer);
        LayerSwitches {
            namespaces: on(LayerName::Namespaces),
            landlock: on(LayerName::Landlock),
            seccomp: on(LayerName::Seccomp),
            no_new_privileges: on(LayerName::NoNewPrivileges),
            no_capabilities: on(LayerName::NoCapabilities),
            rlimits: on(LayerName::Rlimits),
            no_network: on(LayerName::NoNetwork) && self.policy.network != Network::Host,
            proc_masks: on(LayerName::PrivateRoot),
            own_proc: self.policy.min_tier >= IsolationTier::Namespace,
        }
    }
}
