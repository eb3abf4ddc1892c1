//! Programs that are no file: functions of the helper's own binary, run inside a sandbox.
//!
//! The first process of a sandbox is a clone of the helper, so the helper's code is in it already. It
//! forks once more for such a program, which then stands where any command stands: behind the same
//! layers, with the same three descriptors, in the directory and environment it was given.

use crate::sys::signal;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The status of a program that panicked, as for any program written in Rust.
const PANICKED: i32 = 101;

/// A program that is part of the helper; see [`crate::SandboxCommand::built_in`].
#[derive(Debug, Clone, Copy)]
pub struct BuiltInProgram {
    /// What it is called.
    pub name: &'static str,
    /// Runs it with its arguments, without its name, and gives its exit status. It has a process of
    /// its own: what it breaks is its own, and what it opens is behind the sandbox's layers.
    pub main: fn(&[String]) -> i32,
}

/// What every helper brings along: it does nothing. That it ends well shows that commands run in a tier, and
/// it needs no file of the machine.
pub(crate) const TRIAL: BuiltInProgram = BuiltInProgram {
    name: "lula-sandbox-trial",
    main: |_| 0,
};

/// The built-in of that name.
pub(crate) fn find(
    table: &'static [BuiltInProgram],
    name: &[u8],
) -> Option<&'static BuiltInProgram> {
    table
        .iter()
        .chain([&TRIAL])
        .find(|built_in| built_in.name.as_bytes() == name)
}

/// Runs it and ends this process with its status.
pub(crate) fn run(built_in: &BuiltInProgram, arguments: &[String]) -> ! {
    // It is a command like others.
    signal::carry_key([0; 3]);
    // What a list of processes inside calls it; nothing depends on that.
    if let Ok(name) = std::ffi::CString::new(built_in.name) {
        let _ = rustix::thread::set_name(&name);
    }
    if cfg!(panic = "abort") {
        // Nothing unwinds here: the message is printed, then this ends the process in time.
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::exit(PANICKED);
        }));
    }
    let status = catch_unwind(AssertUnwindSafe(|| (built_in.main)(arguments)));
    std::process::exit(status.unwrap_or(PANICKED))
}
