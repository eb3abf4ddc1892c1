//! One workspace: a private view of a user's directory, and what becomes of its changes.

use std::path::{Path, PathBuf};

use lula_protocol::{Digest, WorkspaceId};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use crate::commit;
use crate::commit::base::UserDirectory;
use crate::commit::journal::{CommitJournalEntry, CommitSide, VERSION};
use crate::copies::manifest::CopyManifest;
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::layer::aside::ExcludedChanges;
use crate::layer::change::{ChangeSelection, PathChange, WorkspaceDiff};
use crate::layer::diff::{CommittedPaths, DiffContext, FirstSeenPaths, OriginalStateSource};
use crate::store::record::{self, FileLock, LayerBackend, WorkspaceRecord, WorkspaceStatus};
use crate::store::{WorkspaceStore, now_ms};
use crate::tree::node::FileNodeKind;
use crate::tree::path::WorkspacePath;
use crate::tree::{OpenParents, RootedTree, beneath, open_plain, open_to_empty, remove};

pub(crate) const IN_USE: &str = "in-use.lock";
/// The two lie together and apart from everything else: a sandbox is handed the directory they are in.
pub(crate) const UPPER: &str = "layer/upper";
pub(crate) const WORK: &str = "layer/work";
/// In the directory that the kernel makes in [`WORK`], its mark of a layer that was mounted without
/// ever being flushed.
const UNFLUSHED: &str = "incompat";
pub(crate) const COPY: &str = "copy";
const MANIFEST: &str = "manifest.json";
const BROUGHT: &str = "brought.json";
const REMEMBERED: &str = "remembered.json";

/// A private view of a user's directory.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) store: WorkspaceStore,
    pub(crate) directory: RootedTree,
    pub(crate) record: WorkspaceRecord,
}

/// What a sandbox needs to show a workspace. No other process works in it while this lives.
#[derive(Debug)]
pub struct WorkspaceLayer {
    pub place: LayerDirectories,
    _lock: FileLock,
}

/// The directories of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerDirectories {
    /// To be mounted as an overlay, with `userxattr`, where the base is.
    Overlay {
        /// The user's directory, which shows below.
        lower: PathBuf,
        /// The layer that changes go to.
        upper: PathBuf,
        /// What overlayfs itself needs.
        work: PathBuf,
    },
    /// To be worked in as it is.
    Copy {
        /// The copy that is worked in.
        directory: PathBuf,
    },
}

impl LayerDirectories {
    /// The directory that commands see as their workspace.
    pub fn shown(&self) -> &Path {
        match self {
            Self::Overlay { lower, .. } => lower,
            Self::Copy { directory } => directory,
        }
    }
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceCommit {
    /// Paths changed in the user's tree.
    pub paths: Vec<WorkspacePath>,
    /// Paths that were asked for and not taken; they are still in the workspace.
    pub held_back: Vec<WorkspacePath>,
    /// The digest of all changes as they were when it was made.
    pub digest: Digest,
}

/// The content of one path before and after, no longer than asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeAndAfter {
    /// In the user's tree.
    pub old: Option<Vec<u8>>,
    /// Its content in the workspace.
    pub new: Option<Vec<u8>>,
}

impl Workspace {
    pub(crate) const fn new(
        store: WorkspaceStore,
        directory: RootedTree,
        record: WorkspaceRecord,
    ) -> Self {
        Self {
            store,
            directory,
            record,
        }
    }

    pub const fn id(&self) -> &WorkspaceId {
        &self.record.id
    }

    /// What is known about it.
    pub const fn record(&self) -> &WorkspaceRecord {
        &self.record
    }

    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.directory.path.join(name)
    }

    /// Makes the layer, empty or as a copy.
    pub(crate) fn fill(&mut self, base: &RootedTree, allowed: u64) -> WorkspaceResult<()> {
        let failed = |error| WorkspaceError::io("create", "the layer", error);
        match &self.record.backend {
            LayerBackend::Overlay => {
                let upper = RootedTree::create(&self.part(UPPER))?;
                RootedTree::create(&self.part(WORK))?;
                commit::own_like(&upper.top, &base.top).map_err(failed)
            }
            LayerBackend::Copy { .. } => {
                let copy = RootedTree::create(&self.part(COPY))?;
                let manifest = CopyManifest::take(base, &copy, allowed)?;
                commit::own_like(&copy.top, &base.top).map_err(failed)?;
                self.write_manifest(&manifest)
            }
        }
    }

    pub(crate) fn write_manifest(&self, manifest: &CopyManifest) -> WorkspaceResult<()> {
        self.write_manifest_as(MANIFEST, manifest)
    }

    pub(crate) fn write_manifest_as(
        &self,
        name: &str,
        manifest: &CopyManifest,
    ) -> WorkspaceResult<()> {
        let bytes = serde_json::to_vec(manifest).unwrap_or_default();
        record::write(&self.directory, name, &bytes)
    }

    pub(crate) fn manifest(&self) -> WorkspaceResult<CopyManifest> {
        self.manifest_of(MANIFEST)
    }

    pub(crate) fn manifest_of(&self, name: &str) -> WorkspaceResult<CopyManifest> {
        let bad = |reason: String| WorkspaceError::BadRecord {
            path: self.part(name),
            reason,
        };
        let bytes = record::read(&self.directory, name)?
            .ok_or_else(|| bad("it is not there".to_owned()))?;
        serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))
    }

    /// Has changes below these paths left aside, as those of what is ignored: an environment brought what is
    /// there.
    pub fn leave_aside(&self, paths: &[String]) -> WorkspaceResult<()> {
        let bytes = serde_json::to_vec(paths).unwrap_or_default();
        record::write_lazily(&self.directory, BROUGHT, &bytes)
    }

    /// Those paths. Where they cannot be read, nothing is left aside for them.
    pub(crate) fn brought(&self) -> Vec<WorkspacePath> {
        let bytes = record::read(&self.directory, BROUGHT).ok().flatten();
        let listed: Vec<String> = bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        listed.iter().filter_map(|path| path.parse().ok()).collect()
    }

    /// Where a layer turns out not to work as an overlay, before anything was done in it: takes a
    /// copy instead.
    pub fn fall_back_to_copy(&mut self, why: &str) -> WorkspaceResult<()> {
        let _lock = self.exclusive()?;
        for part in [UPPER, WORK] {
            self.remove_part(part)?;
        }
        self.record.backend = LayerBackend::Copy {
            why: why.to_owned(),
        };
        self.record.opened = crate::store::stamp(&self.directory)?;
        let (base, _) = crate::commit::base::open(&self.record.base())?;
        let used = self.store.make_room()?;
        self.fill(&base, self.store.max_bytes().saturating_sub(used))?;
        self.save()
    }

    pub(crate) fn remove_part(&self, name: &str) -> WorkspaceResult<()> {
        remove(&self.directory.top, name.as_ref())
            .map_err(|error| WorkspaceError::io("remove", self.part(name).display(), error))
    }

    pub(crate) fn exclusive(&self) -> WorkspaceResult<FileLock> {
        FileLock::try_take(&self.directory, IN_USE)?
            .ok_or_else(|| WorkspaceError::InUse(self.record.id.clone()))
    }

    /// What a sandbox needs to show it. Keep it as long as the sandbox lives.
    pub fn layer(&self) -> WorkspaceResult<WorkspaceLayer> {
        if self.record.state == WorkspaceStatus::Discarded {
            return Err(WorkspaceError::Discarded(self.record.id.clone()));
        }
        let place = match self.record.backend {
            LayerBackend::Overlay => LayerDirectories::Overlay {
                lower: self.record.base(),
                upper: self.part(UPPER),
                work: self.part(WORK),
            },
            LayerBackend::Copy { .. } => LayerDirectories::Copy {
                directory: self.part(COPY),
            },
        };
        let lock = self.exclusive()?;
        self.flush()?;
        Ok(WorkspaceLayer { place, _lock: lock })
    }

    /// Puts a layer on disk that was mounted without that, and takes the kernel's mark of it away:
    /// then it can be mounted again.
    fn flush(&self) -> WorkspaceResult<()> {
        let failed = |error| WorkspaceError::io("flush", self.part(UPPER).display(), error);
        let of_kernel = match beneath(&self.directory.top, WORK, OFlags::DIRECTORY)
            .and_then(|work| open_to_empty(&work, "work".as_ref()))
        {
            Ok(of_kernel) => of_kernel,
            // Never mounted, or a copy.
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        match rustix::fs::statat(&of_kernel, UNFLUSHED, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed(error)),
        }
        rustix::fs::syncfs(&self.layer_tree()?.top).map_err(failed)?;
        remove(&of_kernel, UNFLUSHED.as_ref()).map_err(failed)
    }

    pub(crate) fn layer_tree(&self) -> WorkspaceResult<RootedTree> {
        RootedTree::open(&self.part(match self.record.backend {
            LayerBackend::Overlay => UPPER,
            LayerBackend::Copy { .. } => COPY,
        }))
    }

    fn base_tree(&self) -> WorkspaceResult<RootedTree> {
        let path = self.record.base();
        let gone = |_| WorkspaceError::BaseGone(path.clone());
        let (tree, identity) = crate::commit::base::open(&path).map_err(gone)?;
        if identity == self.record.identity {
            Ok(tree)
        } else {
            Err(WorkspaceError::BaseGone(path))
        }
    }

    /// What it would change in the user's tree as that is now. A command may be running in it: each
    /// file is then seen as it was at one moment, different files at different moments, and a commit
    /// with this digest refuses if any of them changed since.
    pub fn diff(&self) -> WorkspaceResult<WorkspaceDiff> {
        self.look(&self.base_tree()?)
    }

    fn look(&self, base: &RootedTree) -> WorkspaceResult<WorkspaceDiff> {
        let layer = self.layer_tree()?;
        let manifest = match self.record.backend {
            LayerBackend::Overlay => None,
            LayerBackend::Copy { .. } => Some(self.manifest()?),
        };
        let (major, minor, inode) = self.record.identity;
        DiffContext {
            layer: &layer,
            base,
            name: &format!("{} {major}:{minor}:{inode}", self.record.base_text()),
            found: manifest.as_ref().map_or(
                OriginalStateSource::At(self.record.opened),
                OriginalStateSource::As,
            ),
            settled: CommittedPaths::by(&self.store.entries(&self.record.id)?),
            remembered: self.remembered()?,
        }
        .diff()
    }

    fn remembered(&self) -> WorkspaceResult<FirstSeenPaths> {
        let Some(bytes) = record::read(&self.directory, REMEMBERED)? else {
            return Ok(FirstSeenPaths::default());
        };
        serde_json::from_slice(&bytes).map_err(|error| WorkspaceError::BadRecord {
            path: self.part(REMEMBERED),
            reason: error.to_string(),
        })
    }

    /// Remembers what the changes would replace, so that files which the user changes and puts back
    /// are no conflict later, and how many changes there are and how much space they take. For the
    /// end of a command; [`Workspace::close`] does it too.
    pub fn remember(&mut self, diff: &WorkspaceDiff) -> WorkspaceResult<()> {
        self.remember_leaving(diff, &ExcludedChanges::none())
    }

    fn remember_leaving(
        &mut self,
        diff: &WorkspaceDiff,
        aside: &ExcludedChanges,
    ) -> WorkspaceResult<()> {
        let mut remembered = self.remembered()?;
        if remembered.add(diff) {
            let bytes = serde_json::to_vec(&remembered).unwrap_or_default();
            record::write_lazily(&self.directory, REMEMBERED, &bytes)?;
        }
        self.note(aside.rest(diff).count())
    }

    /// Remembers how many changes it has and how much space it takes; takes it away if there are none
    /// and it was never committed (what is left of it is used again, or removed by
    /// [`WorkspaceStore::empty_trash`]). Tells what it changes. For the end of a session.
    pub fn close(self) -> WorkspaceResult<(Self, WorkspaceDiff)> {
        let (workspace, diff, _) = self.close_leaving(|_, _| ExcludedChanges::none())?;
        Ok((workspace, diff))
    }

    /// The same, where some changes are left aside: they do not count, and go with the workspace where
    /// there are no others. `aside` is asked only if something was changed.
    pub fn close_leaving(
        mut self,
        aside: impl FnOnce(&Self, &WorkspaceDiff) -> ExcludedChanges,
    ) -> WorkspaceResult<(Self, WorkspaceDiff, ExcludedChanges)> {
        let diff = self.diff()?;
        let aside = if diff.is_empty() {
            ExcludedChanges::none()
        } else {
            aside(&self, &diff)
        };
        let unchanged = aside.rest(&diff).next().is_none();
        if unchanged && self.store.entries(&self.record.id)?.is_empty() {
            match self.record.backend {
                LayerBackend::Overlay if aside.is_empty() => self.store.spare(&self.record.id)?,
                LayerBackend::Overlay | LayerBackend::Copy { .. } => {
                    self.store.put_aside(&self.record.id)?
                }
            };
        } else {
            self.flush()?;
            self.remember_leaving(&diff, &aside)?;
        }
        Ok((self, diff, aside))
    }

    fn note(&mut self, changes: usize) -> WorkspaceResult<()> {
        if changes > 0 {
            self.record.state = WorkspaceStatus::Pending;
        }
        self.record.changes = changes as u64;
        self.record.bytes = WorkspaceStore::usage(&self.directory);
        self.save()
    }

    pub(crate) fn save(&mut self) -> WorkspaceResult<()> {
        self.store.save(&self.directory, &self.record)
    }

    /// Another process may have decided meanwhile.
    fn refresh(&mut self) -> WorkspaceResult<()> {
        self.record = self.store.load(&self.record.id)?.1;
        Ok(())
    }

    pub(crate) fn save_lazily(&self) -> WorkspaceResult<()> {
        WorkspaceStore::save_lazily(&self.directory, &self.record)
    }

    /// The content behind a change, if it still has the digests that the change names; `None` on a
    /// side that has no content or more than `limit` bytes.
    pub fn sides(&self, change: &PathChange, limit: u64) -> WorkspaceResult<BeforeAndAfter> {
        let read = |tree: &RootedTree,
                    node: Option<&crate::tree::node::FileNode>|
         -> WorkspaceResult<Option<Vec<u8>>> {
            let Some(node) = node.filter(|node| node.size <= limit) else {
                return Ok(None);
            };
            if let Some(target) = &node.target {
                return Ok(crate::tree::path::unescape(target));
            }
            if node.kind != FileNodeKind::File {
                return Ok(None);
            }
            let path = &change.path;
            let mut parents = OpenParents::of(tree);
            let parent = parents
                .get(path)
                .map_err(|error| WorkspaceError::io("open", path, error))?;
            let mut bytes = Vec::new();
            let file = open_plain(parent, path)?;
            std::io::Read::read_to_end(&mut std::io::Read::take(file, limit + 1), &mut bytes)
                .map_err(|error| WorkspaceError::io("read", path, error))?;
            if node.digest != Some(Digest::of_bytes(&bytes)) {
                return Err(WorkspaceError::Busy { path: path.clone() });
            }
            Ok(Some(bytes))
        };
        Ok(BeforeAndAfter {
            old: read(&self.base_tree()?, change.old.as_ref())?,
            new: read(&self.layer_tree()?, change.new.as_ref())?,
        })
    }

    /// Puts changes into the user's tree: all chosen ones or none. With `expected`, only if the
    /// changes are still those that were reviewed under that digest.
    pub fn commit(
        &mut self,
        selection: &ChangeSelection,
        expected: Option<&Digest>,
    ) -> WorkspaceResult<WorkspaceCommit> {
        self.commit_leaving(selection, expected, &ExcludedChanges::none())
    }

    /// The same without changes that are left aside, unless the selection names them. They stay in the
    /// workspace and are not waited for.
    pub fn commit_leaving(
        &mut self,
        selection: &ChangeSelection,
        expected: Option<&Digest>,
        aside: &ExcludedChanges,
    ) -> WorkspaceResult<WorkspaceCommit> {
        let base = UserDirectory::lock(&self.store, &self.record.base(), self.record.identity)?;
        self.refresh()?;
        if self.record.state == WorkspaceStatus::Discarded {
            return Err(WorkspaceError::Discarded(self.record.id.clone()));
        }
        let diff = self.look(&base.tree)?;
        if let Some(expected) = expected
            .copied()
            .filter(|expected| *expected != diff.digest)
        {
            let found = diff.digest;
            return Err(WorkspaceError::ChangedSinceReview { expected, found });
        }
        if diff.is_empty() {
            return Err(WorkspaceError::NoChanges(self.record.id.clone()));
        }
        let chosen = selection.choose(&diff, aside).map_err(|path| {
            let id = self.record.id.clone();
            WorkspaceError::NoSuchChange { id, path }
        })?;
        if chosen.taken.is_empty() && chosen.held_back.is_empty() {
            return Err(WorkspaceError::NoChanges(self.record.id.clone()));
        }
        if chosen.taken.is_empty() {
            return Err(WorkspaceError::AllHeldBack(chosen.held_back));
        }
        let conflicts: Vec<WorkspacePath> = chosen
            .taken
            .iter()
            .filter(|change| change.conflict)
            .map(|change| change.path.clone())
            .collect();
        if !conflicts.is_empty() {
            return Err(WorkspaceError::Conflicts(conflicts));
        }
        let layer = self.layer_tree()?;
        let (number, directory) = self.next_commit()?;
        let entry = CommitJournalEntry {
            version: VERSION,
            workspace: self.record.id.clone(),
            number,
            base: self.record.base_text().to_owned(),
            identity: self.record.identity,
            at_ms: now_ms(),
            side: CommitSide::Done,
            generation: 0,
            transit: None,
            ops: Vec::new(),
        };
        if let Err(error) = commit::make(&base, &layer, &directory, entry, &chosen.taken) {
            #[cfg(test)]
            if matches!(error, WorkspaceError::Stopped) {
                return Err(error);
            }
            base.remove_transit()?;
            return Err(error);
        }
        let committed = WorkspaceCommit {
            paths: chosen
                .taken
                .iter()
                .map(|change| change.path.clone())
                .collect(),
            held_back: chosen.held_back,
            digest: diff.digest,
        };
        let left = aside
            .rest(&diff)
            .filter(|change| committed.paths.binary_search(&change.path).is_err());
        self.decided(left.count())?;
        Ok(committed)
    }

    /// Pending while something is left.
    fn decided(&mut self, left: usize) -> WorkspaceResult<()> {
        self.record.state = if left == 0 {
            WorkspaceStatus::Committed
        } else {
            WorkspaceStatus::Pending
        };
        self.record.changes = left as u64;
        self.record.bytes = WorkspaceStore::usage(&self.directory);
        self.save()
    }

    /// A directory for the next commit; what a crash left of one that never was goes away.
    fn next_commit(&self) -> WorkspaceResult<(u32, RootedTree)> {
        let finished = self.store.entries(&self.record.id)?;
        let last = finished.iter().map(|entry| entry.number).max();
        let number = last.map_or(1, |last| last + 1);
        let home = RootedTree::create(&self.part("commits"))?;
        remove(&home.top, number.to_string().as_ref())
            .map_err(|error| WorkspaceError::io("remove", home.path.display(), error))?;
        Ok((
            number,
            self.store.commit_directory(&self.record.id, number)?,
        ))
    }

    /// Takes the last commit back. Refuses, and changes nothing, where a file it put there is not
    /// as it put it any more. Its changes wait in the workspace again. A discarded workspace is
    /// brought back instead.
    pub fn undo(&mut self) -> WorkspaceResult<Vec<WorkspacePath>> {
        if self.record.state == WorkspaceStatus::Discarded {
            self.record.state = WorkspaceStatus::Pending;
            self.save()?;
            return Ok(Vec::new());
        }
        self.turn(CommitSide::Done, "undo")
    }

    /// Puts the commit that was undone last into the tree again, as it was.
    pub fn redo(&mut self) -> WorkspaceResult<Vec<WorkspacePath>> {
        self.turn(CommitSide::Undone, "redo")
    }

    fn turn(
        &mut self,
        from: CommitSide,
        what: &'static str,
    ) -> WorkspaceResult<Vec<WorkspacePath>> {
        let base = UserDirectory::lock(&self.store, &self.record.base(), self.record.identity)?;
        self.refresh()?;
        let entries = self.store.entries(&self.record.id)?;
        let last = entries.iter().rev().find(|entry| entry.side == from);
        let last = last.ok_or(WorkspaceError::Nothing(what))?;
        let directory = self.store.commit_directory(&self.record.id, last.number)?;
        let at_ms = now_ms().max(last.at_ms + 1);
        let turned = match commit::turn(&base, &directory, last, at_ms) {
            Ok(turned) => turned,
            Err(error) => {
                #[cfg(test)]
                if matches!(error, WorkspaceError::Stopped) {
                    return Err(error);
                }
                base.remove_transit()?;
                return Err(error);
            }
        };
        let left = self.look(&base.tree)?.changes.len();
        self.decided(left)?;
        Ok(turned.ops.iter().map(|op| op.path().clone()).collect())
    }

    /// Turns its changes down. The user's tree is not touched. The layer is kept until its space is
    /// needed, so that [`Workspace::undo`] can bring it back; `now` removes it at once.
    pub fn discard(mut self, now: bool) -> WorkspaceResult<()> {
        let lock = self.exclusive()?;
        self.record.state = WorkspaceStatus::Discarded;
        self.record.bytes = WorkspaceStore::usage(&self.directory);
        self.save()?;
        drop(lock);
        if now {
            self.delete()?;
        }
        Ok(())
    }

    pub(crate) fn delete(self) -> WorkspaceResult<()> {
        if self.store.remove(&self.record.id)? {
            Ok(())
        } else {
            Err(WorkspaceError::InUse(self.record.id))
        }
    }
}
