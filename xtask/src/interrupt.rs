//! Ctrl-C and a polite `kill`, as a question that work in progress can ask.
//!
//! Nothing is ended inside a signal handler: a thread that waits for something sees the flag, returns,
//! and every server and temporary directory on the way is dropped as after any other failure.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether a signal asked this process to stop.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP; a second one ends the process at once.
    pub(crate) fn listen() -> Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Registered before the flag: on the first signal the flag is still down.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                128 + signal,
                Arc::clone(&interrupt.0),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupt.0)))
            .with_context(|| format!("cannot listen for signal {signal}"))?;
        }
        Ok(interrupt)
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
