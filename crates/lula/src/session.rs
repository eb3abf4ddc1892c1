//! What every command has: the configuration in force, and the screen.

use clap::{ArgMatches, FromArgMatches};
use lula_config::variables::{LOG, LOG_FORMAT};
use lula_config::{ConfigFileLocations, keys};
use lula_host::Installation;
use lula_host::diagnosis::{LogFilter, LogFormat};
use lula_protocol::{Code, RunExit};

use crate::cli::{self, Cli};
use crate::failure::CommandFailure;
use crate::term::TerminalScreen;

/// One invocation of `lula`.
#[derive(Debug)]
pub(crate) struct CliSession {
    pub(crate) host: Installation,
    pub(crate) screen: TerminalScreen,
}

/// Reads the layers and settles them. Nothing is changed if one of them is wrong.
pub(crate) fn open(matches: &ArgMatches) -> Result<(Cli, CliSession), CommandFailure> {
    let cli = Cli::from_arg_matches(matches).map_err(|error| {
        CommandFailure::new(Code::BadCommandLine, RunExit::Usage, error.to_string())
    })?;
    begin_log(cli.output.verbose)?;
    let directory = std::env::current_dir().map_err(|error| {
        CommandFailure::new(
            Code::FileAccess,
            RunExit::Environment,
            format!("the current directory cannot be read: {error}"),
        )
        .remedy("change to a directory that exists")
    })?;
    let locations = ConfigFileLocations::usual(|name| std::env::var(name).ok(), &directory);
    let read =
        cli::settings(matches).and_then(|flags| Ok(Installation::read(locations.clone(), flags)?));
    let host = match read {
        // An error says `lula explain CODE`: that must work although the configuration does not.
        Err(_) if cli.command.works_without_configuration() => Installation::built_in(locations),
        read => read?,
    };
    if !cli.command.is_about_runs() && host.is_given(keys::SERVER_URL.spec()) {
        let message = "this command is about this machine, and --server is for runs of a server";
        return Err(
            CommandFailure::new(Code::BadCommandLine, RunExit::Usage, message)
                .remedy("leave --server out; docs/server.md lists the commands that take it"),
        );
    }
    let screen = TerminalScreen::configured(cli.output, &host.config);
    for (setting, reason) in host.config.refused() {
        screen.warn(&format!(
            "{}: {} = {} is not applied: {reason}",
            setting.origin, setting.spec.name, setting.value
        ));
    }
    Ok((cli, CliSession { host, screen }))
}

/// Begins the diagnostic log where one is asked for. Most commands have none, and pay nothing for it.
fn begin_log(verbose: u8) -> Result<(), CommandFailure> {
    let variable = std::env::var_os(LOG);
    let variable = variable.as_ref().map(|text| text.to_string_lossy());
    if let Some(filter) = LogFilter::requested(variable.as_deref(), verbose)? {
        let format = std::env::var(LOG_FORMAT).ok();
        filter.install(LogFormat::requested(format.as_deref())?, std::io::stderr);
    }
    Ok(())
}
