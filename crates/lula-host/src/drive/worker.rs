//! Who drives a run, and giving one back that a dead process had.

use lula_agents::{CodingGraph, CodingState};
use lula_graph::{GraphEngine, RunState};
use lula_protocol::interrupt::unknown_effect;
use lula_protocol::{BudgetAmounts, Principal, RunId, RunInterrupt, RunSignal};
use lula_store::{LeaseAfterAppend, LogAppend, RunRow, RunStatus, RunStore};

use super::consent;
use crate::error::HostError;

/// When a process began, in the kernel's ticks; none where it is gone.
fn begun(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets that may hold anything.
    let fields = &stat[stat.rfind(')')? + 1..];
    let mut fields = fields.split_whitespace();
    // A process that has ended and was not waited for yet does nothing any more.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

fn host() -> String {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    name.replace('/', "-")
}

/// Where the numbers of processes mean what they mean here: this boot of this machine, and this pid
/// namespace. Containers that share a host name share no such place. `None` where the machine does not tell,
/// or where `/proc` is that of another pid namespace, so that it tells of other processes.
fn place() -> Option<String> {
    let own = std::process::id().to_string();
    if std::fs::read_link("/proc/self").ok()?.to_str()? != own {
        return None;
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let number = namespace
        .to_str()?
        .strip_prefix("pid:[")?
        .strip_suffix(']')?;
    Some(format!("{}/{number}", boot.trim()))
}

/// The name of this process as an owner of runs.
pub fn name() -> String {
    let pid = std::process::id();
    let since = begun(pid).unwrap_or_default();
    match place() {
        Some(place) => format!("{}/{pid}/{since}/{place}", host()),
        None => format!("{}/{pid}/{since}", host()),
    }
}

/// Whether an owner is certainly gone: a process of this very place that is not there any more. Any other
/// one keeps its run until its lease is over.
pub fn is_dead(owner: &str) -> bool {
    let parts: Vec<&str> = owner.split('/').collect();
    let [machine, pid, since, boot, namespace] = parts[..] else {
        return false;
    };
    let Ok(pid) = pid.parse::<u32>() else {
        return false;
    };
    machine == host()
        && place().is_some_and(|here| here == format!("{boot}/{namespace}"))
        && begun(pid).is_none_or(|now| now != since)
}

/// Whether a run is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunActivity {
    /// It is over, or not there.
    Over,
    /// A driver works on it.
    UnderWay,
    /// No driver works on it now.
    Left,
}

impl RunActivity {
    /// Looks into the store, and whether the driver lives.
    pub async fn of(run: &RunId, store: &dyn RunStore) -> Result<Self, HostError> {
        let Some(row) = store.run(run).await? else {
            return Ok(Self::Over);
        };
        Ok(match row.status {
            RunStatus::Done => Self::Over,
            RunStatus::Running if !row.owner.as_deref().is_some_and(is_dead) => Self::UnderWay,
            _ => Self::Left,
        })
    }
}

/// What keeps a run from being gone on with.
pub enum RunBlocker {
    /// Nothing keeps the run back.
    Free,
    /// A process that may be alive.
    By(String),
}

/// Gives a run back that a dead process of this machine had. Were it alive after all, its next
/// write would be refused: the next owner has a higher epoch.
pub async fn release_dead(store: &dyn RunStore, row: &RunRow) -> Result<RunBlocker, HostError> {
    if row.status != RunStatus::Running {
        return Ok(RunBlocker::Free);
    }
    let owner = row.owner.clone().unwrap_or_default();
    if !is_dead(&owner) {
        return Ok(RunBlocker::By(owner));
    }
    give_back(store, row).await?;
    Ok(RunBlocker::Free)
}

/// Gives a run back that this process had and does not drive any more.
pub async fn release_own(store: &dyn RunStore, run: &RunId) -> Result<(), HostError> {
    if let Some(row) = store.run(run).await?
        && row.status == RunStatus::Running
        && row.owner.as_deref() == Some(name().as_str())
    {
        give_back(store, &row).await?;
    }
    Ok(())
}

/// What makes a run go on that was held back: what it waits for is ordered again, and the caller that was
/// asked there knows the answer.
pub fn go_on(known: &RunState<CodingState>, by: &Principal) -> Option<RunSignal> {
    let pending = known.progress.pending.as_ref()?;
    if !matches!(pending.interrupt, RunInterrupt::Held { .. }) {
        return None;
    }
    Some(RunSignal::Answer {
        interrupt: pending.seq,
        choice: unknown_effect::RETRY.to_owned(),
        by: by.clone(),
        note: String::new(),
    })
}

/// Readies a run to be gone on with: limits that are raised, a choice that is made, and what it was held
/// back for.
pub async fn prepare(
    reader: &GraphEngine<CodingGraph>,
    known: &RunState<CodingState>,
    limits: &BudgetAmounts,
    choice: Option<&str>,
    by: &Principal,
) -> Result<(), HostError> {
    let run = &known.progress.run;
    if let Some(handoff) = &known.state.task.handoff {
        // Agents and the run that leads them are one process, in which they talk.
        return Err(HostError::PartOfAnother {
            run: run.clone(),
            parent: handoff.parent.clone(),
        });
    }
    for (dimension, to) in limits.iter() {
        let by = by.clone();
        let raise = RunSignal::RaiseLimit { dimension, to, by };
        reader.send(run, &raise).await?;
    }
    if let Some(choice) = choice {
        let answer = consent::choose(known, choice, by)?;
        reader.send(run, &answer).await?;
    }
    if let Some(answer) = go_on(known, by) {
        reader.send(run, &answer).await?;
    }
    Ok(())
}

async fn give_back(store: &dyn RunStore, row: &RunRow) -> Result<(), HostError> {
    let mut append = LogAppend::new(row.run.clone(), row.epoch, row.head);
    append.rest = LeaseAfterAppend::Yield;
    store.append(append).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_dead_when_another_has_its_number() {
        assert!(!is_dead(&name()));
        let (pid, here) = (std::process::id(), place().unwrap());
        assert!(is_dead(&format!("{}/{pid}/1/{here}", host())));
        assert!(!is_dead(&format!("elsewhere/{pid}/1/{here}")));
        assert!(!is_dead("worker-7"));
    }

    #[test]
    fn a_process_of_another_container_with_the_same_host_name_is_not_judged() {
        let (boot, namespace) = place()
            .unwrap()
            .split_once('/')
            .map(|(boot, namespace)| (boot.to_owned(), namespace.to_owned()))
            .unwrap();
        let of = |boot: &str, namespace: &str| format!("{}/7/1/{boot}/{namespace}", host());
        assert!(is_dead(&of(&boot, &namespace)));
        assert!(!is_dead(&of(&boot, "4026531999")));
        assert!(!is_dead(&of("another-boot", &namespace)));
        // As earlier versions named themselves.
        assert!(!is_dead(&format!("{}/7/1", host())));
    }
}
