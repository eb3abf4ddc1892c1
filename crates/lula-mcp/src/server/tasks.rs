//! Whole tasks: runs that Lula's own agents work on, begun and followed by a client.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lula_agents::{CoderChoice, DeliverMode};
use lula_host::drive::{self, background, signals};
use lula_host::record::local_principal;
use lula_host::report::RunReport;
use lula_host::task::{ApprovalMode, TaskRequest, recall};
use lula_host::{HostError, Installation, runs, store};
use lula_protocol::{BudgetAmounts, RunId};
use lula_store::{RunStore, SecretGuard};
use rmcp::model::CallToolResult;
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use super::answers::{CallFailure, failed, with_data};
use super::calls::typed;

/// Longest text of a task, in characters, and most commands that it names.
const LONGEST: usize = 64 << 10;
const COMMANDS: usize = 32;
/// Most runs that one client may have begun that are not over.
const AT_ONCE: usize = 4;
/// Longest that one look waits, and how often it looks.
const WAIT_S: u32 = 60;
const LOOK: Duration = Duration::from_millis(250);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskArguments {
    action: TaskVerb,
    #[serde(default)]
    task: String,
    #[serde(default)]
    run: Option<RunId>,
    #[serde(default)]
    repair: bool,
    #[serde(default)]
    tests: Option<String>,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    wait_s: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskVerb {
    Start,
    Look,
    Cancel,
}

/// Where runs of a client are begun.
pub(super) struct TaskDoor {
    installation: Arc<Installation>,
    directory: PathBuf,
    settings: Vec<String>,
    store: OnceCell<Arc<dyn RunStore>>,
    /// What this client began: it ends nothing else.
    begun: Mutex<HashSet<RunId>>,
}

impl TaskDoor {
    pub(super) fn new(
        installation: Arc<Installation>,
        directory: PathBuf,
        settings: Vec<String>,
    ) -> Self {
        Self {
            installation,
            directory,
            settings,
            store: OnceCell::new(),
            begun: Mutex::default(),
        }
    }

    async fn store(&self) -> Result<&Arc<dyn RunStore>, HostError> {
        let open = || store::open(&self.installation, SecretGuard::default());
        self.store.get_or_try_init(open).await
    }

    pub(super) async fn call(
        &self,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, CallFailure> {
        let asked: TaskArguments = typed(arguments)?;
        let run = asked.run.clone();
        let named = || run.ok_or_else(|| CallFailure("`run` is missing: which one?".to_owned()));
        match asked.action {
            TaskVerb::Start => self.start(asked).await,
            TaskVerb::Look => {
                let wait = Duration::from_secs(u64::from(asked.wait_s.min(WAIT_S)));
                let run = named()?;
                tokio::select! {
                    looked = self.look(&run, wait) => looked,
                    () = context.ct.cancelled() => Ok(failed("it was cancelled")),
                }
            }
            TaskVerb::Cancel => self.cancel(&named()?).await,
        }
    }

    async fn start(&self, asked: TaskArguments) -> Result<CallToolResult, CallFailure> {
        if asked.task.chars().count() > LONGEST || asked.accept.len() > COMMANDS {
            let why = format!("a task has at most {LONGEST} characters and {COMMANDS} commands");
            return Ok(failed(why));
        }
        let store = self.store().await?;
        if self.under_way(store).await? >= AT_ONCE {
            return Ok(failed(format!(
                "{AT_ONCE} of your runs are under way: wait for one, or cancel it"
            )));
        }
        let request = self.request(asked);
        let installation = Arc::clone(&self.installation);
        let made = tokio::task::spawn_blocking(move || request.task(&installation));
        let mut task = made.await.map_err(|error| error.to_string())??;
        recall(&mut task, Arc::clone(store), &self.installation).await?;
        let reader = runs::reader(Arc::clone(store))?;
        let run = drive::begin(&reader, &task, BudgetAmounts::default()).await?;
        self.begun.lock().await.insert(run.clone());
        let mut line: Vec<OsString> = ["resume", run.as_str(), "--detached", "--quiet"]
            .map(OsString::from)
            .into();
        line.extend(self.settings.iter().map(OsString::from));
        background::detach(&run, &line, &**store, &self.installation).await?;
        let shown = format!(
            "begun as {run}. Ask how it stands with action look and wait_s; its change comes as a branch, your \
             workspace stays as it is."
        );
        Ok(with_data(shown, json!({"run": run, "status": "running"})))
    }

    /// What the command line would ask for. Nothing of a call says how it is approved or where the change goes.
    fn request(&self, asked: TaskArguments) -> TaskRequest {
        TaskRequest {
            text: asked.task,
            repositories: vec![self.directory.clone()],
            repair: asked.repair,
            tests: asked.tests,
            accept: asked.accept,
            finish: Vec::new(),
            models: Vec::new(),
            effort: None,
            judges: Vec::new(),
            lane: None,
            team: None,
            best_of: None,
            coder: CoderChoice::Auto,
            deliver: DeliverMode::Branch,
            approval: ApprovalMode::ByRules,
            max_loops: 3,
            max_turns: 40,
            search: Duration::from_mins(2),
            traceparent: std::env::var("TRACEPARENT").ok(),
        }
    }

    async fn under_way(&self, store: &Arc<dyn RunStore>) -> Result<usize, HostError> {
        let mut count = 0;
        for run in self.begun.lock().await.iter() {
            let row = store.run(run).await?;
            count += usize::from(row.is_some_and(|row| row.status != lula_store::RunStatus::Done));
        }
        Ok(count)
    }

    /// How a run stands, now or once it rests.
    async fn look(&self, run: &RunId, wait: Duration) -> Result<CallToolResult, CallFailure> {
        let store = self.store().await?;
        let end = tokio::time::Instant::now() + wait;
        loop {
            let Some(row) = store.run(run).await.map_err(HostError::from)? else {
                return Ok(failed(format!("there is no run {run} here")));
            };
            let rests = matches!(
                row.status,
                lula_store::RunStatus::Done | lula_store::RunStatus::Suspended
            );
            if rests || tokio::time::Instant::now() >= end {
                return self.report(run, rests, store).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn report(
        &self,
        run: &RunId,
        rests: bool,
        store: &Arc<dyn RunStore>,
    ) -> Result<CallToolResult, CallFailure> {
        let reader = runs::reader(Arc::clone(store))?;
        let known = reader.show(run, None).await.map_err(HostError::from)?;
        // Runs of other repositories are none of this client's.
        if !self.directory.starts_with(known.state.repository(0)) {
            return Ok(failed(format!("there is no run {run} here")));
        }
        if !rests {
            let shown = "it is under way: look again with wait_s";
            return Ok(with_data(shown, json!({"run": run, "status": "running"})));
        }
        let report = RunReport::of(&known);
        let branch = report.delivered.as_ref().and_then(|one| one.branch.clone());
        let mut shown = format!("{}: {}", report.word(), report.summary);
        if let Some(branch) = &branch {
            let _ = write!(shown, "\nthe change is on the branch {branch}");
        }
        if !report.diff.is_empty() {
            shown.push_str("\n\n");
            shown.push_str(&lula_agents::toolset::diff_report(&report.diff, 20_000));
        }
        let data = json!({"run": run, "status": report.status, "exit": report.exit,
            "summary": report.summary, "branch": branch, "files": report.files()});
        Ok(with_data(shown, data))
    }

    async fn cancel(&self, run: &RunId) -> Result<CallToolResult, CallFailure> {
        if !self.begun.lock().await.contains(run) {
            return Ok(failed(
                "only a run that was begun from here can be cancelled",
            ));
        }
        let store = self.store().await?;
        let by = local_principal()?;
        let reason = "cancelled by the agent that began it";
        let summary = signals::cancel(run, reason, &by, store, &self.installation).await?;
        Ok(with_data(
            format!("cancelled: {summary}"),
            json!({"run": run, "status": "cancelled", "summary": summary}),
        ))
    }
}
