//! Connections of the sandbox, taken as they come and turned away where there are too many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Engine, connection};

/// Pause after an error of `accept`, which is a lack of descriptors.
const BREATH: Duration = Duration::from_millis(20);

/// Bounds how many connections are open at once, over all listeners.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    most: u32,
}

impl Places {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most as usize)),
            most,
        }
    }

    /// One of them, until it is dropped.
    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Resolves once no connection is open.
    pub(crate) async fn all_free(&self) {
        let _ = self.free.acquire_many(self.most).await;
    }
}

/// Serves a port until the engine ends.
pub(crate) async fn serve(engine: Arc<Engine>, listener: TcpListener) {
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection of the sandbox was not accepted");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        if engine.is_ending() {
            return;
        }
        let port = stream.local_addr().map_or(0, |address| address.port());
        let place = engine.places.take();
        let (Some(place), true) = (place, engine.connects_rate.take(Instant::now())) else {
            engine.told_overload(client, port);
            continue;
        };
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            connection::serve(engine, stream, client).await;
            drop(place);
        });
    }
}
