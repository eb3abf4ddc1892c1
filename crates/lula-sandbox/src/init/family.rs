//! Finding and killing a command with everything it started.
//!
//! A daemon leaves its session, its group and its parent, so none of these finds it. In a pid
//! namespace there is one thing it cannot leave, and elsewhere one it cannot avoid: orphans come to
//! the nearest subreaper, which is us.

use std::collections::{HashMap, HashSet};

use super::numbers::ProcessNumbers;
use crate::sys::signal;

const SIGKILL: u8 = 9;
const SIGSTOP: u8 = 19;

/// Everything below `root` in the tree, except what is at or below one of `spared`.
fn below(parents: &HashMap<i32, i32>, root: i32, spared: &HashSet<i32>) -> Vec<i32> {
    parents
        .keys()
        .copied()
        .filter(|pid| {
            let mut at = *pid;
            // A tree has no cycle, but it is read while it changes.
            for _ in 0..=parents.len() {
                if spared.contains(&at) {
                    return false;
                }
                match parents.get(&at) {
                    Some(parent) if *parent == root => return !spared.contains(&at),
                    Some(parent) => at = *parent,
                    None => return false,
                }
            }
            false
        })
        .collect()
}

/// Kills everything below this process except the commands spared and what is below them. An orphan
/// belongs to no process that is still there, so it goes too.
pub(super) fn kill_below(numbers: ProcessNumbers, spared: &HashSet<i32>, own_namespace: bool) {
    if spared.is_empty() && own_namespace && signal::kill_everyone_else().is_ok() {
        return;
    }
    let own = std::process::id().cast_signed();
    // Stopped first, then killed, until a look finds nothing new: what forks while it is being
    // counted is found in the next round, and nothing stopped can fork.
    let mut seen = HashSet::new();
    for _ in 0..64 {
        let found = below(&numbers.parents(), own, spared);
        let fresh: Vec<_> = found.into_iter().filter(|pid| seen.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in &fresh {
            let _ = signal::send(*pid, SIGSTOP);
        }
    }
    for pid in seen {
        let _ = signal::send(pid, SIGKILL);
    }
}

/// Whether anything is left below this process beside the commands spared. Zombies count: they are
/// still to be reaped.
pub(super) fn any_below(numbers: ProcessNumbers, spared: &HashSet<i32>) -> bool {
    let own = std::process::id().cast_signed();
    !below(&numbers.parents(), own, spared).is_empty()
}

/// Kills children of this process that are not known: orphans whose sandbox is gone.
pub(crate) fn kill_children_except<T>(known: &HashMap<i32, T>) {
    let own = std::process::id().cast_signed();
    let spared = known.keys().copied().collect();
    for pid in below(&ProcessNumbers::here().parents(), own, &spared) {
        let _ = signal::send(pid, SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_below_us_and_a_spared_command_keeps_its_children() {
        // 1 is us; 2 a command with child 3; 4 a daemon; 5 another command with child 6.
        let parents = HashMap::from([(2, 1), (3, 2), (4, 1), (5, 1), (6, 5), (99, 98)]);
        let mut found = below(&parents, 1, &HashSet::from([5]));
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4]);
    }

    #[test]
    fn a_tree_that_changed_while_it_was_read_ends_the_search() {
        let parents = HashMap::from([(2, 3), (3, 2)]);
        assert!(below(&parents, 1, &HashSet::new()).is_empty());
    }
}
