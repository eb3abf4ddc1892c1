//! Writing down what was run, beside everything else that its end takes.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use lula_audit::{Entry, Log};

use crate::failure::Failure;
use crate::record;

/// Writes one entry into the audit log, where one is kept.
pub(super) enum Pen {
    /// Nobody has thought about the words yet.
    Lying(Option<Box<Log>>),
    /// A thread waits for them, with everything it needs at hand.
    TakenUp {
        words: Sender<Entry>,
        writing: JoinHandle<Result<(), Failure>>,
    },
}

impl Pen {
    pub(super) fn of(log: Option<Log>) -> Self {
        Self::Lying(log.map(Box::new))
    }

    /// Gets ready to write, for a moment in which there is something to wait for anyway: what the
    /// first signature and the first look at the log cost is then not paid at the end.
    pub(super) fn take_up(&mut self) {
        let Self::Lying(log) = self else { return };
        let Some(mut log) = log.take() else { return };
        let (words, entry) = channel();
        let writing = std::thread::spawn(move || {
            log.rehearse();
            match entry.recv() {
                Ok(entry) => record::append(&mut log, entry),
                // There was nothing to write after all.
                Err(_) => Ok(()),
            }
        });
        *self = Self::TakenUp { words, writing };
    }

    /// Has an entry written.
    pub(super) fn write(&mut self, entry: Entry) {
        self.take_up();
        if let Self::TakenUp { words, .. } = self {
            // A writer that is gone is met when the pen is put down.
            let _ = words.send(entry);
        }
    }

    /// Waits until what was to be written is on disk.
    pub(super) fn put_down(self) -> Result<(), Failure> {
        match self {
            Self::Lying(_) => Ok(()),
            Self::TakenUp { words, writing } => {
                drop(words);
                let written = writing.join();
                written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}
