//! A bounded queue.

use std::collections::VecDeque;

/// Holds at most `limit` items.
pub struct Queue<T> {
    items: VecDeque<T>,
    limit: usize,
}

impl<T> Queue<T> {
    pub fn new(limit: usize) -> Self {
        Self {
            items: VecDeque::new(),
            limit,
        }
    }

    /// Puts an item at the end, or gives it back where the queue is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.items.len() >= self.limit {
            return Err(item); // full
        }
        self.items.push_back(item);
        Ok(())
    }

    pub fn push_front(&mut self, item: T) -> Result<(), T> {
        if self.items.len() >= self.limit {
            return Err(item); // full
        }
        self.items.push_front(item);
        Ok(())
    }

    pub fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front();

        if self.items.is_empty() {
            self.items.shrink_to_fit();
        }
        item
    }
}

#[test]
fn a_full_queue_gives_items_back() {
    let mut queue = Queue::new(1);
    assert_eq!(queue.push('ä'), Ok(()));
    assert_eq!(queue.push('ö'), Err('ö'));
    assert_eq!(queue.pop(), Some('ä'));
}
