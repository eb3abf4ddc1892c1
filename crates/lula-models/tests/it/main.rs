//! The model layer from end to end: the bytes we send, the bytes we read, and a server that
//! misbehaves in every way we know.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod budget;
mod canary;
mod cassettes;
mod conformance;
mod public_schemas;
mod recorded;
mod repair;
mod requests;
mod resilience;
mod streams;
mod world;
