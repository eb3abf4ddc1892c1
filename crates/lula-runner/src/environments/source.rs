//! Which environment a project gets.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use lula_env::InputFile;
use lula_protocol::Digest;
use lula_sandbox::HostToolchains;

use super::error::EnvironmentError;
use super::store::{EnvironmentStore, StoredEnvironment};

/// Longest file that an environment depends on.
const LONGEST: u64 = 8 << 20;

/// What an operator said about the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EnvironmentChoice {
    /// The one that fits, where one was built and the project has none of its own.
    #[default]
    Fitting,
    /// None: what is installed on the machine and in the checkout.
    None,
    Named(String),
}

impl FromStr for EnvironmentChoice {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "" | "auto" | "build" => Self::Fitting,
            "none" => Self::None,
            name => Self::Named(name.to_owned()),
        })
    }
}

/// What was found for a project.
#[derive(Debug)]
pub enum EnvironmentFit {
    /// This one was made from the files at hand.
    Fits(Box<StoredEnvironment>),
    /// The project has what its developer installed there.
    OwnInstalled(String),
    /// Some were made for this place, and none from the files at hand: this one changed.
    Outdated { name: String, file: String },
    /// None was made for this place.
    NotMade,
}

/// Where environments come from, for everything that opens a sandbox.
#[derive(Debug, Clone)]
pub struct EnvironmentSource {
    store: EnvironmentStore,
    choice: EnvironmentChoice,
}

impl EnvironmentSource {
    pub fn new(state: &Path, choice: EnvironmentChoice) -> Self {
        Self {
            store: EnvironmentStore::at(state),
            choice,
        }
    }

    pub fn store(&self) -> &EnvironmentStore {
        &self.store
    }

    /// The toolchains of the machine and the environment of a project. `files` is where the files lie that
    /// are worked on, `shown` where the project is seen, `folder` the part of it that is meant.
    pub fn toolchains(
        &self,
        files: &Path,
        shown: &Path,
        folder: &Path,
    ) -> Result<HostToolchains, EnvironmentError> {
        match self.find(files, shown)? {
            Some(found) => {
                found.touch();
                let made = found.record.shown(&found.directory);
                Ok(HostToolchains::of_this_process().with_environment(made))
            }
            None => Ok(HostToolchains::for_project(shown, folder)),
        }
    }

    /// The environment that is shown.
    pub fn find(
        &self,
        files: &Path,
        shown: &Path,
    ) -> Result<Option<StoredEnvironment>, EnvironmentError> {
        match &self.choice {
            EnvironmentChoice::None => Ok(None),
            EnvironmentChoice::Fitting => Ok(match self.fit(files, shown) {
                EnvironmentFit::Fits(found) => Some(*found),
                _ => None,
            }),
            EnvironmentChoice::Named(name) => {
                let found = self.store.find(name)?;
                let place = &found.record.inputs.place;
                if Path::new(place) != shown {
                    return Err(EnvironmentError::ElsewhereMade {
                        name: found.record.name(),
                        place: place.clone(),
                    });
                }
                Ok(Some(found))
            }
        }
    }

    /// What there is for a project.
    pub fn fit(&self, files: &Path, shown: &Path) -> EnvironmentFit {
        let mut outdated = None;
        for found in self.store.list() {
            if Path::new(&found.record.inputs.place) != shown {
                continue;
            }
            if let Some(file) = first_difference(&found, files) {
                outdated.get_or_insert((found.record.name(), file));
                continue;
            }
            let own = found.record.installed.iter();
            let own = own
                .map(|name| shown.join(name))
                .find(|path| is_set_up(path));
            return match own {
                Some(path) => EnvironmentFit::OwnInstalled(path.display().to_string()),
                None => EnvironmentFit::Fits(Box::new(found)),
            };
        }
        match outdated {
            Some((name, file)) => EnvironmentFit::Outdated { name, file },
            None => EnvironmentFit::NotMade,
        }
    }
}

/// Whether a developer set something up there: an environment whose interpreter is there, packages, a build.
fn is_set_up(path: &Path) -> bool {
    let signs = [
        "bin/python",
        ".package-lock.json",
        ".yarn-integrity",
        ".modules.yaml",
        ".yarn-state.yml",
        "CMakeCache.txt",
        "autoload.php",
        "bundle",
    ];
    signs.iter().any(|sign| path.join(sign).exists())
}

/// The first thing in which the files at hand, or the machine, are not those an environment was made from.
fn first_difference(found: &StoredEnvironment, files: &Path) -> Option<String> {
    let inputs = &found.record.inputs;
    let changed = inputs.files.iter().find(|input| !is_same(input, files));
    if let Some(changed) = changed {
        return Some(changed.path.clone());
    }
    let tool = inputs.tools.iter().find(|tool| {
        let program = tool.rsplit(' ').next().unwrap_or(tool);
        !Path::new(program).exists()
    });
    if let Some(tool) = tool {
        return Some(tool.clone());
    }
    // A directory that a commit brings along is the commit's.
    let is_project =
        |name: &&String| files != Path::new(&inputs.place) && files.join(name).exists();
    found.record.directories.iter().find(is_project).cloned()
}

fn is_same(input: &InputFile, files: &Path) -> bool {
    digest_of(files, &input.path) == input.digest
}

/// The digest of a file of a project: below its directory, and through no link.
fn digest_of(files: &Path, path: &str) -> Option<Digest> {
    let top: PathBuf = files.to_owned();
    let directory = std::fs::File::open(top).ok()?;
    let bytes = lula_files::read_beneath(&directory, path, LONGEST).ok()?;
    Some(Digest::of_bytes(&bytes))
}
