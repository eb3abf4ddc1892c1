//! Tasks that end with the connection they belong to.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// The tasks of one connection: streams of HTTP/2, connections to servers, `WebSocket`s.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn set(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.set();
        while set.try_join_next().is_some() {}
        set.spawn(task);
    }

    /// Waits until all have ended. Those of a wait that is given up are ended.
    pub(super) async fn ended(&self) {
        let mut set = std::mem::take(&mut *self.set());
        while set.join_next().await.is_some() {}
    }

    /// What ends all of them when it is dropped. They hold clones of this list, so it would never be
    /// dropped by itself.
    pub(super) fn end_with(&self) -> EndOfTasks {
        EndOfTasks(self.clone())
    }
}

pub(super) struct EndOfTasks(Tasks);

impl Drop for EndOfTasks {
    fn drop(&mut self) {
        self.0.set().abort_all();
    }
}

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        self.spawn(async move {
            task.await;
        });
    }
}
