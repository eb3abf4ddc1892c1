use super::*;

fn write(top: &Path, path: &str, text: &str) {
    let path = top.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn repository() -> (tempfile::TempDir, PathBuf, GitProgram) {
    let directory = tempfile::tempdir().unwrap();
    let git = GitProgram::find("", std::env::var_os("PATH").as_deref()).unwrap();
    let checkout = directory.path().join("checkout");
    write(
        &checkout,
        ".gitignore",
        ".venv/\nnode_modules/\n_version.py\n.env\n",
    );
    write(&checkout, "src/p/__init__.py", "");
    write(&checkout, "uv.lock", "a");
    for arguments in [
        &["init", "--quiet", "--template="][..],
        &["add", "--all"],
        &[
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@localhost",
            "commit",
            "--quiet",
            "--message=first",
        ],
        &[
            "config",
            "remote.origin.url",
            "https://me:secret@example.org/x.git",
        ],
    ] {
        git.run(&checkout, arguments).unwrap();
    }
    write(&checkout, ".venv/pyvenv.cfg", "old");
    write(&checkout, ".env", "TOKEN=1");
    write(&checkout, "new.py", "not added yet");
    (directory, checkout, git)
}

#[test]
fn a_build_sees_what_a_fresh_clone_has_and_no_credentials() {
    let (directory, checkout, git) = repository();
    let ground = EnvironmentGround::make(Some(&git), &checkout, directory.path()).unwrap();
    for path in [
        ".venv",
        ".env",
        ".venv/pyvenv.cfg",
        ".git/config",
        ".git/hooks/x",
    ] {
        assert!(ground.hides(path.as_bytes()), "{path}");
    }
    for path in [
        "src/p/__init__.py",
        "new.py",
        ".git/HEAD",
        ".envrc2",
        "uv.lock",
    ] {
        assert!(!ground.hides(path.as_bytes()), "{path}");
    }
}

#[test]
fn what_a_build_made_is_kept_and_what_it_changed_is_not() {
    let (directory, checkout, git) = repository();
    let ground = EnvironmentGround::make(Some(&git), &checkout, directory.path()).unwrap();
    let (layer, below) = (
        directory.path().join("above"),
        directory.path().join("below"),
    );
    write(&layer, ".venv/bin/python", "x");
    write(&layer, "src/p.egg-info/PKG-INFO", "x");
    write(&layer, "src/p/_version.py", "v");
    write(&layer, "src/p/__init__.py", "hacked");
    write(&layer, "src/p/__pycache__/x.pyc", "x");
    write(&layer, "uv.lock", "b");
    write(&layer, ".git/config", "x");
    write(&layer, "new.py", "changed");
    let harvest = ground.harvest(&layer, &below).unwrap();
    assert_eq!(harvest.directories, [".venv", "src/p.egg-info"]);
    assert_eq!(harvest.files, ["src/p/_version.py"]);
    assert_eq!(harvest.changed, ["new.py", "src/p/__init__.py", "uv.lock"]);
    assert!(below.join("src/p/_version.py").is_file());
    assert!(!layer.join("src/p").exists() && !layer.join(".git").exists());
    let venv = RootedTree::open(&layer.join(".venv")).unwrap();
    let opaque = crate::tree::attribute(&venv.top, crate::layer::overlay::OPAQUE);
    assert_eq!(opaque.as_deref(), Some(&b"y"[..]));
}

#[test]
fn a_directory_without_git_hides_what_is_installed_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().join("p");
    write(&project, ".venv/pyvenv.cfg", "");
    write(&project, "env/readme.txt", "no environment");
    write(&project, ".env", "TOKEN=1");
    let ground = EnvironmentGround::make(None, &project, directory.path()).unwrap();
    assert!(ground.hides(b".venv") && ground.hides(b".env"));
    assert!(!ground.hides(b"env/readme.txt"));
}
