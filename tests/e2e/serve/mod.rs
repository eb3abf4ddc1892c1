//! `lula serve`: the API as a client meets it, through the program as a process

mod approvals;
mod client;
mod elsewhere;
mod identity;
mod kills;
mod limits;
mod live;
mod refusals;
mod runs;
mod tls;
mod tokens;

use client::RunningServer;
