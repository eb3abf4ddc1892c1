//! Where deeds are done: each goes to the hands or to a mind, and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lula_graph::{Evidence, Order, Performed, Trouble, World};
use lula_protocol::{Amounts, Digest, Dimension, ProtocolVersion, ToolCall, WorkspaceId};
use lula_repair::{Ground, RepairError};
use serde::Serialize;

use crate::deeds::{Deed, Taken};
use crate::hands::{Hands, HandsError, workspace_of};
use crate::minds::{MindError, Minds};
use crate::trial;

/// Hears how far something is that takes a while.
pub type Watch = Arc<dyn Fn(&str) + Send + Sync>;

/// The world of a run: hands and minds.
pub struct Workshop {
    hands: Arc<dyn Hands>,
    minds: Arc<dyn Minds>,
    watch: Watch,
}

impl Workshop {
    /// With these.
    pub fn new(hands: Arc<dyn Hands>, minds: Arc<dyn Minds>, watch: Watch) -> Self {
        Self {
            hands,
            minds,
            watch,
        }
    }

    /// What an order asks for. A run that was forked names the workspace of the run it came from,
    /// and works in one of its own.
    async fn deed(&self, order: &Order) -> Result<Deed, Trouble> {
        let mut deed = read(order)?;
        let own = workspace_of(&order.run);
        if let Some(named) = deed.workspace().filter(|named| **named != own).cloned() {
            let adopted = self.hands.adopt(&order.run, &named).await;
            adopted.map_err(trouble)?;
            deed.move_to(&own);
        }
        Ok(deed)
    }

    /// Does something that blocks in forks of a workspace.
    async fn in_forks<T: Serialize + Send + 'static>(
        &self,
        workspace: &WorkspaceId,
        work: impl FnOnce(&dyn Ground) -> Result<T, RepairError> + Send + 'static,
    ) -> Result<Performed, Trouble> {
        let ground = self.hands.ground(workspace).await.map_err(trouble)?;
        let done = tokio::task::spawn_blocking(move || work(&*ground)).await;
        match done {
            Ok(Ok(value)) => said(&value),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(error) => Err(failed(format!("the work in a fork ended badly: {error}"))),
        }
    }

    async fn act(&self, order: &Order, deed: Deed) -> Result<Performed, Trouble> {
        match deed {
            Deed::Open { repository } => {
                let place = self.hands.open(&order.run, &repository).await;
                said(&place.map_err(trouble)?)
            }
            Deed::Files { workspace } => {
                said(&self.hands.files(&workspace).await.map_err(trouble)?)
            }
            Deed::Fetch { workspace, path } => {
                let text = self.hands.fetch(&workspace, &path).await;
                said(&text.map_err(trouble)?)
            }
            Deed::Act { workspace, action } => {
                let call = ToolCall {
                    protocol: ProtocolVersion,
                    effect: order.effect.clone(),
                    epoch: order.epoch,
                    run: order.run.clone(),
                    workspace,
                    action,
                };
                let answer = self.hands.call(&call).await.map_err(trouble)?;
                let mut performed = said(&answer)?;
                performed.spent = Amounts::none().with(Dimension::ToolCalls, 1);
                Ok(performed)
            }
            Deed::Reset { workspace } => {
                let done = self.hands.restore(&workspace, None).await;
                said(&done.map_err(trouble)?)
            }
            Deed::Change { workspace } => {
                let change = self.hands.change(&workspace).await.map_err(trouble)?;
                said(&Taken {
                    diff: change.diff,
                    files: change.files.into_iter().map(|file| file.path).collect(),
                    tree: change.tree,
                })
            }
            Deed::Examine {
                workspace,
                tests,
                tests_ms,
            } => {
                let deadline = Duration::from_millis(tests_ms);
                self.in_forks(&workspace, move |ground| {
                    trial::baseline(ground, tests.as_deref(), deadline)
                })
                .await
            }
            Deed::Repair {
                workspace,
                tests,
                search_ms,
            } => {
                let watch = Arc::clone(&self.watch);
                let budget = Duration::from_millis(search_ms);
                self.in_forks(&workspace, move |ground| {
                    trial::search(ground, tests.as_deref(), budget, &*watch)
                })
                .await
            }
            Deed::Weigh {
                workspace,
                tests,
                before,
                accept,
                tests_ms,
            } => {
                let change = self.hands.change(&workspace).await.map_err(trouble)?;
                let deadline = Duration::from_millis(tests_ms);
                self.in_forks(&workspace, move |ground| {
                    trial::weigh(
                        ground,
                        &change,
                        &before,
                        tests.as_deref(),
                        &accept,
                        deadline,
                    )
                })
                .await
            }
            Deed::Ask {
                mind,
                request,
                at_most,
            } => match self.minds.ask(&mind, &request, &at_most).await {
                Ok((response, spent)) => Ok(Performed {
                    spent,
                    ..said(&response)?
                }),
                Err(MindError { message, spent }) => Err(Trouble::Failed { message, spent }),
            },
            Deed::Deliver { order } => {
                let arrived = self.hands.deliver(&order).await;
                said(&arrived.map_err(trouble)?)
            }
        }
    }
}

/// What is said while something is done that may take a while.
fn spoken(deed: &Deed) -> Option<String> {
    Some(match deed {
        Deed::Open { .. } => "taking a private copy of the repository".to_owned(),
        Deed::Examine { .. } => "running the tests, in the sandbox".to_owned(),
        Deed::Repair { .. } => "searching for a patch, with no model".to_owned(),
        Deed::Weigh { .. } => "judging the change: tests with it and without it".to_owned(),
        Deed::Ask { mind, .. } => format!("asking {mind}"),
        Deed::Act { action, .. } => match action {
            lula_protocol::Action::ReadFile(read) => format!("  reads {}", read.path),
            lula_protocol::Action::Search(search) => format!("  searches for {}", search.pattern),
            lula_protocol::Action::WriteFile(write) => format!("  writes {}", write.path),
            lula_protocol::Action::Exec(exec) => {
                format!("  runs {}", exec.argv.last().map_or("", String::as_str))
            }
            _ => return None,
        },
        Deed::Deliver { order } => format!("delivering {}", order.branch),
        Deed::Files { .. } | Deed::Fetch { .. } | Deed::Reset { .. } | Deed::Change { .. } => {
            return None;
        }
    })
}

fn read(order: &Order) -> Result<Deed, Trouble> {
    serde_json::from_value(order.request.clone())
        .map_err(|error| failed(format!("{} is not something to do: {error}", order.name)))
}

fn said(value: &impl Serialize) -> Result<Performed, Trouble> {
    serde_json::to_value(value)
        .map(Performed::free)
        .map_err(|error| failed(error.to_string()))
}

fn failed(message: String) -> Trouble {
    Trouble::Failed {
        message,
        spent: Amounts::none(),
    }
}

fn trouble(error: HandsError) -> Trouble {
    match error {
        HandsError::Failed(message) => failed(message),
        HandsError::Lost(message) => Trouble::Lost(message),
        HandsError::Unreachable(message) => Trouble::Unreachable(message),
    }
}

#[async_trait]
impl World for Workshop {
    async fn perform(&self, order: &Order) -> Result<Performed, Trouble> {
        let deed = self.deed(order).await?;
        if let Some(text) = spoken(&deed) {
            (self.watch)(&text);
        }
        self.act(order, deed).await
    }

    async fn probe(&self, order: &Order) -> Evidence {
        let unknown = |error: String| Evidence::Unknown(error);
        match self.deed(order).await {
            Ok(Deed::Deliver { order }) => match self.hands.delivered(&order).await {
                Ok(Some(arrived)) => match serde_json::to_value(&arrived) {
                    Ok(value) => Evidence::Done(Performed::free(value)),
                    Err(error) => unknown(error.to_string()),
                },
                Ok(None) => Evidence::NotDone,
                Err(error) => unknown(error.to_string()),
            },
            Ok(other) => unknown(format!("{} leaves no evidence", other.name())),
            Err(error) => unknown(error.to_string()),
        }
    }

    async fn tree(&self, order: &Order) -> Result<Option<Digest>, Trouble> {
        let deed = self.deed(order).await?;
        match deed.workspace() {
            None => Ok(None),
            Some(workspace) => {
                let tree = self.hands.snapshot(workspace).await;
                tree.map(Some).map_err(trouble)
            }
        }
    }

    async fn restore(&self, order: &Order, tree: Option<Digest>) -> Result<(), Trouble> {
        let deed = self.deed(order).await?;
        match deed.workspace() {
            None => Ok(()),
            Some(workspace) => {
                let done = self.hands.restore(workspace, tree).await;
                done.map_err(trouble)
            }
        }
    }
}

/// No world at all, for looking at runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWorld;

#[async_trait]
impl World for NoWorld {
    async fn perform(&self, order: &Order) -> Result<Performed, Trouble> {
        Err(Trouble::Unreachable(format!(
            "{} cannot be done here: runs are only looked at",
            order.name
        )))
    }
}
