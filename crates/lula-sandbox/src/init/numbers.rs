//! The numbers of processes. Those of `/proc` are the ones this process knows, unless the `/proc` around
//! the sandbox is shown inside: it counts in a pid namespace further out.

use std::collections::HashMap;
use std::io;

use crate::page;

/// How the `/proc` that is seen here counts processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessNumbers {
    /// As this process does.
    Own,
    /// In another pid namespace, where this process has the number `this`; `depth` numbers lead from there
    /// to this process's own.
    Outer { this: i32, depth: usize },
}

impl ProcessNumbers {
    /// How it counts where this process is.
    pub(super) fn here() -> Self {
        let own = std::process::id().cast_signed();
        let seen = std::fs::read_link("/proc/self").ok();
        let seen = seen.and_then(|link| link.to_str()?.parse::<i32>().ok());
        match seen {
            Some(this) if this != own => {
                let status = page::read("/proc/self/status").unwrap_or_default();
                Self::Outer {
                    this,
                    depth: numbers(&status).len(),
                }
            }
            _ => Self::Own,
        }
    }

    /// The name in `/proc` of a child of this process.
    pub(super) fn name_of(self, pid: i32) -> io::Result<String> {
        let Self::Outer { this, depth } = self else {
            return Ok(pid.to_string());
        };
        let children = page::read(format!("/proc/{this}/task/{this}/children"))?;
        let child = children.split_whitespace().find(|child| {
            page::read(format!("/proc/{child}/status"))
                .is_ok_and(|status| numbers(&status).get(depth - 1) == Some(&pid))
        });
        child
            .map(str::to_owned)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
    }

    /// The parent of every process that `/proc` shows, by this process's own numbers. Of another pid
    /// namespace's `/proc`, only what descends from this process.
    pub(super) fn parents(self) -> HashMap<i32, i32> {
        let shown = shown();
        match self {
            Self::Own => shown
                .filter_map(|pid| {
                    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                    Some((pid, parent_in(&stat)?))
                })
                .collect(),
            Self::Outer { this, depth } => {
                let pages = shown.filter_map(|pid| {
                    let status = page::read(format!("/proc/{pid}/status")).ok()?;
                    Some((pid, parent_in_status(&status)?, numbers(&status)))
                });
                descendants(&pages.collect::<Vec<_>>(), this, depth)
            }
        }
    }
}

/// The numbers of everything in `/proc`.
fn shown() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parents of what descends from `this`, in the numbers of the pid namespace `depth` deep.
fn descendants(processes: &[(i32, i32, Vec<i32>)], this: i32, depth: usize) -> HashMap<i32, i32> {
    let parents: HashMap<i32, i32> = processes.iter().map(|(pid, to, _)| (*pid, *to)).collect();
    let inner: HashMap<i32, i32> = processes
        .iter()
        .filter_map(|(pid, _, numbers)| Some((*pid, *numbers.get(depth.checked_sub(1)?)?)))
        .collect();
    let descends = |pid: i32| {
        let mut at = pid;
        // A tree has no cycle, but it is read while it changes.
        for _ in 0..=parents.len() {
            match parents.get(&at) {
                Some(parent) if *parent == this => return true,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    parents
        .iter()
        .filter(|(pid, _)| descends(**pid))
        .filter_map(|(pid, parent)| Some((*inner.get(pid)?, *inner.get(parent)?)))
        .collect()
}

/// The numbers of a process, from the outermost pid namespace that is shown to its own.
fn numbers(status: &str) -> Vec<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let words = line.unwrap_or_default().split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

fn parent_in_status(status: &str) -> Option<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// The fourth field; the second may hold anything, parentheses included.
fn parent_in(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_brackets_does_not_hide_the_parent() {
        assert_eq!(parent_in("7 (a) b) R) S 42 7 7"), Some(42));
        assert_eq!(parent_in("7 nothing"), None);
    }

    #[test]
    fn here_proc_counts_as_we_do() {
        assert_eq!(ProcessNumbers::here(), ProcessNumbers::Own);
        let parents = ProcessNumbers::Own.parents();
        let own = std::process::id().cast_signed();
        assert_eq!(
            parents[&own],
            std::os::unix::process::parent_id().cast_signed()
        );
    }

    #[test]
    fn numbers_further_out_are_translated_and_neighbours_left_out() {
        // 500 is us, 1 in here; 501 and its child 502 are ours; 600 is a neighbour's first process, which
        // has the same number as ours, with a child; 501's child has a pid namespace of its own.
        let processes = [
            (500, 400, vec![500, 1]),
            (501, 500, vec![501, 2]),
            (502, 501, vec![502, 3, 1]),
            (600, 400, vec![600, 1]),
            (601, 600, vec![601, 2]),
            (400, 1, vec![400]),
        ];
        let found = descendants(&processes, 500, 2);
        assert_eq!(found, HashMap::from([(2, 1), (3, 2)]));
    }

    #[test]
    fn a_status_page_tells_every_number() {
        let status = "Name:\tx\nPPid:\t42\nNSpid:\t500\t7\t1\n";
        assert_eq!(numbers(status), [500, 7, 1]);
        assert_eq!(parent_in_status(status), Some(42));
        assert_eq!(numbers("Name:\tx\n"), Vec::<i32>::new());
    }
}
