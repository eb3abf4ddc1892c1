//! Control groups made ahead of time and removed behind the scenes, so that opening and closing a
//! sandbox wait for neither.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::cgroup::{Backend, CgroupError, Kind, Leaf, Limits};

/// How many groups with the limits asked for last are kept ready.
const READY: usize = 2;

/// The groups of one engine. Clones share them; the last one to go removes what is left.
#[derive(Debug, Clone)]
pub(super) struct Stock(Arc<Keeper>);

#[derive(Debug)]
struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    backend: Backend,
    books: Mutex<Books>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Books {
    last: u64,
    limits: Option<Limits>,
    ready: VecDeque<Leaf>,
    discarded: Vec<Leaf>,
    busy: bool,
    closing: bool,
    failure: Option<CgroupError>,
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, limits: &Limits) -> Result<Leaf, CgroupError> {
        let number = {
            let mut books = self.books();
            books.last += 1;
            books.last
        };
        self.backend.create(&format!("s{number}"), limits)
    }

    /// Removes what was discarded, then makes what is missing, until the engine is gone.
    fn tend(&self) {
        let mut books = self.books();
        loop {
            if let Some(leaf) = books.discarded.pop() {
                books.busy = true;
                drop(books);
                let removed = leaf.remove();
                books = self.books();
                books.busy = false;
                if let Err(error) = removed {
                    books.failure = Some(error);
                }
                self.changed.notify_all();
            } else if books.closing {
                return;
            } else if let Some(limits) = books.limits
                && books.ready.len() < READY
            {
                drop(books);
                let made = self.make(&limits);
                books = self.books();
                match made {
                    Ok(leaf) if books.limits == Some(limits) => books.ready.push_back(leaf),
                    Ok(leaf) => books.discarded.push(leaf),
                    // The one who needs it makes it and hears why it cannot be made.
                    Err(_) => books.limits = None,
                }
            } else {
                books = self
                    .changed
                    .wait(books)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Stock {
    pub(super) fn new() -> Self {
        let backend = Backend::detect();
        backend.sweep();
        Self(Arc::new(Keeper {
            shared: Arc::new(Shared {
                backend,
                books: Mutex::new(Books::default()),
                changed: Condvar::new(),
            }),
            thread: Mutex::new(None),
        }))
    }

    pub(super) fn kind(&self) -> Kind {
        self.0.shared.backend.kind()
    }

    /// A group with those limits: a ready one, or one made now.
    pub(super) fn take(&self, limits: &Limits) -> Result<Leaf, CgroupError> {
        let shared = &self.0.shared;
        let ready = {
            let mut books = shared.books();
            if books.limits == Some(*limits) {
                books.ready.pop_front()
            } else {
                let stale = std::mem::take(&mut books.ready);
                books.discarded.extend(stale);
                // Only a second sandbox with the same limits makes a stock worth having.
                books.limits = books.last.checked_sub(1).map(|_| *limits);
                None
            }
        };
        let leaf = match ready {
            Some(leaf) => leaf,
            None => shared.make(limits)?,
        };
        self.wake();
        Ok(leaf)
    }

    /// Removes a group some time soon.
    pub(super) fn discard(&self, leaf: Leaf) {
        self.0.shared.books().discarded.push(leaf);
        self.wake();
    }

    /// Waits until nothing is left to remove.
    pub(super) fn settle(&self) -> Result<(), CgroupError> {
        let shared = &self.0.shared;
        let mut books = shared.books();
        while books.busy || !books.discarded.is_empty() {
            books = shared
                .changed
                .wait(books)
                .unwrap_or_else(PoisonError::into_inner);
        }
        books.failure.take().map_or(Ok(()), Err)
    }

    /// Wakes the thread, or starts it. Without one, groups are made and removed by whoever needs
    /// that.
    fn wake(&self) {
        let mut thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.0.shared);
            *thread = std::thread::Builder::new()
                .name("lula-sandbox-groups".to_owned())
                .spawn(move || shared.tend())
                .ok();
        }
        if thread.is_none() {
            let discarded = std::mem::take(&mut self.0.shared.books().discarded);
            for leaf in discarded {
                let _ = leaf.remove();
            }
        }
        self.0.shared.changed.notify_all();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        {
            let mut books = self.shared.books();
            books.closing = true;
            let ready = std::mem::take(&mut books.ready);
            books.discarded.extend(ready);
        }
        self.shared.changed.notify_all();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
