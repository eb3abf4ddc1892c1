//! What comes next in a plan, and what happened to its jobs.

use lula_protocol::RunId;
use serde::{Deserialize, Serialize};

use super::{Dag, Entry, JobId, MAX_JOBS, MAX_PATCHES, OnFailure, Reason, Status};

/// So often an agent is put to a job: once more after a conflict.
pub const MAX_ATTEMPTS: u32 = 2;

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// An agent was put to it.
    Leased {
        /// Which.
        id: JobId,
        /// The agent's run.
        run: RunId,
    },
    /// Its agent is done.
    Produced {
        /// Which.
        id: JobId,
    },
    /// It is a part of the whole.
    Integrated {
        /// Which.
        id: JobId,
        /// As this commit; none where it only looked.
        commit: Option<String>,
    },
    /// It does not fit to what is there.
    Conflict {
        /// Which.
        id: JobId,
        /// What shows it.
        said: String,
    },
    /// It came to nothing.
    Failed {
        /// Which.
        id: JobId,
        /// Why.
        reason: Reason,
    },
    /// It will not be begun.
    Skipped {
        /// Which.
        id: JobId,
        /// Why.
        reason: Reason,
    },
}

/// Why a step cannot have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{id} is {status}: it cannot be {to} now")]
pub struct StepError {
    /// Which job.
    pub id: JobId,
    /// How far it is.
    pub status: String,
    /// What it cannot be.
    pub to: &'static str,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Make this job's result a part of the whole.
    Integrate(JobId),
    /// This job did not fit twice: find somebody to resolve it.
    Resolve(JobId),
    /// Never begin these.
    Skip(Vec<(JobId, Reason)>),
    /// Put agents to these.
    Start(Vec<JobId>),
    /// Wait for one of the agents.
    Wait,
    /// Everything is over.
    Finish,
}

impl Dag {
    /// What comes next, with so many agents at once.
    pub fn next(&self, at_once: usize) -> Move {
        let produced = |entry: &&Entry| matches!(entry.status, Status::Produced { .. });
        if let Some(entry) = self.jobs.values().find(produced) {
            return Move::Integrate(entry.job.id.clone());
        }
        let worn = |entry: &&Entry| {
            matches!(entry.status, Status::Conflict { .. }) && entry.attempts >= MAX_ATTEMPTS
        };
        if let Some(entry) = self.jobs.values().find(worn) {
            return Move::Resolve(entry.job.id.clone());
        }
        let skipped = self.hopeless();
        if !skipped.is_empty() {
            return Move::Skip(skipped);
        }
        let ready = self.ready(at_once);
        if !ready.is_empty() {
            return Move::Start(ready);
        }
        if self.running().next().is_some() {
            return Move::Wait;
        }
        Move::Finish
    }

    /// Jobs that agents work on.
    pub fn running(&self) -> impl Iterator<Item = (&JobId, &RunId)> {
        self.jobs
            .iter()
            .filter_map(|(id, entry)| match &entry.status {
                Status::Leased { run } => Some((id, run)),
                _ => None,
            })
    }

    /// Jobs that can be begun now: everything they need is integrated, and nobody is at files they
    /// may write. The first by name comes first.
    pub fn ready(&self, at_once: usize) -> Vec<JobId> {
        let mut busy: Vec<&Entry> = self
            .jobs
            .values()
            .filter(|entry| entry.status.is_busy())
            .collect();
        let mut room = at_once.saturating_sub(self.running().count());
        let mut ready = Vec::new();
        for entry in self.jobs.values() {
            if room == 0 {
                break;
            }
            let open = match entry.status {
                Status::Pending => true,
                Status::Conflict { .. } => entry.attempts < MAX_ATTEMPTS,
                _ => false,
            };
            let met = |other: &&Entry| {
                other.job.repo == entry.job.repo && other.job.scope.meets(&entry.job.scope)
            };
            if !open || !self.has_what_it_needs(entry) || busy.iter().any(met) {
                continue;
            }
            ready.push(entry.job.id.clone());
            busy.push(entry);
            room -= 1;
        }
        ready
    }

    fn has_what_it_needs(&self, entry: &Entry) -> bool {
        entry.job.deps.iter().all(|dep| {
            self.jobs.get(dep).is_some_and(|needed| {
                matches!(
                    needed.status,
                    Status::Integrated { .. } | Status::Superseded
                )
            })
        })
    }

    /// Jobs that nobody has begun and nobody will.
    fn hopeless(&self) -> Vec<(JobId, Reason)> {
        let failed = |entry: &Entry| matches!(entry.status, Status::Failed { .. });
        let fast = self.on_failure == OnFailure::Fast && self.jobs.values().any(failed);
        let mut skipped = Vec::new();
        for (id, entry) in &self.jobs {
            if !matches!(entry.status, Status::Pending) {
                continue;
            }
            let gone = entry.job.deps.iter().find(|dep| {
                self.jobs.get(*dep).is_none_or(|needed| {
                    matches!(
                        needed.status,
                        Status::Failed { .. } | Status::Cancelled | Status::Skipped { .. }
                    )
                })
            });
            if let Some(job) = gone {
                skipped.push((id.clone(), Reason::Needs { job: job.clone() }));
            } else if fast {
                skipped.push((id.clone(), Reason::FailFast));
            }
        }
        skipped
    }

    /// Takes note of what happened to a job.
    pub fn step(&mut self, step: &Step) -> Result<(), StepError> {
        let (id, to) = match step {
            Step::Leased { id, .. } => (id, "running"),
            Step::Produced { id } => (id, "produced"),
            Step::Integrated { id, .. } => (id, "integrated"),
            Step::Conflict { id, .. } => (id, "in conflict"),
            Step::Failed { id, .. } => (id, "failed"),
            Step::Skipped { id, .. } => (id, "skipped"),
        };
        let wrong = |status: &str| StepError {
            id: id.clone(),
            status: status.to_owned(),
            to,
        };
        let ready = matches!(step, Step::Leased { .. })
            && self
                .jobs
                .get(id)
                .is_some_and(|entry| self.has_what_it_needs(entry));
        let entry = self.jobs.get_mut(id).ok_or_else(|| wrong("not there"))?;
        let next = match (&entry.status, step) {
            (Status::Pending | Status::Conflict { .. }, Step::Leased { run, .. })
                if ready && entry.attempts < MAX_ATTEMPTS =>
            {
                entry.attempts += 1;
                Status::Leased { run: run.clone() }
            }
            (Status::Leased { run }, Step::Produced { .. }) => {
                Status::Produced { run: run.clone() }
            }
            (Status::Produced { .. }, Step::Integrated { commit, .. }) => Status::Integrated {
                commit: commit.clone(),
            },
            (Status::Produced { .. }, Step::Conflict { said, .. }) => {
                Status::Conflict { said: said.clone() }
            }
            (
                Status::Leased { .. } | Status::Produced { .. } | Status::Conflict { .. },
                Step::Failed { reason, .. },
            ) => Status::Failed {
                reason: reason.clone(),
            },
            (Status::Pending, Step::Skipped { reason, .. }) => Status::Skipped {
                reason: reason.clone(),
            },
            (status, _) => return Err(wrong(status.name())),
        };
        entry.status = next;
        Ok(())
    }

    /// Goes down with everything that happens, in this order: jobs that may be added, patches that
    /// may be made, steps that jobs may take. So a plan comes to an end.
    pub fn measure(&self) -> (usize, u32, u32) {
        let steps = self.jobs.values().map(|entry| {
            let rank = match entry.status {
                Status::Pending => 3,
                Status::Leased { .. } => 2,
                Status::Produced { .. } => 1,
                Status::Conflict { .. } => 0,
                _ => return 0,
            };
            MAX_ATTEMPTS.saturating_sub(entry.attempts) * 4 + rank + 1
        });
        (
            MAX_JOBS.saturating_sub(self.jobs.len()),
            MAX_PATCHES.saturating_sub(self.patches),
            steps.sum(),
        )
    }
}
