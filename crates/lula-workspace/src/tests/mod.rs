//! Workspaces from their user's side, with commits cut off at every step.

mod commits;
mod layers;
mod put;
mod world;
