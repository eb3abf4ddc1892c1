//! `lula try`: the whole story on a bundled sample, told by typing the commands a person would
//! type: run, approve, resume; then the record is looked at, and the delivery taken back.

pub(crate) mod flags;
mod sample;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_host::drive::model_endpoints;
use lula_host::report::word;
use lula_host::repository::find_git;
use lula_host::runs;
use lula_host::showcase::{Showcase, ShowcaseReport, typed};
use lula_protocol::{Code, RunExit};
use lula_workspace::{GitProgram, ScratchRepository};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain, visible};
use flags::TryFlags;

/// What is asked for.
const TASK: &str = "fix the failing tests";

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
    let Some(mut story) = runs::block_on(tell(&git, scratch.path(), session))? else {
        return Ok(RunExit::Inconclusive);
    };
    story.repository = flags.keep.then(|| scratch.keep());
    if screen.is_json() {
        screen.document(&story)?;
    } else {
        end(&story, session)?;
    }
    Ok(match (story.is_good(), story.run.exit) {
        (true, _) => RunExit::Verified,
        (false, RunExit::Verified) => RunExit::Failed,
        (false, other) => other,
    })
}

/// Works on the task, agrees to what waits, and looks at what came of that; nothing where the run was
/// interrupted.
async fn tell(
    git: &GitProgram,
    scratch: &Path,
    session: &CliSession,
) -> Result<Option<ShowcaseReport>, CommandFailure> {
    let screen = &session.screen;
    let models = model_endpoints::named(&[], &session.host)?;
    // With a model it is the model's turn; the built-in search is there if it does not manage.
    let coders: &[&str] = if models.is_empty() {
        &["repairer"]
    } else {
        &["model", "repairer"]
    };
    let showcase = Showcase::open(&session.host).await?;
    let mut last = None;
    for coder in coders {
        let by = match (*coder, models.first()) {
            ("model", Some(model)) => visible(&model.name),
            _ => "the built-in search, no model".to_owned(),
        };
        let task = paint(STRONG, "The task:");
        screen.note(&format!("\n{task} {TASK} {}", paint(DIM, by)));
        let line = ["run", "--task", TASK, "--approve", "ask"];
        let more = ["--max-loops", "1", "--coder", coder];
        let ran = lula(&[&line[..], &more].concat(), scratch, session)?;
        if ran == Some(RunExit::Inconclusive) {
            return Ok(None);
        }
        let known = showcase.last().await?;
        let (report, question) = Showcase::question(sample::ABOUT, &known)?;
        if question.is_none() {
            let text = format!(
                "{}: {}",
                word(report.run.exit),
                plain(&report.run.summary, 300)
            );
            screen.note(&paint(WARN, text));
        }
        let waits = question.is_some();
        last = Some((known, report, question));
        if waits {
            break;
        }
    }
    let Some((known, mut report, question)) = last else {
        let message = "no coder tried it";
        return Err(CommandFailure::new(
            Code::Internal,
            RunExit::Failed,
            message,
        ));
    };
    let Some(question) = question else {
        return Ok(Some(report));
    };
    if !screen.is_json() {
        show(&report, &known, session)?;
    }
    showcase.agree(&known, &question).await?;
    let run = &known.progress.run;
    let repository = Path::new(known.state.task.repository(0));
    lula(&["resume", run.as_str()], repository, session)?;
    showcase.look_back(run, git, &mut report).await?;
    Ok(Some(report))
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
    let mut line: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    line.extend(session.host.flags_given(std::env::args().skip(1)));
    line.extend(session.screen.is_quiet().then(|| "--quiet".to_owned()));
    match typed(&line, here)? {
        Ok(exit) => Ok(exit),
        Err(report) => Err(report.into()),
    }
}

fn heading(session: &CliSession, text: &str) -> Result<(), CommandFailure> {
    session.screen.line(format!("\n{}", paint(STRONG, text)))
}

fn show(
    story: &ShowcaseReport,
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

fn end(story: &ShowcaseReport, session: &CliSession) -> Result<(), CommandFailure> {
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
    let task = format!("lula run '{TASK}'");
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
