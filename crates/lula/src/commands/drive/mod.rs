//! Driving a run from a terminal: what is seen of it, who answers its questions, and how it is put
//! down.

mod interrupt;
mod talk;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lula_agents::{Coding, Crew, Hands, Task, Work, Workshop};
use lula_graph::{Engine, Options, Rested, RunState, Start, World};
use lula_protocol::{Amounts, Code, Exit, RunId};
use lula_store::{Status, Store};

use crate::cli::runs::Approve;
use crate::failure::Failure;
use crate::hands::{Hired, RunnerHands};
use crate::record::{local_principal, now_ms};
use crate::runs::consent;
use crate::runs::crew::Company;
use crate::runs::follow::Follower;
use crate::runs::mailbox::{Mailbox, Member};
use crate::runs::view::View;
use crate::runs::worker::{self, Held};
use crate::runs::{fence, minds, seal_key, store};
use crate::session::Session;
use interrupt::{Interrupted, on_interrupt};

/// So often a step that cannot be done now is tried again before the run is put down.
const PATIENCE: u32 = 5;
/// How long the step under way may take after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);

/// Who answers what the run asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// Whoever sits at the terminal; nobody where there is none.
    Terminal,
    /// The person who said so beforehand, with yes.
    Yes,
}

impl From<Option<Approve>> for Answers {
    fn from(approve: Option<Approve>) -> Self {
        match approve {
            Some(Approve::Auto) => Self::Yes,
            Some(Approve::Ask | Approve::Unsure) | None => Self::Terminal,
        }
    }
}

/// What is watched of the run this process drives.
type Watched = Arc<Mutex<Option<Arc<View>>>>;

/// Everything a run is driven with.
pub(super) struct Desk<'a> {
    pub(super) engine: Engine<Coding>,
    pub(super) store: Arc<dyn Store>,
    session: &'a Session,
    hired: Hired,
    crew: Arc<Company>,
    watched: Watched,
    answers: Answers,
    interrupt: Interrupted,
}

/// Why a run was put down before it rested.
pub(super) enum Stopped {
    Asked,
    AtOnce,
    OutOfTime,
}

/// Where a run is when nobody drives it any more.
pub(super) enum Reached {
    /// It was put down.
    Stopped(Stopped),
    /// It is over, or waits for somebody.
    Rested(Box<RunState<Work>>),
}

/// A name for a run that is to begin.
pub(super) fn fresh() -> Result<RunId, Failure> {
    let mut random = [0; 10];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::new(Code::Internal, Exit::Failed, error.to_string()))?;
    Ok(RunId::from_parts(now_ms(), random))
}

/// Writes the first event of a run.
pub(super) async fn begin(
    engine: &Engine<Coding>,
    task: &Task,
    limits: Amounts,
) -> Result<RunId, Failure> {
    begin_as(fresh()?, engine, task, limits).await
}

/// Writes the first event of the run of that name.
pub(super) async fn begin_as(
    run: RunId,
    engine: &Engine<Coding>,
    task: &Task,
    limits: Amounts,
) -> Result<RunId, Failure> {
    let start = Start {
        limits,
        run: Some(run),
        ..Start::default()
    };
    Ok(engine.start(task, &start).await?)
}

impl<'a> Desk<'a> {
    /// Finds hands for the work, and locks this process out of what they work on: from here on it
    /// starts nothing that needs a file of the repository.
    pub(super) async fn open(
        task: &Task,
        answers: Answers,
        session: &'a Session,
    ) -> Result<Self, Failure> {
        let mut asked = task.models.clone();
        asked.extend(task.guidance.judges.iter().cloned());
        let (door, guard) = minds::door(&asked, session)?;
        let all = [&task.repository].into_iter().chain(&task.also);
        let repositories: Vec<&Path> = all.map(Path::new).collect();
        let seal = seal_key(session)?;
        let hired = Hired::find(&repositories, answers == Answers::Yes, session).await?;
        let fence = fence::lock(&repositories, session)?;
        let store = store::open(session, guard).await?;
        let index = session.state_directory()?.join(store::RUNS).join("index");
        let watched = Watched::default();
        let view = |watched: &Watched| {
            let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            watched.clone()
        };
        let say = {
            let watched = Arc::clone(&watched);
            move |text: &str| {
                if let Some(view) = view(&watched) {
                    view.doing(text.trim());
                }
            }
        };
        let visit = {
            let watched = Arc::clone(&watched);
            move |_: &RunId, node: &str, _: u32| {
                if let Some(view) = view(&watched) {
                    view.visiting(node);
                }
            }
        };
        let hands = Arc::new(hired.hands.clone());
        let options = Options {
            worker: worker::name(),
            seal: Some(seal),
            // Whoever drives it here waits before it tries again.
            backoff: Duration::ZERO,
            ..Options::default()
        };
        let mailbox = Mailbox::new();
        let worlds = {
            let (hands, door) = (Arc::clone(&hands), Arc::clone(&door));
            let (fence, index) = (Arc::clone(&fence), index.clone());
            let watched = Arc::clone(&watched);
            let mailbox = Arc::clone(&mailbox);
            move |_: &RunId, name: &str| -> Arc<dyn World> {
                let (name, watched) = (name.to_owned(), Arc::clone(&watched));
                let say = move |text: &str| {
                    if let Some(view) = view(&watched) {
                        view.agent_doing(&name, text.trim());
                    }
                };
                let hands: Arc<dyn Hands> = Arc::clone(&hands) as Arc<dyn Hands>;
                let workshop = Workshop::new(hands, Arc::clone(&door), Arc::new(say));
                let member = Arc::new(Member(Arc::clone(&mailbox)));
                Arc::new(
                    workshop
                        .crewed(member)
                        .fenced(Arc::clone(&fence))
                        .indexed_in(index.clone()),
                )
            }
        };
        let crew = Company::new(
            Arc::clone(&store),
            options.clone(),
            Box::new(worlds),
            mailbox,
        );
        let crew = Arc::new(crew);
        let workshop = Workshop::new(hands, door, Arc::new(say))
            .crewed(Arc::clone(&crew) as Arc<dyn Crew>)
            .fenced(fence)
            .indexed_in(index);
        let options = Options {
            on_visit: Some(Arc::new(visit)),
            ..options
        };
        Ok(Self {
            engine: Engine::new(Coding, Arc::clone(&store), Arc::new(workshop), options)?,
            store,
            session,
            hired,
            crew,
            watched,
            answers,
            interrupt: on_interrupt()?,
        })
    }

    /// The hands that were found.
    pub(super) const fn hands(&self) -> &RunnerHands {
        &self.hired.hands
    }

    /// Waits for the first Ctrl-C.
    pub(super) async fn interrupted(&self) {
        self.interrupt.once.cancelled().await;
    }

    /// Drives a run until it rests, or somebody or the clock stops it, and says what came of it.
    pub(super) async fn drive(
        &self,
        run: &RunId,
        max_time: Option<Duration>,
    ) -> Result<Exit, Failure> {
        match self.reach(run, max_time).await? {
            Reached::Stopped(stopped) => self.put_down(run, &stopped).await,
            Reached::Rested(known) => self.tell(&known),
        }
    }

    /// Drives a run until it rests, or somebody or the clock stops it.
    pub(super) async fn reach(
        &self,
        run: &RunId,
        max_time: Option<Duration>,
    ) -> Result<Reached, Failure> {
        let deadline = max_time.map(|time| tokio::time::Instant::now() + time);
        loop {
            if let Some(stopped) = self.work(run, deadline).await? {
                return Ok(Reached::Stopped(stopped));
            }
            let known = self.engine.show(run, None).await?;
            if let Some(question) = consent::question(&known, &local_principal()?)
                && let Some(decision) = self.decide(&known, &question)?
            {
                consent::answer(&self.engine, &known, &question, decision).await?;
                continue;
            }
            self.clear(&known).await;
            return Ok(Reached::Rested(Box::new(known)));
        }
    }

    /// Works on a run until it rests; tells why where it was stopped before.
    async fn work(
        &self,
        run: &RunId,
        deadline: Option<tokio::time::Instant>,
    ) -> Result<Option<Stopped>, Failure> {
        let row = self.store.run(run).await?;
        let told = row.map_or(0, |row| row.head.next);
        let view = Arc::new(View::new(self.session.screen.live("starting"), told));
        let watch = |view| *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = view;
        watch(Some(Arc::clone(&view)));
        let following = Follower::new(Arc::clone(&self.store), run.clone());
        let hear = |moment: &_, teller: &_| view.happened(moment, teller);
        let stopped = tokio::select! {
            biased;
            rested = self.go(run, &view) => rested?,
            () = self.interrupt.twice.cancelled() => Some(Stopped::AtOnce),
            () = self.put_down_gently(run, &view) => Some(Stopped::AtOnce),
            () = at(deadline) => Some(Stopped::OutOfTime),
            () = following.follow(|_, moment, teller| hear(moment, teller)) => None,
        };
        watch(None);
        if stopped.is_none() {
            // What was committed last may not have been told yet.
            let mut rest = Follower::new(Arc::clone(&self.store), run.clone());
            let _ = rest
                .catch_up(|_, moment, teller| view.happened(moment, teller))
                .await;
        } else {
            worker::release_own(&*self.store, run).await?;
        }
        Ok(stopped)
    }

    /// After the first Ctrl-C: asks the run to stop before its next step, and waits for that.
    async fn put_down_gently(&self, run: &RunId, view: &View) {
        self.interrupt.once.cancelled().await;
        let text = "stopping after the step under way; Ctrl-C again stops at once";
        view.warn(text);
        let end = tokio::time::Instant::now() + GRACE;
        while tokio::time::Instant::now() < end {
            // A run that is just being claimed hears it the next time.
            self.engine.pause(run);
            self.crew.pause();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Claims the run and drives it. A run that is over is left alone.
    async fn go(&self, run: &RunId, view: &View) -> Result<Option<Stopped>, Failure> {
        let mut troubles = 0;
        loop {
            let Some(row) = self.store.run(run).await? else {
                return Err(lula_store::StoreError::NoRun(run.clone()).into());
            };
            if row.status == Status::Done {
                return Ok(None);
            }
            if let Held::By(owner) = worker::release_dead(&*self.store, &row).await? {
                let message = format!("{run} is being worked on by {owner}");
                return Err(
                    Failure::new(Code::RunBusy, Exit::Failed, message).remedy(format!(
                        "`lula logs -f {run}` follows it, `lula cancel {run}` ends it"
                    )),
                );
            }
            match self.engine.resume(run).await? {
                Some(Rested::Paused) => return Ok(Some(Stopped::Asked)),
                // Agents that were put down are no trouble.
                Some(Rested::Trouble(_)) if self.interrupt.once.is_cancelled() => {
                    return Ok(Some(Stopped::Asked));
                }
                Some(Rested::Trouble(message)) if troubles == PATIENCE => {
                    return Err(Failure::new(Code::RunRefused, Exit::Environment, message)
                        .remedy(format!("`lula resume {run}` tries again")));
                }
                Some(Rested::Trouble(message)) => {
                    troubles += 1;
                    view.warn(&format!("{message}; trying again soon"));
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                _ => return Ok(None),
            }
        }
    }

    /// Gives the space of a run back that is over.
    async fn clear(&self, known: &RunState<Work>) {
        if known.progress.ended.is_none() {
            return;
        }
        let mut cleared = self.hired.hands.clear(&known.progress.run).await;
        // Whoever ended the run while agents worked ended them too.
        let mut running = known.state.agents_at_work();
        running.extend(self.crew.everybody());
        if !running.is_empty() {
            self.crew.stop(&running).await;
        }
        cleared = cleared.and(self.hired.hands.clear_team(known).await);
        if let Err(error) = cleared {
            let text = format!("the workspace of the run could not be removed: {error}");
            self.session.screen.warn(&text);
        }
    }
}

async fn at(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
