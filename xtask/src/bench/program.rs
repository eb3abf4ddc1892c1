//! The programs that benchmarks measure, and how they are built.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

/// A profile of the workspace's manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    /// What people build for themselves.
    Release,
    /// What is shipped, and so what is measured.
    Dist,
}

impl Profile {
    /// What is measured, unless an unoptimised build is wanted.
    pub(super) const fn measured(debug: bool) -> Self {
        if debug { Self::Dev } else { Self::Dist }
    }

    /// Its flag for cargo.
    pub(crate) const fn flag(self) -> &'static str {
        match self {
            Self::Dev => "--profile dev",
            Self::Release => "--profile release",
            Self::Dist => "--profile dist",
        }
    }

    /// Where cargo puts what it builds.
    pub(crate) fn folder(self, repository: &Repository) -> PathBuf {
        let name = match self {
            Self::Dev => "debug",
            Self::Release => "release",
            Self::Dist => "dist",
        };
        repository.root().join("target").join(name)
    }
}

/// Builds `lula` and tells where it is, or how its build ended.
pub(crate) fn lula(
    repository: &Repository,
    interrupt: &Interrupt,
    profile: Profile,
) -> Result<ControlFlow<ExitCode, PathBuf>> {
    let mut cargo = repository.cargo(&format!("build --quiet -p lula {}", profile.flag()));
    let built = command::run(&mut cargo, interrupt)?;
    if built != ExitCode::SUCCESS {
        return Ok(ControlFlow::Break(built));
    }
    Ok(ControlFlow::Continue(
        profile.folder(repository).join("lula"),
    ))
}

/// Builds the example of a crate that runs its benchmark, and tells where it is.
pub(super) fn example(
    repository: &Repository,
    interrupt: &Interrupt,
    package: &str,
    name: &str,
) -> Result<PathBuf> {
    let flag = Profile::Dist.flag();
    let mut build = repository.cargo(&format!("build {flag} -p {package} --example {name}"));
    build.stdout(Stdio::null());
    if command::run(&mut build, interrupt)? != ExitCode::SUCCESS {
        bail!("the build of {name} failed");
    }
    let folder = Profile::Dist.folder(repository);
    Ok(folder.join("examples").join(name))
}

/// A Python with these packages in it, made once; where it is.
pub(super) fn venv(place: &Path, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let home = place.join(name);
    let python = home.join("bin/python");
    let complete = home.join("complete");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&complete).is_ok_and(|known| known == wanted) {
        return Ok(python);
    }
    ok(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&home))?;
    let mut install = Command::new(&python);
    ok(install
        .args(["-m", "pip", "install", "--quiet"])
        .args(packages))?;
    std::fs::write(complete, wanted)?;
    Ok(python)
}

/// Runs a command to its success.
pub(super) fn ok(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_owned();
    let status = command
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {}", name.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", name.display());
    }
    Ok(())
}
