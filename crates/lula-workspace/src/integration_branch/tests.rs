//! Lines without a runner: what agents produce is written into layers directly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lula_protocol::{RunId, WorkspaceId};
use proptest::prelude::*;

use super::*;
use crate::checkout::{
    self, BranchDelivery, BranchUpdate, Checkout, GitChange, RepositoryDelivery,
};
use crate::put::{PathContent, PathReplacement};
use crate::scratch::ScratchRepository;
use crate::store::{LayerPreference, WorkspaceStore};
use crate::workspace::Workspace;

struct World {
    git: GitProgram,
    repository: ScratchRepository,
    state: tempfile::TempDir,
    branch: IntegrationBranch,
    next: u8,
}

/// Bytes of every file below a directory, the git directory included.
fn bytes(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            if path.symlink_metadata().unwrap().is_dir() {
                waiting.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

fn run() -> RunId {
    RunId::from_parts(1, [7; 10])
}

fn step(text: &str) -> StepName {
    text.parse().unwrap()
}

fn order(message: &str) -> BranchDelivery<'_> {
    BranchDelivery {
        branch: "",
        message,
        at: 1_000_000,
    }
}

/// An agent at work.
struct Agent {
    checkout: Checkout,
    workspace: Workspace,
}

impl Agent {
    fn write(&mut self, path: &str, text: Option<&str>) {
        let after = text.map(|text| PathContent::File {
            bytes: text.as_bytes().to_vec(),
            executable: false,
        });
        let piece = PathReplacement {
            path: path.parse().unwrap(),
            before: None,
            after,
        };
        self.workspace.lay(&[piece]).unwrap();
    }

    fn taken(&self) -> GitChange {
        self.checkout.take(&self.workspace).unwrap()
    }
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let git = GitProgram::find("", None).unwrap();
        let repository = ScratchRepository::new(&git, files).unwrap();
        let state = tempfile::tempdir().unwrap();
        let branch =
            IntegrationBranch::begin(state.path(), &run(), repository.path(), None, &git).unwrap();
        Self {
            git,
            repository,
            state,
            branch,
            next: 0,
        }
    }

    fn agent(&mut self) -> Agent {
        self.agent_with(None)
    }

    fn agent_with(&mut self, with: Option<&str>) -> Agent {
        self.next += 1;
        let id = WorkspaceId::from_parts(2, [self.next; 10]);
        let state = self.state.path();
        let checkout = Checkout::make_over(state, &id, &self.branch, with, &self.git).unwrap();
        let store = WorkspaceStore::at(state, 1 << 30);
        let mut workspace = store
            .create_as(id, &checkout.tree(), LayerPreference::Overlay, "")
            .unwrap();
        workspace.lay(&checkout.laid_over().unwrap()).unwrap();
        Agent {
            checkout,
            workspace,
        }
    }

    fn commit(&self, name: &str, agent: &Agent) -> String {
        let taken = agent.taken();
        let kept =
            self.branch
                .commit_change(&step(name), &agent.checkout, &taken, &order(name), false);
        kept.unwrap()
    }

    fn merge(&self, commit: &str) -> Option<String> {
        let merge = self.branch.merge(commit).unwrap();
        if !merge.conflicts.is_empty() {
            return None;
        }
        match self
            .branch
            .advance(&merge, &order("merge"), b"note")
            .unwrap()
        {
            BranchAdvance::Merged(commit) => Some(commit),
            BranchAdvance::Moved => panic!("nobody else is here"),
        }
    }

    fn file(&self, commit: &str, path: &str) -> Option<String> {
        let name = format!("{commit}:{path}");
        self.git.run(&self.branch.private(), &["show", &name]).ok()
    }
}

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

#[test]
fn changes_of_two_agents_come_together_and_nothing_reaches_the_repository() {
    let mut world = World::new(&[("a.txt", TEXT), ("b.txt", "b\n")]);
    let before = bytes(world.repository.path());
    let (mut first, mut second) = (world.agent(), world.agent());
    first.write("a.txt", Some(&TEXT.replace("one", "ONE")));
    second.write("a.txt", Some(&TEXT.replace("seven", "SEVEN")));
    second.write("b.txt", None);
    second.write("dir/new.txt", Some("new\n"));
    let one = world.commit("one", &first);
    assert_eq!(
        one,
        world.commit("one", &first),
        "the same words, the same commit"
    );
    let two = world.commit("two", &second);
    let merged = world.merge(&one).unwrap();
    let last = world.merge(&two).unwrap();
    assert_eq!(world.branch.commit().unwrap(), last);
    assert!(world.branch.contains(&one).unwrap() && world.branch.contains(&two).unwrap());
    assert_eq!(world.branch.merged_by(&one).unwrap(), Some(merged));
    assert_eq!(world.branch.merged_by(&two).unwrap(), Some(last.clone()));
    assert_eq!(
        world.branch.note(&two).unwrap().as_deref(),
        Some(&b"note"[..])
    );
    let merged = TEXT.replace("one", "ONE").replace("seven", "SEVEN");
    assert_eq!(world.file(&last, "a.txt"), Some(merged));
    assert_eq!(world.file(&last, "b.txt"), None);
    assert_eq!(world.file(&last, "dir/new.txt").as_deref(), Some("new\n"));
    assert_eq!(bytes(world.repository.path()), before);
    let extracted = world.branch.extract(&last).unwrap();
    assert_eq!(
        std::fs::read_to_string(extracted.path().join("dir/new.txt")).unwrap(),
        "new\n"
    );
    assert!(!extracted.path().join("b.txt").exists());
}

#[test]
fn a_conflict_changes_nothing_and_its_resolution_keeps_both() {
    let mut world = World::new(&[("a.txt", TEXT)]);
    let (mut first, mut second) = (world.agent(), world.agent());
    first.write("a.txt", Some(&TEXT.replace("four", "FOUR")));
    second.write("a.txt", Some(&TEXT.replace("four", "quatre")));
    let (one, two) = (world.commit("one", &first), world.commit("two", &second));
    let merged = world.merge(&one).unwrap();
    let merge = world.branch.merge(&two).unwrap();
    let [conflict] = &merge.conflicts[..] else {
        panic!("{merge:?}");
    };
    assert_eq!(conflict.path, "a.txt");
    assert!(conflict.what[0].contains("Merge conflict"), "{conflict:?}");
    assert_eq!(conflict.hunks[0].line, 4);
    for part in ["FOUR", "|||||||", "four", "quatre"] {
        assert!(conflict.hunks[0].text.contains(part), "{conflict:?}");
    }
    let (ours, theirs) = world.branch.sides(&merge).unwrap();
    assert!(
        ours.contains("+FOUR") && theirs.contains("+quatre"),
        "{ours}{theirs}"
    );
    assert!(world.branch.advance(&merge, &order("m"), b"").is_err());
    assert_eq!(world.branch.commit().unwrap(), merged);

    let mut mender = world.agent_with(Some(&two));
    let begun = mender.taken();
    let marked = begun.files[0].after.clone().unwrap();
    assert!(String::from_utf8(marked).unwrap().contains("<<<<<<<"));
    mender.write("a.txt", Some(&TEXT.replace("four", "FOUR quatre")));
    let resolved = world.commit("two", &mender);
    let last = world.merge(&resolved).unwrap();
    assert!(
        world.branch.contains(&two).unwrap(),
        "the resolved one is an ancestor"
    );
    assert_eq!(
        world.file(&last, "a.txt"),
        Some(TEXT.replace("four", "FOUR quatre"))
    );
    let commits = world.branch.agent_commits().unwrap();
    assert_eq!(commits.len(), 3, "every commit is kept: {commits:?}");
}

#[test]
fn a_branch_that_moved_is_not_moved_from_where_it_was() {
    let mut world = World::new(&[("a.txt", TEXT)]);
    let (mut first, mut second) = (world.agent(), world.agent());
    first.write("x.txt", Some("x\n"));
    second.write("y.txt", Some("y\n"));
    let (one, two) = (world.commit("one", &first), world.commit("two", &second));
    let stale = world.branch.merge(&two).unwrap();
    let merged = world.merge(&one).unwrap();
    assert_eq!(
        world.branch.advance(&stale, &order("m"), b"").unwrap(),
        BranchAdvance::Moved
    );
    assert_eq!(world.branch.commit().unwrap(), merged);
}

#[test]
fn what_left_its_scope_is_kept_and_is_no_candidate() {
    let mut world = World::new(&[("a.txt", TEXT)]);
    let mut agent = world.agent();
    agent.write("x.txt", Some("x\n"));
    let taken = agent.taken();
    let branch = &world.branch;
    let kept = branch.commit_change(&step("t"), &agent.checkout, &taken, &order("t"), true);
    let kept = kept.unwrap();
    assert!(branch.candidate(&step("t"), &kept).is_err());
    assert!(branch.has_agent_commit(&kept).unwrap());
    let other = "0".repeat(40);
    assert!(branch.candidate(&step("t"), &other).is_err());
    assert!("a/b".parse::<StepName>().is_err() && "".parse::<StepName>().is_err());
}

#[test]
fn a_file_can_take_the_place_of_a_directory_and_the_other_way_round() {
    let mut world = World::new(&[("d/x.txt", "x\n"), ("f", "f\n")]);
    let mut agent = world.agent();
    agent.write("d/x.txt", None);
    agent.write("d", Some("now a file\n"));
    agent.write("f", None);
    agent.write("f/y.txt", Some("y\n"));
    let commit = world.commit("t", &agent);
    let last = world.merge(&commit).unwrap();
    let pieces = world.branch.pieces(world.branch.base(), &last).unwrap();
    // Laid over the first commit, as for a delivery, it is the same again.
    let state = world.state.path();
    let id = WorkspaceId::from_parts(3, [1; 10]);
    let checkout = Checkout::make(state, &id, world.repository.path(), None, &world.git).unwrap();
    let mut whole = WorkspaceStore::at(state, 1 << 30)
        .create_as(id, &checkout.tree(), LayerPreference::Overlay, "")
        .unwrap();
    whole.lay(&pieces).unwrap();
    whole.lay(&pieces).unwrap();
    let taken = checkout.take(&whole).unwrap();
    let tree = world
        .branch
        .text(&["rev-parse", &format!("{last}^{{tree}}")])
        .unwrap();
    assert_eq!(taken.tree(), tree);
}

#[test]
fn an_archive_holds_everything_and_gives_the_space_back() {
    let mut world = World::new(&[("a.txt", TEXT)]);
    let mut agent = world.agent();
    agent.write("x.txt", Some("x\n"));
    let commit = world.commit("t", &agent);
    world.branch.archive().unwrap();
    world.branch.archive().unwrap();
    assert!(world.branch.is_archived() && world.branch.commit().is_err());
    let bundle = world.branch.directory().join(BUNDLE);
    let clone = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        // Our own git reaches nothing outside; a person's does.
        let done = std::process::Command::new(world.git.program())
            .current_dir(clone.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    git(&[
        "clone",
        "--quiet",
        world.repository.path().to_str().unwrap(),
        ".",
    ]);
    git(&[
        "fetch",
        "--quiet",
        bundle.to_str().unwrap(),
        "refs/lula/*:refs/lula/*",
    ]);
    assert_eq!(git(&["show", &format!("{commit}:x.txt")]), "x\n");
    // Where space is short archived branches go, and only they.
    space(world.state.path(), &world.git, 0).unwrap();
    assert!(IntegrationBranch::list(world.state.path(), &world.git).is_empty());
    assert!(!agent.checkout.is_cleared());
}

#[test]
fn what_belongs_to_nothing_is_set_aside_and_never_removed() {
    let mut world = World::new(&[("a.txt", TEXT)]);
    let agent = world.agent();
    let state = world.state.path();
    let stray = |path: &str| {
        let path = state.join(path);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("work"), "somebody's").unwrap();
    };
    stray("lines/strange");
    stray("checkouts/mine");
    assert_eq!(quarantine(state, &world.git).unwrap().len(), 2);
    // A branch that lost its record, and with it the checkouts over it.
    std::fs::remove_file(world.branch.directory().join(RECORD)).unwrap();
    let moved = quarantine(state, &world.git).unwrap();
    assert_eq!(moved.len(), 2, "{moved:?}");
    assert!(
        moved
            .iter()
            .any(|name| name.starts_with(agent.checkout.id().as_str()))
    );
    let kept = bytes(&state.join("quarantine"));
    let work = kept.values().filter(|bytes| *bytes == b"somebody's");
    assert_eq!(work.count(), 2);
    assert_eq!(quarantined(state).len(), 4);
    assert!(quarantine(state, &world.git).unwrap().is_empty());
}

#[test]
fn branches_of_several_repositories_are_made_together_or_not_at_all() {
    let mut worlds = [
        World::new(&[("a.txt", TEXT)]),
        World::new(&[("b.txt", TEXT)]),
        World::new(&[("c.txt", TEXT)]),
    ];
    let agents: Vec<Agent> = worlds
        .iter_mut()
        .map(|world| {
            let mut agent = world.agent();
            agent.write("new.txt", Some("new\n"));
            agent
        })
        .collect();
    let git = worlds[0].git.clone();
    let branches: Vec<BranchUpdate> = agents
        .iter()
        .map(|agent| {
            let taken = agent.taken();
            let order = BranchDelivery {
                branch: "lula/one",
                ..order("m")
            };
            let branch = checkout::prepare(&RepositoryDelivery {
                checkout: &agent.checkout,
                taken: &taken,
                order,
            })
            .unwrap();
            agent.checkout.bring(&branch.commit).unwrap();
            branch
        })
        .collect();
    let refs = || -> Vec<String> {
        let listed = worlds.iter().map(|world| {
            git.run(
                world.repository.path(),
                &["for-each-ref", "--format=%(refname)"],
            )
        });
        listed.map(std::result::Result::unwrap).collect()
    };
    let before = refs();
    // Another process holds the lock of the last one: nothing is made anywhere.
    let lock = worlds[2].repository.path().join(".git/refs/heads/lula");
    std::fs::create_dir_all(&lock).unwrap();
    std::fs::write(lock.join("one.lock"), "").unwrap();
    assert!(checkout::create_all(&git, &branches).is_err());
    assert_eq!(refs(), before);
    std::fs::remove_file(lock.join("one.lock")).unwrap();
    // Half of it, as a crash would leave it.
    checkout::create_all(&git, &branches[..2]).unwrap();
    assert!(!checkout::all_there(&git, &branches));
    checkout::take_back(&git, &branches).unwrap();
    assert_eq!(refs(), before);
    checkout::create_all(&git, &branches).unwrap();
    assert!(checkout::all_there(&git, &branches));
    checkout::create_all(&git, &branches).unwrap();
    // A branch that the user moved is theirs.
    let path = worlds[1].repository.path();
    git.run(path, &["update-ref", "refs/heads/lula/one", "HEAD"])
        .unwrap();
    checkout::take_back(&git, &branches).unwrap();
    assert!(refs()[1].contains("lula/one") && !refs()[0].contains("lula/one"));
}

/// What an agent does to the files it finds.
#[derive(Debug, Clone)]
enum Edit {
    Replace { file: usize, line: usize },
    Insert { file: usize, line: usize },
    Delete { file: usize },
    Create { name: usize },
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        4 => (0..3_usize, 0..8_usize).prop_map(|(file, line)| Edit::Replace { file, line }),
        4 => (0..3_usize, 0..8_usize).prop_map(|(file, line)| Edit::Insert { file, line }),
        1 => (0..3_usize).prop_map(|file| Edit::Delete { file }),
        2 => (0..3_usize).prop_map(|name| Edit::Create { name }),
    ];
    prop::collection::vec(edit, 1..4)
}

const FILES: [&str; 3] = ["a.txt", "src/b.txt", "src/c.txt"];

/// Does it, with a text no other step writes; tells the texts that were written and the paths that
/// are gone.
fn act(
    agent: &mut Agent,
    number: usize,
    edits: &[Edit],
) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let mut texts: BTreeMap<String, Option<String>> = BTreeMap::new();
    let tree = agent.checkout.tree();
    for (at, edit) in edits.iter().enumerate() {
        let mark = format!("by {number}, {at}\n");
        let path = match edit {
            Edit::Create { name } => format!("new/{name}.txt"),
            Edit::Replace { file, .. } | Edit::Insert { file, .. } | Edit::Delete { file } => {
                FILES[*file].to_owned()
            }
        };
        let text = texts
            .entry(path.clone())
            .or_insert_with(|| std::fs::read_to_string(tree.join(&path)).ok());
        let mut lines: Vec<String> = text
            .iter()
            .flat_map(|text| text.split_inclusive('\n').map(str::to_owned))
            .collect();
        match edit {
            Edit::Delete { .. } => {
                *text = None;
                continue;
            }
            Edit::Replace { line, .. } if *line < lines.len() => lines[*line] = mark,
            Edit::Insert { line, .. } => lines.insert((*line).min(lines.len()), mark),
            Edit::Replace { .. } | Edit::Create { .. } => lines.push(mark),
        }
        *text = Some(lines.concat());
    }
    let mut written = BTreeMap::new();
    let mut gone = BTreeSet::new();
    for (path, text) in texts {
        let was = tree.join(&path).exists();
        if text.is_some() || was {
            agent.write(&path, text.as_deref());
        }
        match text {
            Some(text) => drop(written.insert(path, text)),
            None if was => drop(gone.insert(path)),
            None => {}
        }
    }
    (written, gone)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Whatever agents do and in whichever order it is merged: each change is in the branch, all of
    /// it, or in a conflict that changed nothing; and the repository is byte by byte what it was.
    #[test]
    fn nothing_that_has_agent_commit_is_lost(
        agents in prop::collection::vec((edits(), 0..3_u8), 2..6),
    ) {
        let text = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let mut world = World::new(&[(FILES[0], text), (FILES[1], text), (FILES[2], text)]);
        let before = bytes(world.repository.path());
        let mut waiting = Vec::new();
        let mut all = Vec::new();
        for (number, (edits, pause)) in agents.iter().enumerate() {
            let mut agent = world.agent();
            let (written, gone) = act(&mut agent, number, edits);
            let commit = world.commit(&format!("t{number}"), &agent);
            all.push(commit.clone());
            waiting.push((number, commit, written, gone));
            // Some are merged before the next one begins, others pile up.
            while waiting.len() > usize::from(*pause) {
                let (number, commit, written, gone) = waiting.remove(0);
                let was = world.branch.commit().unwrap();
                let Some(merged) = world.merge(&commit) else {
                    prop_assert_eq!(world.branch.commit().unwrap(), was);
                    prop_assert!(!world.branch.contains(&commit).unwrap());
                    continue;
                };
                prop_assert!(world.branch.contains(&commit).unwrap());
                prop_assert!(world.branch.contains(&was).unwrap());
                // A caller that asks after a crash finds the same.
                prop_assert_eq!(world.branch.merged_by(&commit).unwrap(), Some(merged.clone()));
                let mine = format!("by {number}, ");
                for (path, text) in written {
                    let found = world.file(&merged, &path).unwrap_or_default();
                    for line in text.lines().filter(|line| line.starts_with(&mine)) {
                        prop_assert!(found.lines().any(|one| one == line), "{} lost {}", path, line);
                    }
                }
                for path in gone {
                    prop_assert_eq!(world.file(&merged, &path), None);
                }
            }
        }
        let kept: BTreeSet<String> = world
            .branch
            .agent_commits()
            .unwrap()
            .into_iter()
            .map(|one| one.commit)
            .collect();
        prop_assert_eq!(kept, all.into_iter().collect());
        prop_assert_eq!(bytes(world.repository.path()), before);
    }
}

/// In the suite; `LULA_LINES` makes it more.
fn cases() -> u32 {
    let more = std::env::var("LULA_LINES").ok();
    more.and_then(|text| text.parse().ok()).unwrap_or(12)
}
