//! Why an engine could not be started, or a grant not given.

use std::io;

use crate::InvalidEgress;

/// What failed before anything was let out.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    #[error("the egress policy is refused: {0}")]
    Policy(#[from] InvalidEgress),
    #[error("credential {name:?} is refused: {why}")]
    Credential { name: String, why: &'static str },
    #[error("the listening socket for {what} cannot be used: {source}")]
    Listener { what: String, source: io::Error },
    #[error(
        "port {port} of the sandbox cannot be answered: {source}; if a program inside listens there, end it first"
    )]
    PortNotServed { port: u16, source: io::Error },
    #[error("the upstream proxy {given:?} cannot be used: {why}; write http://HOST:PORT")]
    Proxy { given: String, why: &'static str },
    #[error("no certificate authority for this sandbox: {0}")]
    Authority(String),
    #[error("no root certificate to verify servers with: {0}")]
    Roots(String),
    #[error("egress could not be started: {0}")]
    Start(#[source] io::Error),
    #[error("egress has ended: nothing goes out any more; start the sandbox again")]
    Ended,
}
