//! A page of a log as it travels from a server to a client, which can check all of it.

use std::collections::BTreeMap;

use lula_protocol::event::{LogChain, ParentRun};
use lula_protocol::{Digest, EventPayload, RunId, canonical};
use lula_store::{LogHead, LogRecord, RunRow, RunStatus, RunStore, StoreError, StoreResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most entries of a page.
const ENTRIES: u32 = 256;
/// A page ends after so many bytes of entries and values.
const BYTES: usize = 4 << 20;

/// One entry of a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PageRecord {
    epoch: u64,
    at_ms: u64,
    schema: u32,
    hash: Digest,
    body: Value,
}

/// A run, and its log from a position on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunLogPage {
    run: RunId,
    graph: String,
    graph_version: u32,
    status: RunStatus,
    /// Whether a driver works on it, or will soon.
    driven: bool,
    epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<ParentRun>,
    /// How long the whole log is, and the digest of its last entry.
    next: u64,
    head: Digest,
    /// The position of the first entry here.
    from: u64,
    records: Vec<PageRecord>,
    /// The values that these entries name.
    values: BTreeMap<Digest, Value>,
    /// Those that were dropped to make room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<Digest>,
}

fn not_json(what: &str) -> StoreError {
    StoreError::Backend {
        backend: "store",
        message: format!("{what} is not JSON"),
    }
}

impl RunLogPage {
    /// Reads a page: one entry at least where there is one, and no more than fits.
    pub async fn read(
        store: &dyn RunStore,
        row: RunRow,
        from: u64,
        driven: bool,
    ) -> StoreResult<Self> {
        let mut page = Self {
            run: row.run,
            graph: row.graph,
            graph_version: row.graph_version,
            status: row.status,
            driven,
            epoch: row.epoch,
            parent: row.parent,
            next: row.head.next,
            head: row.head.hash,
            from,
            records: Vec::new(),
            values: BTreeMap::new(),
            dropped: Vec::new(),
        };
        let mut bytes = 0;
        for record in store.read(&page.run, from, ENTRIES).await? {
            // What came after the row was read is in the next page.
            if bytes > BYTES || record.seq >= page.next {
                break;
            }
            bytes += record.body.len();
            for payload in record.read_body()?.payloads() {
                if let EventPayload::Blob(reference) = payload {
                    bytes += page.take(reference.digest, store).await?;
                }
            }
            page.records.push(PageRecord {
                epoch: record.epoch,
                at_ms: record.at_ms,
                schema: record.schema,
                hash: record.hash,
                body: serde_json::from_slice(&record.body).map_err(|_| not_json("an entry"))?,
            });
        }
        Ok(page)
    }

    /// Takes a value along, and tells how long it is.
    async fn take(&mut self, digest: Digest, store: &dyn RunStore) -> StoreResult<usize> {
        if self.values.contains_key(&digest) || self.dropped.contains(&digest) {
            return Ok(0);
        }
        match store.blob(&digest).await {
            Ok(bytes) => {
                let value = serde_json::from_slice(&bytes).map_err(|_| not_json("a value"))?;
                self.values.insert(digest, value);
                Ok(bytes.len())
            }
            Err(StoreError::Dropped(_)) => {
                self.dropped.push(digest);
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// The run as a store would have it.
    pub(super) fn row(&self) -> RunRow {
        RunRow {
            run: self.run.clone(),
            tenant: String::new(),
            graph: self.graph.clone(),
            graph_version: self.graph_version,
            status: match self.status {
                RunStatus::Done => RunStatus::Done,
                _ if self.driven => RunStatus::Running,
                RunStatus::Running => RunStatus::Ready,
                status => status,
            },
            epoch: self.epoch,
            // No process of this machine, so none that could be found dead.
            owner: self.driven.then(|| "server".to_owned()),
            due_ms: None,
            head: LogHead {
                next: self.next,
                hash: self.head,
            },
            parent: self.parent.clone(),
        }
    }

    /// The entries, after those that are known: each follows from the one before it.
    pub(super) fn records(&self, chain: &mut LogChain) -> StoreResult<Vec<LogRecord>> {
        let mut records = Vec::with_capacity(self.records.len());
        for (seq, one) in (self.from..).zip(&self.records) {
            let body =
                canonical::to_vec(&one.body).map_err(|error| StoreError::Payload(error.into()))?;
            let record = LogRecord {
                run: self.run.clone(),
                seq,
                epoch: one.epoch,
                at_ms: one.at_ms,
                schema: one.schema,
                previous: chain.head(),
                hash: one.hash,
                body,
            };
            LogRecord::verify(chain, std::slice::from_ref(&record))?;
            records.push(record);
        }
        Ok(records)
    }

    /// The values, each with the bytes it is named by.
    pub(super) fn values(&self) -> StoreResult<Vec<(Digest, Vec<u8>)>> {
        let one = |(digest, value): (&Digest, &Value)| {
            let bytes =
                canonical::to_vec(value).map_err(|error| StoreError::Payload(error.into()))?;
            if Digest::of_bytes(&bytes) == *digest {
                Ok((*digest, bytes))
            } else {
                Err(StoreError::CorruptBlob(*digest))
            }
        };
        self.values.iter().map(one).collect()
    }

    pub(super) fn dropped(&self) -> &[Digest] {
        &self.dropped
    }

    /// Whether the log goes on after this page.
    pub(super) fn is_cut(&self) -> bool {
        self.from + self.records.len() as u64 != self.next && !self.records.is_empty()
    }
}
