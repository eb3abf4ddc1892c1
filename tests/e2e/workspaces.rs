//! Workspaces under real sandboxes: random edits against a model, and commits that are killed.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command as Host, Stdio};
use std::sync::OnceLock;

use lula_protocol::IsolationTier;
use lula_sandbox::policy::Profile;
use lula_sandbox::{
    HelperProgram, HostToolchains, OverlayWorkspace, Sandbox, SandboxCommand, SandboxEngine,
};
use lula_workspace::{
    ChangeSelection, LayerDirectories, LayerPreference, Workspace, WorkspaceStore,
};
use tempfile::TempDir;

use crate::support::{LulaEnv, kill_child};

fn engine() -> SandboxEngine {
    static ENGINE: OnceLock<SandboxEngine> = OnceLock::new();
    let start =
        || SandboxEngine::start_with(HelperProgram::program(env!("CARGO_BIN_EXE_lula"))).unwrap();
    ENGINE.get_or_init(start).clone()
}

/// Kinds, permissions, contents.
fn picture(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    walk(top, |path, metadata| {
        let content = if metadata.is_symlink() {
            path.read_link()
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else if metadata.is_file() {
            std::fs::read(path).unwrap()
        } else {
            Vec::new()
        };
        (metadata.permissions().mode(), content)
    })
}

/// Numbers and times of everything: nothing was touched if they are the same.
fn stamps(top: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, i64, i64)> {
    walk(top, |_, m| {
        (
            m.ino(),
            m.mtime(),
            m.mtime_nsec(),
            m.ctime(),
            m.ctime_nsec(),
        )
    })
}

fn walk<T>(top: &Path, of: impl Fn(&Path, &std::fs::Metadata) -> T) -> BTreeMap<PathBuf, T> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            waiting.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(
            path.strip_prefix(top).unwrap().to_owned(),
            of(&path, &metadata),
        );
    }
    found
}

/// Runs a script in a sandbox on the workspace.
fn inside(workspace: &Workspace, script: &str) -> String {
    let layer = workspace.layer().unwrap();
    let policy = Profile::Build.policy();
    let sandbox = match &layer.place {
        LayerDirectories::Overlay { lower, upper, work } => Sandbox::over(
            policy,
            OverlayWorkspace {
                lowers: vec![lower.clone()],
                upper: upper.clone(),
                work: work.clone(),
            },
        ),
        LayerDirectories::Copy { directory } => Sandbox::new(policy, directory),
    };
    let sandbox = sandbox
        .tier(IsolationTier::Namespace)
        .toolchains(HostToolchains::none());
    let finished = engine()
        .run(&sandbox, &SandboxCommand::shell(script))
        .unwrap();
    assert!(finished.succeeded(), "{}", finished.stderr.text());
    finished.stdout.text()
}

/// Runs the same script on a plain directory.
fn outside(directory: &Path, script: &str) -> String {
    let output = Host::new("sh")
        .args(["-c", script])
        .current_dir(directory)
        .stderr(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

const START: &str = "mkdir -p a/a a/b b c; echo 1 > a/a/f; echo 2 > a/f; echo 3 > f; ln -s a b/l; printf '' > b/e; chmod 755 f; printf 'x\\0y' > c/bin";

/// A small stream of numbers that only the seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn path(&mut self) -> String {
        let names = ["a", "b", "c", "f", "e", "l"];
        let mut name = || names[self.roll(6) as usize];
        let (first, second, third) = (name(), name(), name());
        match self.roll(4) {
            0 => first.to_owned(),
            1 | 2 => format!("{first}/{second}"),
            _ => format!("{first}/{second}/{third}"),
        }
    }

    /// A line that may fail, inside and outside alike.
    fn edit(&mut self, number: u64) -> String {
        let (path, other) = (self.path(), self.path());
        let edit = match self.roll(10) {
            0..=2 => format!("echo {number} > {path}"),
            3 => format!("rm -rf {path}"),
            4 => format!("mkdir -p {path}"),
            5 => format!("rm -f {path} && ln -s {other} {path}"),
            6 => format!("[ -e {path} ] && mv -T {path} {other}"),
            // A directory has to stay one that can be looked into.
            7 => {
                let mode = ["755", "700", "644", "600"][self.roll(4) as usize];
                format!(
                    "[ -L {path} ] || [ -d {path} ] || chmod {mode} {path}; [ -L {other} ] || chmod u=rwx,g=x {other}"
                )
            }
            8 => format!("echo {number} >> {path}"),
            _ => format!("rm -rf {path} && mkdir {path} && echo {number} > {path}/f"),
        };
        format!("({edit}) 2>/dev/null || true\n")
    }
}

const VIEW: &str = "find . -mindepth 1 -printf '%P %y %l\\n' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | xargs cat | cksum";

#[test]
fn random_edits_come_out_as_on_a_plain_directory() {
    for seed in 1..=10_u64 {
        for copies in [false, true] {
            let (state, base, model) = (
                TempDir::new().unwrap(),
                TempDir::new().unwrap(),
                TempDir::new().unwrap(),
            );
            for directory in [&base, &model] {
                outside(directory.path(), START);
            }
            let store = WorkspaceStore::at(state.path(), 1 << 30);
            let wanted = if copies {
                LayerPreference::Copy("a test".to_owned())
            } else {
                LayerPreference::Overlay
            };
            let (original, untouched) = (picture(base.path()), stamps(base.path()));
            let mut workspace = store.create(base.path(), wanted, "random").unwrap();
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            // Two sandboxes, one after the other, as in a session that is opened again.
            for round in 0..2 {
                let script: String = (0..12)
                    .map(|number| dice.edit(round * 100 + number))
                    .collect();
                let script = format!("umask 022; {script}{VIEW}");
                let (seen, expected) =
                    (inside(&workspace, &script), outside(model.path(), &script));
                assert_eq!(seen, expected, "seed {seed}: another view inside");
            }
            assert_eq!(
                stamps(base.path()),
                untouched,
                "seed {seed}: the tree was touched"
            );
            let diff = workspace.diff().unwrap();
            if diff.is_empty() {
                assert_eq!(
                    picture(model.path()),
                    original,
                    "seed {seed}: changes not seen"
                );
                continue;
            }
            let committed = workspace.commit(&ChangeSelection::all(), Some(&diff.digest));
            committed.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(picture(base.path()), picture(model.path()), "seed {seed}");
            workspace.undo().unwrap();
            assert_eq!(picture(base.path()), original, "seed {seed}: undo");
            workspace.redo().unwrap();
            assert_eq!(
                picture(base.path()),
                picture(model.path()),
                "seed {seed}: redo"
            );
        }
    }
}

fn overlay_on(state: &TempDir, base: &TempDir) -> Workspace {
    outside(base.path(), START);
    let store = WorkspaceStore::at(state.path(), 1 << 30);
    store
        .create(base.path(), LayerPreference::Overlay, "test")
        .unwrap()
}

#[test]
fn a_file_the_user_deleted_while_it_was_edited_is_a_conflict_and_a_moved_one_is_not() {
    let (state, base) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let workspace = overlay_on(&state, &base);
    inside(&workspace, "echo edited > a/f; mv c/bin b/moved");
    assert!(
        workspace
            .diff()
            .unwrap()
            .changes
            .iter()
            .all(|change| !change.conflict)
    );
    std::fs::remove_file(base.path().join("a/f")).unwrap();
    let diff = workspace.diff().unwrap();
    let conflicts: Vec<_> = diff
        .changes
        .iter()
        .filter(|change| change.conflict)
        .collect();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].path.to_string(), "a/f");
}

#[test]
fn a_session_goes_on_while_its_changes_are_committed_and_undone() {
    let (state, base) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut workspace = overlay_on(&state, &base);
    let layer = workspace.layer().unwrap();
    let LayerDirectories::Overlay { lower, upper, work } = layer.place.clone() else {
        panic!("not an overlay")
    };
    let lowers = vec![lower];
    let sandbox = Sandbox::over(
        Profile::Build.policy(),
        OverlayWorkspace {
            lowers,
            upper,
            work,
        },
    );
    let sandbox = sandbox
        .tier(IsolationTier::Namespace)
        .toolchains(HostToolchains::none());
    let session = engine().open(&sandbox).unwrap();
    let run = |script: &str| {
        let finished = session.run(&SandboxCommand::shell(script)).unwrap();
        assert!(finished.succeeded(), "{script}: {}", finished.stderr.text());
        finished.stdout.text()
    };
    let read = |name: &str| std::fs::read_to_string(base.path().join(name)).unwrap();
    for number in ["one", "two", "three"] {
        run(&format!("echo {number} > f; echo {number} > new"));
        let reviewed = workspace.diff().unwrap();
        assert_eq!(reviewed.changes.len(), 2, "{number}");
        workspace
            .commit(&ChangeSelection::all(), Some(&reviewed.digest))
            .unwrap();
        assert_eq!(read("f"), format!("{number}\n"));
        assert_eq!(run("cat f new"), format!("{number}\n{number}\n"));
        assert!(workspace.diff().unwrap().is_empty());
    }
    workspace.undo().unwrap();
    assert_eq!(read("f"), "two\n");
    // The layer is as the session left it.
    assert_eq!(run("cat f"), "three\n");
    workspace.undo().unwrap();
    workspace.undo().unwrap();
    assert_eq!(read("f"), "3\n");
    assert!(!base.path().join("new").exists());
    assert!(matches!(
        workspace.restore("any"),
        Err(lula_workspace::WorkspaceError::InUse(_))
    ));
}

/// A directory with so many files, and a workspace in which all of them were changed.
fn many(world: &LulaEnv, count: u32) {
    for number in 0..count {
        std::fs::write(world.work().join(format!("f{number}")), "old\n").unwrap();
    }
    let script = "for f in f*; do echo new > $f; done; mkdir d; echo new > d/x; rm f0";
    world
        .run(&["exec", "-q", "--", "sh", "-c", script])
        .exits(0);
}

/// Whether a commit has written its journal and not finished.
fn is_exchanging(world: &LulaEnv) -> bool {
    let bases = world.home().join(".local/state/lula/bases");
    let mut bases = bases.read_dir().unwrap().flatten();
    bases.any(|base| base.path().join("intent.json").exists())
}

#[test]
fn a_killed_commit_leaves_the_old_or_the_new_tree() {
    let world = LulaEnv::new();
    many(&world, 300);
    let (mut old, mut new, mut mixed, mut kills) = (0, 0, 0, 0);
    let before = picture(&world.work());
    // How long one takes here, to kill the others before, in the middle and at the end.
    let begun = std::time::Instant::now();
    world.run(&["commit", "-q"]).exits(0);
    let takes = u64::try_from(begun.elapsed().as_micros()).unwrap();
    world.run(&["undo"]).exits(0);
    let mut dice = Dice(7);
    for round in 0..12 {
        let mut child = world
            .command(&["commit", "-q"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Half of them at any time, half of them while names are being exchanged.
        let micros = if round % 2 == 0 {
            dice.roll(takes * 5 / 4)
        } else {
            while !is_exchanging(&world) && child.try_wait().unwrap().is_none() {}
            dice.roll(8000)
        };
        std::thread::sleep(std::time::Duration::from_micros(micros));
        kills += u32::from(kill_child(&mut child));
        let state = |picture: &BTreeMap<PathBuf, (u32, Vec<u8>)>| {
            let news = (1..300)
                .filter(|n| picture[Path::new(&format!("f{n}"))].1 == b"new\n")
                .count();
            let rest = usize::from(picture.contains_key(Path::new("d/x")))
                + usize::from(!picture.contains_key(Path::new("f0")));
            news + rest
        };
        mixed += u32::from(!matches!(state(&picture(&world.work())), 0 | 301));
        // Any look at the workspace puts things right first.
        world.run(&["diff", "--stat", "-q"]);
        let now = picture(&world.work());
        match state(&now) {
            0 => {
                assert_eq!(now, before, "round {round}");
                old += 1;
            }
            301 => {
                new += 1;
                let id = world.run(&["workspaces", "--json"]).json()[0]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                world.run(&["undo", &id]).exits(0);
                assert_eq!(picture(&world.work()), before, "round {round}");
            }
            news => panic!("round {round}: {news} of 301 after recovery"),
        }
    }
    assert!(kills > 0, "every commit ended before its kill");
    assert!(
        old > 0 && new > 0,
        "killed too early or too late each time: {old} old, {new} new"
    );
    eprintln!("{kills} kills: {old} old, {new} new, {mixed} caught in between");
}

/// Runs one ignored test of this binary as an ordinary user.
fn as_ordinary_user(test: &str) {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let mut host = Host::new(std::env::current_exe().unwrap());
    host.args(["--exact", "--ignored", "--nocapture", test])
        .env_remove("XDG_RUNTIME_DIR")
        .env("HOME", "/nonexistent")
        .env("TMPDIR", "/tmp")
        .current_dir("/tmp");
    if rustix::process::geteuid().is_root() {
        host.uid(NOBODY).gid(NOBODY);
    }
    let output = host.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{err}"
    );
}

#[test]
fn an_ordinary_user_has_all_of_it() {
    as_ordinary_user("workspaces::ordinary");
}

#[test]
#[ignore = "run as an ordinary user by the test above"]
fn ordinary() {
    assert!(!rustix::process::geteuid().is_root());
    let world = LulaEnv::new();
    outside(&world.work(), START);
    let before = picture(&world.work());
    let script = "rm -r a; mkdir a; echo n > a/n; rm f; ln -s a f; chmod 700 b; echo x >> c/bin";
    world.run(&["exec", "--", "sh", "-c", script]).exits(0);
    assert_eq!(picture(&world.work()), before);
    world.run(&["commit"]).exits(0);
    let model = TempDir::new().unwrap();
    outside(model.path(), &format!("{START}; {script}"));
    let without_top = |top: &Path| {
        let mut picture = picture(top);
        picture.remove(Path::new(""));
        picture
    };
    assert_eq!(without_top(&world.work()), without_top(model.path()));
    world.run(&["undo"]).exits(0);
    assert_eq!(picture(&world.work()), before);
    world.run(&["discard", "--now"]).exits(0);
    assert_eq!(
        world.run(&["workspaces", "--json"]).json(),
        serde_json::json!([])
    );
}
