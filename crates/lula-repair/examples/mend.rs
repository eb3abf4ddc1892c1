//! Mends a project in a plain directory, without a sandbox: for trying the search by hand on code
//! that you trust.
//!
//!     cargo run -p lula-repair --example mend -- [--in-place] [--examine] [--in FOLDER] [--budget S] PROJECT [TEST COMMAND]
//!
//! `--in-place` gives every fork the project's own path, as the product's sandbox does, by overlays and
//! mount namespaces; it needs root.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../tests/support/overlaid.rs"]
mod overlaid;
#[path = "../tests/support/unsandboxed.rs"]
mod unsandboxed;

use std::time::Duration;

use lula_repair::{ForkSource, RepairError, RepairTask, TestSelection, examine, repair};
use overlaid::OverlaidGround;
use unsandboxed::UnsandboxedGround;

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let (mut in_place, mut only_examine) = (false, false);
    let mut task = RepairTask::default();
    while let Some(word) = arguments.next_if(|word| word.starts_with("--")) {
        match word.as_str() {
            "--in-place" => in_place = true,
            "--examine" => only_examine = true,
            "--in" => task.tests.folder = arguments.next().unwrap_or_default(),
            "--budget" => {
                let seconds = arguments.next().and_then(|word| word.parse().ok());
                task.budget = Duration::from_secs(seconds.unwrap_or(120));
            }
            _ => eprintln!("{word} is not known"),
        }
    }
    let Some(project) = arguments.next() else {
        eprintln!("give the folder of a project");
        return std::process::ExitCode::from(2);
    };
    task.tests = TestSelection {
        command: arguments.next(),
        ..task.tests
    };
    let ground: Box<dyn ForkSource> = if in_place {
        Box::new(OverlaidGround::new(project))
    } else {
        Box::new(UnsandboxedGround::new(project))
    };
    let done = if only_examine {
        show(ground.as_ref(), &task)
    } else {
        mend(ground.as_ref(), &task)
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(RepairError::EnvironmentBroken(broken)) => {
            eprintln!("environment: {broken:#?}");
            std::process::ExitCode::from(7)
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::from(6)
        }
    }
}

fn show(ground: &dyn ForkSource, task: &RepairTask) -> Result<(), RepairError> {
    let examined = examine(ground.fork()?.as_mut(), &task.tests, task.budget)?;
    eprintln!(
        "{} in {:?} by {:?}: {} passing, {} failing, {} flaky, {} lacking, {:?}",
        examined.tests.line(),
        examined.tests.folder,
        examined.interpreter,
        examined.passing.len(),
        examined.failing.len(),
        examined.flaky.len(),
        examined.unfixable.len(),
        examined.origins,
    );
    for test in examined.report.failing().take(20) {
        let last = test.message.lines().last().unwrap_or_default();
        eprintln!("  {}: {last}", test.id);
    }
    Ok(())
}

fn mend(ground: &dyn ForkSource, task: &RepairTask) -> Result<(), RepairError> {
    let report = repair(ground, task, &|progress| eprintln!("{progress:?}"))?;
    for patch in &report.patches {
        println!("{}", patch.diff);
    }
    eprintln!(
        "{:?}: {:?} before, {} failing, {:?}",
        report.outcome,
        report.before,
        report.failing.len(),
        report.effort
    );
    Ok(())
}
