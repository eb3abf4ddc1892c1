//! Ctrl-C: once asks, twice insists.

use lula_graph::CancellationToken;
use lula_protocol::{Code, Exit};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

/// Set by Ctrl-C: once, and twice.
#[derive(Clone)]
pub(super) struct Interrupted {
    pub(super) once: CancellationToken,
    pub(super) twice: CancellationToken,
}

/// Tokens that Ctrl-C sets. The third one ends the process at once.
pub(super) fn on_interrupt() -> Result<Interrupted, Failure> {
    let set = Interrupted {
        once: CancellationToken::new(),
        twice: CancellationToken::new(),
    };
    let interrupted = set.clone();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::new(Code::Internal, Exit::Failed, error.to_string()))?;
    std::thread::spawn(move || {
        for signal in &mut signals {
            if set.twice.is_cancelled() {
                std::process::exit(128 + signal);
            }
            if set.once.is_cancelled() {
                set.twice.cancel();
            }
            set.once.cancel();
        }
    });
    Ok(interrupted)
}
