//! Ctrl-C: once asks, twice insists.

use lula_host::drive::StopRequest;
use lula_protocol::{Code, RunExit};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::CommandFailure;

/// Tokens that Ctrl-C sets. The third one ends the process at once.
pub(super) fn on_interrupt() -> Result<StopRequest, CommandFailure> {
    let set = StopRequest::default();
    let interrupted = set.clone();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CommandFailure::new(Code::Internal, RunExit::Failed, error.to_string()))?;
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
