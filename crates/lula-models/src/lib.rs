//! The only crate that speaks to a model.
//!
//! So far it finds them: [`discover`] looks for keys in the environment and for servers on the
//! addresses the user configured. It never prints, stores or returns the value of a key, and it
//! reaches no address that the user did not configure.
#![forbid(unsafe_code)]

pub mod discover;
