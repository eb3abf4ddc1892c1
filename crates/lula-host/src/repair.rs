//! Failing tests made to pass by search in forks of a directory, written into the audit log.

use std::path::Path;

use lula_audit::AuditEnding;
use lula_protocol::{Digest, RunExit, SandboxReceipt};
use lula_repair::{RepairOutcome, RepairReport, RepairTask, SearchProgress};
use lula_runner::ground::SandboxedForkSource;
use lula_sandbox::policy::Profile;
use lula_workspace::ForkableProject;
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;
use crate::{record, sandbox};

/// What a repair found, and what stood around it.
#[derive(Debug, Serialize)]
pub struct RepairRun {
    /// What was found.
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
    let ground = SandboxedForkSource::new(project, sandbox::policy(installation, Profile::Build))?;
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
