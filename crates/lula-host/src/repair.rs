//! Failing tests made to pass by search in forks of a directory, written into the audit log.

use std::path::Path;
use std::time::Duration;

use lula_audit::AuditEnding;
use lula_protocol::{Digest, RunExit, SandboxReceipt};
use lula_repair::{
    RepairOutcome, RepairPatch, RepairReport, RepairTask, SearchProgress, TestSelection,
};
use lula_runner::ground::SandboxedForkSource;
use lula_sandbox::policy::Profile;
use lula_workspace::ForkableProject;
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;
use crate::{environment, folder, record, sandbox};

/// How long a search takes at most, where the operator does not say.
const BUDGET: Duration = Duration::from_mins(2);

/// What a repair found, and what stood around it.
#[derive(Debug, Serialize)]
pub struct RepairRun {
    #[serde(flatten)]
    pub report: RepairReport,
    /// The last sandbox that tests ran in.
    pub receipt: Option<SandboxReceipt>,
}

impl RepairRun {
    /// What it came to.
    pub fn exit(&self) -> RunExit {
        match self.report.outcome {
            RepairOutcome::Fixed | RepairOutcome::NothingFailing => RunExit::Verified,
            RepairOutcome::NotFound if self.report.effort.exhausted => RunExit::Failed,
            RepairOutcome::NotFound => RunExit::Budget,
        }
    }
}

/// What is asked for in a directory: of the project in it that the operator is in, unless the directory
/// was named.
pub fn task(
    workspace: &Path,
    named: bool,
    tests: Option<String>,
    budget: Option<Duration>,
) -> RepairTask {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let folder = match here {
        Ok(here) if !named => folder::meant(workspace, &here, false),
        // A directory that is named is all there is.
        _ => String::new(),
    };
    RepairTask {
        tests: TestSelection {
            command: tests,
            folder,
        },
        budget: budget.unwrap_or(BUDGET),
        lanes: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        ..RepairTask::default()
    }
}

/// What speaks for a patch, in one line.
pub fn evidence(patch: &RepairPatch) -> String {
    let evidence = &patch.evidence;
    format!(
        "{} that failed {} now, {} of {} tests pass, {}",
        evidence.fixed.len(),
        if evidence.fixed.len() == 1 {
            "passes"
        } else {
            "pass"
        },
        evidence.after.passed,
        evidence.after.passed + evidence.after.failed,
        if evidence.reverted {
            "and without the patch they fail again"
        } else {
            "but it was not shown that they fail without the patch"
        },
    )
}

/// Searches in forks of a directory, and writes down what came of it. `say` hears how far it is.
pub fn repair(
    workspace: &Path,
    task: &RepairTask,
    say: &(dyn Fn(&str) + Sync),
    installation: &Installation,
) -> Result<RepairRun, HostError> {
    let mut log = record::begin(installation)?;
    let searched = search(workspace, task, say, installation);
    let outcome = match &searched {
        Ok(repaired) => AuditEnding::Done {
            status: Some(repaired.exit().status()),
        },
        Err(error) => AuditEnding::Failed {
            code: error.code().as_str().to_owned(),
        },
    };
    let repaired = searched.as_ref().ok();
    let patch = repaired.and_then(|repaired| repaired.report.patches.first());
    let tests = repaired.map(|repaired| repaired.report.command.as_slice());
    let call = serde_json::json!({
        "workspace": workspace.to_string_lossy(),
        "tests": task.tests.command,
        "all": task.all,
    });
    let act = record::OperatorAct {
        tool: "repair",
        about: lula_gate::redact::redact_words(tests.unwrap_or_default()).join(" "),
        call: &call,
        outcome,
        receipt: repaired.and_then(|repaired| repaired.receipt.as_ref()),
        diff: patch.map(|patch| Digest::of_bytes(patch.diff.as_bytes())),
    };
    record::act(log.as_mut(), act)?;
    searched
}

fn search(
    workspace: &Path,
    task: &RepairTask,
    say: &(dyn Fn(&str) + Sync),
    installation: &Installation,
) -> Result<RepairRun, HostError> {
    let forks = installation.state_directory()?.join("forks");
    lula_workspace::fork::sweep(&forks);
    let project = ForkableProject::at(workspace)?.in_layers(forks);
    let ground = SandboxedForkSource::new(
        project,
        sandbox::policy(installation, Profile::Build),
        &environment::source(installation)?,
    )?;
    let report = lula_repair::repair(&ground, task, &|progress| say(&spoken(&progress)));
    Ok(RepairRun {
        report: report?,
        receipt: ground.last_receipt(),
    })
}

fn spoken(progress: &SearchProgress) -> String {
    match progress {
        SearchProgress::RunningTests { command } => format!("running the tests: {command}"),
        SearchProgress::Failing { failing, passing } => {
            format!("{failing} tests fail, {passing} pass: looking for the place")
        }
        SearchProgress::Searching { candidates } => format!("{candidates} candidates"),
        SearchProgress::Tried { tried, passing } => {
            format!("{tried} candidates tried, {passing} pass")
        }
    }
}
