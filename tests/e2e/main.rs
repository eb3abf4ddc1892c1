//! End to end: the `lula` binary as a person or a script meets it.

mod command_line;
mod configuration;
mod doctor;
mod exec;
mod lula;
mod try_it;
