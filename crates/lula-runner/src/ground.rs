//! Where the repairer and the tests of a change work: private forks of a project, each in a
//! sandbox of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lula_protocol::Receipt;
use lula_protocol::receipt::Ended;
use lula_repair::{Command, Fork, Ground, GroundError, Ran};
use lula_sandbox::policy::{AbsolutePath, Policy};
use lula_sandbox::{Engine, Sandbox, SandboxError};
use lula_workspace::Project;

use crate::halt::Halt;

/// A project, an engine and the policy for everything that runs.
#[derive(Debug)]
pub struct SandboxedGround {
    project: Project,
    engine: Engine,
    policy: Policy,
    last: Arc<Mutex<Option<Receipt>>>,
    stop: Arc<Halt>,
}

impl SandboxedGround {
    /// Refuses at once where no sandbox meets the policy.
    pub fn new(project: Project, policy: Policy) -> Result<Self, SandboxError> {
        Self::on(Engine::start()?, project, policy)
    }

    /// The same on an engine that runs already.
    pub fn on(engine: Engine, project: Project, mut policy: Policy) -> Result<Self, SandboxError> {
        // Forks link to installed dependencies instead of copying them.
        let shown = project.dependencies();
        let shown = shown
            .iter()
            .filter_map(|path| path.to_str()?.parse::<AbsolutePath>().ok());
        policy.paths.read.extend(shown);
        engine.open(&Sandbox::new(policy.clone(), project.root()).read_only_workspace())?;
        Ok(Self {
            project,
            engine,
            policy,
            last: Arc::default(),
            stop: Arc::default(),
        })
    }

    /// Whatever runs ends, and nothing more is begun, once this is set.
    #[must_use]
    pub fn stopping(mut self, stop: Arc<Halt>) -> Self {
        self.stop = stop;
        self
    }

    /// The receipt of the command that ended last.
    pub fn last_receipt(&self) -> Option<Receipt> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Ground for SandboxedGround {
    fn fork(&self) -> Result<Box<dyn Fork>, GroundError> {
        going_on(&self.stop)?;
        let fork = self
            .project
            .fork()
            .map_err(|error| GroundError::new("forking the project", error))?;
        Ok(Box::new(SandboxedFork {
            session: None,
            engine: self.engine.clone(),
            policy: self.policy.clone(),
            last: Arc::clone(&self.last),
            stop: Arc::clone(&self.stop),
            fork,
        }))
    }
}

struct SandboxedFork {
    /// Before the fork: the sandbox must end before its directory goes.
    session: Option<lula_sandbox::Session>,
    engine: Engine,
    policy: Policy,
    last: Arc<Mutex<Option<Receipt>>>,
    stop: Arc<Halt>,
    fork: lula_workspace::Fork,
}

fn going_on(stop: &Halt) -> Result<(), GroundError> {
    if stop.is_set() {
        return Err(GroundError::new("going on", "nobody waits for it any more"));
    }
    Ok(())
}

impl SandboxedFork {
    fn session(&mut self) -> Result<&lula_sandbox::Session, GroundError> {
        if self.session.is_none() {
            let sandbox = Sandbox::new(self.policy.clone(), self.fork.path());
            let opened = self.engine.open(&sandbox);
            self.session =
                Some(opened.map_err(|error| GroundError::new("opening a sandbox", error))?);
        }
        self.session
            .as_ref()
            .ok_or_else(|| GroundError::new("opening a sandbox", "it is gone"))
    }
}

impl Fork for SandboxedFork {
    fn files(&self) -> Result<Vec<String>, GroundError> {
        self.fork
            .files()
            .map_err(|error| GroundError::new("listing the fork", error))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, GroundError> {
        self.fork
            .read(path)
            .map_err(|error| GroundError::new(format!("reading {path}"), error))
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), GroundError> {
        let written = self.fork.write(path, bytes);
        written.map_err(|error| GroundError::new(format!("writing {path}"), error))
    }

    fn remove(&mut self, path: &str) -> Result<(), GroundError> {
        self.fork
            .remove(path)
            .map_err(|error| GroundError::new(format!("removing {path}"), error))
    }

    fn root(&self) -> String {
        self.fork.path().display().to_string()
    }

    fn run(&mut self, command: &Command) -> Result<Ran, GroundError> {
        going_on(&self.stop)?;
        let (program, arguments) = command
            .argv
            .split_first()
            .ok_or_else(|| GroundError::new("running a command", "it is empty"))?;
        let mut inside = lula_sandbox::Command::new(program)
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
            .map_err(|error| GroundError::new(format!("running {program}"), error))?;
        // Killed halfway it says nothing of the project.
        going_on(&stop)?;
        let ended = &finished.receipt.ended;
        let ran = Ran {
            stdout: finished.stdout.bytes(),
            stderr: finished.stderr.bytes(),
            exit: match ended {
                Ended::Exited { status } => Some(i32::from(*status)),
                _ => None,
            },
            timed_out: *ended == Ended::TimedOut,
            took: begun.elapsed(),
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished.receipt);
        Ok(ran)
    }
}
