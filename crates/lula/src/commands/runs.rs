//! `lula runs`, `lula show`, and what is decided about a run afterwards: `lula diff`, `lula undo`,
//! `lula approve` and `lula reject`

use std::path::Path;
use std::sync::Arc;

use lula_agents::Work;
use lula_graph::{RunState, Step};
use lula_protocol::event::Parent;
use lula_protocol::{Amounts, ApprovalId, Code, Decision, Exit, RunId};
use lula_store::{ApprovalState, RunFilter, SecretGuard, Status, Store};
use serde::Serialize;
use serde_json::json;

use super::review;
use super::run::find_git;
use crate::cli_runs::ShowFlags;
use crate::failure::Failure;
use crate::hands;
use crate::record::{local_principal, now_ms, spoken_time};
use crate::runs::report::{RunReport, word};
use crate::runs::view::spend;
use crate::runs::words::{plain, size};
use crate::runs::worker::is_dead;
use crate::runs::{self, consent, plan, store};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, STRONG, Table, WARN, paint, visible};

/// One run in the list.
#[derive(Serialize)]
struct Row {
    run: RunId,
    status: Status,
    /// In a word for people: verified, failed, running, waiting, interrupted…
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    task: String,
    started_ms: u64,
    events: u64,
    summary: String,
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    spent: Amounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Parent>,
}

pub(super) fn list(session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let reader = runs::reader(Arc::clone(&store))?;
        let mut rows = Vec::new();
        for row in store.runs(&RunFilter::default()).await? {
            let started_ms = started_ms(&*store, &row.run).await;
            // One run that cannot be read must not hide the others.
            let known = reader.show(&row.run, None).await;
            // Agents are told of with the run they work for.
            if let Ok(known) = &known
                && known.state.task.handoff.is_some()
            {
                continue;
            }
            let driven =
                row.status == Status::Running && !row.owner.as_deref().is_some_and(is_dead);
            let (task, report, unreadable) = match &known {
                Ok(known) => (
                    known.state.task.text.clone(),
                    Some(RunReport::of(known)),
                    None,
                ),
                Err(error) => (String::new(), None, Some(error.to_string())),
            };
            let standing = match &report {
                None => "unreadable",
                Some(report) if row.status == Status::Done => word(report.exit),
                Some(_) if driven => "running",
                Some(report) => report.status,
            };
            rows.push(Row {
                run: row.run,
                status: row.status,
                standing,
                exit: report.as_ref().map(|report| report.exit),
                task,
                started_ms,
                events: row.head.next,
                spent: report
                    .as_ref()
                    .map(|it| it.spent.clone())
                    .unwrap_or_default(),
                summary: match report {
                    Some(_) if driven => String::new(),
                    Some(report) => report.summary,
                    None => unreadable.unwrap_or_default(),
                },
                parent: row.parent,
            });
        }
        let screen = &session.screen;
        if screen.is_json() {
            screen.document(&rows)?;
            return Ok(Exit::Verified);
        }
        if rows.is_empty() {
            screen.note("there is no run yet: `lula run --task …` begins one");
            return Ok(Exit::Verified);
        }
        let mut table = Table::default();
        let head = ["run", "when", "state", "task", "what came of it"];
        table.row(head.map(|name| paint(DIM, name)));
        for row in &rows {
            table.row([
                short(&row.run).to_owned(),
                age(row.started_ms),
                paint(style(row.standing), row.standing),
                plain(&row.task, 32),
                plain(&row.summary, 120),
            ]);
        }
        screen.line(table.render(0).trim_end())?;
        Ok(Exit::Verified)
    })
}

/// The end of an id, which is enough to name it.
pub(crate) fn short(run: &RunId) -> &str {
    let id = run.as_str();
    id.get(id.len().saturating_sub(10)..).unwrap_or(id)
}

async fn started_ms(store: &dyn Store, run: &RunId) -> u64 {
    let first = store.read(run, 0, 1).await.ok();
    first
        .and_then(|page| page.first().map(|record| record.at_ms))
        .unwrap_or_default()
}

fn style(standing: &str) -> anstyle::Style {
    match standing {
        "verified" => GOOD,
        "failed" | "unreadable" => BAD,
        "running" => STRONG,
        _ => WARN,
    }
}

/// How long ago, roughly.
fn age(ms: u64) -> String {
    let seconds = now_ms().saturating_sub(ms) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A run at one position of its log, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    at: u64,
    next: String,
    state_digest: String,
    state: &'a lula_agents::Work,
}

pub(super) fn show(flags: &ShowFlags, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, &flags.run).await?;
        let began = started_ms(&*store, &run).await;
        let reader = runs::reader(store)?;
        let known = reader.show(&run, flags.at).await?;
        let report = RunReport::of(&known);
        let next = match reader.next(&known) {
            Step::Enter { node, visit: 0 } => format!("the {node:?}").to_lowercase(),
            Step::Enter { node, visit } => {
                format!("the {node:?}, for the {}. time", visit + 1).to_lowercase()
            }
            Step::Await(_) => "an answer".to_owned(),
            Step::Done(_) | Step::Finish | Step::Halt(_) | Step::Cancel => "nothing".to_owned(),
        };
        let screen = &session.screen;
        if screen.is_json() {
            let digest = known
                .digest()
                .map_err(|error| Failure::new(Code::Internal, Exit::Failed, error.to_string()))?;
            screen.document(&Shown {
                report: &report,
                at: known.progress.next_seq,
                next,
                state_digest: digest.to_string(),
                state: &known.state,
            })?;
            return Ok(Exit::Verified);
        }
        let table = facts(&known, &report, &next, began);
        screen.line(table.render(0).trim_end())?;
        if let Some(plan) = &report.plan {
            screen.line(format!("\n{}", plan::table(plan)))?;
        }
        if !report.diff.is_empty() {
            screen.line(format!("\n{}", paint(STRONG, "The change")))?;
            screen.patch(&report.diff)?;
        }
        Ok(Exit::Verified)
    })
}

fn facts(known: &RunState<Work>, report: &RunReport, next: &str, began: u64) -> Table {
    let (work, progress) = (&known.state, &known.progress);
    let mut table = Table::default();
    let mut row = |name: &str, text: String| table.row([paint(DIM, name), text]);
    row("run", progress.run.to_string());
    row("task", plain(&work.task.text, 400));
    row("began", spoken_time(began));
    let state = if progress.ended.is_some() {
        word(report.exit)
    } else {
        report.status
    };
    row(
        "state",
        format!(
            "{}: {}",
            paint(style(state), state),
            plain(&report.summary, 400)
        ),
    );
    if progress.ended.is_none() {
        row("next", next.to_owned());
    }
    if let Some(place) = &work.place {
        row("base", visible(&place.commit));
    }
    for note in &work.notes {
        row("note", plain(note, 400));
    }
    for failure in &work.failures {
        let text = plain(&failure.evidence, 200);
        row(
            "attempt",
            format!("{:?} by {}: {text}", failure.class, visible(&failure.by)),
        );
    }
    if let Some((by, summary)) = &work.made {
        row(
            "made by",
            format!("{}: {}", visible(by), plain(summary, 200)),
        );
    }
    if let Some(verdict) = &work.verdict {
        row(
            "verdict",
            format!("{}: {}", verdict.name(), plain(verdict.why(), 400)),
        );
    }
    if let Some(produced) = &work.produced {
        row("change", size(&produced.diff, produced.files.len()));
    }
    if let Some(delivered) = &report.delivered {
        let place = delivered
            .branch
            .as_deref()
            .or(delivered.directory.as_deref());
        row("delivered", visible(place.unwrap_or_default()));
    }
    if let Some(text) = spend(&report.spent) {
        row("spent", text);
    }
    row("events", progress.next_seq.to_string());
    table
}

/// The run that a word means, where it may also mean something else: by its id, by the end of it
/// where that is long enough to be no accident, or by what it asks.
pub(super) fn run_meant(word: &str, session: &Session) -> Result<Option<RunId>, Failure> {
    let certain = word == "last" || word.starts_with("run_");
    let possible = word.len() >= 6 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let looked_for = certain || (possible && store::is_there(session)?);
    if !looked_for {
        return Ok(None);
    }
    let found = runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        if let Ok(question) = word.parse::<ApprovalId>() {
            return Ok(store.approval(&question).await?.map(|asked| asked.run));
        }
        runs::named(&*store, word).await.map(Some)
    });
    // What was only possible was meant otherwise.
    if certain {
        found
    } else {
        Ok(found.ok().flatten())
    }
}

pub(super) fn diff(run: &RunId, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let report = RunReport::of(&known);
        let screen = &session.screen;
        if screen.is_json() {
            let verdict = known.state.verdict.as_ref();
            screen.document(
                &json!({"run": run, "files": report.files(), "diff": report.diff,
                "verdict": verdict, "delivered": report.delivered}),
            )?;
            return Ok(Exit::Verified);
        }
        if report.diff.is_empty() {
            screen.note(&format!("{run} has changed nothing"));
        } else {
            screen.patch(&report.diff)?;
        }
        Ok(Exit::Verified)
    })
}

pub(super) fn undo(run: &RunId, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let refuse = |message: String| {
            Failure::new(Code::RunRefused, Exit::Failed, message)
                .remedy("`lula show` tells what the run delivered")
        };
        let Some(delivered) = &known.state.delivered else {
            return Err(refuse(format!("{run} delivered nothing")));
        };
        let screen = &session.screen;
        if let Some(id) = &delivered.workspace {
            let files = review::store(session)?.open(id)?.undo()?;
            let files: Vec<String> = files.iter().map(ToString::to_string).collect();
            if screen.is_json() {
                screen.document(&json!({"workspace": id, "files": files}))?;
            } else {
                let text = format!("{} as before the run", files.join(", "));
                screen.note(&text);
                screen.note(&paint(
                    DIM,
                    format!("lula redo {id}   brings the change back"),
                ));
            }
            return Ok(Exit::Verified);
        }
        let git = find_git(session)?;
        let repository = Path::new(&known.state.task.repository);
        let undone = hands::undo(&git, repository, delivered);
        let undone = undone.map_err(|error| refuse(error.to_string()))?;
        if screen.is_json() {
            screen.document(&undone)?;
        } else {
            screen.note(&format!("the branch {} is gone", undone.branch));
            let back = format!(
                "git branch {} {}   brings it back",
                undone.branch, undone.kept_as
            );
            screen.note(&paint(DIM, back));
        }
        Ok(Exit::Verified)
    })
}

/// What runs wait with, for `lula approvals`.
pub(super) fn questions(session: &Session) -> Result<Vec<(RunId, consent::Question)>, Failure> {
    if !store::is_there(session)? {
        return Ok(Vec::new());
    }
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let reader = runs::reader(Arc::clone(&store))?;
        let by = local_principal()?;
        let mut found = Vec::new();
        for asked in store.approvals_in(ApprovalState::Open).await? {
            let known = reader.show(&asked.run, None).await?;
            if let Some(question) = consent::question(&known, &by)
                && question.approval == asked.approval
                && known.progress.ended.is_none()
            {
                found.push((asked.run, question));
            }
        }
        Ok(found)
    })
}

/// A question with exactly the change it is about.
fn present(
    known: &RunState<Work>,
    question: &consent::Question,
    session: &Session,
) -> Result<(), Failure> {
    let screen = &session.screen;
    let mut table = Table::default();
    let mut row = |name: &str, text: String| table.row([paint(DIM, name), text]);
    row("question", question.approval.to_string());
    row("why", visible(&question.reason));
    row("run", known.progress.run.to_string());
    row("task", plain(&known.state.task.text, 400));
    row("digest", question.digest.to_string());
    if let Some(verdict) = &known.state.verdict {
        row(
            "verdict",
            format!("{}: {}", verdict.name(), plain(verdict.why(), 400)),
        );
    }
    screen.note(table.render(0).trim_end());
    match &known.state.produced {
        Some(produced) => screen.patch(&produced.diff),
        None => Ok(()),
    }
}

/// Shows what a run asks.
pub(super) fn show_question(run: &RunId, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let known = runs::reader(store)?.show(run, None).await?;
        let Some(question) = consent::question(&known, &local_principal()?) else {
            let message = format!("{run} asks nothing any more");
            return Err(Failure::new(Code::UnknownApproval, Exit::Usage, message)
                .remedy("`lula show` tells what came of it"));
        };
        if session.screen.is_json() {
            let diff = known.state.produced.as_ref().map(|made| &made.diff);
            let id = &question.approval;
            session
                .screen
                .document(&json!({"id": id, "run": run, "digest": question.digest,
                "reason": question.reason, "rendered": diff}))?;
        } else {
            present(&known, &question, session)?;
        }
        Ok(Exit::Verified)
    })
}

/// Answers what a run asks. Whoever drives it goes on; where nobody does, `lula resume` does.
pub(super) fn answer(
    run: &RunId,
    decision: Decision,
    yes: bool,
    session: &Session,
) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let reader = runs::reader(store)?;
        let known = reader.show(run, None).await?;
        let Some(question) = consent::question(&known, &local_principal()?) else {
            let message = format!("{run} asks nothing");
            return Err(Failure::new(Code::UnknownApproval, Exit::Usage, message)
                .remedy("`lula approvals` lists other questions"));
        };
        let screen = &session.screen;
        if !screen.is_json() {
            present(&known, &question, session)?;
        }
        if !yes && !super::approvals::confirmed(decision)? {
            screen.note("nothing was answered");
            return Ok(Exit::WaitingForApproval);
        }
        consent::answer(&reader, &known, &question, decision).await?;
        if screen.is_json() {
            screen.document(&json!({"run": run, "id": question.approval, "decision": decision}))?;
        } else {
            let said = match decision {
                Decision::Approve => paint(GOOD, "approved"),
                Decision::Reject => paint(BAD, "rejected"),
            };
            screen.note(&format!("{}: {said}", question.approval));
            screen.note(&paint(DIM, format!("lula resume {run}   goes on with it")));
        }
        Ok(Exit::Verified)
    })
}
