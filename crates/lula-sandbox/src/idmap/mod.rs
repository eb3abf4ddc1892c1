//! Who a sandbox is outside: an id of its own for each, and the maps that make workspaces fit.

/// Where ids of sandboxes begin: above the ranges that users, containers and services are given.
const FIRST: u32 = 1_900_000_000;
const PER_ENGINE: u32 = 4096;
const ENGINES: u32 = 48_000;

/// Ids for the sandboxes of one engine. An id is handed out again only when it was given back, so
/// no two living sandboxes of an engine share one.
#[derive(Debug)]
pub(crate) struct SandboxIds {
    base: u32,
    next: u32,
    free: Vec<u32>,
}

impl SandboxIds {
    /// The ids of the engine with that process id.
    pub(crate) fn of_engine(pid: u32) -> Self {
        Self {
            base: FIRST + (pid % ENGINES) * PER_ENGINE,
            next: 0,
            free: Vec::new(),
        }
    }

    /// The first and the last of them.
    pub(crate) fn ends(&self) -> [u32; 2] {
        [self.base, self.base + PER_ENGINE - 1]
    }

    /// An id no other sandbox of this engine has, or `None` where all are taken.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if let Some(id) = self.free.pop() {
            return Some(id);
        }
        if self.next == PER_ENGINE {
            return None;
        }
        self.next += 1;
        Some(self.base + self.next - 1)
    }

    /// Gives an id back.
    pub(crate) fn give_back(&mut self, id: u32) {
        self.free.push(id);
    }
}

/// One line of an id map: `count` ids from `inside` are the ids from `outside`.
pub(crate) fn line(inside: u32, outside: u32) -> String {
    format!("{inside} {outside} 1\n")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_two_living_sandboxes_share_an_id(
            pid in any::<u32>(), steps in proptest::collection::vec(any::<bool>(), 0..300),
        ) {
            let mut ids = SandboxIds::of_engine(pid);
            let mut living = HashSet::new();
            for take in steps {
                if take {
                    let id = ids.take().unwrap();
                    prop_assert!(living.insert(id), "{} handed out twice", id);
                    prop_assert!((FIRST..1 << 31).contains(&id));
                } else if let Some(id) = living.iter().next().copied() {
                    living.remove(&id);
                    ids.give_back(id);
                }
            }
        }
    }

    #[test]
    fn a_full_house_is_refused_not_shared() {
        let mut ids = SandboxIds::of_engine(7);
        for _ in 0..PER_ENGINE {
            ids.take().unwrap();
        }
        assert_eq!(ids.take(), None);
        ids.give_back(5);
        assert_eq!(ids.take(), Some(5));
    }
}
