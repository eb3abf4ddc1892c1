//! `lula try`: the whole story on a bundled sample, told by typing the commands a person would
//! type: run, approve, resume; then the record is looked at, and the delivery taken back.

mod sample;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_host::drive::{consent, model_endpoints};
use lula_host::record::local_principal;
use lula_host::report::{RunReport, word};
use lula_host::repository::find_git;
use lula_host::runner_client::{self, UndoneDelivery};
use lula_host::story::follow::RunLogFollower;
use lula_host::{runs, store};
use lula_protocol::{ApprovalDecision, Code, RunExit, RunId};
use lula_store::SecretGuard;
use lula_workspace::{GitProgram, ScratchRepository};
use serde::Serialize;
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::background::settings_given;
use crate::cli::TryFlags;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain, visible};

/// What is asked for.
const TASK: &str = "fix the failing tests";

/// What was done and seen.
#[derive(Serialize)]
struct Story {
    sample: &'static str,
    /// Where the repository was left, if it was.
    repository: Option<PathBuf>,
    /// The run, as `lula show` tells it.
    run: RunReport,
    /// Tests that failed before, and the ends of what they said.
    failed: Vec<(String, String)>,
    /// The digest that was approved.
    approved: Option<String>,
    /// The commit that was made, with its message.
    commit: Option<String>,
    audit: Option<Audit>,
    /// The delivery that was taken back.
    undone: Option<UndoneDelivery>,
}

/// What a look at the record showed.
#[derive(Serialize)]
struct Audit {
    events: u64,
    /// Decisions that come out otherwise when they are derived again.
    differences: usize,
    /// The event whose digest the commit names.
    named_by_commit: Option<u64>,
}

impl Audit {
    const fn is_good(&self) -> bool {
        self.differences == 0 && self.named_by_commit.is_some()
    }
}

pub(super) fn run(flags: &TryFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let git = find_git(&session.host)?;
    let scratch = ScratchRepository::new(&git, sample::FILES)?;
    let screen = &session.screen;
    screen.note(&format!(
        "{}, in a throw-away git repository",
        sample::ABOUT
    ));
    screen.detail(&format!("the repository is {}", scratch.path().display()));
    survive_interrupts()?;
    let models = model_endpoints::named(&[], &session.host)?;
    // With a model it is the model's turn; the built-in search is there if it does not manage.
    let coders: &[&str] = if models.is_empty() {
        &["repairer"]
    } else {
        &["model", "repairer"]
    };
    let mut told = None;
    for coder in coders {
        let by = match (*coder, models.first()) {
            ("model", Some(model)) => visible(&model.name),
            _ => "the built-in search, no model".to_owned(),
        };
        let task = paint(STRONG, "The task:");
        screen.note(&format!("\n{task} {TASK} {}", paint(DIM, by)));
        let line = [
            "run",
            "--task",
            TASK,
            "--approve",
            "ask",
            "--max-loops",
            "1",
        ];
        let ran = lula(
            &[&line[..], &["--coder", coder]].concat(),
            scratch.path(),
            session,
        )?;
        if ran == Some(RunExit::Inconclusive) {
            return Ok(RunExit::Inconclusive);
        }
        let known = runs::block_on(last(session))?;
        let waits = consent::question(&known, &local_principal()?).is_some();
        if !waits {
            let report = RunReport::of(&known);
            let text = format!("{}: {}", word(report.exit), plain(&report.summary, 300));
            screen.note(&paint(WARN, text));
        }
        told = Some(known);
        if waits {
            break;
        }
    }
    let Some(known) = told else {
        return Err(CommandFailure::new(
            Code::Internal,
            RunExit::Failed,
            "nobody tried it",
        ));
    };
    let mut story = finish(&known, &git, session)?;
    story.repository = flags.keep.then(|| scratch.keep());
    let good = story.run.exit == RunExit::Verified
        && story.audit.as_ref().is_some_and(Audit::is_good)
        && story.undone.is_some();
    if screen.is_json() {
        screen.document(&story)?;
    } else {
        end(&story, session)?;
    }
    Ok(match (good, story.run.exit) {
        (true, _) => RunExit::Verified,
        (false, RunExit::Verified) => RunExit::Failed,
        (false, other) => other,
    })
}

/// Ctrl-C is for the command that works; this one tells what came of it, and cleans up.
fn survive_interrupts() -> Result<(), CommandFailure> {
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ignored)).map_err(|error| {
            CommandFailure::new(Code::Internal, RunExit::Failed, error.to_string())
        })?;
    }
    Ok(())
}

/// Types a command, as a person would. What it shows while it works is shown; its exit status is
/// told as far as it has a meaning.
fn lula(
    arguments: &[&str],
    here: &Path,
    session: &CliSession,
) -> Result<Option<RunExit>, CommandFailure> {
    let broken = |error: std::io::Error| {
        let message = format!("lula cannot start itself: {error}");
        CommandFailure::new(Code::Internal, RunExit::Environment, message)
    };
    let program = std::env::current_exe().map_err(broken)?;
    let output = Command::new(program)
        .args(arguments)
        .args(settings_given(session))
        .args(session.screen.is_quiet().then_some("--quiet"))
        .arg("--json")
        .current_dir(here)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(broken)?;
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if let Some(error) = said.get("error") {
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let code = text("code").parse().unwrap_or(Code::Internal);
        let exit = match output.status.code() {
            Some(2) => RunExit::Usage,
            Some(6) => RunExit::Environment,
            _ => RunExit::Failed,
        };
        return Err(CommandFailure::new(code, exit, text("message")).remedy(text("remedy")));
    }
    let exit = said.get("exit").cloned();
    Ok(exit.and_then(|exit| serde_json::from_value(exit).ok()))
}

/// The last run, as it stands.
async fn last(session: &CliSession) -> Result<RunState<CodingState>, CommandFailure> {
    let store = store::open(&session.host, SecretGuard::default()).await?;
    let run = runs::named(&*store, "last").await?;
    Ok(runs::reader(store)?.show(&run, None).await?)
}

/// Shows what waits, agrees to it, and looks at what came of that.
fn finish(
    known: &RunState<CodingState>,
    git: &GitProgram,
    session: &CliSession,
) -> Result<Story, CommandFailure> {
    let run = &known.progress.run;
    let repository = Path::new(known.state.task.repository(0));
    let question = consent::question(known, &local_principal()?);
    let baseline = known.state.baseline_of(0);
    let mut story = Story {
        sample: sample::ABOUT,
        repository: None,
        run: RunReport::of(known),
        failed: baseline
            .map(|seen| seen.messages.clone())
            .unwrap_or_default(),
        approved: question.as_ref().map(|it| it.digest.to_string()),
        commit: None,
        audit: None,
        undone: None,
    };
    let Some(question) = question else {
        return Ok(story);
    };
    if !session.screen.is_json() {
        show(&story, known, session)?;
    }
    runs::block_on(async {
        let reader = runs::reader(store::open(&session.host, SecretGuard::default()).await?)?;
        consent::answer(&reader, known, &question, ApprovalDecision::Approve).await
    })?;
    lula(&["resume", run.as_str()], repository, session)?;
    let known = runs::block_on(last(session))?;
    story.run = RunReport::of(&known);
    if let Some(delivered) = known.state.delivered_of(0)
        && let Some(branch) = &delivered.branch
    {
        let commit = git.run(repository, &["log", "-1", "--format=%h %B", branch])?;
        story.audit = Some(runs::block_on(audit(run, &commit, session))?);
        story.commit = Some(commit);
        let undone = runner_client::undo(git, &[(repository, delivered)]);
        story.undone = undone.ok().and_then(|undone| undone.into_iter().next());
    }
    Ok(story)
}

/// Derives the run again from its record, and looks whether the commit names that record.
async fn audit(run: &RunId, commit: &str, session: &CliSession) -> Result<Audit, CommandFailure> {
    let store = store::open(&session.host, SecretGuard::default()).await?;
    let replayed = runs::reader(Arc::clone(&store))?.replay(run).await?;
    let named = commit
        .lines()
        .find_map(|line| line.strip_prefix("Lula-Audit: "));
    let mut named_by_commit = None;
    let mut log = RunLogFollower::new(store, run.clone());
    log.catch_up(|record, _, _| {
        if Some(record.hash.to_string().as_str()) == named {
            named_by_commit = Some(record.seq);
        }
    })
    .await?;
    Ok(Audit {
        events: replayed.events,
        differences: replayed.differences.len(),
        named_by_commit,
    })
}

fn heading(session: &CliSession, text: &str) -> Result<(), CommandFailure> {
    session.screen.line(format!("\n{}", paint(STRONG, text)))
}

fn show(
    story: &Story,
    state: &RunState<CodingState>,
    session: &CliSession,
) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    heading(session, "What failed")?;
    let mut table = TextTable::default();
    for (test, message) in &story.failed {
        let reason = message.trim_end().lines().last().unwrap_or_default();
        table.row([paint(BAD, "✗"), plain(test, 100), plain(reason, 120)]);
    }
    screen.line(table.render(2).trim_end())?;
    heading(session, "What mends it")?;
    screen.patch(&story.run.diff)?;
    heading(session, "What shows that it does")?;
    if let Some(verdict) = &state.state.verdict {
        screen.line(format!(
            "  {} {}",
            paint(GOOD, "✓"),
            plain(verdict.why(), 300)
        ))?;
    }
    heading(session, "Approved")?;
    screen
        .line("  Here a run asks you; this one is answered with yes, for exactly these bytes:")?;
    screen.line(format!(
        "  {}",
        paint(DIM, story.approved.as_deref().unwrap_or_default())
    ))
}

fn end(story: &Story, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    if let (Some(commit), Some(delivered)) = (&story.commit, &story.run.delivered) {
        let branch = delivered.branch.as_deref().unwrap_or_default();
        heading(session, &format!("Put on the branch {branch}"))?;
        for line in commit.lines().filter(|line| !line.is_empty()) {
            screen.line(format!("  {}", plain(line, 160)))?;
        }
    }
    if let Some(audit) = &story.audit {
        heading(session, "Audited")?;
        let (style, mark) = if audit.is_good() {
            (GOOD, "✓")
        } else {
            (BAD, "✗")
        };
        let commit = match audit.named_by_commit {
            Some(event) => format!("the commit names event {event}"),
            None => "the commit names no event".to_owned(),
        };
        screen.line(format!(
            "  {} {} events, chained and sealed; derived again, {} come out otherwise; {commit}",
            paint(style, mark),
            audit.events,
            audit.differences,
        ))?;
    }
    if let Some(undone) = &story.undone {
        heading(session, "Undone again")?;
        screen.line(format!(
            "  {} the branch {} is gone",
            paint(GOOD, "✓"),
            undone.branch
        ))?;
    }
    let run = story.run.run.short();
    heading(session, "What stays")?;
    if let Some(repository) = &story.repository {
        screen.line(format!("  the repository, in {}", repository.display()))?;
    }
    screen.line(format!(
        "  the record of this run, in {}: lula show {run}",
        session.host.state_directory()?.display()
    ))?;
    heading(session, "Next")?;
    let mut table = TextTable::default();
    let task = format!("lula run --task '{TASK}'");
    table.row([task, "the same in a repository of yours".into()]);
    table.row([
        "lula models use ollama/qwen2.5-coder:7b".into(),
        "a model, for everything else; `lula models list` shows what is there".into(),
    ]);
    table.row([
        format!("lula trace {run} --html trace.html"),
        "how this run went, for a browser".into(),
    ]);
    screen.line(table.render(2).trim_end())
}
