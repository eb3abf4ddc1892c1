//! A command in its sandbox: on the directory itself, or on a layer over it.

use lula_config::keys;
use lula_protocol::IsolationTier;
use lula_sandbox::{OverlayWorkspace, SandboxError};
use lula_workspace::{LayerBackend, LayerDirectories, LayerPreference, Workspace, WorkspaceLayer};

use super::prepare::{PreparedExec, toolchains};
use super::settle::{ExecCleanup, ExecRemains, FinishedExec};
use super::{AttendedCommand, ExecAttendant, ExecError, ExecWriteMode};
use crate::workspaces;

impl PreparedExec<'_> {
    /// Runs the command where its changes are to go.
    pub(super) fn run(
        mut self,
        attendant: &dyn ExecAttendant,
        cleanup: &ExecCleanup,
    ) -> Result<FinishedExec, ExecError> {
        match self.request.write {
            ExecWriteMode::Review => return self.run_in_layer(attendant, cleanup),
            ExecWriteMode::None => self.sandbox = self.sandbox.read_only_workspace(),
            ExecWriteMode::Direct => {}
        }
        let command = self.command(&self.base, &self.base);
        let mut meanwhile = || cleanup.rehearse();
        let (ran, session) = attendant.attend(&self.engine, &self.sandbox, command, &mut meanwhile);
        let remains = ExecRemains {
            session,
            layer: None,
            workspace: None,
            git: String::new(),
        };
        Ok((ran, remains, self.engine))
    }

    /// Runs the command in a workspace of its own; in a copy where the overlay may be what is refused.
    fn run_in_layer(
        self,
        attendant: &dyn ExecAttendant,
        cleanup: &ExecCleanup,
    ) -> Result<FinishedExec, ExecError> {
        let mut workspace = self.workspace()?;
        let mut rehearse = || cleanup.rehearse();
        let ((mut ran, mut session), mut layer) =
            self.on_layer(attendant, &workspace, &mut rehearse)?;
        if let Err(ExecError::Refused(error)) = &ran
            && self.request.on.is_none()
            && may_be_the_overlay(error, &workspace)
        {
            drop((session, layer));
            workspace.fall_back_to_copy(&error.to_string())?;
            ((ran, session), layer) = self.on_layer(attendant, &workspace, &mut || ())?;
        }
        let remains = ExecRemains {
            session,
            layer: Some(layer),
            workspace: Some(workspace),
            git: self.installation.config.get(&keys::GIT_PROGRAM),
        };
        Ok((ran, remains, self.engine))
    }

    /// A new one, or the one that was named.
    fn workspace(&self) -> Result<Workspace, ExecError> {
        let store = workspaces::store(self.installation)?;
        if let Some(id) = self.request.on {
            return Ok(workspaces::open(&store, Some(id))?);
        }
        let wanted = match self.request.tier {
            Some(tier @ (IsolationTier::Landlock | IsolationTier::Process)) => {
                LayerPreference::Copy(format!("the tier `{tier}` has no overlay"))
            }
            _ => LayerPreference::Overlay,
        };
        let words = self.request.command.iter();
        let words = words.map(|word| word.to_string_lossy());
        let title = words.collect::<Vec<_>>().join(" ");
        Ok(store.create(&self.base, wanted, &title)?)
    }

    /// Runs the command on the layer of a workspace.
    fn on_layer(
        &self,
        attendant: &dyn ExecAttendant,
        workspace: &Workspace,
        rehearse: &mut dyn FnMut(),
    ) -> Result<(AttendedCommand, WorkspaceLayer), ExecError> {
        let layer = workspace.layer()?;
        let mut sandbox = self.sandbox.clone();
        // A workspace that was named may be another directory's.
        let base = workspace.record().base();
        if self.request.on.is_some() {
            sandbox = sandbox.toolchains(toolchains(
                self.request,
                attendant,
                &base,
                self.installation,
            )?);
        }
        if let Some(made) = sandbox.environment().filter(|made| !made.brings.is_empty()) {
            workspace.leave_aside(&made.brings)?;
        }
        let sandbox = match &layer.place {
            // Changes that are kept are flushed when they are known.
            LayerDirectories::Overlay { lower, upper, work } => {
                sandbox.unflushed_layer().laid_over(OverlayWorkspace {
                    lowers: vec![lower.clone()],
                    upper: upper.clone(),
                    work: work.clone(),
                })
            }
            LayerDirectories::Copy { directory } => sandbox
                .on(directory)
                .toolchains(lula_sandbox::HostToolchains::for_project(&base, &base))
                .owned_workspace(),
        };
        let command = self
            .command(&base, layer.place.shown())
            // Looking at a repository does not have to change its index.
            .variable("GIT_OPTIONAL_LOCKS", "0");
        let mut store = Some(workspaces::store(self.installation)?);
        let mut meanwhile = || {
            rehearse();
            let Some(store) = store.take() else { return };
            store.tidy_spares();
            if store.trash_is_full() {
                // Ends with this process, wherever it is: what it leaves is found by the next.
                std::thread::spawn(move || store.empty_trash());
            }
        };
        let attended = attendant.attend(&self.engine, &sandbox, command, &mut meanwhile);
        Ok((attended, layer))
    }
}

/// Whether a copy might do where this was refused.
fn may_be_the_overlay(error: &SandboxError, workspace: &Workspace) -> bool {
    let overlay = workspace.record().backend == LayerBackend::Overlay;
    overlay
        && matches!(
            error,
            SandboxError::OverlayNeedsNamespaces { .. } | SandboxError::Setup { .. }
        )
}
