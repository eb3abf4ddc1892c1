//! The gate as its users meet it.
#![expect(clippy::unwrap_used, reason = "a test says no by panicking")]

mod corpus;
