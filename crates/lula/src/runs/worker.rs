//! Who drives a run, and giving one back that a dead process had.

use lula_agents::Work;
use lula_graph::RunState;
use lula_protocol::interrupt::unknown_effect;
use lula_protocol::{Interrupt, RunId, Signal};
use lula_store::{Append, Rest, RunRow, Status, Store};

use crate::failure::Failure;
use crate::record::local_principal;

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

/// The name of this process as an owner of runs.
pub(crate) fn name() -> String {
    let pid = std::process::id();
    format!("{}/{pid}/{}", host(), begun(pid).unwrap_or_default())
}

/// Whether an owner is a process of this machine that is gone.
pub(crate) fn is_dead(owner: &str) -> bool {
    let parts: Vec<&str> = owner.split('/').collect();
    let [machine, pid, since] = parts[..] else {
        return false;
    };
    let Ok(pid) = pid.parse::<u32>() else {
        return false;
    };
    machine == host() && begun(pid).is_none_or(|now| now != since)
}

/// What keeps a run from being gone on with.
pub(crate) enum Held {
    /// Nothing.
    Free,
    /// A process that may be alive.
    By(String),
}

/// Gives a run back that a dead process of this machine had. Were it alive after all, its next
/// write would be refused: the next owner has a higher epoch.
pub(crate) async fn release_dead(store: &dyn Store, row: &RunRow) -> Result<Held, Failure> {
    if row.status != Status::Running {
        return Ok(Held::Free);
    }
    let owner = row.owner.clone().unwrap_or_default();
    if !is_dead(&owner) {
        return Ok(Held::By(owner));
    }
    give_back(store, row).await?;
    Ok(Held::Free)
}

/// Gives a run back that this process had and does not drive any more.
pub(crate) async fn release_own(store: &dyn Store, run: &RunId) -> Result<(), Failure> {
    if let Some(row) = store.run(run).await?
        && row.status == Status::Running
        && row.owner.as_deref() == Some(name().as_str())
    {
        give_back(store, &row).await?;
    }
    Ok(())
}

/// What makes a run go on that was held back: what it waits for is ordered again, and whoever was
/// asked there knows the answer.
pub(crate) fn go_on(known: &RunState<Work>) -> Option<Signal> {
    let pending = known.progress.pending.as_ref()?;
    if !matches!(pending.interrupt, Interrupt::Held { .. }) {
        return None;
    }
    Some(Signal::Answer {
        interrupt: pending.seq,
        choice: unknown_effect::RETRY.to_owned(),
        by: local_principal().ok()?,
        note: String::new(),
    })
}

async fn give_back(store: &dyn Store, row: &RunRow) -> Result<(), Failure> {
    let mut append = Append::new(row.run.clone(), row.epoch, row.head);
    append.rest = Rest::Yield;
    store.append(append).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_dead_when_another_has_its_number() {
        assert!(!is_dead(&name()));
        let pid = std::process::id();
        assert!(is_dead(&format!("{}/{pid}/1", host())));
        assert!(!is_dead(&format!("elsewhere/{pid}/1")));
        assert!(!is_dead("worker-7"));
    }
}
