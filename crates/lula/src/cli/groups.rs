//! The groups in which `lula --help` lists the commands.
//!
//! clap has no headings for subcommands, so the list is made here from one table and the description
//! of each command, and becomes part of the help template. A test holds the table to the commands:
//! each of them is in exactly one group.

use std::fmt::Write as _;

/// Headings and the commands below each, in the order in which help prints them.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Tasks",
        &[
            "try", "run", "chat", "resume", "steer", "cancel", "repair", "heal", "detect", "index",
        ],
    ),
    (
        "Sandbox",
        &["exec", "env", "net", "grant", "workspaces", "runner"],
    ),
    ("Server", &["serve", "server", "mcp"]),
    (
        "Review",
        &[
            "diff",
            "commit",
            "discard",
            "undo",
            "redo",
            "approvals",
            "approve",
            "reject",
        ],
    ),
    (
        "Records",
        &[
            "runs", "show", "logs", "trace", "replay", "fork", "export", "verify", "audit",
            "lessons", "store",
        ],
    ),
    (
        "Set-up",
        &[
            "doctor",
            "config",
            "models",
            "policy",
            "guidelines",
            "explain",
            "completions",
            "man",
        ],
    ),
];

/// Has the help of the command list its subcommands by group.
pub(super) fn grouped(command: clap::Command) -> clap::Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &clap::Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(|one| one.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<width$}{literal:#}  {about}");
        }
        text.push('\n');
    }
    let _ = write!(
        text,
        "`lula help COMMAND` prints the flags and examples of a command.\n\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory as _;

    use super::GROUPS;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter()) {
            *groups.entry(name).or_default() += 1;
        }
        let command = Cli::command();
        let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
        let commands: BTreeMap<&str, usize> = commands.map(|one| (one.get_name(), 1)).collect();
        assert_eq!(groups, commands);
    }

    #[test]
    fn a_description_fits_beside_its_command() {
        for one in Cli::command().get_subcommands() {
            let about = one.get_about().unwrap().to_string();
            assert!(about.chars().count() <= 64, "{}: {about}", one.get_name());
        }
    }
}
