//! Where the repairer and the tests of a change work: private forks of a project, each in a
//! sandbox of its own.
//!
//! Each fork is an upper directory of its own over the project, mounted at the project's own path
//! (`lula-workspace/src/fork/`), opened by handle and following no link, because code that ran
//! there may have left anything. A mounted overlay does not see changes made to its upper directory
//! from outside, so the sandbox around a fork ends before the fork is written to. If a sandbox has
//! no mounts of its own, a fork is a copy at another path, and the receipt says so.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lula_protocol::SandboxReceipt;
use lula_protocol::receipt::CommandEnding;
use lula_repair::{ForkCommand, ForkCommandOutput, ForkSource, ForkSourceError, ProjectFork};
use lula_sandbox::policy::{AbsolutePath, SandboxPolicy};
use lula_sandbox::{HostToolchains, OverlayWorkspace, Sandbox, SandboxEngine, SandboxError};
use lula_workspace::{ForkError, ForkableProject};

use crate::environments::EnvironmentSource;
use crate::halt::CommandStopper;
use crate::service::no_overlay;

/// A project, an engine and the policy for everything that runs.
#[derive(Debug)]
pub struct SandboxedForkSource {
    project: ForkableProject,
    engine: SandboxEngine,
    policy: SandboxPolicy,
    toolchains: HostToolchains,
    /// The folder whose toolchains those are.
    place: String,
    last: Arc<Mutex<Option<SandboxReceipt>>>,
    stop: Arc<CommandStopper>,
}

impl SandboxedForkSource {
    /// Refuses at once where no sandbox meets the policy.
    pub fn new(
        project: ForkableProject,
        policy: SandboxPolicy,
        environments: &EnvironmentSource,
    ) -> Result<Self, SandboxError> {
        Self::on(SandboxEngine::start()?, project, policy, environments)
    }

    /// The same on an engine that runs already.
    pub fn on(
        engine: SandboxEngine,
        project: ForkableProject,
        policy: SandboxPolicy,
        environments: &EnvironmentSource,
    ) -> Result<Self, SandboxError> {
        let shown = project.shown();
        let toolchains = if project.is_in_layers() {
            environments
                .toolchains(project.root(), shown, shown)
                .map_err(|error| SandboxError::Path {
                    path: shown.to_owned(),
                    source: std::io::Error::other(error),
                })?
        } else {
            HostToolchains::for_project(shown, shown)
        };
        let mut ground = Self {
            toolchains,
            place: String::new(),
            project,
            engine,
            policy,
            last: Arc::default(),
            stop: Arc::default(),
        };
        if ground.project.is_in_layers() {
            match ground.try_layers() {
                Ok(()) => return Ok(ground),
                // Where the kernel or the tier has no overlay, and only there, copies serve.
                Err(error) if no_overlay(&error) => {
                    ground.project.in_copies();
                    // An environment is shown by layers alone.
                    let shown = ground.project.shown();
                    ground.toolchains = HostToolchains::for_project(shown, shown);
                }
                Err(error) => return Err(error),
            }
        }
        // Copies link to installed dependencies instead of holding them.
        let shown = ground.project.dependencies();
        let shown = shown
            .iter()
            .filter_map(|path| path.to_str()?.parse::<AbsolutePath>().ok());
        ground.policy.paths.read.extend(shown);
        let around = Sandbox::new(ground.policy.clone(), ground.project.root());
        ground.engine.open(&around.read_only_workspace())?;
        Ok(ground)
    }

    /// Opens a sandbox around a fork in layers.
    fn try_layers(&self) -> Result<(), SandboxError> {
        let unusable = |error: ForkError| SandboxError::Path {
            path: self.project.root().to_owned(),
            source: std::io::Error::other(error),
        };
        let fork = self.project.fork().map_err(unusable)?;
        let sandbox = around(self.policy.clone(), &fork, self.project.shown())
            .map_err(unusable)?
            .toolchains(self.toolchains.clone());
        self.engine.open(&sandbox).map(drop)
    }

    /// The tests are those of this folder, which may have an environment of its own.
    #[must_use]
    pub fn for_folder(mut self, folder: &str) -> Self {
        let top = self.project.shown();
        self.toolchains = in_folder(&self.toolchains, top, folder);
        folder.clone_into(&mut self.place);
        self
    }

    /// Whatever runs ends, and nothing more is begun, once this is set.
    #[must_use]
    pub fn stopping(mut self, stop: Arc<CommandStopper>) -> Self {
        self.stop = stop;
        self
    }

    /// The receipt of the command that ended last.
    pub fn last_receipt(&self) -> Option<SandboxReceipt> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ForkSource for SandboxedForkSource {
    fn fork(&self) -> Result<Box<dyn ProjectFork>, ForkSourceError> {
        going_on(&self.stop)?;
        let fork = self
            .project
            .fork()
            .map_err(|error| ForkSourceError::new("forking the project", error))?;
        Ok(Box::new(SandboxedFork {
            session: None,
            engine: self.engine.clone(),
            policy: self.policy.clone(),
            toolchains: self.toolchains.clone(),
            place: self.place.clone(),
            last: Arc::clone(&self.last),
            stop: Arc::clone(&self.stop),
            original: self.project.shown().to_owned(),
            fork,
        }))
    }
}

struct SandboxedFork {
    /// Before the fork: the sandbox must end before its directory goes.
    session: Option<lula_sandbox::SandboxSession>,
    engine: SandboxEngine,
    policy: SandboxPolicy,
    toolchains: HostToolchains,
    /// The folder whose toolchains those are.
    place: String,
    last: Arc<Mutex<Option<SandboxReceipt>>>,
    stop: Arc<CommandStopper>,
    /// The directory that the fork stands for.
    original: PathBuf,
    fork: lula_workspace::WorkspaceFork,
}

/// The toolchains of the project in a folder: an environment that was built serves all of them.
fn in_folder(now: &HostToolchains, top: &Path, folder: &str) -> HostToolchains {
    if now.project_environment().is_some() {
        return now.clone();
    }
    HostToolchains::for_project(top, &top.join(folder))
}

/// A sandbox around a fork: at the path of the project, where forks are layers.
fn around(
    policy: SandboxPolicy,
    fork: &lula_workspace::WorkspaceFork,
    original: &Path,
) -> Result<Sandbox, ForkError> {
    Ok(match fork.layers()? {
        Some(layers) => {
            let overlay = OverlayWorkspace {
                lowers: layers.lowers,
                upper: layers.upper,
                work: layers.work,
            };
            // A fork is thrown away: nothing of it has to reach the disk.
            Sandbox::over(policy, overlay).unflushed_layer()
        }
        None => Sandbox::new(policy, fork.path()).copy_of(original),
    })
}

fn going_on(stop: &CommandStopper) -> Result<(), ForkSourceError> {
    if stop.is_set() {
        return Err(ForkSourceError::new(
            "going on",
            "no caller waits for it any more",
        ));
    }
    Ok(())
}

impl SandboxedFork {
    fn session(&mut self) -> Result<&lula_sandbox::SandboxSession, ForkSourceError> {
        if self.session.is_none() {
            let sandbox = around(self.policy.clone(), &self.fork, &self.original)
                .map_err(|error| ForkSourceError::new("preparing a sandbox", error))?;
            let opened = self
                .engine
                .open(&sandbox.toolchains(self.toolchains.clone()));
            self.session =
                Some(opened.map_err(|error| ForkSourceError::new("opening a sandbox", error))?);
        }
        self.session
            .as_ref()
            .ok_or_else(|| ForkSourceError::new("opening a sandbox", "it is gone"))
    }
}

impl SandboxedFork {
    /// Ends the sandbox around layers: a mounted overlay does not see what is changed in its upper
    /// directory from outside. The next command gets another sandbox.
    fn still(&mut self) -> Result<(), ForkSourceError> {
        if matches!(self.fork, lula_workspace::WorkspaceFork::Layered(_)) {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), ForkSourceError> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let closed = session.close();
        closed.map_err(|error| ForkSourceError::new("ending a sandbox", error))
    }

    /// Has the toolchains of the project in `folder`, which may have an environment of its own. A
    /// command that names no folder belongs to what was run last.
    fn equip(&mut self, folder: &str) -> Result<(), ForkSourceError> {
        if folder.is_empty() || folder == self.place {
            return Ok(());
        }
        let top = &self.original;
        let wanted = in_folder(&self.toolchains, top, folder);
        folder.clone_into(&mut self.place);
        // Another sandbox forgets what lay in the temporary directory of this one.
        if wanted != self.toolchains {
            self.toolchains = wanted;
            self.close()?;
        }
        Ok(())
    }
}

impl ProjectFork for SandboxedFork {
    fn files(&self) -> Result<Vec<String>, ForkSourceError> {
        self.fork
            .files()
            .map_err(|error| ForkSourceError::new("listing the fork", error))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ForkSourceError> {
        self.fork
            .read(path)
            .map_err(|error| ForkSourceError::new(format!("reading {path}"), error))
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), ForkSourceError> {
        self.still()?;
        let written = self.fork.write(path, bytes);
        written.map_err(|error| ForkSourceError::new(format!("writing {path}"), error))
    }

    fn remove(&mut self, path: &str) -> Result<(), ForkSourceError> {
        self.still()?;
        self.fork
            .remove(path)
            .map_err(|error| ForkSourceError::new(format!("removing {path}"), error))
    }

    fn root(&self) -> String {
        self.fork.path().display().to_string()
    }

    fn run(&mut self, command: &ForkCommand) -> Result<ForkCommandOutput, ForkSourceError> {
        going_on(&self.stop)?;
        let (program, arguments) = command
            .argv
            .split_first()
            .ok_or_else(|| ForkSourceError::new("running a command", "it is empty"))?;
        self.equip(&command.folder)?;
        let mut inside = lula_sandbox::SandboxCommand::new(program)
            .arguments(arguments)
            .input(command.stdin.clone())
            .timeout(command.deadline);
        if !command.folder.is_empty() {
            inside = inside.directory(self.fork.path().join(&command.folder));
        }
        for (name, value) in &command.env {
            inside = inside.variable(name, value);
        }
        let begun = Instant::now();
        let stop = Arc::clone(&self.stop);
        let finished = stop
            .run(self.session()?, &inside)
            .map_err(|error| ForkSourceError::new(format!("running {program}"), error))?;
        // Killed halfway it says nothing of the project.
        going_on(&stop)?;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(program, ms, "command in a fork done");
        let ended = &finished.receipt.ended;
        let ran = ForkCommandOutput {
            stdout: finished.stdout.bytes(),
            stderr: finished.stderr.bytes(),
            exit: match ended {
                CommandEnding::Exited { status } => Some(i32::from(*status)),
                _ => None,
            },
            timed_out: *ended == CommandEnding::TimedOut,
            took: begun.elapsed(),
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished.receipt);
        Ok(ran)
    }
}
