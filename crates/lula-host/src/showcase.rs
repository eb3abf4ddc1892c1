//! What `lula try` shows of a run: what failed, what was approved, what was delivered, that the record of
//! it holds, and that the delivery can be taken back.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_protocol::{ApprovalDecision, FailureReport, RunExit, RunId};
use lula_store::{RunStore, SecretGuard};
use lula_workspace::GitProgram;
use serde::Serialize;

use crate::drive::consent::{self, RunApprovalQuestion};
use crate::error::HostError;
use crate::installation::Installation;
use crate::record::local_principal;
use crate::report::RunReport;
use crate::runner_client::{self, UndoneDelivery};
use crate::story::follow::RunLogFollower;
use crate::{runs, store};

/// Has this very program do a command in a directory, as a person would type it: what it shows while it
/// works is shown. Tells its exit status as far as it has a meaning, or what it reported.
pub fn typed(
    arguments: &[String],
    here: &Path,
) -> Result<Result<Option<RunExit>, FailureReport>, HostError> {
    let program = std::env::current_exe().map_err(HostError::OwnProgram)?;
    let output = Command::new(program)
        .args(arguments)
        .arg("--json")
        .current_dir(here)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(HostError::OwnProgram)?;
    if let Some(report) = FailureReport::find(&output.stdout) {
        return Ok(Err(report));
    }
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let exit = said.get("exit").cloned();
    Ok(Ok(exit.and_then(|exit| serde_json::from_value(exit).ok())))
}

/// What was done and seen.
#[derive(Debug, Serialize)]
pub struct ShowcaseReport {
    /// What the sample is.
    pub sample: &'static str,
    /// Where the repository was left, if it was.
    pub repository: Option<PathBuf>,
    /// The run, as `lula show` tells it.
    pub run: RunReport,
    /// Tests that failed before, and the ends of what they said.
    pub failed: Vec<(String, String)>,
    /// The digest that was approved.
    pub approved: Option<String>,
    /// The commit that was made, with its message.
    pub commit: Option<String>,
    /// What a look at the record showed.
    pub audit: Option<RecordCheck>,
    /// The delivery that was taken back.
    pub undone: Option<UndoneDelivery>,
}

impl ShowcaseReport {
    fn of(sample: &'static str, known: &RunState<CodingState>) -> Self {
        let baseline = known.state.baseline_of(0);
        Self {
            sample,
            repository: None,
            run: RunReport::of(known),
            failed: baseline
                .map(|seen| seen.messages.clone())
                .unwrap_or_default(),
            approved: None,
            commit: None,
            audit: None,
            undone: None,
        }
    }

    /// Whether all of it went as it should.
    pub fn is_good(&self) -> bool {
        self.run.exit == lula_protocol::RunExit::Verified
            && self.audit.as_ref().is_some_and(RecordCheck::is_good)
            && self.undone.is_some()
    }
}

/// What a look at the record of a run showed.
#[derive(Debug, Serialize)]
pub struct RecordCheck {
    /// How many events it has.
    pub events: u64,
    /// Decisions that come out otherwise when they are derived again.
    pub differences: usize,
    /// The event whose digest the commit names.
    pub named_by_commit: Option<u64>,
}

impl RecordCheck {
    /// Whether the replay differs nowhere and the commit names the record.
    pub const fn is_good(&self) -> bool {
        self.differences == 0 && self.named_by_commit.is_some()
    }
}

/// The store of a showcase, opened once for all of it.
pub struct Showcase {
    store: Arc<dyn RunStore>,
}

impl Showcase {
    /// Opens the store of the installation.
    pub async fn open(installation: &Installation) -> Result<Self, HostError> {
        let store = store::open(installation, SecretGuard::default()).await?;
        Ok(Self { store })
    }

    /// The last run, as it stands.
    pub async fn last(&self) -> Result<RunState<CodingState>, HostError> {
        let run = runs::named(&*self.store, "last").await?;
        let reader = runs::reader(Arc::clone(&self.store))?;
        Ok(reader.show(&run, None).await?)
    }

    /// What is known of a run before it is answered, and the question it waits with.
    pub fn question(
        sample: &'static str,
        known: &RunState<CodingState>,
    ) -> Result<(ShowcaseReport, Option<RunApprovalQuestion>), HostError> {
        let question = consent::question(known, &local_principal()?);
        let mut report = ShowcaseReport::of(sample, known);
        report.approved = question.as_ref().map(|asked| asked.digest.to_string());
        Ok((report, question))
    }

    /// Agrees to what a run asks.
    pub async fn agree(
        &self,
        known: &RunState<CodingState>,
        question: &RunApprovalQuestion,
    ) -> Result<(), HostError> {
        let reader = runs::reader(Arc::clone(&self.store))?;
        consent::answer(&reader, known, question, ApprovalDecision::Approve).await
    }

    /// Looks at what was delivered and at its record, and takes the delivery back.
    pub async fn look_back(
        &self,
        run: &RunId,
        git: &GitProgram,
        report: &mut ShowcaseReport,
    ) -> Result<(), HostError> {
        let known = self.last().await?;
        let repository = Path::new(known.state.task.repository(0));
        report.run = RunReport::of(&known);
        if let Some(delivered) = known.state.delivered_of(0)
            && let Some(branch) = &delivered.branch
        {
            let commit = git.run(repository, &["log", "-1", "--format=%h %B", branch])?;
            report.audit = Some(self.check(run, &commit).await?);
            report.commit = Some(commit);
            let undone = runner_client::undo(git, &[(repository, delivered)]);
            report.undone = undone.ok().and_then(|undone| undone.into_iter().next());
        }
        Ok(())
    }

    /// Derives the run again from its record, and looks whether the commit names that record.
    async fn check(&self, run: &RunId, commit: &str) -> Result<RecordCheck, HostError> {
        let replayed = runs::reader(Arc::clone(&self.store))?.replay(run).await?;
        let named = commit
            .lines()
            .find_map(|line| line.strip_prefix("Lula-Audit: "));
        let mut named_by_commit = None;
        let mut log = RunLogFollower::new(Arc::clone(&self.store), run.clone());
        log.catch_up(|record, _, _| {
            if Some(record.hash.to_string().as_str()) == named {
                named_by_commit = Some(record.seq);
            }
        })
        .await?;
        Ok(RecordCheck {
            events: replayed.events,
            differences: replayed.differences.len(),
            named_by_commit,
        })
    }
}
