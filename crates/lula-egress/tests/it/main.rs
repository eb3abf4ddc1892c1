//! Egress as a sandbox meets it: real sockets of a network namespace, real TLS, servers on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clients;
mod credentials;
mod git;
mod intercepted;
mod limits;
mod names;
mod proxied;
mod published;
mod resolver;
mod sandbox;
mod server;
mod spliced;
