//! Snapshots and forks: copies of a workspace's layer.

use std::collections::BTreeMap;

use lula_protocol::WorkspaceId;

use crate::commit;
use crate::copies::Copier;
use crate::copies::manifest::FileIdentity;
use crate::error::{WorkspaceError, WorkspaceResult};
use crate::store::record::{self, LayerBackend, LayerSnapshot, WorkspaceStatus};
use crate::store::workspace::{COPY, UPPER, WORK, Workspace};
use crate::store::{WorkspaceStore, now_ms};
use crate::tree::path::WorkspacePath;
use crate::tree::{BudgetedReader, RootedTree, remove};

const SNAPSHOTS: &str = "snapshots";

fn snapshot_manifest(number: u32) -> String {
    format!("manifest-{number}.json")
}

impl Workspace {
    /// Copies the layer as it is now under a name, in place of what had that name. No command should
    /// be writing in it.
    pub fn snapshot(&mut self, label: &str) -> WorkspaceResult<()> {
        self.snapshot_within(label, self.store.max_bytes())?;
        self.record.bytes = WorkspaceStore::usage(&self.directory);
        self.save()
    }

    /// As [`Workspace::snapshot`], unless that would take more than so many bytes.
    pub fn snapshot_within(&mut self, label: &str, most: u64) -> WorkspaceResult<()> {
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
        let to = RootedTree::create(&place)?;
        let copies = match self.copy_layer(&self.layer_tree()?, &to, most) {
            Ok(copies) => copies,
            Err(error) => {
                self.remove_snapshot(number)?;
                return Err(error);
            }
        };
        if let LayerBackend::Copy { .. } = self.record.backend {
            let manifest = self.manifest()?.moved_to(&copies);
            self.write_manifest_as(&snapshot_manifest(number), &manifest)?;
        }
        let replaced = self.take_out_snapshot(label);
        self.record.snapshots.push(LayerSnapshot {
            label: label.to_owned(),
            at_ms: now_ms(),
            number,
        });
        self.save()?;
        replaced.map_or(Ok(()), |number| self.remove_snapshot(number))
    }

    /// Forgets a snapshot, if there is one of that name.
    pub fn forget_snapshot(&mut self, label: &str) -> WorkspaceResult<()> {
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

    fn remove_snapshot(&self, number: u32) -> WorkspaceResult<()> {
        let home = RootedTree::create(&self.part(SNAPSHOTS))?;
        remove(&home.top, number.to_string().as_ref())
            .map_err(|error| WorkspaceError::io("remove", home.path.display(), error))?;
        record::unlink(&self.directory, &snapshot_manifest(number))
    }

    fn copy_layer(
        &self,
        from: &RootedTree,
        to: &RootedTree,
        most: u64,
    ) -> WorkspaceResult<BTreeMap<WorkspacePath, (FileIdentity, FileIdentity)>> {
        let mut copies = BTreeMap::new();
        let mut reader = BudgetedReader::default();
        let mut copying = Copier {
            reader: &mut reader,
            layer: self.record.backend == LayerBackend::Overlay,
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
    pub fn restore(&mut self, label: &str) -> WorkspaceResult<()> {
        let _lock = self.exclusive()?;
        let found = self.record.snapshots.iter().find(|one| one.label == label);
        let Some(number) = found.map(|one| one.number) else {
            let (id, label) = (self.record.id.clone(), label.to_owned());
            return Err(WorkspaceError::NoSuchSnapshot { id, label });
        };
        let from = RootedTree::open(&self.part(SNAPSHOTS).join(number.to_string()))?;
        let name = match self.record.backend {
            LayerBackend::Overlay => UPPER,
            LayerBackend::Copy { .. } => COPY,
        };
        let fresh = format!("{name}.new");
        self.remove_part(&fresh)?;
        let to = RootedTree::create(&self.part(&fresh))?;
        let copies = self.copy_layer(&from, &to, self.store.max_bytes())?;
        if let LayerBackend::Copy { .. } = self.record.backend {
            let manifest = self.manifest_of(&snapshot_manifest(number))?;
            self.write_manifest(&manifest.moved_to(&copies))?;
        }
        let failed = |error| WorkspaceError::io("restore", self.directory.path.display(), error);
        self.remove_part(name)?;
        rustix::fs::renameat(&self.directory.top, &fresh, &self.directory.top, name)
            .map_err(failed)?;
        if self.record.backend == LayerBackend::Overlay {
            self.remove_part(WORK)?;
            RootedTree::create(&self.part(WORK))?;
        }
        self.save()
    }

    /// A second workspace on the same directory that starts with this one's changes.
    pub fn fork(&self, title: &str) -> WorkspaceResult<Self> {
        self.store.make_room()?;
        let mut record = self.record.clone();
        record.id = WorkspaceId::from_parts(now_ms(), crate::store::random()?);
        record.title = title.chars().take(200).collect();
        record.state = WorkspaceStatus::Pending;
        record.snapshots = Vec::new();
        let place = self
            .store
            .root()
            .join("workspaces")
            .join(record.id.as_str());
        let mut fork = Self::new(self.store.clone(), RootedTree::create(&place)?, record);
        let made = fork
            .take_layer_of(self)
            .and_then(|()| fork.remember(&self.diff()?));
        if let Err(error) = made {
            let _ = fork.delete();
            return Err(error);
        }
        Ok(fork)
    }

    fn take_layer_of(&mut self, other: &Self) -> WorkspaceResult<()> {
        let name = match self.record.backend {
            LayerBackend::Overlay => UPPER,
            LayerBackend::Copy { .. } => COPY,
        };
        let to = RootedTree::create(&self.part(name))?;
        let copies = self.copy_layer(&other.layer_tree()?, &to, self.store.max_bytes())?;
        match self.record.backend {
            LayerBackend::Overlay => {
                RootedTree::create(&self.part(WORK))?;
            }
            LayerBackend::Copy { .. } => {
                self.write_manifest(&other.manifest()?.moved_to(&copies))?;
            }
        }
        self.record.bytes = WorkspaceStore::usage(&self.directory);
        Ok(())
    }
}
