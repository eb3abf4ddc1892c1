//! `lula try`: the main job on a bundled sample.

mod sample;

use std::path::PathBuf;
use std::time::Duration;

use lula_config::keys;
use lula_protocol::{Exit, Receipt};
use lula_repair::{Outcome, RepairReport, RepairTask, TestReport};
use lula_sandbox::policy::Profile;
use lula_workspace::{Git, Project, Scratch};
use serde::Serialize;

use super::repair;
use crate::cli::TryFlags;
use crate::failure::Failure;
use crate::ground::SandboxedGround;
use crate::sandboxed;
use crate::session::Session;
use crate::term::{BAD, DIM, STRONG, Table, paint};

/// What was done and seen.
#[derive(Serialize)]
struct Story {
    sample: &'static str,
    /// Where the repository was left, if it was.
    repository: Option<PathBuf>,
    baseline: TestReport,
    repair: RepairReport,
    receipt: Option<Receipt>,
}

pub(super) fn run(flags: &TryFlags, session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    let step = screen.step("sample");
    let directories = std::env::var_os("PATH");
    let git = Git::find(
        &session.config.get(&keys::GIT_PROGRAM),
        directories.as_deref(),
    )?;
    let scratch = Scratch::new(&git, sample::FILES)?;
    step.done(&format!("{}, in a temporary git repository", sample::ABOUT));
    screen.detail(&format!("the repository is {}", scratch.path().display()));

    let policy = sandboxed::policy(session, Profile::Build);
    let deadline = policy.limits.wall.duration();
    let ground = SandboxedGround::new(Project::at(scratch.path())?, policy)?;
    let step = screen.step("tests, in the sandbox");
    let baseline = lula_repair::run_tests(&ground, None, deadline)?;
    let failing = baseline.failing().count();
    let summary = format!("{failing} of {} fail", baseline.tests.len());
    if failing == 0 {
        step.done(&summary);
    } else {
        step.failed(&summary);
    }

    let step = screen.step("repair, with no model");
    let task = RepairTask {
        budget: deadline.min(Duration::from_mins(2)),
        ..RepairTask::default()
    };
    let found = lula_repair::repair(&ground, &task, &|progress| {
        step.say(&repair::spoken(&progress));
    })?;
    let best = found.patches.first();
    match best {
        Some(patch) => step.done(&format!(
            "a patch after {} candidates; {} of {} tests pass with it",
            patch.evidence.tried_before + 1,
            patch.evidence.after.passed,
            baseline.tests.len()
        )),
        None => step.failed(&format!("no patch among {} candidates", found.effort.tried)),
    }
    // The revert check is the evidence: without the patch the tests fail again.
    let proven = best.is_some_and(|patch| patch.evidence.reverted);

    let receipt = ground.last_receipt();
    let repository = flags.keep.then(|| scratch.keep());
    let story = Story {
        sample: sample::ABOUT,
        repository,
        baseline,
        repair: found,
        receipt,
    };
    if screen.is_json() {
        screen.document(&story)?;
    } else {
        tell(&story, session)?;
    }
    Ok(if proven { Exit::Verified } else { Exit::Failed })
}

fn tell(story: &Story, session: &Session) -> Result<(), Failure> {
    let screen = &session.screen;
    screen.line(format!("\n{}", paint(STRONG, "What failed")))?;
    let mut table = Table::default();
    for test in story.baseline.failing() {
        let reason = test.message.trim_end().lines().last().unwrap_or_default();
        table.row([paint(BAD, "✗"), test.id.clone(), reason.to_owned()]);
    }
    screen.line(table.render(2).trim_end())?;
    let passed = story.baseline.count(Outcome::Passed);
    screen.line(paint(DIM, format!("  {passed} others pass")))?;

    if let Some(patch) = story.repair.patches.first() {
        screen.line(format!("\n{}", paint(STRONG, "What mends it")))?;
        screen.patch(&patch.diff)?;
        screen.line(repair::evidence(patch))?;
    }

    if let Some(receipt) = &story.receipt {
        screen.line(format!(
            "\n{}",
            paint(STRONG, "What stood around every run, read back")
        ))?;
        screen.line(sandboxed::posture(receipt).render(2).trim_end())?;
    }
    if let Some(repository) = &story.repository {
        screen.line(format!("\nThe repository is in {}", repository.display()))?;
    }
    screen.line(format!("\n{}", paint(STRONG, "Next")))?;
    let mut table = Table::default();
    table.row([
        "lula repair".into(),
        "the same for the failing tests of your own project".into(),
    ]);
    table.row([
        "lula exec -- CMD".into(),
        "any command in the same sandbox".into(),
    ]);
    table.row([
        "lula doctor --attack".into(),
        "attack the sandbox and see what holds".into(),
    ]);
    screen.line(table.render(2).trim_end())
}
