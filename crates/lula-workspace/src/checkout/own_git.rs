//! The git directory that commands in a workspace see.
//!
//! It is made for the workspace and holds nothing of the person's but the names of objects: a branch at
//! the commit that was laid out, an index of its files, and where the objects of the repository are
//! shown, read-only. There is no remote, no hook and no setting of the person's. It lies beside the
//! files and is mounted into them, so that it is never part of a change; our own git never looks into it,
//! because commands can write there whatever they like.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{Checkout, CheckoutResult, LEFT_BEHIND, PRIVATE, io_failed};

/// The git directory, beside the files.
const OWN: &str = "own-git";
/// A directory with the place to mount it on.
const POINT: &str = "own-git-point";
/// Where in it the objects of the repository are shown.
const BELOW: &str = "below";
/// The branch that is checked out.
const BRANCH: &str = "refs/heads/lula";
/// Object stores that borrow from each other, at most.
const STORES: usize = 8;

/// A git directory for commands, and what has to be mounted into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceGit {
    /// A directory that holds nothing but `.git`, empty: a layer below the workspace's changes.
    pub point: PathBuf,
    /// What is to be seen at `.git`, to be written by commands.
    pub directory: PathBuf,
    /// Objects of the repository, each with where it is seen in the workspace, read-only.
    pub objects: Vec<(PathBuf, PathBuf)>,
}

impl Checkout {
    /// The git directory for commands in the workspace, made where there is none. None where the files
    /// were cleared away.
    pub fn workspace_git(&self) -> CheckoutResult<Option<WorkspaceGit>> {
        let private = self.directory.join(PRIVATE);
        if !private.exists() {
            return Ok(None);
        }
        let stores = stores(&private.join("objects"));
        let made = WorkspaceGit {
            point: self.directory.join(POINT),
            directory: self.directory.join(OWN),
            objects: stores
                .into_iter()
                .enumerate()
                .map(|(index, store)| {
                    (store, Path::new(".git").join(BELOW).join(index.to_string()))
                })
                .collect(),
        };
        let place = made.point.join(".git");
        std::fs::create_dir_all(&place).map_err(io_failed(&place))?;
        if !made.directory.join("HEAD").exists() {
            self.forget_workspace_git()?;
            self.write_own_git(&made)?;
        }
        Ok(Some(made))
    }

    /// Removes what commands did with git. It is made anew when it is needed.
    pub fn forget_workspace_git(&self) -> CheckoutResult<()> {
        let path = self.directory.join(OWN);
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io_failed(&path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The names of what is made here, beside the files.
    pub(super) const fn own_git_names() -> [&'static str; 2] {
        [OWN, POINT]
    }

    fn write_own_git(&self, made: &WorkspaceGit) -> CheckoutResult<()> {
        let private = self.directory.join(PRIVATE);
        let commit = &self.origin.commit;
        let format = match commit.len() {
            64 => "\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n[core]\n",
            _ => "\trepositoryformatversion = 0\n",
        };
        // The files are seen through layers: of what is known of a file only its size and time hold.
        let config = format!(
            "[core]\n{format}\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
             \ttrustctime = false\n\tcheckStat = minimal\n[gc]\n\tauto = 0\n[user]\n\tname = Lula\n\
             \temail = lula@localhost\n"
        );
        let mut alternates = String::new();
        let mut shallow = String::new();
        for (index, (store, _)) in made.objects.iter().enumerate() {
            let _ = writeln!(alternates, "../{BELOW}/{index}");
            let place = made.directory.join(BELOW).join(index.to_string());
            std::fs::create_dir_all(&place).map_err(io_failed(&place))?;
            let cut_off = store.parent().map(|git| git.join("shallow"));
            shallow.push_str(
                &cut_off
                    .and_then(|path| std::fs::read_to_string(path).ok())
                    .unwrap_or_default(),
            );
        }
        let mut files = vec![
            ("config", config),
            ("description", "A private copy, made by Lula.\n".to_owned()),
            ("info/exclude", LEFT_BEHIND.to_owned()),
            ("objects/info/alternates", alternates),
            (BRANCH, format!("{commit}\n")),
            // Last: with it the directory is one of git's.
            ("HEAD", format!("ref: {BRANCH}\n")),
        ];
        if !shallow.is_empty() {
            files.insert(0, ("shallow", shallow));
        }
        for name in ["objects/pack", "refs/tags"] {
            let path = made.directory.join(name);
            std::fs::create_dir_all(&path).map_err(io_failed(&path))?;
        }
        let index = made.directory.join("index");
        std::fs::copy(private.join("index"), &index).map_err(io_failed(&index))?;
        for (name, text) in files {
            let path = made.directory.join(name);
            let above = path.parent().unwrap_or(&made.directory);
            std::fs::create_dir_all(above).map_err(io_failed(above))?;
            std::fs::write(&path, text).map_err(io_failed(&path))?;
        }
        Ok(())
    }
}

/// The stores that this one borrows objects from, directly or through others.
fn stores(objects: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut open = vec![objects.to_owned()];
    while let Some(store) = open.pop() {
        let listed = std::fs::read_to_string(store.join("info/alternates")).unwrap_or_default();
        for line in listed
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let Ok(path) = store.join(line).canonicalize() else {
                continue;
            };
            if found.len() < STORES && !found.contains(&path) && holds_objects_alone(&path) {
                found.push(path.clone());
                open.push(path);
            }
        }
    }
    found
}

/// Whether a directory has the shape of an object store and nothing else in it. The list of stores is part of
/// a repository that is not trusted: it may name any directory of the person's, as one of keys.
fn holds_objects_alone(store: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(store) else {
        return false;
    };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else {
            return false;
        };
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let begins_a_hash = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
        let unfinished = name.starts_with(b"tmp_");
        unfinished || is_directory && (begins_a_hash || name == b"pack" || name == b"info")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::GitProgram;
    use crate::scratch::ScratchRepository;
    use lula_protocol::WorkspaceId;

    /// git in a copy of the files, as a command in the sandbox sees them.
    fn git(files: &Path, arguments: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(files)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", files)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    #[test]
    fn commands_see_history_and_their_own_change_and_reach_no_remote() {
        let program = GitProgram::find("", None).unwrap();
        let repository = ScratchRepository::new(&program, &[("a.txt", "a\n")]).unwrap();
        let state = tempfile::tempdir().unwrap();
        let id = WorkspaceId::from_parts(1, [1; 10]);
        let checkout =
            Checkout::make(state.path(), &id, repository.path(), None, &program).unwrap();
        let made = checkout.workspace_git().unwrap().unwrap();

        // What a sandbox mounts, put together by hand.
        let files = tempfile::tempdir().unwrap();
        let files = files.path();
        std::fs::copy(checkout.tree().join("a.txt"), files.join("a.txt")).unwrap();
        std::fs::rename(&made.directory, files.join(".git")).unwrap();
        for (store, at) in &made.objects {
            std::fs::remove_dir(files.join(at)).unwrap();
            std::os::unix::fs::symlink(store, files.join(at)).unwrap();
        }
        assert_eq!(git(files, &["status", "--porcelain"]), "");
        std::fs::write(files.join("a.txt"), "b\n").unwrap();
        assert_eq!(git(files, &["status", "--porcelain"]), " M a.txt\n");
        assert!(git(files, &["diff"]).contains("-a\n+b\n"));
        assert!(git(files, &["show", "HEAD:a.txt"]).contains('a'));
        assert_eq!(
            git(files, &["log", "--format=%H"]).trim(),
            checkout.origin().commit
        );
        git(files, &["stash"]);
        assert_eq!(std::fs::read_to_string(files.join("a.txt")).unwrap(), "a\n");
        git(files, &["stash", "pop"]);
        git(files, &["commit", "--all", "--message", "mine"]);
        assert_eq!(git(files, &["remote"]), "");
        let theirs = git(repository.path(), &["log", "--all", "--format=%H"]);
        assert_eq!(
            theirs.trim(),
            checkout.origin().commit,
            "nothing reached the repository"
        );
        let stashes = git(repository.path(), &["stash", "list"]);
        assert_eq!(stashes, "");
    }

    #[test]
    fn a_directory_that_a_repository_calls_its_objects_is_not_shown() {
        let program = GitProgram::find("", None).unwrap();
        let repository = ScratchRepository::new(&program, &[("a.txt", "a\n")]).unwrap();
        let keys = tempfile::tempdir().unwrap();
        std::fs::write(keys.path().join("id_ed25519"), "secret").unwrap();
        let named = repository.path().join(".git/objects/info/alternates");
        std::fs::create_dir_all(named.parent().unwrap()).unwrap();
        std::fs::write(named, format!("{}\n", keys.path().display())).unwrap();
        let state = tempfile::tempdir().unwrap();
        let id = WorkspaceId::from_parts(1, [1; 10]);
        let checkout =
            Checkout::make(state.path(), &id, repository.path(), None, &program).unwrap();
        let made = checkout.workspace_git().unwrap().unwrap();
        let own = repository.path().canonicalize().unwrap();
        let shown: Vec<_> = made.objects.iter().map(|(store, _)| store).collect();
        assert_eq!(shown, [&own.join(".git/objects")]);
    }

    #[test]
    fn what_commands_did_with_git_is_forgotten_with_a_new_beginning() {
        let program = GitProgram::find("", None).unwrap();
        let repository = ScratchRepository::new(&program, &[("a.txt", "a\n")]).unwrap();
        let state = tempfile::tempdir().unwrap();
        let id = WorkspaceId::from_parts(1, [1; 10]);
        let checkout =
            Checkout::make(state.path(), &id, repository.path(), None, &program).unwrap();
        let made = checkout.workspace_git().unwrap().unwrap();
        std::fs::write(made.directory.join("refs/heads/mine"), "x").unwrap();
        assert_eq!(checkout.workspace_git().unwrap().as_ref(), Some(&made));
        assert!(made.directory.join("refs/heads/mine").exists());
        checkout.forget_workspace_git().unwrap();
        checkout.workspace_git().unwrap();
        assert!(!made.directory.join("refs/heads/mine").exists());
        checkout.clear().unwrap();
        assert_eq!(checkout.workspace_git().unwrap(), None);
        assert!(!made.directory.exists() && !made.point.exists());
    }
}
