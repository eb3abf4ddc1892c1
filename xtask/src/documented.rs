//! Holds every page to the tasks: a task that is named there is parsed.

#[path = "../../tests/documented_commands.rs"]
mod documented_commands;

use clap::CommandFactory as _;
use documented_commands::{mistake, on_all_pages, on_page};

use crate::Arguments;

#[test]
fn every_task_that_a_page_names_is_a_task() {
    let command = Arguments::command();
    let named = on_all_pages(&["cargo xtask"]);
    assert!(named.len() > 5, "only {} were found", named.len());
    let wrong = named.iter().filter_map(|one| mistake(one, &command));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_task_that_does_not_exist_is_found_on_a_page() {
    let command = Arguments::command();
    for text in [
        "`cargo xtask test --only tests`",
        "`cargo xtask tset`",
        "```sh\ncargo xtask test --no-such-flag\n```",
    ] {
        let named = on_page("page.md", text, &["cargo xtask"]);
        assert_eq!(named.len(), 1, "{text}");
        assert!(mistake(&named[0], &command).is_some(), "{text}");
    }
}
