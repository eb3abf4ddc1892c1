//! The file tools, as one small program that runs *inside* the sandbox of a workspace.
//!
//! Everything a repository can do to a reader (patterns, parsers, odd names, pipes, links) happens
//! under confinement, in a process that can reach nothing else. On top of that every path is opened
//! below the handle of the workspace (`root`), so that a link planted in mid-call leads nowhere.
//! The program reads requests from its standard input and writes one reply for each to its standard
//! output ([`frame`]); whoever drives it treats the replies as hostile.

mod change;
mod error;
pub mod frame;
pub mod limits;
mod list;
mod patch;
mod read;
mod root;
mod search;
mod steps;
#[cfg(test)]
mod tests;
mod unified;
mod walk;

use std::io::{BufReader, Read, Write};
use std::path::Path;

use lula_protocol::{Action, Output};

pub use error::{ToolError, ToolFailure};
use frame::{Answer, Ask, Reply, Request};
use root::Root;

/// Serves requests about the workspace at `workspace` until its input ends. The exit status of the
/// program: 0 where the input ended between two requests.
pub fn main(workspace: &Path, input: impl Read, mut output: impl Write) -> u8 {
    let Ok(root) = Root::open(workspace) else {
        return 3;
    };
    let mut input = BufReader::new(input);
    loop {
        match frame::read::<Request>(&mut input, limits::REQUEST) {
            Ok(Some(request)) => {
                let reply = Reply {
                    number: request.number,
                    answer: answer(&root, &request.ask).map_err(ToolFailure::from),
                };
                if frame::write(&mut output, &reply, limits::REPLY).is_err() {
                    return 1;
                }
            }
            Ok(None) => return 0,
            Err(_) => return 2,
        }
    }
}

/// The name of the program.
pub const NAME: &str = "toolbox";

/// The program as the sandbox's helper runs it, with the workspace as its only argument.
pub const BUILT_IN: lula_sandbox::BuiltIn = lula_sandbox::BuiltIn {
    name: NAME,
    main: |arguments| match arguments {
        [workspace] => {
            // Other commands of the sandbox run as the same user: they must not reach into this one.
            let closed = rustix::process::DumpableBehavior::NotDumpable;
            if rustix::process::set_dumpable_behavior(closed).is_err() {
                return 5;
            }
            let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
            i32::from(main(Path::new(workspace), input, output))
        }
        _ => 4,
    },
};

fn answer(root: &Root, ask: &Ask) -> Result<Answer, ToolError> {
    match ask {
        Ask::Do(action) => perform(root, action).map(Answer::Output),
        Ask::Plan(action) => patch::plan(root, action).map(Answer::Plan),
        Ask::PutBack(images) => change::put_back(root, images).map(|()| Answer::PutBack),
    }
}

fn perform(root: &Root, action: &Action) -> Result<Output, ToolError> {
    match action {
        Action::ReadFile(asked) => read::file(root, asked),
        Action::Outline(asked) => read::outline(root, &asked.path),
        Action::ListFiles(asked) => list::files(root, asked),
        Action::Search(asked) => search::lines(root, asked),
        Action::WriteFile(asked) => patch::write(root, asked),
        Action::ApplyPatch(asked) => patch::apply(root, asked),
        Action::Exec(_) | Action::Git(_) | Action::Snapshot(_) | Action::Undo(_) => {
            Err(ToolError::NotHere(action.tool()))
        }
    }
}
