//! Reads what test frameworks print for machines.

mod json;
mod junit;
mod libtest;
mod tap;

pub use json::{go, jest, mocha};
pub use junit::junit;
pub use libtest::libtest;
pub use tap::tap;

use crate::report::{Outcome, TestCase};

/// Longest message that is kept of one test.
const MAX_MESSAGE: usize = 6000;

fn case(id: String, outcome: Outcome, message: &str) -> TestCase {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    TestCase {
        id,
        outcome,
        message: message[..end].to_owned(),
    }
}
