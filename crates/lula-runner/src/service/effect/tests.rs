//! What holds for every effect, wherever the runner that does it ends.

mod cases;
mod commits;
mod invariants;
mod probe;
mod shared;
