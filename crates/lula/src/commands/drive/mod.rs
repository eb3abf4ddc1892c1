//! Driving a run from a terminal: what is seen of it, who answers its questions, and how it is put
//! down.

mod interrupt;
pub(super) mod remote;
mod talk;
mod watching;

use std::sync::Arc;

use lula_agents::RunTask;
use lula_host::drive::{Driver, DriverKeys};
use lula_host::runner_client::RunnerProcess;
use lula_host::store::DriverStore;

use crate::cli::runs::ApproveMode;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use interrupt::on_interrupt;
use watching::Terminal;

/// Who answers what the run asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalSource {
    /// The person at the terminal, where there is one.
    Terminal,
    /// The person who said so beforehand, with yes.
    Yes,
}

impl From<Option<ApproveMode>> for ApprovalSource {
    fn from(approve: Option<ApproveMode>) -> Self {
        match approve {
            Some(ApproveMode::Auto) => Self::Yes,
            Some(ApproveMode::Ask | ApproveMode::Unsure) | None => Self::Terminal,
        }
    }
}

/// A driver, and the terminal it is watched from.
pub(super) struct DriveContext<'a> {
    pub(super) driver: Driver,
    session: &'a CliSession,
}

impl<'a> DriveContext<'a> {
    /// Finds a runner for the work, and locks this process out of what it works on.
    pub(super) async fn open(
        task: &RunTask,
        store: DriverStore,
        answers: ApprovalSource,
        session: &'a CliSession,
    ) -> Result<Self, CommandFailure> {
        let keys = DriverKeys::read(task, &session.host)?;
        let runner = RunnerProcess::for_task(task, answers == ApprovalSource::Yes);
        let fenced = runner
            .start(&session.host)
            .await?
            .lock_in(keys, &session.host)?;
        let terminal = Arc::new(Terminal::new(session.screen.clone(), answers));
        // Hearing signals takes a thread, which the lock would not have held for.
        let stop = on_interrupt()?;
        let driver = Driver::open(fenced, store, terminal, stop, &session.host)?;
        Ok(Self { driver, session })
    }
}
