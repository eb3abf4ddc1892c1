//! Runs as clients see them, and what clients do with them.

mod act;
mod begin;
mod look;
mod pages;
pub(crate) mod summaries;
mod views;

pub(crate) use act::{AnswerRun, CancelRun, ForkRun, ResumeRun, SteerRun, SteeredView, UndoneView};
pub(crate) use act::{answer, cancel, fork, resume, steer, undo};
pub(crate) use begin::{CreateRun, create};
pub(crate) use look::{export, get, log, plan, timeline};
pub(crate) use pages::{RunPage, list};
pub(crate) use views::{OpenDocument, PlanView, RunView};
