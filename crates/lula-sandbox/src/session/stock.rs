//! Control groups made ahead of time, used again where that is as good as new, and removed behind
//! the scenes, so that opening and closing a sandbox wait for nothing.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use super::gone;
use crate::cgroup::layout::CgroupHierarchy;
use crate::cgroup::{CgroupBackend, CgroupError, CgroupKind, CgroupLeaf, CgroupLimits};
use crate::sys::scheduling;

/// How many groups with the limits asked for last are kept.
const KEPT: usize = 2;

/// The groups of one engine. Clones share them; the last one to go removes what is left.
#[derive(Debug, Clone)]
pub(super) struct CgroupStock(Arc<Keeper>);

#[derive(Debug)]
struct Keeper {
    shared: Arc<StockState>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

#[derive(Debug)]
struct StockState {
    backend: CgroupBackend,
    /// Takes the place of the backend where its first group cannot be made.
    none: OnceLock<CgroupBackend>,
    swept: Once,
    books: Mutex<Books>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Books {
    last: u64,
    limits: Option<CgroupLimits>,
    ready: VecDeque<CgroupLeaf>,
    discarded: Vec<SpareGroup>,
    busy: bool,
    closing: bool,
    failure: Option<CgroupError>,
}

/// A group that no sandbox needs any more.
#[derive(Debug)]
struct SpareGroup {
    leaf: CgroupLeaf,
    /// Those it has, where it may be used again.
    limits: Option<CgroupLimits>,
    /// The last one in it, on its way out.
    leaving: Option<OwnedFd>,
}

impl SpareGroup {
    /// One that is going to be removed.
    fn for_good(leaf: CgroupLeaf) -> Self {
        Self {
            leaf,
            limits: None,
            leaving: None,
        }
    }

    /// The group, empty now; if it is not, removing it says so.
    fn emptied(self) -> CgroupLeaf {
        if let Some(leaving) = self.leaving {
            gone::wait(&leaving, gone::AT_MOST);
        }
        self.leaf
    }
}

impl StockState {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One without limits yet.
    fn make(&self) -> Result<CgroupLeaf, CgroupError> {
        let number = {
            let mut books = self.books();
            books.last += 1;
            books.last
        };
        let name = format!("s{number}");
        let made = self.backend().make(&name);
        match made {
            // The first group is the trial of the backend.
            Err(error) if number == 1 => self
                .none
                .get_or_init(|| self.backend.given_up(error.to_string()))
                .make(&name),
            other => other,
        }
    }

    fn backend(&self) -> &CgroupBackend {
        self.none.get().unwrap_or(&self.backend)
    }

    /// Removes what was discarded, where there is no thread to do it.
    fn clear(&self) -> Result<(), CgroupError> {
        let discarded = std::mem::take(&mut self.books().discarded);
        let mut removed = discarded.into_iter().map(|one| one.emptied().remove());
        removed.try_for_each(|removed| removed)
    }

    /// Removes what was discarded, then makes what is missing, until the engine is gone.
    fn tend(&self) {
        scheduling::set_sched_batch();
        let mut books = self.books();
        loop {
            if let Some(discarded) = books.discarded.pop() {
                let limits = discarded.limits;
                books.busy = true;
                let wanted = !books.closing && books.limits == limits && books.ready.len() < KEPT;
                drop(books);
                let leaf = discarded.emptied();
                let kept = if wanted { leaf.renew() } else { Err(leaf) };
                let removed = match kept {
                    Ok(leaf) => Ok(Some(leaf)),
                    Err(leaf) => leaf.remove().map(|()| None),
                };
                books = self.books();
                books.busy = false;
                match removed {
                    Ok(Some(leaf)) if books.limits == limits && !books.closing => {
                        books.ready.push_back(leaf);
                    }
                    // The limits changed meanwhile: it goes after all.
                    Ok(Some(leaf)) => books.discarded.push(SpareGroup::for_good(leaf)),
                    Ok(None) => {}
                    Err(error) => books.failure = Some(error),
                }
                self.changed.notify_all();
            } else if books.closing {
                return;
            } else if let Some(limits) = books.limits
                && books.ready.is_empty()
            {
                drop(books);
                let made = self.make().map(|mut leaf| {
                    self.backend().limit(&mut leaf, &limits);
                    leaf
                });
                books = self.books();
                match made {
                    Ok(leaf) if books.limits == Some(limits) => books.ready.push_back(leaf),
                    Ok(leaf) => books.discarded.push(SpareGroup::for_good(leaf)),
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

impl CgroupStock {
    pub(super) fn new(hierarchies: &[CgroupHierarchy]) -> Self {
        let backend = CgroupBackend::find(hierarchies);
        Self(Arc::new(Keeper {
            shared: Arc::new(StockState {
                backend,
                none: OnceLock::new(),
                swept: Once::new(),
                books: Mutex::new(Books::default()),
                changed: Condvar::new(),
            }),
            thread: Mutex::new(None),
        }))
    }

    /// Removes what runners that died left behind, the first time this is called. Nothing depends on
    /// it, so it is for a moment in which there is something to wait for anyway.
    pub(super) fn sweep(&self) {
        let shared = &self.0.shared;
        shared.swept.call_once(|| {
            shared.backend.sweep();
        });
    }

    pub(super) fn kind(&self) -> CgroupKind {
        self.0.shared.backend().kind()
    }

    /// A group for those limits: a ready one, or one made now, which is yet to be limited.
    pub(super) fn take(&self, limits: &CgroupLimits) -> Result<CgroupLeaf, CgroupError> {
        let shared = &self.0.shared;
        let ready = {
            let mut books = shared.books();
            if books.limits == Some(*limits) {
                books.ready.pop_front()
            } else {
                let stale = std::mem::take(&mut books.ready);
                books
                    .discarded
                    .extend(stale.into_iter().map(SpareGroup::for_good));
                // Only a second sandbox with the same limits makes a stock worth having.
                books.limits = books.last.checked_sub(1).map(|_| *limits);
                None
            }
        };
        let leaf = match ready {
            Some(leaf) => leaf,
            None => shared.make()?,
        };
        // One sandbox alone is not worth a thread.
        if shared.books().last > 1 {
            self.wake();
        }
        Ok(leaf)
    }

    /// Sets the limits of a group, unless it has them. Nothing that counts may run in it before.
    pub(super) fn limit(&self, leaf: &mut CgroupLeaf, limits: &CgroupLimits) {
        self.0.shared.backend().limit(leaf, limits);
    }

    /// Takes a group back whose sandbox has ended: for the next one with the same limits, or to be
    /// removed once [`CgroupStock::tidy`] is called. The process that is `leaving` it is waited for first.
    pub(super) fn discard(&self, leaf: CgroupLeaf, limits: CgroupLimits, leaving: Option<OwnedFd>) {
        self.0.shared.books().discarded.push(SpareGroup {
            leaf,
            limits: Some(limits),
            leaving,
        });
    }

    /// Has what was discarded dealt with some time soon.
    pub(super) fn tidy(&self) {
        if self.has_thread() {
            self.0.shared.changed.notify_all();
        }
    }

    fn has_thread(&self) -> bool {
        let thread = self.0.thread.lock();
        thread.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits until nothing is left to remove.
    pub(super) fn settle(&self) -> Result<(), CgroupError> {
        let shared = &self.0.shared;
        if !self.has_thread() {
            return shared.clear();
        }
        shared.changed.notify_all();
        let mut books = shared.books();
        while books.busy || !books.discarded.is_empty() {
            books = shared
                .changed
                .wait(books)
                .unwrap_or_else(PoisonError::into_inner);
        }
        books.failure.take().map_or(Ok(()), Err)
    }

    /// Has the helper remove what was discarded, or removes it.
    pub(super) fn hand_over(
        &self,
        mut to: impl FnMut(&str, &[BorrowedFd<'_>]) -> bool,
    ) -> Result<(), CgroupError> {
        if !self.has_thread() {
            let discarded = std::mem::take(&mut self.0.shared.books().discarded);
            for one in discarded {
                // One that is not taken goes with its drop, as far as that can be done at once.
                one.leaf.hand_over(&mut to);
            }
        }
        self.settle()
    }

    /// Wakes the thread, or starts it. Without one, groups are made and removed by the thread that needs
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
            let _ = self.0.shared.clear();
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
            books
                .discarded
                .extend(ready.into_iter().map(SpareGroup::for_good));
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
        let _ = self.shared.clear();
    }
}
