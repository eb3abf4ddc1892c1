//! What a person looks at and does, here or at a server.

use std::path::PathBuf;
use std::sync::Arc;

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_protocol::event::{ParentRun, origin};
use lula_protocol::{ApprovalDecision, ApprovalId, BudgetAmounts, Digest, RunExit, RunId};
use lula_store::{LogHead, RunRow, RunStatus, RunStore, SecretGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::ServerClient;
use super::store::ServerStore;
use crate::drive::consent::{self, RunApprovalQuestion};
use crate::drive::signals::{self, Note, NoteAudience};
use crate::drive::{background, fresh};
use crate::error::HostError;
use crate::history::listing::{self, RunListing};
use crate::installation::Installation;
use crate::record::local_principal;
use crate::runner_client::UndoneDelivery;
use crate::standing::RunStanding;
use crate::undo::{self, UndoOutcome};
use crate::{runs, store};

/// Where runs are looked at and acted on: the store of this machine, or a server.
pub struct RunAccess<'a> {
    /// The runs. Those of a server can only be read through it.
    pub store: Arc<dyn RunStore>,
    /// The server, where one is configured.
    pub server: Option<Arc<ServerClient>>,
    installation: &'a Installation,
}

/// A question that is open at a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoteApproval {
    pub id: ApprovalId,
    pub run: RunId,
    pub digest: Digest,
    pub reason: String,
    #[serde(skip_serializing)]
    pub task: String,
    #[serde(skip_serializing)]
    pub needed: u32,
    #[serde(skip_serializing)]
    votes: Vec<Value>,
    /// Exactly what would be done; left out in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered: Option<String>,
}

impl RemoteApproval {
    pub fn votes(&self) -> usize {
        self.votes.len()
    }
}

/// A run as a server lists it.
#[derive(Deserialize)]
pub(super) struct ServerListing {
    pub(super) run: RunId,
    pub(super) status: RunStatus,
    standing: RunStanding,
    exit: Option<RunExit>,
    task: String,
    repository: String,
    started_ms: u64,
    events: u64,
    summary: String,
    spent: BudgetAmounts,
    parent: Option<RunId>,
    #[serde(default)]
    forked_at: Option<u64>,
}

impl ServerListing {
    fn parent(&self) -> Option<ParentRun> {
        let run = self.parent.clone()?;
        let seq = self.forked_at.unwrap_or_default();
        Some(ParentRun { run, seq })
    }

    /// As a store would have it, as far as a list tells.
    pub(super) fn into_row(self) -> RunRow {
        RunRow {
            tenant: String::new(),
            graph: String::new(),
            graph_version: 0,
            epoch: 0,
            owner: None,
            due_ms: None,
            head: LogHead {
                next: self.events,
                hash: origin(),
            },
            parent: self.parent(),
            status: self.status,
            run: self.run,
        }
    }

    fn into_listing(self) -> RunListing {
        RunListing {
            parent: self.parent(),
            run: self.run,
            status: self.status,
            standing: self.standing,
            exit: self.exit,
            task: self.task,
            repository: self.repository,
            started_ms: self.started_ms,
            events: self.events,
            summary: self.summary,
            spent: self.spent,
        }
    }
}

/// Every run of a server that may be seen, the oldest first.
pub(super) async fn listings(server: &ServerClient) -> Result<Vec<ServerListing>, HostError> {
    #[derive(Deserialize)]
    struct Page {
        runs: Vec<ServerListing>,
        next: Option<String>,
    }
    let mut all = Vec::new();
    let mut path = "/v1/runs?limit=200".to_owned();
    loop {
        let page: Page = server.get(&path).await?;
        all.extend(page.runs);
        match page.next {
            Some(next) => path = format!("/v1/runs?limit=200&cursor={next}"),
            None => break,
        }
    }
    all.reverse();
    Ok(all)
}

/// A run that a server answers with.
#[derive(Deserialize)]
struct Answered {
    run: RunId,
    #[serde(default)]
    summary: String,
}

impl<'a> RunAccess<'a> {
    /// As the configuration says.
    pub async fn open(installation: &'a Installation) -> Result<Self, HostError> {
        let server = ServerClient::configured(installation)?;
        let store: Arc<dyn RunStore> = match &server {
            Some(server) => Arc::new(ServerStore::new(Arc::clone(server))),
            None => store::open(installation, SecretGuard::default()).await?,
        };
        Ok(Self {
            store,
            server,
            installation,
        })
    }

    /// The run that a name means.
    pub async fn named(&self, name: &str) -> Result<RunId, HostError> {
        runs::named(&*self.store, name).await
    }

    /// Every run in one line of facts.
    pub async fn list(&self) -> Result<Vec<RunListing>, HostError> {
        match &self.server {
            Some(server) => {
                let all = listings(server).await?.into_iter();
                Ok(all.map(ServerListing::into_listing).collect())
            }
            None => listing::list(Arc::clone(&self.store)).await,
        }
    }

    /// Why the driver of a run of this machine ended, where it is left alone.
    pub fn driver_failure(
        &self,
        run: &RunId,
    ) -> Result<Option<lula_protocol::FailureReport>, HostError> {
        match &self.server {
            Some(_) => Ok(None),
            None => background::failure(run, self.installation),
        }
    }

    /// Has a run told something, which its model hears with its next turn.
    pub async fn steer(
        &self,
        run: &RunId,
        task: Option<&str>,
        note: Note,
    ) -> Result<NoteAudience, HostError> {
        #[derive(Deserialize)]
        struct Steered {
            model: bool,
            agents: Vec<String>,
        }
        let Some(server) = &self.server else {
            return signals::steer(run, task, note, &local_principal()?, &self.store).await;
        };
        let mut body = json!({"text": note.text()});
        if let Some(task) = task {
            body["task"] = json!(task);
        }
        let told: Steered = server.post(&format!("/v1/runs/{run}/notes"), &body).await?;
        Ok(NoteAudience {
            model: told.model,
            agents: told.agents,
        })
    }

    /// Ends a run for good, and tells what its log says of the end.
    pub async fn cancel(&self, run: &RunId, reason: &str) -> Result<String, HostError> {
        let Some(server) = &self.server else {
            let by = local_principal()?;
            return signals::cancel(run, reason, &by, &self.store, self.installation).await;
        };
        let path = format!("/v1/runs/{run}/cancel");
        let over: Answered = server.post(&path, &json!({"reason": reason})).await?;
        Ok(over.summary)
    }

    /// Begins a run with the first events of another.
    pub async fn fork(
        &self,
        run: &RunId,
        at: u64,
        set: &[(String, String)],
    ) -> Result<RunId, HostError> {
        let Some(server) = &self.server else {
            let reader = runs::reader(Arc::clone(&self.store))?;
            return Ok(reader.fork(run, at, set).await?);
        };
        let mut body = json!({"at": at});
        for (key, value) in set {
            body[key] = json!(value);
        }
        let path = format!("/v1/runs/{run}/fork");
        let fork: Answered = server.post(&path, &body).await?;
        Ok(fork.run)
    }

    /// Takes the delivery of a run back.
    pub async fn undo(&self, run: &RunId) -> Result<UndoOutcome, HostError> {
        #[derive(Deserialize)]
        struct UndoneBranch {
            #[serde(rename = "branch")]
            name: String,
            commit: String,
            kept_as: String,
        }
        #[derive(Deserialize)]
        struct Undone {
            branches: Vec<UndoneBranch>,
        }
        let Some(server) = &self.server else {
            return undo::undo(run, Arc::clone(&self.store), self.installation).await;
        };
        let path = format!("/v1/runs/{run}/undo");
        let undone: Undone = server.post(&path, &json!({})).await?;
        let one = |branch: UndoneBranch| {
            let undone = UndoneDelivery {
                branch: branch.name,
                commit: branch.commit,
                kept_as: branch.kept_as,
            };
            (PathBuf::from("REPOSITORY"), undone)
        };
        Ok(UndoOutcome::Branches(
            undone.branches.into_iter().map(one).collect(),
        ))
    }

    /// Answers what a run asks, as the person who runs this command.
    pub async fn answer(
        &self,
        known: &RunState<CodingState>,
        question: &RunApprovalQuestion,
        decision: ApprovalDecision,
    ) -> Result<(), HostError> {
        let Some(server) = &self.server else {
            let reader = runs::reader(Arc::clone(&self.store))?;
            return consent::answer(&reader, known, question, decision).await;
        };
        vote(server, &question.approval, &question.digest, decision).await
    }
}

async fn vote(
    server: &ServerClient,
    id: &ApprovalId,
    digest: &Digest,
    decision: ApprovalDecision,
) -> Result<(), HostError> {
    let word = match decision {
        ApprovalDecision::Approve => "approve",
        ApprovalDecision::Reject => "reject",
    };
    let path = format!("/v1/approvals/{id}/{word}");
    let _: Value = server.post(&path, &json!({"digest": digest})).await?;
    Ok(())
}

impl ServerClient {
    /// Begins a run, once however often the request has to be sent.
    pub async fn begin(&self, body: &Value) -> Result<RunId, HostError> {
        // A name that no other request has: what is sent twice begins one run.
        let key = format!("cli-{}", fresh()?);
        let begun: Answered = self.post_once("/v1/runs", body, Some(&key)).await?;
        Ok(begun.run)
    }

    /// Has a run gone on with: after a choice, or with higher limits.
    pub async fn go_on(
        &self,
        run: &RunId,
        choice: Option<&str>,
        limits: &BudgetAmounts,
    ) -> Result<(), HostError> {
        if let Some(choice) = choice {
            let path = format!("/v1/runs/{run}/answers");
            let _: Answered = self.post(&path, &json!({"choice": choice})).await?;
        }
        if choice.is_none() || !limits.is_empty() {
            let path = format!("/v1/runs/{run}/resume");
            let _: Answered = self.post(&path, &json!({"limits": limits})).await?;
        }
        Ok(())
    }

    /// The open questions of all runs that may be seen.
    pub async fn approvals(&self) -> Result<Vec<RemoteApproval>, HostError> {
        #[derive(Deserialize)]
        struct Page {
            approvals: Vec<RemoteApproval>,
        }
        Ok(self.get::<Page>("/v1/approvals").await?.approvals)
    }

    /// One question with what would be done, by its id or by the run that asks it.
    pub async fn approval(self: &Arc<Self>, name: &str) -> Result<RemoteApproval, HostError> {
        let id = if let Ok(id) = name.parse::<ApprovalId>() {
            id
        } else {
            let store = ServerStore::new(Arc::clone(self));
            let run = runs::named(&store, name).await?;
            let all = self.approvals().await?;
            let found = all.into_iter().find(|one| one.run == run);
            found.ok_or(HostError::NoQuestion(run))?.id
        };
        self.get(&format!("/v1/approvals/{id}")).await
    }

    /// Answers it with the digest that was shown.
    pub async fn vote(
        &self,
        asked: &RemoteApproval,
        decision: ApprovalDecision,
    ) -> Result<(), HostError> {
        vote(self, &asked.id, &asked.digest, decision).await
    }
}
