//! What every command has: the configuration in force, and the screen.

use std::path::PathBuf;

use clap::{ArgMatches, FromArgMatches};
use lula_config::{Config, Locations, variables};
use lula_protocol::{Code, Exit};

use crate::cli::{self, Cli};
use crate::failure::Failure;
use crate::term::Screen;

/// One invocation of `lula`.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) config: Config,
    pub(crate) locations: Locations,
    pub(crate) screen: Screen,
}

/// Reads the layers and settles them. Nothing is changed if one of them is wrong.
pub(crate) fn open(matches: &ArgMatches) -> Result<(Cli, Session), Failure> {
    let cli = Cli::from_arg_matches(matches)
        .map_err(|error| Failure::new(Code::BadCommandLine, Exit::Usage, error.to_string()))?;
    let directory = std::env::current_dir().map_err(|error| {
        Failure::new(
            Code::FileAccess,
            Exit::Environment,
            format!("the current directory cannot be read: {error}"),
        )
        .remedy("change to a directory that exists")
    })?;
    let locations = Locations::usual(|name| std::env::var(name).ok(), &directory);
    let config = match read_layers(&locations, matches) {
        // An error says `lula explain CODE`: that must work although the configuration does not.
        Err(_) if cli.command.works_without_configuration() => Config::built_in(),
        read => read?,
    };
    let screen = Screen::configured(cli.output, &config);
    for (setting, reason) in config.refused() {
        screen.warn(&format!(
            "{}: {} = {} is not applied: {reason}",
            setting.origin, setting.spec.name, setting.value
        ));
    }
    Ok((
        cli,
        Session {
            config,
            locations,
            screen,
        },
    ))
}

fn read_layers(locations: &Locations, matches: &ArgMatches) -> Result<Config, Failure> {
    let mut settings = locations.read()?;
    settings.extend(variables::from_environment(utf8_variables())?);
    settings.extend(cli::settings(matches)?);
    Ok(Config::resolve(settings))
}

/// A variable that is not text cannot be one of ours.
fn utf8_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}

impl Session {
    /// Where state is kept.
    pub(crate) fn state_directory(&self) -> Result<PathBuf, Failure> {
        let configured = self.config.get(&lula_config::keys::STATE_DIR);
        if !configured.is_empty() {
            return Ok(configured.into());
        }
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|base| base.join("lula"))
            .ok_or_else(|| {
                Failure::new(
                    Code::NoStateDirectory,
                    Exit::Environment,
                    "there is no place to keep state: neither HOME nor XDG_STATE_HOME is set",
                )
                .remedy("set $LULA_STATE_DIR, or state.dir in the configuration")
            })
    }
}
