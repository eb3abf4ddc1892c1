//! `lula`: the commands, what they print, and how they exit.
//!
//! This crate wires the others together and talks to the person at the terminal. It decides
//! nothing that another crate could decide.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod failure;
mod runs;
mod session;
mod status;
mod term;

use std::io::Write as _;
use std::process::ExitCode;

use lula_protocol::{Code, RunExit};
use lula_sandbox::EarlyHelper;

use crate::failure::CommandFailure;
use crate::status::ProcessExitStatus;
use crate::term::TerminalScreen;

/// Programs that sandboxes can run without a file.
const BUILT_INS: &[lula_sandbox::BuiltInProgram] =
    &[lula_runner::TOOLBOX, lula_host::doctor::NETWORK_ATTACKER];

fn main() -> ExitCode {
    // The engine starts this very binary as its helper, which never comes back from here.
    lula_sandbox::helper_main_if_asked(BUILT_INS);
    let arguments = cli::meant(std::env::args_os().collect());
    let helper = early_helper(&arguments);
    let alone = helper.is_some();
    let matches = match cli::read(&arguments) {
        Ok(matches) => matches,
        Err(error) => return ProcessExitStatus::from(usage(&error)).into(),
    };
    let status = match session::open(&matches) {
        Ok((cli, session)) => commands::run(cli, &session, helper)
            .unwrap_or_else(|failure| report(&session.screen, &failure)),
        Err(failure) => report(&TerminalScreen::for_arguments(&matches), &failure),
    };
    if alone {
        leave(status);
    }
    status.into()
}

/// Ends this process at once: for `lula exec`, whose end the operator waits for and which has let go of
/// everything that does not go with it anyway.
fn leave(status: ProcessExitStatus) -> ! {
    // Its reader is gone if this fails.
    let _ = std::io::stdout().flush();
    signal_hook::low_level::exit(status.into())
}

/// The sandbox's helper for `lula exec`, which gets ready while this process finds out what is asked
/// of it. A command that is named behind an option is found later, and waits a little longer.
fn early_helper(arguments: &[std::ffi::OsString]) -> Option<EarlyHelper> {
    if arguments.get(1)? == "exec" {
        EarlyHelper::start(BUILT_INS)
    } else {
        None
    }
}

fn report(screen: &TerminalScreen, failure: &CommandFailure) -> ProcessExitStatus {
    // The reader went away, as in `lula config list | head -1`: none is left to tell.
    if !failure.is_closed_pipe() {
        screen.failure(failure);
    }
    failure.exit.into()
}

/// Help and version go to standard output and are a success; the rest is a usage error.
fn usage(error: &clap::Error) -> RunExit {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && json {
        let message = error.render().to_string();
        // What follows the first paragraph is the usage, which `--help` prints better.
        let message = message
            .trim_start_matches("error: ")
            .split("\n\n")
            .next()
            .unwrap_or_default();
        let failure = CommandFailure::new(Code::BadCommandLine, RunExit::Usage, message)
            .remedy("run `lula --help`");
        TerminalScreen::json().failure(&failure);
    } else {
        // A closed pipe while printing help is no error.
        let _ = error.print();
    }
    if error.use_stderr() {
        RunExit::Usage
    } else {
        RunExit::Verified
    }
}
