//! `lula try`: the main job on a bundled sample, as far as it exists.

mod sample;

use std::path::PathBuf;

use lula_config::keys;
use lula_protocol::{Code, Exit, Receipt};
use lula_repair::{Outcome, TestCommand, TestReport};
use lula_workspace::{Git, Scratch};
use serde::Serialize;

use crate::cli::TryFlags;
use crate::failure::Failure;
use crate::sandboxed::{self, Finished};
use crate::session::Session;
use crate::term::{BAD, DIM, STRONG, Table, paint};

/// What was done and seen.
#[derive(Serialize)]
struct Story {
    sample: &'static str,
    /// Where the repository was left, if it was.
    repository: Option<PathBuf>,
    baseline: TestReport,
    receipt: Receipt,
}

pub(super) fn run(flags: &TryFlags, session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    let step = screen.step("sample");
    let git = Git::find(
        &session.config.get(&keys::GIT_PROGRAM),
        std::env::var_os("PATH").as_deref(),
    )?;
    let scratch = Scratch::new(&git, sample::FILES)?;
    step.done(&format!("{}, in a temporary git repository", sample::ABOUT));
    screen.detail(&format!("the repository is {}", scratch.path().display()));

    let step = screen.step("sandbox");
    let sandbox = sandboxed::open(session, scratch.path())?;
    step.done(&format!("{} tier", sandbox.tier()));

    let step = screen.step("tests before any change");
    let tests = TestCommand::unittest("python3", &sandboxed::nonce()?);
    let finished = sandbox
        .run(&tests.argv, &tests.env)
        .map_err(python_missing)?;
    let baseline = tests
        .read(&finished.stdout)
        .map_err(|error| no_evidence(&error, &finished))?;
    let failing = baseline.failing().count();
    let total = baseline.tests.len();
    let summary = format!("{failing} of {total} fail");
    if failing == 0 {
        step.done(&summary);
    } else {
        step.failed(&summary);
    }

    let repository = flags.keep.then(|| scratch.keep());
    let story = Story {
        sample: sample::ABOUT,
        repository,
        baseline,
        receipt: finished.receipt,
    };
    if screen.is_json() {
        screen.document(&story)?;
    } else {
        tell(&story, session)?;
    }
    Ok(Exit::Verified)
}

fn python_missing(failure: Failure) -> Failure {
    if failure.code != Code::CommandNotStarted {
        return failure;
    }
    let message = "the sample's tests need python3, which was not found";
    Failure::new(Code::ToolMissing, Exit::Environment, message)
        .remedy("install python3, for example with your system's package manager")
}

/// A test run that reports nothing is no evidence of anything.
fn no_evidence(error: &lula_repair::unittest::NoReport, finished: &Finished) -> Failure {
    let said: Vec<_> = finished.stderr.lines().rev().take(5).collect();
    let said = said.into_iter().rev().collect::<Vec<_>>().join("\n");
    let message = format!("{error} ({:?})", finished.receipt.ended);
    let failure = Failure::new(Code::EnvironmentUnfit, Exit::Environment, message);
    failure.remedy(if said.is_empty() {
        "run `lula doctor`".to_owned()
    } else {
        said
    })
}

fn tell(story: &Story, session: &Session) -> Result<(), Failure> {
    let screen = &session.screen;
    screen.line(format!("\n{}", paint(STRONG, "Failing tests")))?;
    let mut table = Table::default();
    for test in story.baseline.failing() {
        let reason = test.message.trim_end().lines().last().unwrap_or_default();
        table.row([paint(BAD, "✗"), test.id.clone(), reason.to_owned()]);
    }
    screen.line(table.render(2).trim_end())?;
    let passed = story.baseline.count(Outcome::Passed);
    screen.line(paint(DIM, format!("  {passed} others pass")))?;

    screen.line(format!(
        "\n{}",
        paint(STRONG, "What stood around the tests, read back")
    ))?;
    screen.line(sandboxed::posture(&story.receipt).render(2).trim_end())?;

    if let Some(repository) = &story.repository {
        screen.line(format!("\nThe repository is in {}", repository.display()))?;
    }
    screen.line(format!("\n{}", paint(STRONG, "Next")))?;
    let mut table = Table::default();
    table.row([
        "lula try --keep".into(),
        "leave the sample on disk to look around".into(),
    ]);
    table.row([
        "lula doctor".into(),
        "what works on this machine, and why not".into(),
    ]);
    table.row([
        "lula config list".into(),
        "every setting, and where it comes from".into(),
    ]);
    screen.line(table.render(2).trim_end())
}
