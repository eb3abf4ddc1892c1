//! A runner from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::signal::unix::{SignalKind, signal};

use crate::http::{ListenError, RunnerServer};
use crate::service::{RequestRefusal, RunnerService, RunnerSetup};
use lula_runner_api::client::RunnerAddress;

/// How long a runner goes on without the process that started it.
const ORPHANED: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub struct RunnerOptions {
    /// What the runner works on.
    pub setup: RunnerSetup,
    pub listen: RunnerAddress,
    /// The bearer key a port needs.
    pub key: Option<SecretString>,
    /// Whether to end when standard input does, as a child of another process.
    pub with_parent: bool,
}

/// Why there is no runner.
#[derive(Debug, thiserror::Error)]
pub enum RunnerStartError {
    /// The runner cannot work.
    #[error(transparent)]
    Service(#[from] RequestRefusal),
    /// It cannot listen for callers.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Threads or signals are not to be had.
    #[error("the runner cannot start: {0}")]
    Io(#[from] std::io::Error),
}

/// Runs until it is told to end: by SIGTERM or SIGINT, or by the end of its standard input. `ready`
/// is told where it listens.
pub fn run(options: RunnerOptions, ready: impl FnOnce(&str)) -> Result<(), RunnerStartError> {
    // Before any thread: the engine starts its helper from here.
    let service = Arc::new(RunnerService::new(options.setup)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let server = RunnerServer::bind(&options.listen, options.key, service).await?;
        tracing::info!(place = %server.place(), "runner listens");
        ready(&server.place());
        let parent = async {
            if options.with_parent {
                let (gone, when) = tokio::sync::oneshot::channel::<()>();
                // Not a task: a read of standard input cannot be taken back.
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                    drop(gone);
                    // No caller is left to be told anything. What is cut off is taken back by the
                    // next runner, as after any crash.
                    std::thread::sleep(ORPHANED);
                    std::process::exit(0);
                });
                let _ = when.await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let end = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = parent => {}
            }
        };
        server.run(end).await;
        tracing::info!("runner ends");
        Ok(())
    })
}
