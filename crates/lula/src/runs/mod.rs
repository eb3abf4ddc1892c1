//! Runs on the terminal: what is seen of one that is driven, and plans and candidates as tables.

pub(crate) mod board;
pub(crate) mod contest;
pub(crate) mod plan;
pub(crate) mod view;
