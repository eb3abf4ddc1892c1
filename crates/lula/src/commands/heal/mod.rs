//! `lula heal`: looks whether the tests of a repository pass, and begins a run where they do not.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lula_agents::ProgressObserver;
use lula_agents::heal::{CommitHealth, HealLimits, RepositoryHealHistory};
use lula_host::heal::{HealCheck, HealHistoryFile, Healer, Witness, watch, watched};
use lula_host::report::RunReport;
use lula_host::repository::find_git;
use lula_host::store::DriverStore;
use lula_host::story::environment;
use lula_host::{HostError, runs};
use lula_protocol::calendar::utc_text;
use lula_protocol::{RunExit, RunId};
use lula_workspace::GitProgram;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::drive::{ApprovalSource, DriveContext};
use super::run::{limits, task};
use crate::cli::runs::{HealFlags, RunFlags};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, TerminalScreen, TextTable, WARN, paint, plain, visible};

/// How often a watched repository is looked at, where the operator does not say.
const INTERVAL: Duration = Duration::from_secs(30);

pub(super) fn run(flags: &HealFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let task = task(&as_run(flags), session)?;
    if flags.history {
        return tell_history(
            &HealHistoryFile::of(&watched(&task), &session.host)?.read()?,
            session,
        );
    }
    if flags.watch {
        let git = find_git(&session.host)?;
        let interval = flags.interval.unwrap_or(INTERVAL);
        return watch(&git, Path::new(task.repository(0)), interval, session);
    }
    let memory = HealHistoryFile::hold(&watched(&task), &session.host)?;
    runs::block_on(async {
        let store = DriverStore::open(&session.host).await?;
        let answers = ApprovalSource::from(flags.approve);
        let desk = DriveContext::open(&task, store, answers, session).await?;
        let healer = Healer {
            driver: &desk.driver,
            memory,
            limits: HealLimits {
                per_hour: flags.max_per_hour,
                per_day: flags.budget_per_day,
                again: flags.again,
            },
            amounts: limits(&flags.limits),
            max_time: flags.limits.max_time,
            witness: &session.screen,
        };
        let looked = healer.look(task).await?;
        tell(&looked, flags, session)?;
        Ok(looked.exit)
    })
}

/// Looks after a repository until Ctrl-C.
fn watch(
    git: &GitProgram,
    repository: &Path,
    interval: Duration,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let asked = ends()?;
    let text = format!(
        "watching {}, a new commit is looked at within {} s; Ctrl-C ends it",
        repository.display(),
        interval.as_secs_f32()
    );
    session.screen.note(&paint(DIM, text));
    // Everything this process was asked, but to watch.
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.filter(|argument| argument != "--watch");
    let arguments: Vec<_> = arguments.chain(["--watched".into()]).collect();
    let exit = watch::watch(git, repository, interval, &arguments, &asked)?;
    session.screen.note(&paint(DIM, "no longer watching"));
    Ok(exit)
}

/// Counts how often an end was asked for.
fn ends() -> Result<Arc<AtomicUsize>, CommandFailure> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(HostError::Watch)?;
    std::thread::spawn(move || {
        for _ in &mut signals {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok(asked)
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

impl Witness for TerminalScreen {
    fn tests(&self) -> ProgressObserver {
        let live = self.live("running the tests");
        Arc::new(move |text: &str| live.say(text.trim()))
    }

    fn run(&self, run: &RunId) {
        self.note(&format!("{} {run}", paint(DIM, "run")));
    }

    fn ended(&self, report: &RunReport) {
        if !self.is_json() {
            self.notices(&report.delivery());
        }
    }

    fn warning(&self, text: &str) {
        self.warn(text);
    }

    fn detail(&self, text: &str) {
        Self::detail(self, text);
    }

    fn broken(&self, failing: &[String]) {
        let names: Vec<String> = failing.iter().take(5).map(|id| plain(id, 80)).collect();
        let more = failing.len().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let text = format!("broken: {}{more}", names.join(", "));
        self.note(&paint(BAD, text));
    }
}

fn tell(looked: &HealCheck, flags: &HealFlags, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        // A watcher prints many.
        return if flags.watched {
            screen.json_line(looked)
        } else {
            screen.document(looked)
        };
    }
    let word = match (&looked.health, looked.exit) {
        (CommitHealth::Green { .. }, _) => {
            let text = format!("{} {}", paint(GOOD, "green:"), looked.summary);
            // Good news is for an operator who looks on, not for the log of a timer.
            if std::io::stderr().is_terminal() && !flags.watched {
                screen.note(&text);
            } else {
                screen.detail(&text);
            }
            return Ok(());
        }
        (_, RunExit::Verified) => paint(GOOD, "mended:"),
        (_, RunExit::Failed) => paint(BAD, "broken:"),
        (_, RunExit::Environment) => paint(BAD, "unknown:"),
        (_, RunExit::Inconclusive) => paint(WARN, "unclear:"),
        _ => paint(WARN, "waiting:"),
    };
    screen.line(format!("{word} {}", visible(&looked.summary)))?;
    if let CommitHealth::Unknown {
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

fn tell_history(
    history: &RepositoryHealHistory,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(history)?;
        return Ok(RunExit::Verified);
    }
    if history.episodes.is_empty() {
        screen.note("nothing was seen to break here yet");
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
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
            utc_text(one.first_ms),
            one.seen.to_string(),
            one.gone_ms.map_or_else(|| "no".to_owned(), utc_text),
            one.run
                .as_ref()
                .map_or_else(String::new, |run| run.short().to_owned()),
            failing,
            outcome,
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    Ok(RunExit::Verified)
}
