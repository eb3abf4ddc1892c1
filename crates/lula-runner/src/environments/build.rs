//! The building of an environment: the commands of a recipe, one after the other, in a sandbox over the
//! checkout. Whatever happens in between, an environment is there as a whole or not at all.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lula_env::{EnvironmentInputs, RecipeStep, TOOLS_HOME};
use lula_sandbox::policy::SandboxPolicy;
use lula_sandbox::{
    FinishedCommand, HostToolchains, NextOutput, OverlayWorkspace, ProjectEnvironment, Sandbox,
    SandboxCommand, SandboxEngine, SandboxSession,
};
use lula_workspace::{EnvironmentGround, GitProgram};

use super::error::EnvironmentError;
use super::record::{ABOVE, BELOW, EnvironmentRecord, HOME, surroundings};
use super::store::{EnvironmentStore, StoredEnvironment, clear};

/// How long the output of a command is waited for before who watches is asked again.
const TICK: Duration = Duration::from_millis(200);
/// Bytes of the end of the output that a failure tells.
const TAIL: usize = 4_000;
/// Most bytes of the log.
const LOG: u64 = 64 << 20;

/// Who watches a build.
pub trait BuildProgress {
    /// A command begins: the number of its step, of how many, and the command.
    fn step(&self, number: usize, of: usize, step: &RecipeStep, line: &str);
    /// A command printed something.
    fn output(&self, bytes: &[u8]);
    /// A command failed, and another is tried in its place.
    fn fell_back(&self, line: &str);
}

/// An environment to be built.
#[derive(Debug)]
pub struct EnvironmentBuild<'a> {
    pub store: &'a EnvironmentStore,
    /// With what answers for its network.
    pub engine: &'a SandboxEngine,
    /// The limits, and the network that the recipe needs.
    pub policy: SandboxPolicy,
    pub git: Option<&'a GitProgram>,
    pub inputs: EnvironmentInputs,
    /// What a developer's own set-up has in the place of what is built.
    pub installed: Vec<String>,
}

impl EnvironmentBuild<'_> {
    /// Builds it, unless it is there. `again` builds it in any case.
    pub fn run(
        self,
        again: bool,
        watch: &dyn BuildProgress,
    ) -> Result<StoredEnvironment, EnvironmentError> {
        self.store.open()?;
        let digest = self.inputs.digest()?;
        let lock = self.store.lock(&digest)?;
        if let Some(found) = self.store.of(&digest).filter(|_| !again) {
            return Ok(found);
        }
        let directory = self.store.begin()?;
        let built = self.build(&directory, watch);
        if built.is_err() {
            clear(&directory);
        }
        drop(lock);
        built
    }

    fn build(
        &self,
        directory: &Path,
        watch: &dyn BuildProgress,
    ) -> Result<StoredEnvironment, EnvironmentError> {
        let begun = Instant::now();
        let checkout = Path::new(&self.inputs.place);
        let part = |name: &str| directory.join(name);
        for name in [ABOVE, HOME, "work"] {
            let path = part(name);
            std::fs::create_dir(&path).map_err(EnvironmentError::io(&path))?;
            // The sandbox works on them as their owner, and that is the checkout's.
            own_like(&path, checkout)?;
        }
        let ground = EnvironmentGround::make(self.git, checkout, directory)?;
        let session = self.engine.open(&self.sandbox(directory, &ground))?;
        let mut log = BuildLog::create(&part("build.log"))?;
        let ran = self.steps(&session, checkout, &mut log, watch);
        let closed = session.close();
        if let Err(error) = ran {
            return Err(self.keep_log(error, &part("build.log")));
        }
        closed?;
        let harvest = ground.harvest(&part(ABOVE), &part(BELOW))?;
        for name in ["work", "mask"] {
            clear(&part(name));
        }
        self.forget_tools(&part(HOME));
        let record = EnvironmentRecord {
            digest: self.inputs.digest()?,
            inputs: self.inputs.clone(),
            directories: harvest.directories,
            files: harvest.files,
            changed: harvest.changed,
            installed: self.installed.clone(),
            bytes: harvest.bytes + size_of(&part(HOME)),
            made_ms: millis(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default(),
            ),
            took_ms: millis(begun.elapsed()),
        };
        self.store.finish(directory, &record)
    }

    fn sandbox(&self, directory: &Path, ground: &EnvironmentGround) -> Sandbox {
        let (path, mut variables) = surroundings(&self.inputs);
        for (name, value) in [
            ("CI", "true"),
            ("HUSKY", "0"),
            ("PIP_NO_INPUT", "1"),
            ("UV_COMPILE_BYTECODE", "1"),
        ] {
            variables
                .entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
        let overlay = OverlayWorkspace {
            lowers: ground.lowers(),
            upper: directory.join(ABOVE),
            work: directory.join("work"),
        };
        let made = ProjectEnvironment {
            digest: None,
            above: None,
            below: None,
            brings: Vec::new(),
            home: Some(directory.join(HOME)),
            being_made: true,
            path,
            variables,
        };
        // It is flushed once, when it is whole.
        Sandbox::over(self.policy.clone(), overlay)
            .unflushed_layer()
            .toolchains(HostToolchains::of_this_process().with_environment(made))
    }

    fn steps(
        &self,
        session: &SandboxSession,
        checkout: &Path,
        log: &mut BuildLog,
        watch: &dyn BuildProgress,
    ) -> Result<(), EnvironmentError> {
        let steps = &self.inputs.recipe.steps;
        for (index, step) in steps.iter().enumerate() {
            let mut failed = None;
            for (attempt, line) in std::iter::once(&step.run)
                .chain(&step.otherwise)
                .enumerate()
            {
                if attempt == 0 {
                    watch.step(index + 1, steps.len(), step, line);
                } else {
                    watch.fell_back(line);
                }
                let folder = checkout.join(&step.folder);
                let finished = run(session, line, &folder, log, watch)?;
                if finished.succeeded() {
                    failed = None;
                    break;
                }
                failed = Some((line.clone(), finished));
            }
            let Some((line, finished)) = failed.filter(|_| !step.optional) else {
                continue;
            };
            let denials = finished.receipt.denials.iter();
            return Err(EnvironmentError::Step {
                number: index + 1,
                of: steps.len(),
                line,
                tail: log.tail(),
                denied: denials.filter_map(|denial| denial.grant.clone()).collect(),
                log: log.path.clone(),
            });
        }
        Ok(())
    }

    /// Removes tools that only the build needed: what is needed later is on the search path.
    fn forget_tools(&self, home: &Path) {
        let used = |name: &str| {
            let place = format!("{TOOLS_HOME}/{name}/");
            let recipe = &self.inputs.recipe;
            let values = recipe.variables.values();
            recipe
                .path
                .iter()
                .chain(values)
                .any(|one| one.starts_with(&place))
        };
        if !used("tools") {
            clear(&home.join("tools"));
        }
    }

    /// Keeps the log of a build that failed where it is found after it.
    fn keep_log(&self, error: EnvironmentError, from: &Path) -> EnvironmentError {
        let name = format!(
            "failed-{}.log",
            self.inputs
                .digest()
                .map_or_else(|_| String::new(), |digest| digest.short())
        );
        let kept = self.store.directory().join(name);
        match error {
            EnvironmentError::Step {
                number,
                of,
                line,
                tail,
                denied,
                ..
            } if std::fs::rename(from, &kept).is_ok() => EnvironmentError::Step {
                number,
                of,
                line,
                tail,
                denied,
                log: kept,
            },
            error => error,
        }
    }
}

fn run(
    session: &SandboxSession,
    line: &str,
    folder: &Path,
    log: &mut BuildLog,
    watch: &dyn BuildProgress,
) -> Result<FinishedCommand, EnvironmentError> {
    log.add(format!("$ {line}\n").as_bytes())?;
    let command = SandboxCommand::new("sh")
        .arguments(["-c", line])
        .directory(folder)
        .streamed();
    let process = session.start(&command)?;
    loop {
        match process.next_output_within(TICK)? {
            NextOutput::Output(chunk) => {
                log.add(&chunk.bytes)?;
                watch.output(&chunk.bytes);
            }
            NextOutput::NothingYet => watch.output(&[]),
            NextOutput::End => break,
        }
    }
    Ok(process.wait()?)
}

/// Everything that the commands of a build print.
struct BuildLog {
    file: File,
    path: std::path::PathBuf,
    written: u64,
    end: Vec<u8>,
}

impl BuildLog {
    fn create(path: &Path) -> Result<Self, EnvironmentError> {
        Ok(Self {
            file: File::create(path).map_err(EnvironmentError::io(path))?,
            path: path.to_owned(),
            written: 0,
            end: Vec::new(),
        })
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), EnvironmentError> {
        self.end.extend_from_slice(bytes);
        let over = self.end.len().saturating_sub(TAIL);
        self.end.drain(..over);
        if self.written > LOG {
            return Ok(());
        }
        self.written += bytes.len() as u64;
        let path = &self.path;
        self.file
            .write_all(bytes)
            .map_err(EnvironmentError::io(path))
    }

    fn tail(&self) -> String {
        String::from_utf8_lossy(&self.end).trim().to_owned()
    }
}

fn own_like(path: &Path, like: &Path) -> Result<(), EnvironmentError> {
    use std::os::unix::fs::MetadataExt;
    let failed = || EnvironmentError::io(path);
    let like = std::fs::metadata(like).map_err(failed())?;
    let own = std::fs::metadata(path).map_err(failed())?;
    if (own.uid(), own.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(like.uid()), Some(like.gid())).map_err(failed())
}

fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size_of(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
