//! `lula run` and `lula resume`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lula_agents::choose::Standing;
use lula_agents::{CoderChoice, Coding, Deliver, Task, Work, Workshop};
use lula_config::keys;
use lula_graph::{CancellationToken, Engine, Options, RunState, Start};
use lula_protocol::{Amounts, Code, Dimension, Exit, Principal, RunId, Signal};
use lula_sandbox::policy::Profile;
use lula_store::{Status, Store};
use lula_workspace::Git;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli_runs::{self, LimitFlags, ResumeFlags, RunFlags};
use crate::failure::Failure;
use crate::hands::Hired;
use crate::runs::follow::Follower;
use crate::runs::report::RunReport;
use crate::runs::worker::{self, Held};
use crate::runs::{self, fence, minds, seal_key, standing, store};
use crate::sandboxed;
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, Live, WARN, paint};

pub(super) fn run(flags: &RunFlags, session: &Session) -> Result<Exit, Failure> {
    let git = find_git(session)?;
    let repository = repository(flags.repo.as_deref(), &git)?;
    let policy = sandboxed::policy(session, Profile::Build);
    let tests_ms = policy.limits.wall.millis();
    let minds = minds::named(&flags.model, session)?;
    let mut task = Task {
        tests: flags.tests.clone(),
        accept: flags.accept.clone(),
        deliver: match flags.deliver {
            cli_runs::Deliver::Branch => Deliver::Branch,
            cli_runs::Deliver::Worktree => Deliver::Worktree,
            cli_runs::Deliver::Patch => Deliver::Patch,
            cli_runs::Deliver::None => Deliver::None,
        },
        coder: match flags.coder {
            cli_runs::Coder::Auto => CoderChoice::Auto,
            cli_runs::Coder::Repairer => CoderChoice::Repairer,
            cli_runs::Coder::Model => CoderChoice::Model,
        },
        models: minds,
        max_loops: flags.max_loops,
        max_turns: flags.max_turns,
        search_ms: millis(flags.search.unwrap_or(Duration::from_mins(2))),
        tests_ms,
        ..Task::new(&flags.task, repository.to_string_lossy())
    };
    runs::block_on(async {
        let desk = Desk::open(&task, session).await?;
        // One model needs no choosing.
        if task.models.len() > 1 {
            let (stats, _) = standing::stats(Arc::clone(&desk.store)).await?;
            task.standing = standing::standing(&stats);
            let named = |known: &Standing| task.models.iter().any(|mind| mind.name == known.model);
            task.standing.retain(named);
        }
        let mut random = [0; 10];
        getrandom::fill(&mut random).map_err(|error| internal(&error))?;
        let run = RunId::from_parts(now_ms(), random);
        let start = Start {
            limits: limits(&flags.limits),
            run: Some(run.clone()),
            ..Start::default()
        };
        session.screen.note(&format!("{} {run}", paint(DIM, "run")));
        desk.engine.start(&task, &start).await?;
        desk.drive(&run, flags.limits.max_time).await
    })
}

pub(super) fn resume(flags: &ResumeFlags, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let looked = store::open(session, lula_store::SecretGuard::default()).await?;
        let run = runs::named(&*looked, &flags.run).await?;
        let known = runs::reader(Arc::clone(&looked))?.show(&run, None).await?;
        drop(looked);
        let desk = Desk::open(&known.state.task, session).await?;
        if let Some(answer) = worker::go_on(&known) {
            desk.engine.send(&run, &answer).await?;
        }
        for (dimension, to) in limits(&flags.limits).iter() {
            let by = person();
            let raise = Signal::RaiseLimit { dimension, to, by };
            desk.engine.send(&run, &raise).await?;
        }
        desk.drive(&run, flags.limits.max_time).await
    })
}

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Internal, Exit::Failed, error.to_string())
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, millis)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Who sits at the terminal, as far as this machine knows.
fn person() -> Principal {
    let name = std::env::var("USER").unwrap_or_default();
    format!("local:{name}")
        .parse()
        .or_else(|_| "local:user".parse())
        .unwrap_or_else(|_| unreachable!("a plain name is a principal"))
}

fn limits(flags: &LimitFlags) -> Amounts {
    let given = [
        (Dimension::MicroUsd, flags.budget),
        (Dimension::ModelCalls, flags.max_calls),
        (Dimension::OutputTokens, flags.max_tokens),
    ];
    given
        .into_iter()
        .filter_map(|(dimension, limit)| Some((dimension, limit?)))
        .collect()
}

pub(super) fn find_git(session: &Session) -> Result<Git, Failure> {
    let directories = std::env::var_os("PATH");
    let configured = session.config.get(&keys::GIT_PROGRAM);
    Ok(Git::find(&configured, directories.as_deref())?)
}

/// The repository around a directory, which has to have a commit.
fn repository(named: Option<&Path>, git: &Git) -> Result<PathBuf, Failure> {
    let here = named.unwrap_or(Path::new("."));
    let here = here.canonicalize().map_err(|error| {
        let message = format!("cannot use {}: {error}", here.display());
        Failure::new(Code::FileAccess, Exit::Usage, message).remedy("name an existing directory")
    })?;
    let top = git
        .run(&here, &["rev-parse", "--show-toplevel"])
        .map_err(|error| {
            let message = format!("{} is no git repository ({error})", here.display());
            Failure::new(Code::NotARepository, Exit::Usage, message).remedy(
                "name a repository with --repo, or use `lula repair`, which works in any directory",
            )
        })?;
    let top = PathBuf::from(top.trim_end_matches('\n'));
    git.run(&top, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        .map_err(|_| {
            let message = format!("{} has no commit yet", top.display());
            Failure::new(Code::EmptyRepository, Exit::Usage, message)
                .remedy("make a first commit: `git add --all && git commit`")
        })?;
    Ok(top)
}

/// So often a step that cannot be done now is tried again before the run is put down.
const PATIENCE: u32 = 5;

/// Everything a run is driven with.
struct Desk<'a> {
    engine: Engine<Coding>,
    store: Arc<dyn Store>,
    session: &'a Session,
    hired: Hired,
    live: Arc<Live>,
    /// Set by Ctrl-C.
    stop: CancellationToken,
}

impl<'a> Desk<'a> {
    async fn open(task: &Task, session: &'a Session) -> Result<Self, Failure> {
        let (door, guard) = minds::door(&task.models, session)?;
        let repository = Path::new(&task.repository);
        let seal = seal_key(session)?;
        let hired = Hired::find(repository, session).await?;
        let fence = fence::lock(repository, session)?;
        let store = store::open(session, guard).await?;
        let index = session.state_directory()?.join(store::RUNS).join("index");
        let live = Arc::new(session.screen.live("starting"));
        let watch = Arc::clone(&live);
        // What a model asks for reaches a terminal: no control characters.
        let say = move |text: &str| {
            let plain = |c: char| if c.is_control() { ' ' } else { c };
            watch.say(&text.chars().map(plain).take(160).collect::<String>());
        };
        let hands = Arc::new(hired.hands.clone());
        let workshop = Workshop::new(hands, door, Arc::new(say))
            .fenced(fence)
            .indexed_in(index);
        let options = Options {
            worker: worker::name(),
            seal: Some(seal),
            ..Options::default()
        };
        Ok(Self {
            engine: Engine::new(Coding, Arc::clone(&store), Arc::new(workshop), options)?,
            store,
            session,
            hired,
            live,
            stop: on_interrupt()?,
        })
    }

    /// Drives a run until it rests, or somebody or the clock stops it, and says what came of it.
    async fn drive(self, run: &RunId, max_time: Option<Duration>) -> Result<Exit, Failure> {
        let following = Follower::new(Arc::clone(&self.store), run.clone()).await;
        let stopped = tokio::select! {
            biased;
            rested = self.go(run) => { rested?; None }
            () = self.stop.cancelled() => Some(("interrupted", Exit::Inconclusive)),
            () = after(max_time) => Some(("out of time", Exit::Budget)),
            () = following.follow(Arc::clone(&self.live)) => None,
        };
        if let Some((why, exit)) = stopped {
            worker::release_own(&*self.store, run).await?;
            return self.put_down(run, why, exit).await;
        }
        let known = self.engine.show(run, None).await?;
        if known.progress.ended.is_some()
            && let Err(error) = self.hired.hands.clear(run).await
        {
            let text = format!("the workspace of the run could not be removed: {error}");
            self.session.screen.warn(&text);
        }
        self.tell(&known)
    }

    /// Claims the run and drives it. A run that is over is left alone.
    async fn go(&self, run: &RunId) -> Result<(), Failure> {
        let mut troubles = 0;
        loop {
            let Some(row) = self.store.run(run).await? else {
                return Err(lula_store::StoreError::NoRun(run.clone()).into());
            };
            if row.status == Status::Done {
                return Ok(());
            }
            if let Held::By(owner) = worker::release_dead(&*self.store, &row).await? {
                let message = format!("{run} is being worked on by {owner}");
                return Err(Failure::new(Code::RunBusy, Exit::Failed, message)
                    .remedy("wait until it is done, or stop that process"));
            }
            match self.engine.resume(run).await? {
                Some(lula_graph::Rested::Trouble(message)) if troubles == PATIENCE => {
                    return Err(Failure::new(Code::RunRefused, Exit::Environment, message)
                        .remedy(format!("`lula resume {run}` tries again")));
                }
                Some(lula_graph::Rested::Trouble(message)) => {
                    troubles += 1;
                    self.live
                        .tell(&paint(WARN, format!("{message}; trying again soon")));
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                _ => return Ok(()),
            }
        }
    }

    async fn put_down(&self, run: &RunId, why: &str, exit: Exit) -> Result<Exit, Failure> {
        let known = self.engine.show(run, None).await?;
        let mut report = RunReport::of(&known);
        report.summary = format!("{why}: `lula resume {run}` goes on where it stopped");
        report.exit = exit;
        if self.session.screen.is_json() {
            self.session.screen.document(&report)?;
        }
        self.session.screen.note(&paint(WARN, &report.summary));
        Ok(exit)
    }

    fn tell(&self, known: &RunState<Work>) -> Result<Exit, Failure> {
        let report = RunReport::of(known);
        let screen = &self.session.screen;
        if screen.is_json() {
            screen.document(&report)?;
            return Ok(report.exit);
        }
        if !report.diff.is_empty() && matches!(report.exit, Exit::Verified | Exit::Inconclusive) {
            screen.patch(&report.diff)?;
        }
        let (style, word) = match report.exit {
            Exit::Verified => (GOOD, "verified"),
            Exit::Inconclusive => (WARN, "unverified"),
            Exit::Budget | Exit::WaitingForApproval => (WARN, "waiting"),
            _ => (BAD, "failed"),
        };
        screen.note(&format!(
            "{} {}",
            paint(style, format!("{word}:")),
            report.summary
        ));
        if let Some(place) = known
            .state
            .place
            .as_ref()
            .filter(|place| place.uncommitted > 0)
        {
            let text = "files have changes that are not committed; they were not part of this run";
            screen.warn(&format!("{} {text}", place.uncommitted));
        }
        if let Some(delivered) = &report.delivered {
            let branch = delivered.branch.as_deref().unwrap_or_default();
            let mut text = format!("the change is on the branch {branch}");
            if let Some(directory) = &delivered.directory {
                text = format!("{text}, checked out in {directory}");
            }
            screen.note(&text);
            let hint = format!("git merge {branch}   or   lula undo {}", report.run);
            screen.note(&paint(DIM, hint));
        }
        Ok(report.exit)
    }
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// A token that Ctrl-C sets. The second one ends the process at once.
fn on_interrupt() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let set = stop.clone();
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(|error| internal(&error))?;
    std::thread::spawn(move || {
        for signal in &mut signals {
            if set.is_cancelled() {
                std::process::exit(128 + signal);
            }
            set.cancel();
        }
    });
    Ok(stop)
}
