//! A sandbox as it is asked for.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lula_protocol::Tier;

use super::disk::Measured;
use super::workspace::{Overlay, Workspace};
use crate::blueprint::{Switches, WorkspacePlan};
use crate::cgroup;
use crate::error::SandboxError;
use crate::mounts::{Surroundings, System, Toolchains};
use crate::policy::{LayerName, Policy};
use crate::receipt::Context;
use crate::seccomp::Watched;

/// A sandbox to be opened: what is allowed in it, around which workspace.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(super) policy: Policy,
    pub(super) workspace: Workspace,
    pub(super) tier: Option<Tier>,
    /// Those of this process, where the caller named no others.
    toolchains: OnceLock<Toolchains>,
    pub(super) without: Vec<LayerName>,
    pub(super) writable: bool,
    owned: bool,
    pub(super) copy_of: Option<PathBuf>,
    unflushed: bool,
    pub(super) watched: Watched,
    /// What the policy shows around the workspace, where somebody has just looked.
    seen: Option<Arc<Surroundings>>,
}

impl Sandbox {
    /// A sandbox under that policy with that directory writable. Toolchains on this process's
    /// `PATH` are shown read-only.
    pub fn new(policy: Policy, workspace: impl Into<PathBuf>) -> Self {
        Self::around(policy, Workspace::Directory(workspace.into()))
    }

    /// As [`Sandbox::new`], but what is written goes to a layer of its own: the real tree is seen at
    /// its path and never changes. [`SandboxError::OverlayNeedsNamespaces`] where the tier has no
    /// mounts of its own.
    pub fn over(policy: Policy, workspace: Overlay) -> Self {
        Self::around(policy, Workspace::Overlay(workspace))
    }

    fn around(policy: Policy, workspace: Workspace) -> Self {
        Self {
            policy,
            workspace,
            tier: None,
            toolchains: OnceLock::new(),
            without: Vec::new(),
            writable: true,
            owned: false,
            copy_of: None,
            unflushed: false,
            watched: Watched::Connections,
            seen: None,
        }
    }

    /// The same around another directory.
    #[must_use]
    pub fn on(mut self, workspace: impl Into<PathBuf>) -> Self {
        self.workspace = Workspace::Directory(workspace.into());
        self
    }

    /// The same as [`Sandbox::over`] makes it.
    #[must_use]
    pub fn laid_over(mut self, workspace: Overlay) -> Self {
        self.workspace = Workspace::Overlay(workspace);
        self
    }

    /// Says that the workspace is a copy nobody else writes to: the policy's disk limit then holds for
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
        self.watched = Watched::ConnectionsAndPaths;
        self
    }

    /// Exactly this tier, or nothing. The only way to get `process`.
    #[must_use]
    pub fn tier(mut self, tier: Tier) -> Self {
        self.tier = Some(tier);
        self
    }

    /// These toolchains instead.
    #[must_use]
    pub fn toolchains(mut self, toolchains: Toolchains) -> Self {
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

    pub(super) fn tools(&self) -> &Toolchains {
        self.toolchains.get_or_init(Toolchains::of_this_process)
    }

    /// Where the workspace is seen, and what it is made of.
    pub(super) fn plan(&self) -> Result<WorkspacePlan, SandboxError> {
        self.workspace.plan(self.writable, self.unflushed)
    }

    /// What the policy shows around the workspace.
    pub(super) fn surroundings(&self, system: &System) -> Result<Surroundings, SandboxError> {
        match &self.seen {
            Some(seen) => Ok(Surroundings::clone(seen)),
            None => Surroundings::look(&self.policy, self.tools(), system),
        }
    }

    /// Looks at that now, for the sandbox that is going to be opened.
    pub(super) fn look_around(&mut self, system: &System) -> Result<(), SandboxError> {
        let seen = Surroundings::look(&self.policy, self.tools(), system)?;
        self.seen = Some(Arc::new(seen));
        Ok(())
    }

    /// A required layer that cannot be in force, by what is known before the sandbox stands.
    pub(super) fn unpromised(&self, context: &Context) -> Option<LayerName> {
        let promised = |layer: LayerName| {
            let by_tier = match layer {
                LayerName::Namespaces | LayerName::PrivateRoot => context.tier == Tier::Namespace,
                LayerName::Cgroup => context
                    .cgroup
                    .is_some_and(|(_, limits)| limits != cgroup::Limits::default()),
                LayerName::Rlimits | LayerName::CleanEnvironment => true,
                _ => context.tier != Tier::Process,
            };
            by_tier && !self.without.contains(&layer)
        };
        let required = self.policy.required_layers.iter().copied();
        required.into_iter().find(|layer| !promised(*layer))
    }

    /// Whether the size of the workspace is measured while commands run.
    pub(super) fn is_measured(&self) -> bool {
        self.writable && (self.owned || matches!(self.workspace, Workspace::Overlay(_)))
    }

    pub(super) fn measured(&self, limit: u64) -> Result<Option<Measured>, SandboxError> {
        match &self.workspace {
            _ if !self.is_measured() => Ok(None),
            Workspace::Overlay(overlay) => Measured::whole(&overlay.upper, limit).map(Some),
            Workspace::Directory(path) => Measured::growth(path, limit).map(Some),
        }
    }

    pub(super) fn switches(&self) -> Switches {
        let on = |layer| !self.without.contains(&layer);
        Switches {
            namespaces: on(LayerName::Namespaces),
            landlock: on(LayerName::Landlock),
            seccomp: on(LayerName::Seccomp),
            no_new_privileges: on(LayerName::NoNewPrivileges),
            no_capabilities: on(LayerName::NoCapabilities),
            rlimits: on(LayerName::Rlimits),
            no_network: on(LayerName::NoNetwork),
            proc_masks: on(LayerName::PrivateRoot),
        }
    }
}
