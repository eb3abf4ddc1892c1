//! The room of a run: a copy of the repository at one commit, and a private git directory outside
//! of it that remembers states. The user's repository is only read from here.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use lula_agents::HandsError;
use lula_agents::hands::{Change, ChangedFile, Place};
use lula_protocol::{Digest, WorkspaceId};
use lula_workspace::{Content, Folder, Git, Piece, RelPath};
use serde::{Deserialize, Serialize};

use super::failed;

/// What builds and tests leave behind, never part of a change unless it is tracked.
const LEFT_BEHIND: &str = "\
/node_modules\n/.venv\n/venv\n/.tox\n__pycache__/\n*.pyc\n.pytest_cache/\n.mypy_cache/\n\
.ruff_cache/\n.coverage\n/target/\n.lula/\n";
/// Installed dependencies that a copy of a commit lacks: linked, never copied.
const DEPENDENCIES: [&str; 4] = ["node_modules", ".venv", "venv", ".tox"];

/// Where a room came from.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Origin {
    repository: PathBuf,
    commit: String,
    uncommitted: usize,
}

/// The room of one run.
#[derive(Debug)]
pub(super) struct Room {
    workspace: WorkspaceId,
    directory: PathBuf,
    tree: PathBuf,
    origin: Origin,
    git: Git,
}

impl Room {
    fn directory(state: &Path, workspace: &WorkspaceId) -> PathBuf {
        state.join("rooms").join(workspace.as_str())
    }

    /// A room that was opened before.
    pub(super) fn find(
        state: &Path,
        workspace: &WorkspaceId,
        git: &Git,
    ) -> Result<Self, HandsError> {
        let directory = Self::directory(state, workspace);
        let origin = std::fs::read(directory.join("origin.json")).map_err(|error| {
            failed(format!(
                "the workspace {} is gone ({error}); start the task anew",
                directory.display()
            ))
        })?;
        let origin = serde_json::from_slice(&origin).map_err(failed)?;
        Ok(Self {
            workspace: workspace.clone(),
            tree: directory.join("tree"),
            directory,
            origin,
            git: git.clone(),
        })
    }

    /// Opens a room at a commit of a repository, or finds it again.
    pub(super) fn open(
        state: &Path,
        workspace: &WorkspaceId,
        repository: &Path,
        commit: Option<&str>,
        git: &Git,
    ) -> Result<Self, HandsError> {
        let directory = Self::directory(state, workspace);
        if directory.join("origin.json").exists() {
            return Self::find(state, workspace, git);
        }
        let ask = |arguments: &[&str]| git.run(repository, arguments).map_err(failed);
        let commit = match commit {
            Some(commit) => commit.to_owned(),
            None => ask(&["rev-parse", "--verify", "HEAD^{commit}"])?
                .trim()
                .to_owned(),
        };
        let objects = ask(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ])?;
        let format = ask(&["rev-parse", "--show-object-format"])?;
        let status = ask(&["status", "--porcelain", "--untracked-files=no"])?;
        if directory.exists() {
            // Begun and never finished: nothing in it was ever used.
            std::fs::remove_dir_all(&directory).map_err(failed)?;
        }
        let (tree, private) = (directory.join("tree"), directory.join("git"));
        std::fs::create_dir_all(&tree).map_err(failed)?;
        std::fs::create_dir_all(&private).map_err(failed)?;
        let init = format!("--object-format={}", format.trim());
        let begin = ["init", "--quiet", "--bare", "--template=", &init];
        git.run(&private, &begin).map_err(failed)?;
        std::fs::create_dir_all(private.join("objects/info")).map_err(failed)?;
        std::fs::write(private.join("objects/info/alternates"), objects).map_err(failed)?;
        std::fs::create_dir_all(private.join("info")).map_err(failed)?;
        std::fs::write(private.join("info/exclude"), LEFT_BEHIND).map_err(failed)?;
        let room = Self {
            workspace: workspace.clone(),
            tree,
            directory,
            origin: Origin {
                repository: repository.to_owned(),
                commit,
                uncommitted: status.lines().count(),
            },
            git: git.clone(),
        };
        room.git(&["read-tree", room.commit()])?;
        room.git(&["checkout-index", "--all", "--force"])?;
        room.link_dependencies();
        let origin = serde_json::to_vec(&room.origin).map_err(failed)?;
        let draft = room.directory.join("origin.draft");
        std::fs::write(&draft, origin).map_err(failed)?;
        std::fs::rename(draft, room.directory.join("origin.json")).map_err(failed)?;
        Ok(room)
    }

    /// What is installed in the repository and not tracked is shown, read-only, through a link.
    fn link_dependencies(&self) {
        for name in DEPENDENCIES {
            let installed = self.origin.repository.join(name);
            let here = self.tree.join(name);
            if installed.is_dir() && !here.exists() {
                // Without the link the tests say what is missing.
                let _ = std::os::unix::fs::symlink(installed, here);
            }
        }
    }

    pub(super) fn place(&self) -> Place {
        Place {
            workspace: self.workspace.clone(),
            commit: self.origin.commit.clone(),
            uncommitted: self.origin.uncommitted,
        }
    }

    pub(super) fn commit(&self) -> &str {
        &self.origin.commit
    }

    pub(super) fn repository(&self) -> &Path {
        &self.origin.repository
    }

    pub(super) fn tree_path(&self) -> &Path {
        &self.tree
    }

    pub(super) fn tree(&self) -> Result<Folder, HandsError> {
        Folder::at(&self.tree).map_err(failed)
    }

    pub(super) fn inert(&self) -> &Git {
        &self.git
    }

    fn command(&self) -> Result<std::process::Command, HandsError> {
        let private = self.directory.join("git");
        let mut command = self.git.command(&private).map_err(failed)?;
        command
            .current_dir(&self.tree)
            .env("GIT_DIR", &private)
            .env("GIT_WORK_TREE", &self.tree)
            .env("GIT_INDEX_FILE", private.join("index"));
        Ok(command)
    }

    /// Asks the private git, and returns the bytes it printed.
    fn raw(
        &self,
        arguments: &[&str],
        input: &[u8],
        variables: &[(&str, &str)],
    ) -> Result<Vec<u8>, HandsError> {
        let mut command = self.command()?;
        command.args(arguments).envs(variables.iter().copied());
        feed(&mut command, input, arguments.first().unwrap_or(&""))
    }

    pub(super) fn git(&self, arguments: &[&str]) -> Result<String, HandsError> {
        let bytes = self.raw(arguments, &[], &[])?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Takes every file into the private index. What git cannot take (a repository inside without a
    /// commit, a file nobody may read) is not part of any state, and so never part of a change.
    fn take_all(&self) -> Result<(), HandsError> {
        let all = ["add", "--all", "--ignore-errors", "."];
        match self.git(&all) {
            Ok(_) => Ok(()),
            Err(error) => self.git(&["write-tree"]).map(drop).map_err(|_| error),
        }
    }

    /// Removes everything but where the room came from. Its change is in the log of its run.
    pub(super) fn clear(&self) -> Result<(), HandsError> {
        for name in ["tree", "git", "states"] {
            match std::fs::remove_dir_all(self.directory.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Remembers the state: its name, and git's name of it.
    pub(super) fn snapshot(&self) -> Result<(Digest, String), HandsError> {
        self.take_all()?;
        let tree = self.git(&["write-tree"])?;
        let digest = Digest::of_bytes(tree.as_bytes());
        let known = self.directory.join("states");
        std::fs::create_dir_all(&known).map_err(failed)?;
        std::fs::write(known.join(&digest.to_string()[3..]), &tree).map_err(failed)?;
        Ok((digest, tree))
    }

    /// Returns to a state, or to the beginning.
    pub(super) fn restore(&self, to: Option<Digest>) -> Result<(), HandsError> {
        let tree = match to {
            None => format!("{}^{{tree}}", self.commit()),
            Some(digest) => {
                let file = self.directory.join("states").join(&digest.to_string()[3..]);
                std::fs::read_to_string(file)
                    .map_err(|error| failed(format!("the state {digest} is gone: {error}")))?
            }
        };
        self.take_all()?;
        self.git(&["read-tree", "--reset", "-u", &tree])?;
        Ok(())
    }

    /// What was changed since the beginning.
    pub(super) fn change(&self) -> Result<Change, HandsError> {
        let (digest, tree) = self.snapshot()?;
        let base = self.commit();
        let diff = self.raw(
            &[
                "diff-tree",
                "-p",
                "-r",
                "--binary",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                base,
                &tree,
            ],
            &[],
            &[],
        )?;
        let raw = self.raw(
            &[
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-renames",
                base,
                &tree,
            ],
            &[],
            &[],
        )?;
        let mut files = Vec::new();
        let mut fields = raw.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old, new, _] = about[..] else {
                return Err(failed("git described a change in an unknown form"));
            };
            files.push(ChangedFile {
                path: path.into_owned(),
                before: self.blob(old_mode, old)?,
                after: self.blob(new_mode, new)?,
            });
        }
        Ok(Change {
            diff: String::from_utf8_lossy(&diff).into_owned(),
            files,
            tree: digest,
        })
    }

    /// What was changed up to a state, path by path, as a checkout holds it.
    pub(super) fn pieces(&self, tree: &str) -> Result<Vec<Piece>, HandsError> {
        let list = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            self.commit(),
            tree,
        ];
        let raw = self.raw(&list, &[], &[])?;
        let mut pieces = Vec::new();
        let mut fields = raw.split(|byte| *byte == 0);
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about);
            let about: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old, new, _] = about[..] else {
                return Err(failed("git described a change in an unknown form"));
            };
            pieces.push(Piece {
                path: RelPath::from_bytes(path).map_err(failed)?,
                before: self.content(old_mode, old)?,
                after: self.content(new_mode, new)?,
            });
        }
        Ok(pieces)
    }

    fn content(&self, mode: &str, id: &str) -> Result<Option<Content>, HandsError> {
        let bytes = || self.raw(&["cat-file", "blob", id], &[], &[]);
        Ok(match mode {
            "000000" => None,
            "100644" | "100664" | "100755" => Some(Content::File {
                bytes: bytes()?,
                executable: mode == "100755",
            }),
            "120000" => Some(Content::Link(bytes()?)),
            _ => return Err(failed("the change touches a submodule, which is no file")),
        })
    }

    fn blob(&self, mode: &str, id: &str) -> Result<Option<Vec<u8>>, HandsError> {
        if !mode.starts_with("100") {
            return Ok(None);
        }
        self.raw(&["cat-file", "blob", id], &[], &[]).map(Some)
    }

    /// Makes the commit of a tree. The same message and time make the same commit.
    pub(super) fn commit_tree(
        &self,
        tree: &str,
        message: &str,
        at: u64,
    ) -> Result<String, HandsError> {
        let date = format!("{at} +0000");
        let who = [
            ("GIT_AUTHOR_NAME", "Lula"),
            ("GIT_AUTHOR_EMAIL", "lula@localhost"),
            ("GIT_AUTHOR_DATE", &date),
            ("GIT_COMMITTER_NAME", "Lula"),
            ("GIT_COMMITTER_EMAIL", "lula@localhost"),
            ("GIT_COMMITTER_DATE", &date),
        ];
        let made = self.raw(
            &["commit-tree", tree, "-p", self.commit()],
            message.as_bytes(),
            &who,
        )?;
        Ok(String::from_utf8_lossy(&made).trim().to_owned())
    }

    /// The objects of a commit that the repository lacks, as a pack.
    pub(super) fn pack(&self, commit: &str) -> Result<Vec<u8>, HandsError> {
        let wanted = format!("{commit}\n^{}\n", self.commit());
        let arguments = ["pack-objects", "--revs", "--stdout", "--quiet"];
        self.raw(&arguments, wanted.as_bytes(), &[])
    }
}

/// Runs a command of git with something to read.
pub(super) fn feed(
    command: &mut std::process::Command,
    input: &[u8],
    name: &str,
) -> Result<Vec<u8>, HandsError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A git that does not read all says why on its standard error.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        child.wait_with_output()
    })
    .map_err(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("git {name} failed: {}", said.trim())))
}
