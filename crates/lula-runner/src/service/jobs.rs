//! Commands in the background of a workspace.
//!
//! Starting one is an effect like any command: it happens once, and its answer names the job. Telling
//! it something and ending it are effects too. Looking is a read: what a job wrote since it was last
//! looked at is told, and told again to the same effect. Jobs end with the sandbox of their workspace;
//! one that a former runner had is told as ended and never started again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::call::{ExecCommand, JobAction, JobRequest};
use lula_protocol::{
    Code, EffectId, TextOrigin, ToolAction, ToolCall, ToolOutcome, ToolOutput, ToolOutputDetails,
};

use super::exec::{self, failed};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::running::RunningCommand;
use super::{RunnerService, result, sessions};

/// Most jobs of a workspace that run at one time.
const MOST: usize = 8;
/// Most jobs that are remembered after their end.
const REMEMBERED: usize = 64;
/// Longest input at one time, in bytes.
const INPUT: usize = 64 << 10;
/// Longest time that news is waited for.
const LONGEST: Duration = Duration::from_mins(1);
/// How long a job that was told something is given to answer, where nothing else is asked for.
const ANSWERS: Duration = Duration::from_millis(500);
/// How long the end of a job that is stopped is waited for.
const ENDS: Duration = Duration::from_secs(5);
/// Time between two looks at one that is waited for.
const AGAIN: Duration = Duration::from_millis(20);

/// The jobs of one workspace, by their numbers.
#[derive(Debug, Default)]
pub(super) struct WorkspaceJobs(Mutex<BTreeMap<u32, Arc<BackgroundJob>>>);

#[derive(Debug)]
struct BackgroundJob {
    running: Arc<RunningCommand>,
    told: Mutex<ToldOutput>,
}

/// How much of a job's output was told.
#[derive(Debug, Default)]
struct ToldOutput {
    bytes: u64,
    /// The effect that was told last, and from where on.
    last: Option<(EffectId, u64)>,
}

impl WorkspaceJobs {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<BackgroundJob>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<Arc<BackgroundJob>> {
        self.all().get(&number(name)?).map(Arc::clone)
    }

    fn add(&self, number: u32, job: BackgroundJob) {
        let mut all = self.all();
        all.insert(number, Arc::new(job));
        let over: Vec<u32> = all
            .iter()
            .filter(|(_, job)| job.running.ended().is_some())
            .map(|(number, _)| *number)
            .collect();
        for number in over.iter().take(all.len().saturating_sub(REMEMBERED)) {
            all.remove(number);
        }
    }

    fn running(&self) -> usize {
        let all = self.all();
        all.values()
            .filter(|job| job.running.ended().is_none())
            .count()
    }
}

impl BackgroundJob {
    /// What it wrote since another effect was told.
    fn news(&self, effect: &EffectId) -> (String, u64) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let from = match &told.last {
            Some((last, from)) if last == effect => *from,
            _ => told.bytes,
        };
        let (output, left_out, to) = self.running.since(from);
        told.last = Some((effect.clone(), from));
        told.bytes = to;
        (output, left_out)
    }

    fn has_news(&self, effect: &EffectId) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let again = told.last.as_ref().is_some_and(|(last, _)| last == effect);
        again || self.running.written() > told.bytes
    }

    fn wait(&self, time: Duration, until: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while self.running.ended().is_none() && !until(self) && begun.elapsed() < time {
            std::thread::sleep(AGAIN);
        }
    }

    fn told(&self, name: &str, effect: &EffectId) -> ToolOutcome {
        // Asked for before the output: what it wrote before its end is told with it.
        let ended = self.running.ended();
        let running = ended.is_none();
        let (output, left_out) = self.news(effect);
        let (text, status) = match ended.map(|result| result.outcome) {
            None => (format!("{name} is running"), None),
            Some(ToolOutcome::Done {
                output:
                    ToolOutput {
                        details: Some(ToolOutputDetails::Command { status, .. }),
                        ..
                    },
            }) => (
                format!("{name} ended with exit status {status}"),
                Some(status),
            ),
            Some(ToolOutcome::Failed { message, .. }) => (format!("{name} ended: {message}"), None),
            Some(_) => (format!("{name} ended"), None),
        };
        job_outcome(text, name, (running, status), output, left_out)
    }
}

fn job_outcome(
    text: String,
    name: &str,
    (running, status): (bool, Option<u8>),
    output: String,
    left_out: u64,
) -> ToolOutcome {
    let details = ToolOutputDetails::Job {
        job: name.to_owned(),
        status,
        running,
        output,
        left_out,
    };
    let output = ToolOutput::new(text + "\n", TextOrigin::Command).with(details);
    ToolOutcome::Done { output }
}

fn number(name: &str) -> Option<u32> {
    name.strip_prefix("job-")?.parse().ok()
}

/// Starts a command that is not waited for.
pub(super) fn start(
    service: &RunnerService,
    room: &RunnerWorkspace,
    call: &ToolCall,
    asked: &ExecCommand,
) -> Result<ToolOutcome, RequestRefusal> {
    if room.jobs.running() >= MOST {
        let message = format!("{MOST} jobs are running: stop one before another is started");
        return Ok(failed(Code::OverLimit, message));
    }
    let number = service.ledger().job(&call.effect, &room.id)?;
    let name = format!("job-{number}");
    let running = match sessions::started(room, asked, name.clone(), None, true)? {
        Ok(running) => running,
        Err(outcome) => return Ok(outcome),
    };
    let (heard, call) = (Arc::clone(&running), call.clone());
    let listening = std::thread::Builder::new()
        .name("lula-job".to_owned())
        .spawn(move || {
            heard.end(match heard.finish() {
                Ok(finished) => {
                    let (outcome, receipt) = exec::command_outcome(&finished);
                    result(&call, outcome, receipt)
                }
                Err(refusal) => sessions::broken(&call, &refusal),
            });
        });
    if let Err(error) = listening {
        let _ = running.process.kill();
        let message = format!("cannot start a thread: {error}");
        return Err(RequestRefusal::Internal(message));
    }
    let told = Mutex::default();
    room.jobs.add(number, BackgroundJob { running, told });
    let text = format!("started {name}");
    Ok(job_outcome(text, &name, (true, None), String::new(), 0))
}

/// Does with a job what is asked for.
pub(super) fn act(
    service: &RunnerService,
    room: &RunnerWorkspace,
    effect: &EffectId,
    asked: &JobRequest,
) -> Result<ToolOutcome, RequestRefusal> {
    let name = asked.job.as_str();
    let Some(job) = room.jobs.find(name) else {
        let known = number(name).unwrap_or_default();
        let was_one = (1..=service.ledger().jobs(&room.id)?).contains(&known);
        let text = if was_one {
            format!("{name} ended: the runner was restarted")
        } else {
            let name: String = name.chars().take(100).collect();
            return Ok(failed(
                Code::NothingThere,
                format!("there is no job {name:?} here"),
            ));
        };
        return Ok(match asked.action {
            JobAction::Send { .. } => failed(Code::NothingThere, text),
            JobAction::Look {} | JobAction::Stop {} => {
                job_outcome(text, name, (false, None), String::new(), 0)
            }
        });
    };
    let wait = asked.wait_ms.map(Duration::from_millis);
    let wait = wait.map(|wait| wait.min(LONGEST));
    match &asked.action {
        JobAction::Look {} => {
            job.wait(wait.unwrap_or_default(), |job| job.has_news(effect));
        }
        JobAction::Send { input } => {
            if job.running.ended().is_some() {
                let message = format!("{name} has ended: nothing was sent");
                return Ok(failed(Code::NothingThere, message));
            }
            if input.len() > INPUT {
                let message = format!("input has at most {INPUT} bytes at one time");
                return Ok(failed(Code::OverLimit, message));
            }
            let before = job.running.written();
            job.running.process.write_input(input.as_bytes())?;
            job.wait(wait.unwrap_or(ANSWERS), |job| {
                job.running.written() > before
            });
        }
        JobAction::Stop {} => {
            // One that has ended needs no killing.
            let _ = job.running.process.kill();
            job.wait(ENDS, |_| false);
        }
    }
    Ok(job.told(name, effect))
}

/// The act that rules judge: what is sent to a job is judged as the input of its command.
pub(super) fn judged(room: &RunnerWorkspace, action: &ToolAction) -> Option<ToolAction> {
    let ToolAction::Job(JobRequest {
        job,
        action: JobAction::Send { input },
        ..
    }) = action
    else {
        return None;
    };
    let job = room.jobs.find(job)?;
    Some(ToolAction::Exec(ExecCommand {
        argv: job.running.argv().to_vec(),
        stdin: Some(input.clone()),
        ..ExecCommand::default()
    }))
}
