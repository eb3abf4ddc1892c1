//! One workspace: a private view of a user's directory, and what becomes of its changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lula_protocol::{Digest, WorkspaceId};

use crate::base::Base;
use crate::change::{Change, Diff, Selection};
use crate::commit;
use crate::copy::{Identity, Manifest};
use crate::copying::Copier;
use crate::diff::{Found, Look, Settled};
use crate::error::{Result, WorkspaceError};
use crate::journal::{Entry, Side, VERSION};
use crate::node::Kind;
use crate::path::RelPath;
use crate::record::{self, Backend, Lock, Record, Snapshot, State};
use crate::store::{Store, now_ms};
use crate::tree::{Parents, Reader, Tree, open_plain, remove};

pub(crate) const IN_USE: &str = "in-use.lock";
/// The two lie together and apart from everything else: a sandbox is handed the directory they are in.
const UPPER: &str = "layer/upper";
const WORK: &str = "layer/work";
const COPY: &str = "copy";
const MANIFEST: &str = "manifest.json";
const SNAPSHOTS: &str = "snapshots";

fn snapshot_manifest(number: u32) -> String {
    format!("manifest-{number}.json")
}

/// A private view of a user's directory.
#[derive(Debug)]
pub struct Workspace {
    store: Store,
    directory: Tree,
    record: Record,
}

/// What a sandbox needs to show a workspace. Nobody else works in it while this lives.
#[derive(Debug)]
pub struct Layer {
    /// Where what lies.
    pub place: Place,
    _lock: Lock,
}

/// The directories of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// To be mounted as an overlay, with `userxattr`, where the base is.
    Overlay {
        /// The user's directory.
        lower: PathBuf,
        /// What was touched.
        upper: PathBuf,
        /// What overlayfs itself needs.
        work: PathBuf,
    },
    /// To be worked in as it is.
    Copy {
        /// The copy.
        directory: PathBuf,
    },
}

impl Place {
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
pub struct Committed {
    /// Paths changed in the user's tree.
    pub paths: Vec<RelPath>,
    /// Paths that were asked for and not taken; they are still in the workspace.
    pub held_back: Vec<RelPath>,
    /// The digest of all changes as they were when it was made.
    pub digest: Digest,
}

/// The content of one path before and after, no longer than asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// In the user's tree.
    pub old: Option<Vec<u8>>,
    /// In the workspace.
    pub new: Option<Vec<u8>>,
}

impl Workspace {
    pub(crate) const fn new(store: Store, directory: Tree, record: Record) -> Self {
        Self {
            store,
            directory,
            record,
        }
    }

    /// Its name.
    pub const fn id(&self) -> &WorkspaceId {
        &self.record.id
    }

    /// What is known about it.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    fn part(&self, name: &str) -> PathBuf {
        self.directory.path.join(name)
    }

    /// Makes the layer, empty or as a copy.
    pub(crate) fn fill(&mut self, base: &Tree, allowed: u64) -> Result<()> {
        let failed = |error| WorkspaceError::io("create", "the layer", error);
        match &self.record.backend {
            Backend::Overlay => {
                let upper = Tree::create(&self.part(UPPER))?;
                Tree::create(&self.part(WORK))?;
                commit::own_like(&upper.top, &base.top).map_err(failed)
            }
            Backend::Copy { .. } => {
                let copy = Tree::create(&self.part(COPY))?;
                let manifest = Manifest::take(base, &copy, allowed)?;
                commit::own_like(&copy.top, &base.top).map_err(failed)?;
                self.write_manifest(&manifest)
            }
        }
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        self.write_manifest_as(MANIFEST, manifest)
    }

    fn write_manifest_as(&self, name: &str, manifest: &Manifest) -> Result<()> {
        let bytes = serde_json::to_vec(manifest).unwrap_or_default();
        record::write(&self.directory, name, &bytes)
    }

    fn manifest(&self) -> Result<Manifest> {
        self.manifest_of(MANIFEST)
    }

    fn manifest_of(&self, name: &str) -> Result<Manifest> {
        let bad = |reason: String| WorkspaceError::BadRecord {
            path: self.part(name),
            reason,
        };
        let bytes = record::read(&self.directory, name)?
            .ok_or_else(|| bad("it is not there".to_owned()))?;
        serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))
    }

    /// Where a layer turns out not to work as an overlay, before anything was done in it: takes a
    /// copy instead.
    pub fn fall_back_to_copy(&mut self, why: &str) -> Result<()> {
        let _lock = self.exclusive()?;
        for part in [UPPER, WORK] {
            self.remove_part(part)?;
        }
        self.record.backend = Backend::Copy {
            why: why.to_owned(),
        };
        self.record.opened = crate::store::stamp(&self.directory)?;
        let (base, _) = crate::base::open(&self.record.base())?;
        let used = self.store.make_room()?;
        self.fill(&base, self.store.max_bytes().saturating_sub(used))?;
        self.save()
    }

    fn remove_part(&self, name: &str) -> Result<()> {
        remove(&self.directory.top, name.as_ref())
            .map_err(|error| WorkspaceError::io("remove", self.part(name).display(), error))
    }

    fn exclusive(&self) -> Result<Lock> {
        Lock::try_take(&self.directory, IN_USE)?
            .ok_or_else(|| WorkspaceError::InUse(self.record.id.clone()))
    }

    /// What a sandbox needs to show it. Keep it as long as the sandbox lives.
    pub fn layer(&self) -> Result<Layer> {
        if self.record.state == State::Discarded {
            return Err(WorkspaceError::Discarded(self.record.id.clone()));
        }
        let place = match self.record.backend {
            Backend::Overlay => Place::Overlay {
                lower: self.record.base(),
                upper: self.part(UPPER),
                work: self.part(WORK),
            },
            Backend::Copy { .. } => Place::Copy {
                directory: self.part(COPY),
            },
        };
        Ok(Layer {
            place,
            _lock: self.exclusive()?,
        })
    }

    fn layer_tree(&self) -> Result<Tree> {
        Tree::open(&self.part(match self.record.backend {
            Backend::Overlay => UPPER,
            Backend::Copy { .. } => COPY,
        }))
    }

    fn base_tree(&self) -> Result<Tree> {
        let path = self.record.base();
        let gone = |_| WorkspaceError::BaseGone(path.clone());
        let (tree, identity) = crate::base::open(&path).map_err(gone)?;
        if identity == self.record.identity {
            Ok(tree)
        } else {
            Err(WorkspaceError::BaseGone(path))
        }
    }

    /// What it would change in the user's tree as that is now. A command may be running in it: each
    /// file is then seen as it was at one moment, different files at different moments, and a commit
    /// with this digest refuses if any of them changed since.
    pub fn diff(&self) -> Result<Diff> {
        self.look(&self.base_tree()?)
    }

    fn look(&self, base: &Tree) -> Result<Diff> {
        let layer = self.layer_tree()?;
        let manifest = match self.record.backend {
            Backend::Overlay => None,
            Backend::Copy { .. } => Some(self.manifest()?),
        };
        let (major, minor, inode) = self.record.identity;
        Look {
            layer: &layer,
            base,
            name: &format!("{} {major}:{minor}:{inode}", self.record.base_text()),
            found: manifest
                .as_ref()
                .map_or(Found::At(self.record.opened), Found::As),
            settled: Settled::by(&self.store.entries(&self.record.id)?),
        }
        .diff()
    }

    /// Remembers how many changes it has and how much space it takes; removes it if there are none
    /// and it was never committed. Tells what it changes. For the end of a session.
    pub fn close(mut self) -> Result<(Self, Diff)> {
        let diff = self.diff()?;
        if diff.is_empty() && self.store.entries(&self.record.id)?.is_empty() {
            self.store.remove(&self.record.id)?;
        } else {
            self.note(&diff)?;
        }
        Ok((self, diff))
    }

    fn note(&mut self, diff: &Diff) -> Result<()> {
        if !diff.is_empty() {
            self.record.state = State::Pending;
        }
        self.record.changes = diff.changes.len() as u64;
        self.record.bytes = Store::usage(&self.directory);
        self.save()
    }

    pub(crate) fn save(&mut self) -> Result<()> {
        Store::save(&self.directory, &self.record)
    }

    pub(crate) fn save_lazily(&self) -> Result<()> {
        Store::save_lazily(&self.directory, &self.record)
    }

    /// The content behind a change, if it still has the digests that the change names; `None` on a
    /// side that has no content or more than `limit` bytes.
    pub fn sides(&self, change: &Change, limit: u64) -> Result<Sides> {
        let read = |tree: &Tree, node: Option<&crate::node::Node>| -> Result<Option<Vec<u8>>> {
            let Some(node) = node.filter(|node| node.size <= limit) else {
                return Ok(None);
            };
            if let Some(target) = &node.target {
                return Ok(crate::path::unescape(target));
            }
            if node.kind != Kind::File {
                return Ok(None);
            }
            let path = &change.path;
            let mut parents = Parents::of(tree);
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
        Ok(Sides {
            old: read(&self.base_tree()?, change.old.as_ref())?,
            new: read(&self.layer_tree()?, change.new.as_ref())?,
        })
    }

    /// Puts changes into the user's tree: all chosen ones or none. With `expected`, only if the
    /// changes are still those that were reviewed under that digest.
    pub fn commit(
        &mut self,
        selection: &Selection,
        expected: Option<&Digest>,
    ) -> Result<Committed> {
        if self.record.state == State::Discarded {
            return Err(WorkspaceError::Discarded(self.record.id.clone()));
        }
        let base = Base::lock(&self.store, &self.record.base(), self.record.identity)?;
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
        let chosen = selection.choose(&diff).map_err(|path| {
            let id = self.record.id.clone();
            WorkspaceError::NoSuchChange { id, path }
        })?;
        if chosen.taken.is_empty() {
            return Err(WorkspaceError::AllHeldBack(chosen.held_back));
        }
        let conflicts: Vec<RelPath> = chosen
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
        let entry = Entry {
            version: VERSION,
            workspace: self.record.id.clone(),
            number,
            base: self.record.base_text().to_owned(),
            identity: self.record.identity,
            at_ms: now_ms(),
            side: Side::Done,
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
        let committed = Committed {
            paths: chosen
                .taken
                .iter()
                .map(|change| change.path.clone())
                .collect(),
            held_back: chosen.held_back,
            digest: diff.digest,
        };
        self.decided(diff.changes.len() - committed.paths.len())?;
        Ok(committed)
    }

    /// Pending while something is left.
    fn decided(&mut self, left: usize) -> Result<()> {
        self.record.state = if left == 0 {
            State::Committed
        } else {
            State::Pending
        };
        self.record.changes = left as u64;
        self.record.bytes = Store::usage(&self.directory);
        self.save()
    }

    /// A directory for the next commit; what a crash left of one that never was goes away.
    fn next_commit(&self) -> Result<(u32, Tree)> {
        let finished = self.store.entries(&self.record.id)?;
        let last = finished.iter().map(|entry| entry.number).max();
        let number = last.map_or(1, |last| last + 1);
        let home = Tree::create(&self.part("commits"))?;
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
    pub fn undo(&mut self) -> Result<Vec<RelPath>> {
        if self.record.state == State::Discarded {
            self.record.state = State::Pending;
            self.save()?;
            return Ok(Vec::new());
        }
        self.turn(Side::Done, "undo")
    }

    /// Puts the commit that was undone last into the tree again, as it was.
    pub fn redo(&mut self) -> Result<Vec<RelPath>> {
        self.turn(Side::Undone, "redo")
    }

    fn turn(&mut self, from: Side, what: &'static str) -> Result<Vec<RelPath>> {
        let base = Base::lock(&self.store, &self.record.base(), self.record.identity)?;
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
    pub fn discard(mut self, now: bool) -> Result<()> {
        let lock = self.exclusive()?;
        self.record.state = State::Discarded;
        self.record.bytes = Store::usage(&self.directory);
        self.save()?;
        drop(lock);
        if now {
            self.delete()?;
        }
        Ok(())
    }

    pub(crate) fn delete(self) -> Result<()> {
        if self.store.remove(&self.record.id)? {
            Ok(())
        } else {
            Err(WorkspaceError::InUse(self.record.id))
        }
    }

    /// Copies the layer as it is now under a name, in place of what had that name. No command should
    /// be writing in it.
    pub fn snapshot(&mut self, label: &str) -> Result<()> {
        self.snapshot_within(label, self.store.max_bytes())?;
        self.record.bytes = Store::usage(&self.directory);
        self.save()
    }

    /// As [`Workspace::snapshot`], unless that would take more than so many bytes.
    pub fn snapshot_within(&mut self, label: &str, most: u64) -> Result<()> {
        let number = self
            .record
            .snapshots
            .iter()
            .map(|one| one.number + 1)
            .max()
            .unwrap_or(0);
        // What a crash left of one that never was, or of one that was forgotten.
        self.remove_snapshot(number)?;
        let place = self.part(SNAPSHOTS).join(number.to_string());
        let to = Tree::create(&place)?;
        let copies = match self.copy_layer(&self.layer_tree()?, &to, most) {
            Ok(copies) => copies,
            Err(error) => {
                self.remove_snapshot(number)?;
                return Err(error);
            }
        };
        if let Backend::Copy { .. } = self.record.backend {
            let manifest = self.manifest()?.moved_to(&copies);
            self.write_manifest_as(&snapshot_manifest(number), &manifest)?;
        }
        let replaced = self.take_out_snapshot(label);
        self.record.snapshots.push(Snapshot {
            label: label.to_owned(),
            at_ms: now_ms(),
            number,
        });
        self.save()?;
        replaced.map_or(Ok(()), |number| self.remove_snapshot(number))
    }

    /// Forgets a snapshot, if there is one of that name.
    pub fn forget_snapshot(&mut self, label: &str) -> Result<()> {
        let Some(number) = self.take_out_snapshot(label) else {
            return Ok(());
        };
        self.save()?;
        self.remove_snapshot(number)
    }

    fn take_out_snapshot(&mut self, label: &str) -> Option<u32> {
        let snapshots = &mut self.record.snapshots;
        let at = snapshots.iter().position(|one| one.label == label)?;
        Some(snapshots.remove(at).number)
    }

    fn remove_snapshot(&self, number: u32) -> Result<()> {
        let home = Tree::create(&self.part(SNAPSHOTS))?;
        remove(&home.top, number.to_string().as_ref())
            .map_err(|error| WorkspaceError::io("remove", home.path.display(), error))?;
        record::unlink(&self.directory, &snapshot_manifest(number))
    }

    fn copy_layer(
        &self,
        from: &Tree,
        to: &Tree,
        most: u64,
    ) -> Result<BTreeMap<RelPath, (Identity, Identity)>> {
        let mut copies = BTreeMap::new();
        let mut reader = Reader::default();
        let mut copying = Copier {
            reader: &mut reader,
            layer: self.record.backend == Backend::Overlay,
            allowed: most,
        };
        copying.tree(&from.top, &to.top, &mut |path, was, is| {
            copies.insert(path.clone(), (was.into(), is.into()));
        })?;
        commit::own_like(&to.top, &from.top)
            .map_err(|error| WorkspaceError::io("copy", to.path.display(), error))?;
        Ok(copies)
    }

    /// Puts the layer back as it was in a snapshot, which stays. No session may be open on it.
    pub fn restore(&mut self, label: &str) -> Result<()> {
        let _lock = self.exclusive()?;
        let found = self.record.snapshots.iter().find(|one| one.label == label);
        let Some(number) = found.map(|one| one.number) else {
            let (id, label) = (self.record.id.clone(), label.to_owned());
            return Err(WorkspaceError::NoSuchSnapshot { id, label });
        };
        let from = Tree::open(&self.part(SNAPSHOTS).join(number.to_string()))?;
        let name = match self.record.backend {
            Backend::Overlay => UPPER,
            Backend::Copy { .. } => COPY,
        };
        let fresh = format!("{name}.new");
        self.remove_part(&fresh)?;
        let to = Tree::create(&self.part(&fresh))?;
        let copies = self.copy_layer(&from, &to, self.store.max_bytes())?;
        if let Backend::Copy { .. } = self.record.backend {
            let manifest = self.manifest_of(&snapshot_manifest(number))?;
            self.write_manifest(&manifest.moved_to(&copies))?;
        }
        let failed = |error| WorkspaceError::io("restore", self.directory.path.display(), error);
        self.remove_part(name)?;
        rustix::fs::renameat(&self.directory.top, &fresh, &self.directory.top, name)
            .map_err(failed)?;
        if self.record.backend == Backend::Overlay {
            self.remove_part(WORK)?;
            Tree::create(&self.part(WORK))?;
        }
        self.save()
    }

    /// A second workspace on the same directory that starts with this one's changes.
    pub fn fork(&self, title: &str) -> Result<Self> {
        self.store.make_room()?;
        let mut record = self.record.clone();
        record.id = WorkspaceId::from_parts(now_ms(), crate::store::random()?);
        record.title = title.chars().take(200).collect();
        record.state = State::Pending;
        record.snapshots = Vec::new();
        let place = self
            .store
            .root()
            .join("workspaces")
            .join(record.id.as_str());
        let mut fork = Self::new(self.store.clone(), Tree::create(&place)?, record);
        let made = fork.take_layer_of(self).and_then(|()| fork.save());
        if let Err(error) = made {
            let _ = fork.delete();
            return Err(error);
        }
        Ok(fork)
    }

    fn take_layer_of(&mut self, other: &Self) -> Result<()> {
        let name = match self.record.backend {
            Backend::Overlay => UPPER,
            Backend::Copy { .. } => COPY,
        };
        let to = Tree::create(&self.part(name))?;
        let copies = self.copy_layer(&other.layer_tree()?, &to, self.store.max_bytes())?;
        match self.record.backend {
            Backend::Overlay => {
                Tree::create(&self.part(WORK))?;
            }
            Backend::Copy { .. } => self.write_manifest(&other.manifest()?.moved_to(&copies))?,
        }
        self.record.bytes = Store::usage(&self.directory);
        Ok(())
    }
}
