//! From arguments to flags and settings.

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory};
use lula_config::{keys, variables};

use super::{Cli, ExecFlags, OutputFlags, groups};
use crate::failure::CommandFailure;

/// The whole command with a hidden flag for every configuration key.
pub(crate) fn command() -> clap::Command {
    with_flags(whole(), |_| true)
}

/// The arguments with the command that `lula` alone stands for: a chat, in a repository on a terminal.
pub(crate) fn meant(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let here = std::env::current_dir().unwrap_or_default();
    let is_repository = || here.ancestors().any(|place| place.join(".git").exists());
    let terminal = || std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if arguments.len() == 1 && terminal() && is_repository() {
        arguments.push("chat".into());
    }
    arguments
}

/// Reads the command line.
pub(crate) fn read(arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    match read_exec(arguments) {
        Some(matches) => Ok(matches),
        None => command_for(arguments).try_get_matches_from(arguments),
    }
}

/// Reads `lula exec …` without building the other commands, which takes longer than reading. Any other
/// use, help and mistakes included, is left to the whole command.
fn read_exec(arguments: &[OsString]) -> Option<ArgMatches> {
    if arguments.get(1)? != "exec" {
        return None;
    }
    let exec = ExecFlags::augment_args(clap::Command::new("exec"));
    let alone = OutputFlags::augment_args(clap::Command::new("lula")).subcommand(exec);
    with_flags(alone, |spec| is_named(spec, arguments))
        .try_get_matches_from(arguments)
        .ok()
}

/// The command with the flags of those sections of the configuration that an argument names. Each
/// flag is copied into every command, which takes longer than most commands have to wait for.
fn command_for(arguments: &[OsString]) -> clap::Command {
    with_flags(whole(), |spec| is_named(spec, arguments))
}

/// Every command, listed by group in the help.
fn whole() -> clap::Command {
    groups::grouped(Cli::command())
}

fn is_named(spec: &lula_config::ConfigKeySpec, arguments: &[OsString]) -> bool {
    let section = spec.name.split('.').next().unwrap_or_default();
    let beginning = format!("--{section}-");
    let mut texts = arguments.iter().filter_map(|argument| argument.to_str());
    texts.any(|text| {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        let without = spec.name == keys::ENVIRONMENT_USE.spec().name && name == NO_ENV;
        text.starts_with(&beginning) || short_name(spec) == Some(name) || without
    })
}

/// The short names of the flags that are given most often with `lula exec`.
const NET: &str = "--net";
const PUBLISH: &str = "--publish";
/// The short name of the flag that names a server.
const SERVER: &str = "--server";

/// The short names of the flag that chooses an environment.
const ENV: &str = "--env";
const NO_ENV: &str = "--no-env";

/// An argument with the whole name of its setting in place of the short one.
pub(crate) fn long_form(argument: String) -> String {
    if argument == NO_ENV {
        return format!("--{}=none", keys::ENVIRONMENT_USE.spec().flag());
    }
    let long = keys::all().find_map(|spec| {
        let rest = argument.strip_prefix(short_name(spec)?)?;
        let whole = rest.is_empty() || rest.starts_with('=');
        whole.then(|| format!("--{}{rest}", spec.flag()))
    });
    long.unwrap_or(argument)
}

fn short_name(spec: &lula_config::ConfigKeySpec) -> Option<&'static str> {
    [
        (keys::NETWORK_ALLOW.spec().name, NET),
        (keys::NETWORK_PUBLISH.spec().name, PUBLISH),
        (keys::SERVER_URL.spec().name, SERVER),
        (keys::ENVIRONMENT_USE.spec().name, ENV),
    ]
    .into_iter()
    .find_map(|(name, short)| (name == spec.name).then_some(short))
}

fn with_flags(
    command: clap::Command,
    wanted: impl Fn(&lula_config::ConfigKeySpec) -> bool,
) -> clap::Command {
    let without = keys::ENVIRONMENT_USE.spec();
    let command = if wanted(without) {
        let flag = Arg::new(NO_ENV)
            .long(&NO_ENV[2..])
            .action(ArgAction::SetTrue);
        command.arg(
            flag.help("Use no environment that Lula built")
                .global(true)
                .hide(true),
        )
    } else {
        command
    };
    let flags = keys::all().filter(|spec| wanted(spec)).map(|spec| {
        let flag = Arg::new(spec.name)
            .long(spec.flag())
            .value_name("VALUE")
            .help(spec.summary())
            .global(true)
            .hide(true);
        match short_name(spec) {
            Some(SERVER) => flag.alias(&SERVER[2..]),
            Some(ENV) => flag.alias(&ENV[2..]).conflicts_with(NO_ENV),
            Some(short) => flag.alias(&short[2..]).action(ArgAction::Append),
            None => flag,
        }
    });
    command.args(flags)
}

/// The settings given as flags.
pub(crate) fn settings(
    matches: &ArgMatches,
) -> Result<Vec<lula_config::ConfigSetting>, CommandFailure> {
    // Global flags are handed down, so the innermost command has seen them all.
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    let given = keys::all().filter_map(|spec| {
        // A flag that no argument named is not even there.
        let given = innermost.try_get_many::<String>(spec.name).ok().flatten()?;
        let given: Vec<&str> = given.map(String::as_str).collect();
        Some(variables::from_flag(spec, &given.join(",")))
    });
    let mut settings: Vec<lula_config::ConfigSetting> = given.collect::<Result<_, _>>()?;
    let without = innermost.try_get_one::<bool>(NO_ENV).ok().flatten();
    if without == Some(&true) {
        settings.push(variables::from_flag(keys::ENVIRONMENT_USE.spec(), "none")?);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_key_is_a_flag_before_and_after_the_command() {
        for line in [
            ["lula", "--sandbox-timeout", "5s", "config", "list"],
            ["lula", "config", "list", "--sandbox-timeout", "5s"],
            ["lula", "config", "--sandbox-timeout", "5s", "list"],
        ] {
            let arguments = line.map(OsString::from);
            for command in [command(), command_for(&arguments)] {
                let matches = command.try_get_matches_from(line).unwrap();
                let settings = settings(&matches).unwrap();
                assert_eq!(settings.len(), 1, "{line:?}");
                assert_eq!(settings[0].value.to_string(), "5s");
            }
        }
    }

    #[test]
    fn exec_alone_reads_what_the_whole_command_reads() {
        for line in [
            "lula exec true",
            "lula exec --json -- ls -l --json",
            "lula exec -v --profile strict --tier namespace --write none pytest -q",
            "lula exec --sandbox-timeout 5s --timeout 90s --receipt r --workspace w -- a -- b",
            "lula exec --policy p.toml --on last x",
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let read = |matches: &ArgMatches| {
                let cli = <Cli as clap::FromArgMatches>::from_arg_matches(matches).unwrap();
                format!("{cli:?} {:?}", settings(matches).unwrap())
            };
            let whole = command().try_get_matches_from(&arguments).ok();
            let alone = read_exec(&arguments);
            assert_eq!(alone.as_ref().map(read), whole.as_ref().map(read), "{line}");
        }
        for line in [
            "lula exec",
            "lula exec --help",
            "lula exec -V",
            "lula exce x",
            "lula",
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(read_exec(&arguments).is_none(), "{line}");
        }
    }

    #[test]
    fn every_command_has_a_description() {
        fn check(command: &clap::Command) {
            for inner in command.get_subcommands() {
                assert!(inner.get_about().is_some(), "{}", inner.get_name());
                check(inner);
            }
        }
        check(&command());
    }
}
