//! Connections of the sandbox, taken as they come and turned away where there are too many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;

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

    /// Resolves once no connection is open.
    pub(crate) async fn all_free(&self) {
        let _ = self.free.acquire_many(self.most).await;
    }
}

/// Serves a port until the engine ends.
pub(crate) async fn serve(engine: Arc<Engine>, listener: TcpListener, places: Places) {
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
        let place = Arc::clone(&places.free).try_acquire_owned();
        let (Ok(place), true) = (place, engine.connects_rate.take(Instant::now())) else {
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
