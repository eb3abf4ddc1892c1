//! Output kept within a limit: the beginning, the end, and how much there was.

use std::collections::VecDeque;

/// What was kept of a stream. Memory never exceeds the limit, whatever is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedStream {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl CapturedStream {
    /// Nothing yet, to be kept within `limit` bytes.
    pub(crate) fn within(limit: u64) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Half of the limit is for the beginning, the rest for the end.
    fn head_limit(&self) -> usize {
        self.limit / 2
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_limit().saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let tail_limit = self.limit - self.head_limit();
        let rest = &rest[rest.len().saturating_sub(tail_limit)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(tail_limit);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Bytes the command wrote, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes between the beginning and the end that were not kept.
    pub fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// What was kept, in order. With [`CapturedStream::dropped`] above zero there is a gap after
    /// [`CapturedStream::head`].
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        all.extend(&self.tail);
        all
    }

    /// The kept output as text, with a line that says what was left out.
    pub fn text(&self) -> String {
        if self.dropped() == 0 {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        let (first, second) = self.tail.as_slices();
        format!(
            "{}\n[{} bytes left out]\n{}",
            String::from_utf8_lossy(&self.head),
            self.dropped(),
            String::from_utf8_lossy(&[first, second].concat())
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_beginning_and_the_end_are_kept_and_everything_is_counted(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20),
            limit in 0_u64..100,
        ) {
            let mut captured = CapturedStream::within(limit);
            for piece in &pieces {
                captured.add(piece);
            }
            let all = pieces.concat();
            let kept = captured.bytes();
            prop_assert_eq!(captured.total(), all.len() as u64);
            prop_assert!(kept.len() as u64 <= limit);
            prop_assert_eq!(captured.dropped() + kept.len() as u64, captured.total());
            prop_assert!(all.starts_with(captured.head()));
            prop_assert!(all.ends_with(&kept[captured.head().len()..]));
            if all.len() as u64 <= limit / 2 {
                prop_assert_eq!(kept, all);
            }
        }
    }

    #[test]
    fn a_gap_is_shown_in_the_text() {
        let mut captured = CapturedStream::within(4);
        captured.add(b"abcdefgh");
        assert_eq!(captured.text(), "ab\n[4 bytes left out]\ngh");
    }
}
