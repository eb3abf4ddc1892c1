//! Holds every page and every help text to the command line: a command that is named there is parsed.

#[path = "../../../../tests/documented_commands.rs"]
mod documented_commands;

use documented_commands::{DocumentedCommand, mistake, on_all_pages, on_page};

#[test]
fn every_command_that_a_page_names_is_a_command() {
    let command = super::command();
    let named = on_all_pages(&["lula"]);
    assert!(named.len() > 100, "only {} were found", named.len());
    let wrong: Vec<String> = named
        .iter()
        .filter_map(|one| mistake(one, &command))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_in_a_help_text_is_a_command() {
    let command = super::command();
    let named = in_help(&command);
    assert!(named.len() > 60, "only {} were found", named.len());
    let wrong: Vec<String> = named
        .iter()
        .filter_map(|one| mistake(one, &command))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_does_not_exist_is_found_on_a_page() {
    let command = super::command();
    let wrong = |text: &str| {
        let named = on_page("page.md", text, &["lula"]);
        assert!(!named.is_empty(), "{text}");
        named.iter().any(|one| mistake(one, &command).is_some())
    };
    for text in [
        "run `lula fix` now",
        "`lula exec --no-such-flag -- make`",
        "`lula run --agents N --no-such-flag`",
        "```sh\nlula try --kept  # no\n```",
        "```sh\nlula runs && lula shwo last\n```",
        "```sh\nlula commit --digest \"$(lula diff --jsn | jq -r .digest)\"\n```",
        "```sh\n$ cargo run --release -- tyr\n```",
        "```sh\nlula run --agents many 'a task'\n```",
        "```sh\nlula run\n```",
        "two\nlines: `lula config\nlits`",
    ] {
        assert!(wrong(text), "{text}");
    }
    for text in [
        "`lula run` and `lula run --agents N`, `lula models`",
        "```sh\nlula commit --digest \"$(lula diff --json | jq -r .digest)\"  # reviewed\n```",
        "```sh\nLULA_X=1 lula exec -- sh -c 'a --b && c' > out\n```",
        "```sh\ncargo run --release -- try\n```",
    ] {
        assert!(!wrong(text), "{text}");
    }
}

/// The commands in the examples of a help text: indented lines, perhaps with what each does behind it.
fn in_help(command: &clap::Command) -> Vec<DocumentedCommand> {
    let help = [command.get_after_help(), command.get_after_long_help()];
    let help = help.into_iter().flatten().map(ToString::to_string);
    let examples: Vec<String> = help
        .flat_map(|text| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
            let examples = lines.filter_map(|line| line.split("  ").next());
            examples.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let page = format!("```sh\n{}\n```", examples.join("\n"));
    let mut named = on_page(&format!("help of {}", command.get_name()), &page, &["lula"]);
    named.extend(command.get_subcommands().flat_map(in_help));
    named
}
