//! The repository a task works on: its root, its crates as cargo describes them, and its files.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// The checkout around the current directory.
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Finds the nearest directory upwards whose manifest is a workspace's.
    pub(crate) fn around_here() -> Result<Self> {
        let here = env::current_dir().context("cannot tell the current directory")?;
        for directory in here.ancestors() {
            let manifest = directory.join("Cargo.toml");
            if let Ok(text) = fs::read_to_string(&manifest)
                && text.lines().any(|line| line.trim() == "[workspace]")
            {
                return Ok(Self {
                    root: directory.to_path_buf(),
                });
            }
        }
        bail!(
            "no cargo workspace at or above {}: run this inside the repository",
            here.display()
        )
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A cargo command line at the root, free of what `cargo run` told this process about itself: that
    /// would make build scripts look changed, and build again.
    pub(crate) fn cargo(&self, line: &str) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(line.split_whitespace())
            .current_dir(&self.root);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "NEXTEST"]
                .iter()
                .any(|prefix| text.starts_with(prefix))
            {
                command.env_remove(&name);
            }
        }
        command
    }

    /// What cargo knows of the workspace's own crates. Needs no network.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let output = self
            .cargo("metadata --no-deps --offline --format-version 1")
            .output()
            .context("cannot run cargo metadata")?;
        ensure!(
            output.status.success(),
            "cargo metadata cannot read the workspace:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).context("cannot read what cargo metadata wrote")
    }

    /// Every file that is committed or would be with `git add --all`, relative to the root.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let output = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&self.root)
            .output()
            .context("cannot run git, which tells the repository's files from build output")?;
        ensure!(
            output.status.success(),
            "git cannot list the files of {}: {}",
            self.root.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let mut files = output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
            // A file deleted but not yet staged is still listed.
            .filter(|file| self.root.join(file).is_file())
            .collect::<Vec<_>>();
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// The part of `cargo metadata` that tasks read.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

/// One crate of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
    #[serde(default)]
    metadata: Option<Extra>,
}

/// A dependency as the manifest declares it, of whatever kind.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for an ordinary one, else `dev` or `build`.
    #[serde(default)]
    pub(crate) kind: Option<String>,
}

/// Something cargo builds from a crate.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Extra {
    #[serde(default)]
    lula: BTreeMap<String, Vec<String>>,
}

impl Package {
    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new(""))
    }

    /// The servers its tests need: `[package.metadata.lula] needs = ["postgres", "redis"]`.
    pub(crate) fn needs(&self) -> &[String] {
        self.metadata
            .as_ref()
            .and_then(|extra| extra.lula.get("needs"))
            .map_or(&[], Vec::as_slice)
    }
}
