//! Control groups that were handed over: the engine that made them is about to end, and does not wait until
//! the kernel has let go of them.

use std::os::fd::OwnedFd;

use rustix::fs::AtFlags;
use rustix::io::Errno;

/// The message's first byte; others are in `blueprint.rs`.
const REMOVE: u8 = 3;

/// As a message: groups of that name are to be removed, in the directories that come along. There is no
/// answer.
pub(crate) fn hand_over(name: &str) -> Vec<u8> {
    [&[REMOVE], name.as_bytes()].concat()
}

/// What is still to be removed.
#[derive(Default)]
pub(super) struct RemovalQueue(Vec<(OwnedFd, String)>);

impl RemovalQueue {
    /// Takes such a message in; gives the descriptors back where it is another.
    pub(super) fn take_over(
        &mut self,
        message: &[u8],
        homes: Vec<OwnedFd>,
    ) -> Result<(), Vec<OwnedFd>> {
        let Some((&REMOVE, name)) = message.split_first() else {
            return Err(homes);
        };
        // A name and nothing else: it leads nowhere but into these directories.
        if let Ok(name) = std::str::from_utf8(name)
            && !name.is_empty()
            && !name.starts_with('.')
            && !name.contains('/')
        {
            self.0
                .extend(homes.into_iter().map(|home| (home, name.to_owned())));
        }
        Ok(())
    }

    /// Removes groups with no process in them. What cannot be removed at all is left to the next sweep.
    pub(super) fn remove(&mut self) {
        self.0.retain(|(home, name)| {
            let removed = rustix::fs::unlinkat(home, name.as_str(), AtFlags::REMOVEDIR);
            removed == Err(Errno::BUSY)
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(directory: &tempfile::TempDir) -> Vec<OwnedFd> {
        vec![std::fs::File::open(directory.path()).unwrap().into()]
    }

    #[test]
    fn what_was_handed_over_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        for name in ["mine", "other"] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        let mut remains = RemovalQueue::default();
        let taken = remains.take_over(&hand_over("mine"), home(&place));
        assert!(taken.is_ok() && !remains.is_empty());
        remains.remove();
        assert!(remains.is_empty());
        assert!(!place.path().join("mine").exists());
        assert!(place.path().join("other").exists());
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "../mine", "a/b", "/tmp"] {
            let mut remains = RemovalQueue::default();
            let taken = remains.take_over(&hand_over(name), home(&place));
            assert!(taken.is_ok() && remains.is_empty(), "{name}");
        }
    }

    #[test]
    fn another_message_keeps_its_descriptors() {
        let place = tempfile::tempdir().unwrap();
        let mut remains = RemovalQueue::default();
        let back = remains.take_over(&[1, 2, 3], home(&place)).unwrap_err();
        assert_eq!(back.len(), 1);
    }
}
