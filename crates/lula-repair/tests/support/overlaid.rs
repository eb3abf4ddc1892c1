//! A ground of overlays mounted at the project's own path, for trying real checkouts by hand: what is
//! installed in them knows them by that path. Needs root; isolates nothing else.

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicUsize, Ordering};

use lula_repair::{ForkCommand, ForkCommandOutput, ForkSource, ForkSourceError, ProjectFork};

use crate::unsandboxed::{self, failed};

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A project whose forks are overlays over it.
pub(crate) struct OverlaidGround {
    root: PathBuf,
}

struct OverlaidFork {
    root: PathBuf,
    place: PathBuf,
}

impl OverlaidGround {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            root: root.canonicalize().unwrap_or(root),
        }
    }
}

impl OverlaidFork {
    fn merged(&self) -> PathBuf {
        self.place.join("merged")
    }
}

impl Drop for OverlaidFork {
    fn drop(&mut self) {
        let _ = Process::new("umount").arg("-l").arg(self.merged()).status();
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

impl ForkSource for OverlaidGround {
    fn fork(&self) -> Result<Box<dyn ProjectFork>, ForkSourceError> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = PathBuf::from(format!(
            "/var/tmp/lula-overlaid-{}-{number}",
            std::process::id()
        ));
        for name in ["upper", "work", "merged", "tmp"] {
            std::fs::create_dir_all(place.join(name)).map_err(failed("making", &place))?;
        }
        let options = format!(
            "lowerdir={},upperdir={p}/upper,workdir={p}/work",
            self.root.display(),
            p = place.display()
        );
        let fork = OverlaidFork {
            root: self.root.clone(),
            place,
        };
        let status = Process::new("mount")
            .args(["-t", "overlay", "overlay", "-o", &options])
            .arg(fork.merged())
            .status()
            .map_err(failed("mounting", &self.root))?;
        if !status.success() {
            return Err(ForkSourceError::new("mounting an overlay", status));
        }
        Ok(Box::new(fork))
    }
}

impl ProjectFork for OverlaidFork {
    fn files(&self) -> Result<Vec<String>, ForkSourceError> {
        let out = Process::new("git")
            .args([
                "-c",
                "safe.directory=*",
                "ls-files",
                "-co",
                "--exclude-standard",
            ])
            .current_dir(self.merged())
            .output()
            .map_err(failed("listing", &self.root))?;
        let text = String::from_utf8_lossy(&out.stdout);
        let mut files: Vec<String> = text.lines().map(str::to_owned).collect();
        files.retain(|file| self.merged().join(file).is_file());
        files.sort();
        Ok(files)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, ForkSourceError> {
        std::fs::read(self.merged().join(path)).map_err(failed("reading", Path::new(path)))
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), ForkSourceError> {
        std::fs::write(self.merged().join(path), bytes).map_err(failed("writing", Path::new(path)))
    }

    fn remove(&mut self, path: &str) -> Result<(), ForkSourceError> {
        std::fs::remove_file(self.merged().join(path)).map_err(failed("removing", Path::new(path)))
    }

    fn root(&self) -> String {
        self.root.display().to_string()
    }

    fn run(&mut self, command: &ForkCommand) -> Result<ForkCommandOutput, ForkSourceError> {
        let root = self.root.display().to_string();
        let script = "mount --bind \"$1\" \"$2\" && cd \"$2/$3\" && [ -d \"$2/.venv/bin\" ] && PATH=\"$2/.venv/bin:$PATH\"; shift 3; exec \"$@\"";
        let merged = self.merged().display().to_string();
        let mut argv: Vec<String> = ["unshare", "-m", "sh", "-c", script, "sh", &merged, &root]
            .map(str::to_owned)
            .to_vec();
        argv.push(command.folder.clone());
        argv.extend(command.argv.iter().cloned());
        let wrapped = ForkCommand {
            argv,
            folder: String::new(),
            ..command.clone()
        };
        unsandboxed::run(&wrapped, &self.merged(), &self.place.join("tmp"))
    }
}
