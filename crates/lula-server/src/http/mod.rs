//! From a connection to a call of a route: limits of size and time, who asks, and what may be asked.

pub(crate) mod call;
pub(crate) mod connections;
mod gate;
mod origin;
mod router;
pub(crate) mod tls;

pub(crate) use origin::OriginRules;
pub(crate) use router::router;
