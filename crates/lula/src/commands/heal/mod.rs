//! `lula heal`: looks whether the tests of a repository pass, and begins a run where they do not.

mod history;
mod watch;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lula_agents::hands::{Trial, TrialResult};
use lula_agents::heal::{self, Act, Episode, Health, History, Limits, Outcome};
use lula_agents::{Hands, HandsError, Task};
use lula_protocol::{Code, Dimension, Exit, RunId};
use serde::Serialize;

use super::drive::{self, Answers, Desk, Reached};
use super::run::{self, find_git};
use crate::cli::runs::{HealFlags, RunFlags};
use crate::failure::Failure;
use crate::record::{now_ms, spoken_time};
use crate::runs;
use crate::runs::environment;
use crate::runs::report::{RunReport, usd};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, Table, WARN, paint, plain, visible};
use history::Memory;

/// How often a watched repository is looked at, where nobody says.
const INTERVAL: Duration = Duration::from_secs(30);

/// What came of one look.
#[derive(Serialize)]
struct Looked {
    repository: String,
    commit: String,
    #[serde(flatten)]
    health: Health,
    #[serde(flatten)]
    act: Act,
    /// What is known of the breakage.
    #[serde(skip_serializing_if = "Option::is_none")]
    episode: Option<Episode>,
    exit: Exit,
    summary: String,
}

pub(super) fn run(flags: &HealFlags, session: &Session) -> Result<Exit, Failure> {
    let task = run::task(&as_run(flags), session)?;
    if flags.history {
        return tell_history(&Memory::of(&watched(&task), session)?.read()?, session);
    }
    if flags.watch {
        let git = find_git(session)?;
        let interval = flags.interval.unwrap_or(INTERVAL);
        return watch::watch(&git, Path::new(&task.repository), interval, session);
    }
    let memory = Memory::hold(&watched(&task), session)?;
    runs::block_on(async {
        let answers = Answers::from(flags.approve);
        let desk = Desk::open(&task, answers, session).await?;
        let healer = Healer {
            flags,
            desk,
            memory,
            session,
        };
        let looked = healer.look(task).await?;
        healer.tell(&looked)?;
        Ok(looked.exit)
    })
}

/// What is looked after: a repository, or a folder of it that breaks and heals by itself.
fn watched(task: &Task) -> String {
    match task.folder.as_str() {
        "" => task.repository.clone(),
        folder => format!("{}/{folder}", task.repository),
    }
}

/// The run that is begun for a breakage.
fn as_run(flags: &HealFlags) -> RunFlags {
    RunFlags {
        repo: flags.repo.iter().cloned().collect(),
        tests: flags.cmd.clone(),
        model: flags.model.clone(),
        deliver: flags.deliver,
        approve: flags.approve,
        limits: flags.limits.clone(),
        max_loops: flags.max_loops,
        search: flags.search,
        ..RunFlags::of_task("fix the failing tests")
    }
}

/// Looks after one repository.
struct Healer<'a> {
    flags: &'a HealFlags,
    desk: Desk<'a>,
    memory: Memory,
    session: &'a Session,
}

impl Healer<'_> {
    async fn look(&self, task: Task) -> Result<Looked, Failure> {
        let mut history = self.memory.read()?;
        let name = drive::fresh()?;
        if let Some(cut_off) = history.looking.replace(name.clone()) {
            let cleared = self.desk.hands().clear(&cut_off).await;
            cleared.map_err(|error| unable(&error))?;
        }
        self.memory.write(&history)?;
        let looked = self.examine(&task, &name).await?;
        history.looking = None;
        let Some((commit, health)) = looked else {
            self.memory.write(&history)?;
            return Ok(Looked {
                repository: task.repository,
                commit: String::new(),
                health: Health::Unknown {
                    why: "interrupted".to_owned(),
                    broken: None,
                },
                act: Act::Nothing,
                episode: None,
                exit: Exit::Inconclusive,
                summary: "interrupted before the tests were through".to_owned(),
            });
        };
        match &health {
            Health::Green { .. } => history.green(now_ms()),
            Health::Broken {
                fingerprint,
                failing,
            } => history.saw(fingerprint, failing, &commit, now_ms()),
            Health::Unclear { .. } | Health::Unknown { .. } => {}
        }
        self.memory.write(&history)?;
        let act = heal::decide(&history, &health, self.limits(), now_ms());
        let (exit, summary) = self.act(&act, &health, &task, &mut history).await?;
        let episode = match &health {
            Health::Broken { fingerprint, .. } => history.open(fingerprint).cloned(),
            _ => None,
        };
        Ok(Looked {
            repository: task.repository,
            commit,
            health,
            act,
            episode,
            exit,
            summary,
        })
    }

    /// Runs the tests of the commit that is checked out, in a private copy; nothing where somebody
    /// interrupted it.
    async fn examine(
        &self,
        task: &Task,
        name: &RunId,
    ) -> Result<Option<(String, Health)>, Failure> {
        let hands = self.desk.hands();
        let place = hands
            .open(name, &task.repository)
            .await
            .map_err(|error| unable(&error))?;
        let live = Arc::new(self.session.screen.live("running the tests"));
        let said = Arc::clone(&live);
        let watch: lula_agents::Watch = Arc::new(move |text: &str| said.say(text.trim()));
        let trial = Trial::Examine {
            tests: task.tests_of(0),
            accept: Vec::new(),
            tests_ms: task.tests_ms,
        };
        let found = tokio::select! {
            found = hands.trial(&place.workspace, &trial, &watch) => Some(found),
            () = self.desk.interrupted() => None,
        };
        drop((live, watch));
        if let Err(error) = hands.clear(name).await {
            let text = format!("the copy that was tested could not be removed: {error}");
            self.session.screen.warn(&text);
        }
        let health = match found.transpose().map_err(|error| unable(&error))? {
            None => return Ok(None),
            Some(TrialResult::Examined { baseline }) => heal::assess(&baseline),
            Some(TrialResult::Failed { message }) => Health::Unknown {
                why: message,
                broken: None,
            },
            Some(_) => {
                let why = "the runner answered another question".to_owned();
                Health::Unknown { why, broken: None }
            }
        };
        if place.uncommitted > 0 {
            let text = "files have changes that are not committed; the commit was looked at";
            let text = format!("{} {text}", place.uncommitted);
            self.session.screen.detail(&text);
        }
        Ok(Some((place.commit, health)))
    }

    const fn limits(&self) -> Limits {
        Limits {
            per_hour: self.flags.max_per_hour,
            per_day: self.flags.budget_per_day,
            again: self.flags.again,
        }
    }

    async fn act(
        &self,
        act: &Act,
        health: &Health,
        task: &Task,
        history: &mut History,
    ) -> Result<(Exit, String), Failure> {
        let Health::Broken {
            fingerprint,
            failing,
        } = health
        else {
            return Ok(match health {
                Health::Green { passing } => (Exit::Verified, format!("{passing} tests pass")),
                Health::Unclear { why } => (Exit::Inconclusive, why.clone()),
                Health::Unknown { why, .. } => (Exit::Environment, why.clone()),
                Health::Broken { .. } => (Exit::Failed, String::new()),
            });
        };
        let broken = match failing.len() {
            1 => "1 test fails".to_owned(),
            number => format!("{number} tests fail"),
        };
        Ok(match act {
            Act::Begin => {
                self.say_broken(health);
                // Its name is written down first: whatever happens, there is one run for it.
                let run = drive::fresh()?;
                history.begins(fingerprint, &run, now_ms());
                self.memory.write(history)?;
                self.begin(&run, failing, task, history).await?;
                self.drive(&run, history).await?
            }
            Act::GoOn { run } => {
                self.say_broken(health);
                if self.desk.store.run(run).await?.is_none() {
                    self.begin(run, failing, task, history).await?;
                }
                self.drive(run, history).await?
            }
            Act::Known { run } => known(&broken, run, history.open(fingerprint)),
            Act::TooMany { until_ms } => (
                Exit::Budget,
                format!(
                    "{broken}; {} runs were begun within an hour, another may begin at {}",
                    self.flags.max_per_hour,
                    spoken_time(*until_ms)
                ),
            ),
            Act::Spent { spent } => (
                Exit::Budget,
                format!("{broken}; {} were spent within a day", usd(*spent)),
            ),
            Act::Nothing => (Exit::Failed, broken),
        })
    }

    async fn begin(
        &self,
        run: &RunId,
        failing: &[String],
        task: &Task,
        history: &History,
    ) -> Result<(), Failure> {
        let task = Task {
            text: heal::task(failing),
            ..task.clone().repairing()
        };
        let mut limits = run::limits(&self.flags.limits);
        if let Some(left) = heal::left(history, self.limits(), now_ms()) {
            let most = limits.0.entry(Dimension::MicroUsd).or_insert(left);
            *most = left.min(*most);
        }
        drive::begin_as(run.clone(), &self.desk.engine, &task, limits).await?;
        Ok(())
    }

    /// Works on a run and writes down what came of it. One that was put down goes on at the next
    /// look.
    async fn drive(&self, run: &RunId, history: &mut History) -> Result<(Exit, String), Failure> {
        self.session
            .screen
            .note(&format!("{} {run}", paint(DIM, "run")));
        let reached = self.desk.reach(run, self.flags.limits.max_time).await?;
        let known = match reached {
            Reached::Stopped(_) => {
                let summary = format!("{run} was put down; the next look goes on with it");
                return Ok((Exit::Inconclusive, summary));
            }
            Reached::Rested(known) => known,
        };
        let report = RunReport::of(&known);
        if known.progress.ended.is_some() {
            let delivered = report.delivered.as_ref();
            history.ended(
                run,
                Outcome {
                    exit: report.exit,
                    summary: report.summary.clone(),
                    branch: delivered.and_then(|delivered| delivered.branch.clone()),
                    spent: known.progress.ledger.spent(Dimension::MicroUsd),
                },
            );
            self.memory.write(history)?;
        }
        if !self.session.screen.is_json() {
            for line in report.delivery() {
                self.session.screen.note(&line);
            }
        }
        Ok((report.exit, report.summary))
    }

    fn say_broken(&self, health: &Health) {
        let Health::Broken { failing, .. } = health else {
            return;
        };
        let names: Vec<String> = failing.iter().take(5).map(|id| plain(id, 80)).collect();
        let more = failing.len().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let text = format!("broken: {}{more}", names.join(", "));
        self.session.screen.note(&paint(BAD, text));
    }

    fn tell(&self, looked: &Looked) -> Result<(), Failure> {
        let screen = &self.session.screen;
        if screen.is_json() {
            // A watcher prints many.
            return if self.flags.watched {
                screen.json_line(looked)
            } else {
                screen.document(looked)
            };
        }
        let word = match (&looked.health, looked.exit) {
            (Health::Green { .. }, _) => {
                let text = format!("{} {}", paint(GOOD, "green:"), looked.summary);
                // Nobody is told what nobody has to know.
                if std::io::stderr().is_terminal() && !self.flags.watched {
                    screen.note(&text);
                } else {
                    screen.detail(&text);
                }
                return Ok(());
            }
            (_, Exit::Verified) => paint(GOOD, "mended:"),
            (_, Exit::Failed) => paint(BAD, "broken:"),
            (_, Exit::Environment) => paint(BAD, "unknown:"),
            (_, Exit::Inconclusive) => paint(WARN, "unclear:"),
            _ => paint(WARN, "waiting:"),
        };
        screen.line(format!("{word} {}", visible(&looked.summary)))?;
        if let Health::Unknown {
            broken: Some(broken),
            ..
        } = &looked.health
        {
            for line in environment::lines(broken).iter().skip(1) {
                screen.note(line);
            }
        }
        Ok(())
    }
}

/// What is said of a breakage that was worked on before.
fn known(broken: &str, run: &RunId, episode: Option<&Episode>) -> (Exit, String) {
    let outcome = episode.and_then(|episode| episode.outcome.as_ref());
    match outcome {
        Some(Outcome {
            exit: Exit::Verified,
            branch,
            ..
        }) => {
            let place = match branch {
                Some(branch) => format!("merge {branch}"),
                None => format!("`lula diff {run}` shows the change"),
            };
            let text = format!("{broken}, as before; {} mended it: {place}", run.short());
            (Exit::Verified, text)
        }
        Some(outcome) => {
            let text = format!(
                "{broken}, as before; {} did not mend it ({}); --again tries once more",
                run.short(),
                outcome.summary
            );
            (Exit::Failed, text)
        }
        None => (Exit::Failed, broken.to_owned()),
    }
}

fn unable(error: &HandsError) -> Failure {
    Failure::new(Code::EnvironmentUnfit, Exit::Environment, error.to_string())
        .remedy("`lula doctor` shows what works here")
}

fn tell_history(history: &History, session: &Session) -> Result<Exit, Failure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(history)?;
        return Ok(Exit::Verified);
    }
    if history.episodes.is_empty() {
        screen.note("nothing was seen to break here yet");
        return Ok(Exit::Verified);
    }
    let mut table = Table::default();
    let head = [
        "breakage",
        "first seen",
        "seen",
        "gone",
        "run",
        "failing",
        "what came of it",
    ];
    table.row(head.map(|name| paint(DIM, name)));
    for one in history.episodes.iter().rev() {
        let outcome = match (&one.run, &one.outcome) {
            (_, Some(outcome)) => plain(&outcome.summary, 120),
            (Some(_), None) => "not finished".to_owned(),
            (None, None) => "not worked on".to_owned(),
        };
        let failing = match one.failing.split_first() {
            Some((first, [])) => plain(first, 48),
            Some((first, rest)) => format!("{} and {} more", plain(first, 36), rest.len()),
            None => String::new(),
        };
        table.row([
            one.fingerprint[..one.fingerprint.len().min(8)].to_owned(),
            spoken_time(one.first_ms),
            one.seen.to_string(),
            one.gone_ms.map_or_else(|| "no".to_owned(), spoken_time),
            one.run
                .as_ref()
                .map_or_else(String::new, |run| run.short().to_owned()),
            failing,
            outcome,
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    Ok(Exit::Verified)
}
