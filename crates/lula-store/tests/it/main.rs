//! Every backend against the conformance kit, and the faults each has of its own.

mod sqlite;
mod postgres;
mod redis;
