//! What every kept workspace takes, noted so that making a new one does not read the records of all.
//!
//! It is a note and not the truth. A writer of a record throws it away, what is not in it is read
//! from the record, and nothing is removed, and no caller refused, on its word alone.
//!
//! Whether a workspace was decided is read from its record, while the record is locked.

use std::collections::BTreeMap;

use lula_protocol::WorkspaceId;
use serde::{Deserialize, Serialize};

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::store::WorkspaceStore;
use crate::store::record;
use crate::tree::RootedTree;

const TALLY: &str = "tally.json";

/// A workspace as far as the space it takes is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceSpace {
    pub(crate) id: WorkspaceId,
    pub(crate) bytes: u64,
    /// Whether its changes no longer wait for a decision.
    pub(crate) decided: bool,
}

/// What is noted of a workspace: its bytes, and whether it was decided.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct SpaceNote(u64, bool);

type Tally = BTreeMap<WorkspaceId, SpaceNote>;

impl WorkspaceStore {
    /// Every workspace, the newest first; `without` gets every directory that has no record.
    pub(crate) fn kept(
        &self,
        without: impl Fn(&WorkspaceId) -> WorkspaceResult<()>,
    ) -> WorkspaceResult<Vec<WorkspaceSpace>> {
        let root = RootedTree::open(self.root())?;
        let mut tally = read(&root);
        let mut learned = false;
        let mut kept = Vec::new();
        for id in self.ids()? {
            if let Some(SpaceNote(bytes, decided)) = tally.get(&id).copied() {
                kept.push(WorkspaceSpace { id, bytes, decided });
                continue;
            }
            match self.load(&id) {
                Ok((directory, record)) => {
                    let decided = record.is_decided();
                    let mut bytes = record.bytes;
                    if bytes == 0 {
                        // A process works in it, or was killed before it was measured.
                        bytes = Self::usage(&directory);
                    } else {
                        tally.insert(id.clone(), SpaceNote(bytes, decided));
                        learned = true;
                    }
                    kept.push(WorkspaceSpace { id, bytes, decided });
                }
                Err(WorkspaceError::Unknown(_)) => without(&id)?,
                // Nothing can be said of a damaged one.
                Err(_) => {}
            }
        }
        kept.sort_by(|a, b| b.id.cmp(&a.id));
        if learned {
            tally.retain(|id, _| kept.binary_search_by(|one| id.cmp(&one.id)).is_ok());
            // What cannot be noted is read again.
            let _ = record::write_lazily(&root, TALLY, &bytes_of(&tally));
        }
        Ok(kept)
    }

    /// Throws the note away: a record has changed.
    pub(crate) fn forget_tally(&self) {
        let _ = std::fs::remove_file(self.root().join(TALLY));
    }
}

fn read(root: &RootedTree) -> Tally {
    let bytes = record::read(root, TALLY).ok().flatten();
    bytes
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn bytes_of(tally: &Tally) -> Vec<u8> {
    serde_json::to_vec(tally).unwrap_or_default()
}
