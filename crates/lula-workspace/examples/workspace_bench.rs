//! How long it takes to look at, commit and undo many changed files, beside `cp -a` and
//! `git checkout` of the same files. Prints JSON. Run by `cargo xtask bench workspace`.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement, not a product"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use lula_workspace::{ChangeSelection, LayerDirectories, LayerPreference, WorkspaceStore};

fn main() {
    let files: usize = std::env::args()
        .nth(1)
        .map_or(10_000, |text| text.parse().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let (base, state) = (scratch.path().join("base"), scratch.path().join("state"));
    write(&base, files, "old");
    let store = WorkspaceStore::at(&state, 100 << 30);
    let begun = Instant::now();
    let mut workspace = store
        .create(&base, LayerPreference::Overlay, "bench")
        .unwrap();
    let open = begun.elapsed();
    let LayerDirectories::Overlay { upper, .. } = workspace.layer().unwrap().place else {
        panic!("not an overlay")
    };
    // What a sandboxed command would have left there.
    write(&upper, files, "new");
    sync();
    let mut rows = vec![("open", open.as_secs_f64(), 0)];
    let timed = |work: &mut dyn FnMut()| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64()
    };
    let mut digest = None;
    rows.push((
        "diff",
        timed(&mut || digest = Some(workspace.diff().unwrap().digest)),
        files,
    ));
    let commit = timed(&mut || {
        let committed = workspace
            .commit(&ChangeSelection::all(), digest.as_ref())
            .unwrap();
        assert_eq!(committed.paths.len(), files);
    });
    rows.push(("commit", commit, files));
    rows.push((
        "undo",
        timed(&mut || drop(workspace.undo().unwrap())),
        files,
    ));
    rows.push((
        "redo",
        timed(&mut || drop(workspace.redo().unwrap())),
        files,
    ));

    let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
    write(&from, files, "new");
    write(&to, files, "old");
    sync();
    let copy = || run(Command::new("cp").arg("-a").arg(from.join(".")).arg(&to));
    rows.push(("cp_a", timed(&mut || copy()), files));
    write(&to, files, "old");
    sync();
    let copy_sync = || {
        copy();
        sync();
    };
    rows.push(("cp_a_sync", timed(&mut || copy_sync()), files));

    let repository = scratch.path().join("repository");
    write(&repository, files, "old");
    let git = |arguments: &[&str]| {
        let identity = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "gc.auto=0",
        ];
        run(Command::new("git")
            .args(identity)
            .args(arguments)
            .current_dir(&repository));
    };
    git(&["init", "-q", "-b", "old", "."]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "old"]);
    git(&["checkout", "-qb", "new"]);
    write(&repository, files, "new");
    git(&["commit", "-qam", "new"]);
    git(&["checkout", "-q", "old"]);
    sync();
    rows.push((
        "git_checkout",
        timed(&mut || git(&["checkout", "-q", "new"])),
        files,
    ));

    let rows: Vec<_> = rows
        .iter()
        .map(|(name, seconds, files)| {
            serde_json::json!({
                "name": name,
                "seconds": seconds,
                "files_per_second": (*files > 0).then(|| (*files as f64 / seconds).round()),
            })
        })
        .collect();
    println!("{}", serde_json::json!({ "files": files, "rows": rows }));
}

/// So many files of about a kilobyte, a hundred to a directory.
fn write(top: &Path, files: usize, word: &str) {
    for number in 0..files {
        let directory = top.join(format!("d{}", number / 100));
        if number % 100 == 0 {
            std::fs::create_dir_all(&directory).unwrap();
        }
        let text = format!("{word} {number}\n").repeat(80);
        std::fs::write(directory.join(format!("f{number}")), text).unwrap();
    }
}

fn run(command: &mut Command) {
    assert!(
        command.stdout(Stdio::null()).status().unwrap().success(),
        "{command:?}"
    );
}

fn sync() {
    run(&mut Command::new("sync"));
}
