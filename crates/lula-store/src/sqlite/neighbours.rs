//! Hints about what other processes do to the same file.
//!
//! SQLite does not tell that a neighbour wrote. One small query now and then finds the signals and
//! the runs that came since the last look.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lula_protocol::RunId;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::broadcast;

use super::failed;
use crate::error::StoreResult;
use crate::store::StoreHint;

const EVERY: Duration = Duration::from_millis(200);

/// The last signal and the last run that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoreMark {
    signal: i64,
    run: i64,
}

fn look(db: &Connection) -> rusqlite::Result<StoreMark> {
    db.prepare_cached(
        "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name='signals'), 0),
                coalesce((SELECT max(id) FROM runs), 0)",
    )?
    .query_row([], |row| {
        Ok(StoreMark {
            signal: row.get(0)?,
            run: row.get(1)?,
        })
    })
}

fn signalled(db: &Connection, after: i64) -> rusqlite::Result<Vec<String>> {
    db.prepare_cached(
        "SELECT DISTINCT run_id FROM signals JOIN runs ON runs.id=signals.run WHERE signals.id>?",
    )?
    .query_map([after], |row| row.get(0))?
    .collect()
}

/// Looks at a file that neighbours write to, once a caller wants to hear of it.
pub(super) struct NeighbourWatch {
    db: Mutex<Option<Connection>>,
}

impl NeighbourWatch {
    /// Of this file. Nothing looks at it yet.
    pub(super) fn of(path: &Path) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(failed)?;
        Ok(Self {
            db: Mutex::new(Some(db)),
        })
    }

    /// Looks until the store is gone, from the first call on. Where there is no thread to be had, hints
    /// of neighbours do not come; callers look by themselves now and then.
    pub(super) fn begin(
        &self,
        hints: &broadcast::Sender<StoreHint>,
        calls: &broadcast::Sender<StoreHint>,
    ) {
        let db = self
            .db
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(db) = db else { return };
        let (hints, calls) = (hints.downgrade(), calls.downgrade());
        // A busy file is looked at again a moment later.
        let seen = look(&db).ok();
        let _ = std::thread::Builder::new()
            .name("watch sqlite".to_owned())
            .spawn(move || watch(&db, seen, &hints, &calls));
    }
}

fn watch(
    db: &Connection,
    mut seen: Option<StoreMark>,
    hints: &broadcast::WeakSender<StoreHint>,
    calls: &broadcast::WeakSender<StoreHint>,
) {
    loop {
        std::thread::sleep(EVERY);
        let (Some(hints), Some(calls)) = (hints.upgrade(), calls.upgrade()) else {
            return;
        };
        if hints.receiver_count() + calls.receiver_count() == 0 {
            continue;
        }
        let tell = |hint: StoreHint| {
            let _ = calls.send(hint.clone());
            let _ = hints.send(hint);
        };
        // A busy file is looked at again next time.
        let Ok(now) = look(db) else { continue };
        let before = seen.replace(now).unwrap_or(now);
        if now.signal != before.signal {
            for run in signalled(db, before.signal).unwrap_or_default() {
                let hint = run
                    .parse::<RunId>()
                    .map_or(StoreHint::Any, StoreHint::Signal);
                tell(hint);
            }
        }
        if now.run != before.run {
            tell(StoreHint::Any);
        }
    }
}
