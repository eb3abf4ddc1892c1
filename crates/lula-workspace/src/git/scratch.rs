//! Throw-away repositories.

use std::path::{Path, PathBuf};

use crate::git::{GitError, GitProgram};

/// A git repository in a temporary directory, removed when dropped unless kept.
#[derive(Debug)]
pub struct ScratchRepository {
    directory: tempfile::TempDir,
}

/// Why a scratch repository could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The files could not be written.
    #[error("cannot write a temporary repository: {0}")]
    Write(#[from] std::io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl ScratchRepository {
    /// Writes the files and commits them as the first commit of `main`.
    pub fn new(git: &GitProgram, files: &[(&str, &str)]) -> Result<Self, ScratchError> {
        let directory = tempfile::Builder::new().prefix("lula-try-").tempdir()?;
        let top = directory.path();
        for (name, content) in files {
            let path = top.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        git.run(
            top,
            &["init", "--quiet", "--initial-branch=main", "--template="],
        )?;
        // Recorded in the repository, so that commits made inside the sandbox have a name too.
        git.run(top, &["config", "user.name", "Lula"])?;
        git.run(top, &["config", "user.email", "lula@localhost"])?;
        git.run(top, &["add", "--all"])?;
        git.run(
            top,
            &["commit", "--quiet", "--message=Import the sample project"],
        )?;
        Ok(Self { directory })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Leaves it on disk and tells where.
    pub fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_repository_is_clean_and_goes_away() {
        let git = GitProgram::find("", None).unwrap();
        let scratch = ScratchRepository::new(&git, &[("src/a.py", "x = 1\n")]).unwrap();
        let top = scratch.path().to_owned();
        assert_eq!(git.run(&top, &["status", "--porcelain"]).unwrap(), "");
        assert_eq!(
            git.run(&top, &["log", "--format=%an %s"]).unwrap(),
            "Lula Import the sample project\n"
        );
        drop(scratch);
        assert!(!top.exists());
    }
}
