//! The file tools, as one small program that runs *inside* the sandbox of a workspace.
//!
//! Everything a repository can do to a reader (patterns, parsers, odd names, pipes, links) happens
//! under confinement, in a process that can reach nothing else. On top of that every path is opened
//! below the handle of the workspace (`root`), so that a link planted in mid-call leads nowhere.
//! The program reads requests from its standard input and writes one reply for each to its standard
//! output ([`frame`]); the runner, which drives it, treats the replies as hostile.
//!
//! It is a function of our own binary, called by the sandbox's first process after that has locked
//! itself in, and speaks length-prefixed JSON; the same program can serve the guest of a virtual
//! machine. Paths are opened by `openat2`, or name by name where there is none, as in our own
//! sandbox, whose filter refuses `openat2`. The runner decodes replies as hostile input: bounded,
//! typed, numbered. It ends and replaces a toolbox that answers nonsense or nothing. Running the
//! file tools inside costs one trip through a pipe per call; in exchange, a hole in a parser is a
//! hole inside the sandbox.

mod change;
mod error;
pub mod frame;
pub mod limits;
mod list;
mod patch;
mod picture;
mod read;
mod root;
mod search;
#[cfg(test)]
mod tests;
mod walk;

use std::io::{BufReader, Read, Write};
use std::path::Path;

use lula_protocol::{ToolAction, ToolOutput};

pub use error::{ToolError, ToolFailure};
use frame::{ToolboxAnswer, ToolboxQuestion, ToolboxReply, ToolboxRequest};
use root::WorkspaceRoot;

/// Serves requests about the workspace at `workspace` until its input ends. The exit status of the
/// program: 0 where the input ended between two requests.
pub fn main(workspace: &Path, input: impl Read, mut output: impl Write) -> u8 {
    let Ok(root) = WorkspaceRoot::open(workspace) else {
        return 3;
    };
    let mut input = BufReader::new(input);
    loop {
        match frame::read::<ToolboxRequest>(&mut input, limits::REQUEST) {
            Ok(Some(request)) => {
                let reply = ToolboxReply {
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
pub const BUILT_IN: lula_sandbox::BuiltInProgram = lula_sandbox::BuiltInProgram {
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

fn answer(root: &WorkspaceRoot, ask: &ToolboxQuestion) -> Result<ToolboxAnswer, ToolError> {
    match ask {
        ToolboxQuestion::Do(action) => perform(root, action).map(ToolboxAnswer::Output),
        ToolboxQuestion::Plan(action) => patch::plan(root, action).map(ToolboxAnswer::Plan),
        ToolboxQuestion::PutBack(images) => {
            change::put_back(root, images).map(|()| ToolboxAnswer::PutBack)
        }
    }
}

fn perform(root: &WorkspaceRoot, action: &ToolAction) -> Result<ToolOutput, ToolError> {
    match action {
        ToolAction::ReadFile(asked) => read::file(root, asked),
        ToolAction::Outline(asked) => read::outline(root, &asked.path),
        ToolAction::ListFiles(asked) => list::files(root, asked),
        ToolAction::Search(asked) => search::lines(root, asked),
        ToolAction::WriteFile(asked) => patch::write(root, asked),
        ToolAction::ApplyPatch(asked) => patch::apply(root, asked),
        ToolAction::Exec(_)
        | ToolAction::Job(_)
        | ToolAction::Git(_)
        | ToolAction::Snapshot(_)
        | ToolAction::Undo(_) => Err(ToolError::NotHere(action.tool())),
    }
}
