//! Mends a project in a plain directory, without a sandbox: for trying the search by hand on code
//! that you trust.
//!
//!     cargo run -p lula-repair --example mend -- FOLDER [TEST COMMAND]
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../tests/support/unsandboxed.rs"]
mod unsandboxed;

use lula_repair::{RepairTask, TestsWanted, repair};
use unsandboxed::UnsandboxedGround;

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("give the folder of a project");
        return std::process::ExitCode::from(2);
    };
    let task = RepairTask {
        tests: TestsWanted {
            command: arguments.next(),
            folder: String::new(),
        },
        ..RepairTask::default()
    };
    match repair(&UnsandboxedGround::new(folder), &task, &|progress| {
        eprintln!("{progress:?}");
    }) {
        Ok(report) => {
            for patch in &report.patches {
                println!("{}", patch.diff);
            }
            eprintln!(
                "{:?}: {} failing, {:?}",
                report.outcome,
                report.failing.len(),
                report.effort
            );
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::from(6)
        }
    }
}
