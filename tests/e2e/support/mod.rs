//! What end-to-end tests share: an environment for the program, repositories, models, processes.

mod env;
mod models;
mod processes;
mod repo;

pub(crate) use env::{LulaEnv, Ran, at_rest, listing};
pub(crate) use models::{Act, Models, acts, after, always, does, edit, run_with};
pub(crate) use processes::{
    BLOWS, Dice, begin, begin_heard, blows, ended, events, interrupt, is_asleep, kill_child, logs,
    processes_of, runners_of, strike, until, wait_until,
};
pub(crate) use repo::{CODE, FIX, MENDED, Repo, TESTS, git};
