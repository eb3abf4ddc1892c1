//! Where agents that are drawn by lot work: a real repository, a real integration branch with its merge queue, and
//! real workspaces over it, without sandboxes. Everything that was produced is written down.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lula_agents::plan::PathScope;
use lula_agents::team::AgentHandoff;
use lula_protocol::{RunId, WorkspaceId};
use lula_runner_api::BranchWorkspaceStart;
use lula_workspace::checkout::{BranchDelivery, GitChange};
use lula_workspace::integration_branch::{BranchAdvance, IntegrationBranch, IntegrationBranchName};
use lula_workspace::{
    Checkout, GitProgram, LayerPreference, PathContent, PathReplacement, ScratchRepository,
    Workspace, WorkspaceStore,
};

use super::drawn::{Edit, PATHS};

/// What the words begin with of which a project bears each only once.
const WORD: &str = "word ";

/// Something an agent produced, and what came of it.
#[derive(Debug, Clone)]
pub(super) struct Product {
    pub(super) step: String,
    pub(super) commit: String,
    /// Whether it was merged into the integration branch; `None` where that was never tried.
    pub(super) merged: Option<bool>,
    /// The lines it wrote, by file.
    marks: Vec<(String, String)>,
}

/// An agent with its workspace.
struct Agent {
    checkout: Checkout,
    workspace: Workspace,
    scope: PathScope,
    /// What it sees otherwise than its commit is.
    texts: BTreeMap<String, Option<String>>,
    marks: Vec<(String, String)>,
}

/// What an agent comes back with.
pub(super) struct Made {
    pub(super) taken: GitChange,
    /// Whether every word stands only once in what it has before it.
    pub(super) bearable: bool,
}

pub(super) struct Bench {
    git: GitProgram,
    pub(super) repository: ScratchRepository,
    state: tempfile::TempDir,
    agents: BTreeMap<WorkspaceId, Agent>,
    own: BTreeMap<WorkspaceId, (Checkout, Workspace)>,
    pub(super) products: Vec<Product>,
    marked: usize,
}

/// The files below a directory, by their paths from there.
pub(super) fn files(top: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            if path.symlink_metadata().unwrap().is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn bearable<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = BTreeSet::new();
    let mut lines = texts.flat_map(str::lines);
    lines.all(|line| !line.starts_with(WORD) || seen.insert(line.to_owned()))
}

/// A text without the markers of a conflict: what both sides have.
fn without_markers(text: &str) -> String {
    let mut kept = String::new();
    let mut common = false;
    for line in text.split_inclusive('\n') {
        match line.get(..7) {
            Some("|||||||") => common = true,
            Some("=======") => common = false,
            Some("<<<<<<<" | ">>>>>>>") => {}
            _ if common => {}
            _ => kept.push_str(line),
        }
    }
    kept
}

impl Agent {
    fn sees(&self, path: &str) -> Option<String> {
        let base = || std::fs::read_to_string(self.checkout.tree().join(path)).ok();
        self.texts.get(path).cloned().unwrap_or_else(base)
    }

    fn everything(&self) -> Vec<String> {
        let base = files(&self.checkout.tree());
        let names: BTreeSet<&String> = base.keys().chain(self.texts.keys()).collect();
        let texts = names.into_iter().filter_map(|name| self.sees(name));
        texts.collect()
    }

    fn write(&mut self, path: &str, text: Option<String>) {
        let after = text.as_ref().map(|text| PathContent::File {
            bytes: text.as_bytes().to_vec(),
            executable: false,
        });
        let piece = PathReplacement {
            path: path.parse().unwrap(),
            before: None,
            after,
        };
        self.workspace.lay(&[piece]).unwrap();
        self.texts.insert(path.to_owned(), text);
    }

    /// Removes what is in the way of a file: a name is a file or a directory.
    fn make_way(&mut self, path: &str) {
        let base = files(&self.checkout.tree());
        let names: BTreeSet<String> = base.into_keys().chain(self.texts.keys().cloned()).collect();
        for name in names {
            let below = |one: &str, other: &str| one.starts_with(&format!("{other}/"));
            let crosses = below(path, &name) || below(&name, path);
            if crosses && self.sees(&name).is_some() {
                self.write(&name, None);
            }
        }
    }

    /// Mends what did not fit, as far as it may write there.
    fn mend(&mut self) {
        let texts = self.texts.clone();
        let doubled = !bearable(self.everything().iter().map(String::as_str));
        for (path, text) in texts {
            if !self.scope.holds(&path) {
                let base = std::fs::read_to_string(self.checkout.tree().join(&path)).ok();
                if base.is_some() {
                    self.make_way(&path);
                }
                self.write(&path, base);
                continue;
            }
            let Some(text) = text else { continue };
            let mut mended = without_markers(&text);
            if doubled {
                let lines = mended.split_inclusive('\n');
                mended = lines.filter(|line| !line.starts_with(WORD)).collect();
            }
            if mended != text {
                self.write(&path, Some(mended));
            }
        }
    }

    fn edit(&mut self, path: &str, edit: &Edit, mark: &str) {
        let text = self.sees(path);
        if matches!(edit, Edit::Delete) {
            if text.is_some() {
                self.write(path, None);
            }
            return;
        }
        let text = text.unwrap_or_default();
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        if let Some(last) = lines.last_mut()
            && !last.ends_with('\n')
        {
            last.push('\n');
        }
        let line = match edit {
            Edit::Word(number) => format!("{WORD}{number}\n"),
            _ => format!("{mark}\n"),
        };
        // An agent that sees that a word is there does not write it again.
        let stands = |text: &String| text.lines().any(|other| other == line.trim_end());
        if matches!(edit, Edit::Word(_)) && self.everything().iter().any(stands) {
            return;
        }
        match edit {
            Edit::Replace(at) if *at < lines.len() => lines[*at].clone_from(&line),
            Edit::Insert(at) => lines.insert((*at).min(lines.len()), line.clone()),
            _ => lines.push(line.clone()),
        }
        self.make_way(path);
        self.write(path, Some(lines.concat()));
        self.marks
            .push((path.to_owned(), line.trim_end().to_owned()));
    }
}

impl Bench {
    pub(super) fn new() -> Self {
        let git = GitProgram::find("", None).unwrap();
        let text = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let there = [PATHS[0], PATHS[1], PATHS[2], PATHS[3]].map(|path| (path, text));
        let repository = ScratchRepository::new(&git, &there).unwrap();
        Self {
            git,
            repository,
            state: tempfile::tempdir().unwrap(),
            agents: BTreeMap::new(),
            own: BTreeMap::new(),
            products: Vec::new(),
            marked: 0,
        }
    }

    pub(super) fn state(&self) -> &Path {
        self.state.path()
    }

    pub(super) fn branch(&self, run: &RunId) -> IntegrationBranch {
        let repository = self.repository.path();
        IntegrationBranch::begin(self.state(), run, repository, None, &self.git).unwrap()
    }

    pub(super) fn git(&self, branch: &IntegrationBranch, arguments: &[&str]) -> String {
        let name: &IntegrationBranchName = branch.name();
        let directory = IntegrationBranch::home(self.state())
            .join(name.as_str())
            .join("git");
        self.git.run(&directory, arguments).unwrap()
    }

    fn workspace(&self, id: &WorkspaceId, checkout: &Checkout) -> Workspace {
        let store = WorkspaceStore::at(self.state(), 1 << 30);
        store
            .create_as(id.clone(), &checkout.tree(), LayerPreference::Overlay, "")
            .unwrap()
    }

    /// Opens the workspace of the run itself; tells the commit it began with.
    pub(super) fn open(&mut self, id: &WorkspaceId) -> String {
        let repository = self.repository.path();
        let checkout = Checkout::make(self.state(), id, repository, None, &self.git).unwrap();
        let workspace = self.workspace(id, &checkout);
        let commit = checkout.origin().commit.clone();
        self.own.insert(id.clone(), (checkout, workspace));
        commit
    }

    /// Opens the workspace of an agent, who begins with what it is handed.
    pub(super) fn settle(&mut self, id: &WorkspaceId, handoff: &AgentHandoff) {
        let branch = self.branch(&handoff.parent);
        for commit in &handoff.contains {
            assert!(branch.contains(commit).unwrap(), "what it needs is there");
        }
        let with = match &handoff.start {
            BranchWorkspaceStart::Branch => None,
            BranchWorkspaceStart::Merge { commit } => Some(commit.as_str()),
        };
        let checkout = Checkout::make_over(self.state(), id, &branch, with, &self.git).unwrap();
        let mut workspace = self.workspace(id, &checkout);
        let over = checkout.laid_over().unwrap();
        workspace.lay(&over).unwrap();
        let texts = over.into_iter().map(|piece| {
            let text = piece.after.map(|content| match content {
                PathContent::File { bytes, .. } => String::from_utf8(bytes).unwrap(),
                PathContent::Link(_) => panic!("nobody makes links"),
            });
            (piece.path.to_string(), text)
        });
        let agent = Agent {
            scope: handoff.authority.scope.clone(),
            texts: texts.collect(),
            marks: Vec::new(),
            checkout,
            workspace,
        };
        self.agents.insert(id.clone(), agent);
    }

    /// Has an agent do its work.
    pub(super) fn work(
        &mut self,
        id: &WorkspaceId,
        edits: &[(usize, Edit)],
        mends: bool,
        strays: bool,
    ) -> Made {
        let agent = self.agents.get_mut(id).unwrap();
        if mends {
            agent.mend();
        }
        let holds = |path: &&&str| agent.scope.holds(path);
        let may: Vec<&str> = PATHS.iter().filter(holds).copied().collect();
        for (at, edit) in edits {
            self.marked += 1;
            let mark = format!("mark {}", self.marked);
            agent.edit(may[at % may.len()], edit, &mark);
        }
        if strays {
            agent.write("stray.txt", Some("x\n".to_owned()));
        }
        Made {
            taken: agent.checkout.take(&agent.workspace).unwrap(),
            bearable: bearable(agent.everything().iter().map(String::as_str)),
        }
    }

    /// Keeps what an agent did; tells the commit and what of it is outside its scope. Markers of a
    /// conflict are no work.
    pub(super) fn commit(
        &mut self,
        branch: &IntegrationBranch,
        step: &str,
        id: &WorkspaceId,
        message: &str,
    ) -> Result<(String, Vec<String>), String> {
        let agent = &self.agents[id];
        let taken = agent.checkout.take(&agent.workspace).unwrap();
        let marked = |text: &Option<String>| {
            let text = text.as_deref().unwrap_or_default();
            text.lines().any(|line| line.starts_with("<<<<<<<"))
        };
        if agent.texts.values().any(marked) {
            return Err("the markers of a conflict are still there".to_owned());
        }
        let changed = taken.files.iter().map(|file| file.path.clone());
        let outside: Vec<String> = changed.filter(|path| !agent.scope.holds(path)).collect();
        let order = order(message);
        let commit = branch
            .commit_change(
                &step.parse().unwrap(),
                &agent.checkout,
                &taken,
                &order,
                !outside.is_empty(),
            )
            .unwrap();
        // What was written and taken away again was never committed.
        let stays = |(path, line): &&(String, String)| {
            let text = agent.sees(path).unwrap_or_default();
            text.lines().any(|other| other == line)
        };
        self.products.push(Product {
            step: step.to_owned(),
            commit: commit.clone(),
            merged: None,
            marks: agent.marks.iter().filter(stays).cloned().collect(),
        });
        Ok((commit, outside))
    }

    /// Merges a product, as the merge queue does; tells the commit, or what does not
    /// fit and where.
    pub(super) fn merge(
        &mut self,
        branch: &IntegrationBranch,
        step: &str,
        commit: &str,
        message: &str,
    ) -> Result<String, (String, Vec<String>)> {
        let _turn = branch.turn().unwrap();
        branch.candidate(&step.parse().unwrap(), commit).unwrap();
        let was = branch.commit().unwrap();
        let commit_of_merge = merged(branch, commit, message);
        let product = self.products.iter_mut();
        let product = product.rev().find(|one| one.commit == commit).unwrap();
        assert_eq!(product.merged, None, "{step} is brought in once");
        product.merged = Some(commit_of_merge.is_ok());
        let Ok(commit_of_merge) = commit_of_merge else {
            assert_eq!(branch.commit().unwrap(), was, "a conflict moves nothing");
            return commit_of_merge;
        };
        assert!(branch.contains(commit).unwrap() && branch.contains(&was).unwrap());
        let marks = product.marks.clone();
        let laid = branch
            .extract(&self.tree(branch, &commit_of_merge))
            .unwrap();
        let there = files(&laid.path());
        for (path, mark) in marks {
            let text = there.get(&path).cloned().unwrap_or_default();
            let text = String::from_utf8(text).unwrap();
            let found = text.lines().any(|line| line == mark);
            assert!(found, "{step} lost {mark:?} of {path}:\n{text}");
        }
        Ok(commit_of_merge)
    }

    fn tree(&self, branch: &IntegrationBranch, commit: &str) -> String {
        let name = format!("{commit}^{{tree}}");
        self.git(branch, &["rev-parse", &name]).trim().to_owned()
    }

    /// Takes the whole into the run's own workspace.
    pub(super) fn fill(&mut self, branch: &IntegrationBranch, id: &WorkspaceId) {
        let commit = branch.commit().unwrap();
        let pieces = branch.pieces(branch.base(), &commit).unwrap();
        let (_, workspace) = self.own.get_mut(id).unwrap();
        workspace.lay(&pieces).unwrap();
    }

    pub(super) fn take(&self, id: &WorkspaceId) -> GitChange {
        let (checkout, workspace) = &self.own[id];
        checkout.take(workspace).unwrap()
    }
}

fn order(message: &str) -> BranchDelivery<'_> {
    BranchDelivery {
        branch: "",
        message,
        at: 1_000_000,
    }
}

/// Merges a product and lands it, where it merges and every word stands once.
fn merged(
    branch: &IntegrationBranch,
    commit: &str,
    message: &str,
) -> Result<String, (String, Vec<String>)> {
    let merge = branch.merge(commit).unwrap();
    if !merge.conflicts.is_empty() {
        let files = merge.conflicts.iter().map(|one| one.path.clone()).collect();
        return Err(("both sides changed the same".to_owned(), files));
    }
    let laid = branch.extract(&merge.tree).unwrap();
    let texts: Vec<String> = files(&laid.path())
        .into_values()
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect();
    if !bearable(texts.iter().map(String::as_str)) {
        let said = "it merges, and then a word stands twice".to_owned();
        return Err((said, Vec::new()));
    }
    match branch.advance(&merge, &order(message), b"null").unwrap() {
        BranchAdvance::Merged(commit) => Ok(commit),
        BranchAdvance::Moved => panic!("it is our turn"),
    }
}
