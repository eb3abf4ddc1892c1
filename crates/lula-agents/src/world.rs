//! Where deeds are done: each goes to the hands or to a mind, and nowhere else.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use lula_graph::{Evidence, Order, Performed, Trouble, World};
use lula_models::normal::ModelRequest;
use lula_protocol::{Amounts, Digest, Dimension, ProtocolVersion, RunId, ToolCall, WorkspaceId};
use lula_repair::TestsWanted;
use serde::{Deserialize, Serialize};

use crate::crew::{Alone, Crew, News};
use crate::deeds::Deed;
use crate::hands::{Effect, Hands, HandsError, Trial, TrialResult, workspace_of};
use crate::minds::{MindError, Minds};
use crate::team::{Wish, site_run};
use crate::{pick, survey};

/// Hears how far something is that takes a while.
pub type Watch = Arc<dyn Fn(&str) + Send + Sync>;

/// Something that whoever drives a run must not be able to do, tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// What was tried.
    pub what: String,
    /// Whether it was refused.
    pub refused: bool,
    /// What the system said.
    pub said: String,
}

/// How far whoever drives a run is kept away from what it works on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fenced {
    /// Whether it has locked itself out.
    pub locked: bool,
    /// By what, or why not.
    pub how: String,
    /// What was tried, and what came of it.
    pub probes: Vec<Probe>,
}

/// Tries whether a repository and a workspace are out of reach.
pub type Fence = Arc<dyn Fn(&str, &WorkspaceId) -> Fenced + Send + Sync>;

/// The world of a run: hands and minds.
pub struct Workshop {
    hands: Arc<dyn Hands>,
    minds: Arc<dyn Minds>,
    crew: Arc<dyn Crew>,
    watch: Watch,
    fence: Fence,
    /// Where the index of a project is kept, if anywhere.
    index: Option<PathBuf>,
}

impl Workshop {
    /// With these.
    pub fn new(hands: Arc<dyn Hands>, minds: Arc<dyn Minds>, watch: Watch) -> Self {
        Self {
            hands,
            minds,
            crew: Arc::new(Alone),
            watch,
            fence: Arc::new(|_, _| Fenced::default()),
            index: None,
        }
    }

    /// With other agents.
    #[must_use]
    pub fn crewed(mut self, crew: Arc<dyn Crew>) -> Self {
        self.crew = crew;
        self
    }

    /// Behind this fence.
    #[must_use]
    pub fn fenced(mut self, fence: Fence) -> Self {
        self.fence = fence;
        self
    }

    /// Keeping what it knows of projects in that directory.
    #[must_use]
    pub fn indexed_in(mut self, directory: PathBuf) -> Self {
        self.index = Some(directory);
        self
    }

    /// What an order asks for. A run that was forked names the workspace of the run it came from,
    /// and works in one of its own.
    async fn deed(&self, order: &Order) -> Result<(RunId, Deed), Trouble> {
        let (mut place, mut deed) = (order.run.clone(), read(order)?);
        if let Deed::Elsewhere { site, act } = deed {
            place = site_run(&order.run, site);
            deed = *act;
        }
        if let Deed::DeliverAll { parts } = &mut deed {
            for part in parts {
                let own = site_run(&order.run, part.site);
                self.settle_in(&own, &mut part.order.workspace).await?;
            }
        }
        if let Some(mut named) = deed.workspace().cloned() {
            self.settle_in(&place, &mut named).await?;
            deed.move_to(&named);
        }
        Ok((place, deed))
    }

    /// Makes a named workspace the one of that name, which begins as the other began.
    async fn settle_in(&self, run: &RunId, named: &mut WorkspaceId) -> Result<(), Trouble> {
        let own = workspace_of(run);
        if *named != own {
            self.hands.adopt(run, named).await.map_err(trouble)?;
            *named = own;
        }
        Ok(())
    }

    /// Finds something out in forks of a workspace.
    async fn find_out(&self, workspace: &WorkspaceId, trial: Trial) -> Result<Performed, Trouble> {
        let found = self.hands.trial(workspace, &trial, &self.watch).await;
        match found.map_err(trouble)? {
            TrialResult::Examined { baseline } => said(&baseline),
            TrialResult::Searched { found } => said(&found),
            TrialResult::Weighed { evidence } => said(&evidence),
            TrialResult::Failed { message } => Err(failed(message)),
        }
    }

    /// Asks a model.
    async fn ask(
        &self,
        mind: &str,
        request: &ModelRequest,
        at_most: &Amounts,
    ) -> Result<Performed, Trouble> {
        match self.minds.ask(mind, request, at_most).await {
            Ok((response, spent)) => Ok(Performed {
                spent,
                ..said(&response)?
            }),
            Err(MindError { message, spent }) => Err(Trouble::Failed { message, spent }),
        }
    }

    /// What is done by having agents.
    async fn company(&self, order: &Order, deed: Deed) -> Result<Performed, Trouble> {
        match deed {
            Deed::Begin {
                agent,
                task,
                limits,
            } => {
                let begun = self.crew.begin(&agent, &task, &limits).await;
                said(&begun.map_err(trouble)?)
            }
            Deed::Await { agents } => {
                let news = self.crew.wait(&agents).await.map_err(trouble)?;
                let spent = match &news {
                    News::Back(returned) => returned.spent.clone(),
                    News::Wish { .. } => Amounts::none(),
                };
                Ok(Performed {
                    spent,
                    ..said(&news)?
                })
            }
            Deed::Propose { job, arguments } => {
                let wish = Wish {
                    id: order.effect.clone(),
                    run: order.run.clone(),
                    job,
                    arguments,
                };
                said(&self.crew.propose(&wish).await.map_err(trouble)?)
            }
            Deed::Answer { answers } => {
                for (wish, answer) in &answers {
                    self.crew.answer(wish, answer).await.map_err(trouble)?;
                }
                said(&())
            }
            Deed::Dismiss { agents } => {
                let ended = self.crew.dismiss(&agents).await.map_err(trouble)?;
                let spent = ended.iter().flat_map(|back| back.spent.iter());
                Ok(Performed {
                    spent: total(spent),
                    ..said(&ended)?
                })
            }
            other => Err(failed(format!("{} needs no agents", other.name()))),
        }
    }

    async fn act(&self, order: &Order, place: &RunId, deed: Deed) -> Result<Performed, Trouble> {
        match deed {
            Deed::Open { repository } => {
                let place = self.hands.open(place, &repository).await;
                said(&place.map_err(trouble)?)
            }
            Deed::Fence {
                repository,
                workspace,
            } => said(&(self.fence)(&repository, &workspace)),
            Deed::Survey { workspace, wanted } => {
                let (effect, cache) = (whose(order), self.index.as_deref());
                let found = survey::survey(&*self.hands, &effect, &workspace, &wanted, cache).await;
                said(&found.map_err(trouble)?)
            }
            Deed::Fetch { workspace, path } => {
                let texts = self.hands.fetch(&whose(order), &workspace, &[path]).await;
                said(&texts.map_err(trouble)?.into_iter().next().flatten())
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
                let done = self.hands.reset(&whose(order), &workspace).await;
                said(&done.map_err(trouble)?)
            }
            Deed::Change { workspace } => {
                said(&self.hands.change(&workspace).await.map_err(trouble)?)
            }
            Deed::Examine { .. } | Deed::Repair { .. } | Deed::Weigh { .. } => {
                let (workspace, trial) = trial(deed)?;
                self.find_out(&workspace, trial).await
            }
            Deed::Pick { workspace, change } => {
                let (effect, cache) = (whose(order), self.index.as_deref());
                let picked = pick::pick(&*self.hands, &effect, &workspace, *change, cache).await;
                said(&picked.map_err(trouble)?)
            }
            Deed::Ask {
                mind,
                request,
                at_most,
            } => self.ask(&mind, &request, &at_most).await,
            Deed::OpenOver { wanted } => {
                said(&self.hands.open_over(&wanted).await.map_err(trouble)?)
            }
            Deed::Begin { .. }
            | Deed::Await { .. }
            | Deed::Dismiss { .. }
            | Deed::Propose { .. }
            | Deed::Answer { .. } => self.company(order, deed).await,
            Deed::Harvest { order: what } => {
                let kept = self.hands.harvest(&whose(order), &what).await;
                said(&kept.map_err(trouble)?)
            }
            Deed::Join { order: what } => {
                let joined = self.hands.join(&whose(order), &what).await;
                said(&joined.map_err(trouble)?)
            }
            Deed::Lay { line, workspace } => {
                let laid = self.hands.lay(&whose(order), &line, &workspace).await;
                said(&laid.map_err(trouble)?)
            }
            Deed::Deliver { order: what } => {
                let arrived = self.hands.deliver(&whose(order), &what).await;
                said(&arrived.map_err(trouble)?)
            }
            Deed::DeliverAll { parts } => {
                let orders: Vec<_> = parts.into_iter().map(|part| part.order).collect();
                let arrived = self.hands.deliver_all(&whose(order), &orders).await;
                said(&arrived.map_err(trouble)?)
            }
            Deed::Elsewhere { .. } => Err(failed("a place inside a place".to_owned())),
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
        Deed::DeliverAll { parts } => format!("delivering to {} repositories", parts.len()),
        Deed::Survey { .. } => "looking the project over".to_owned(),
        Deed::OpenOver { .. } => "taking a private copy of what is done so far".to_owned(),
        Deed::Await { agents } => format!("{} agents at work", agents.len()),
        Deed::Propose { .. } => "proposing another plan".to_owned(),
        Deed::Join { order } => format!("integrating {}, with the tests of the whole", order.job),
        Deed::Fence { .. }
        | Deed::Fetch { .. }
        | Deed::Pick { .. }
        | Deed::Reset { .. }
        | Deed::Begin { .. }
        | Deed::Dismiss { .. }
        | Deed::Answer { .. }
        | Deed::Lay { .. }
        | Deed::Harvest { .. }
        | Deed::Elsewhere { .. }
        | Deed::Change { .. } => {
            return None;
        }
    })
}

fn total(amounts: impl Iterator<Item = (Dimension, u64)>) -> Amounts {
    let mut sum = Amounts::none();
    for (dimension, amount) in amounts {
        let held = sum.0.entry(dimension).or_default();
        *held = held.saturating_add(amount);
    }
    sum
}

fn read(order: &Order) -> Result<Deed, Trouble> {
    serde_json::from_value(order.request.clone())
        .map_err(|error| failed(format!("{} is not something to do: {error}", order.name)))
}

fn whose(order: &Order) -> Effect {
    Effect {
        run: order.run.clone(),
        id: order.effect.clone(),
        epoch: order.epoch,
    }
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
        HandsError::Held { approval, reason } => Trouble::Held { approval, reason },
        HandsError::Refused { why, .. } => failed(why),
    }
}

#[async_trait]
impl World for Workshop {
    async fn perform(&self, order: &Order) -> Result<Performed, Trouble> {
        let (place, deed) = self.deed(order).await?;
        if let Some(text) = spoken(&deed) {
            (self.watch)(&text);
        }
        self.act(order, &place, deed).await
    }

    /// The hands' ledger knows: ordering it again does it, or tells what came of it.
    async fn probe(&self, _: &Order) -> Evidence {
        Evidence::NotDone
    }

    /// Agents end with whoever waits for them, and commands with whoever ordered them. A trial ends
    /// by itself where nobody listens any more.
    async fn abort(&self, order: &Order) {
        match read(order) {
            Ok(Deed::Await { agents } | Deed::Dismiss { agents }) => {
                self.crew.stop(&agents).await;
            }
            Ok(Deed::Act { .. } | Deed::Join { .. }) => self.hands.stop(&whose(order)).await,
            _ => {}
        }
    }

    /// What was cut off is taken back by the hands themselves before it is done again.
    async fn restore(&self, _: &Order, _: Option<Digest>) -> Result<(), Trouble> {
        Ok(())
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

/// What is to be found out in forks, and of which workspace.
fn trial(deed: Deed) -> Result<(WorkspaceId, Trial), Trouble> {
    let wanted = |command, folder| TestsWanted { command, folder };
    Ok(match deed {
        Deed::Examine {
            workspace,
            tests,
            folder,
            accept,
            tests_ms,
        } => {
            let tests = wanted(tests, folder);
            let trial = Trial::Examine {
                tests,
                accept,
                tests_ms,
            };
            (workspace, trial)
        }
        Deed::Repair {
            workspace,
            tests,
            folder,
            search_ms,
        } => {
            let tests = wanted(tests, folder);
            (workspace, Trial::Search { tests, search_ms })
        }
        Deed::Weigh {
            workspace,
            tests,
            folder,
            before,
            first,
            accept,
            tests_ms,
        } => {
            let trial = Trial::Weigh {
                tests: wanted(tests, folder),
                before,
                first,
                accept,
                tests_ms,
            };
            (workspace, trial)
        }
        other => return Err(failed(format!("{} needs no fork", other.name()))),
    })
}
