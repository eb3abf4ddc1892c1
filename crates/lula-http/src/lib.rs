//! Requests that Lula makes of services: a server of ours, a collector of traces, an issuer of identities,
//! a receiver of webhooks. Models are asked by `lula-models`, which has a client of its own.
//!
//! It does: one request and its answer, within a time and a size, over TLS with the certificates of this
//! machine, on a connection that is kept for the next.
//!
//! It must never: follow a redirect, which would take credentials to a place outside the configuration; speak
//! in clear where the caller did not allow it; print a header, which may hold a key.
#![forbid(unsafe_code)]

mod client;
mod connect;
mod url;

pub use client::{HttpAnswer, HttpClient, HttpError, HttpRequest};
pub use hyper::header;
pub use hyper::{HeaderMap, Method, StatusCode};
pub use url::{BadServiceUrl, ServiceUrl};
