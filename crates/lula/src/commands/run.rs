//! `lula run` and `lula resume`

use std::sync::Arc;
use std::time::Duration;

use lula_agents::route::TaskLane;
use lula_agents::team::TeamPolicy;
use lula_agents::{CoderChoice, RunTask};
use lula_host::drive::begin;
use lula_host::drive::worker;
use lula_host::models::ThinkingEffort;
use lula_host::record::local_principal;
use lula_host::remote::ServerClient;
use lula_host::runs;
use lula_host::store::DriverStore;
use lula_host::task::{ApprovalMode, TaskRequest, recall};
use lula_protocol::{BudgetAmounts, BudgetDimension, Code, RunExit};

use super::background;
use super::drive::{self, ApprovalSource, DriveContext};
use crate::cli::runs::{ApproveMode, CoderFlag, LaneChoice, LimitFlags, ResumeFlags, RunFlags};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, paint};

pub(super) fn run(flags: &RunFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    if let Some(server) = ServerClient::configured(&session.host)? {
        return drive::remote::run(flags, &server, session);
    }
    let mut task = task(flags, session)?;
    super::env::ensure(&task, session)?;
    runs::block_on(async {
        let store = DriverStore::open(&session.host).await?;
        recall(&mut task, Arc::clone(&store.runs), &session.host).await?;
        let max_time = flags.limits.max_time;
        if flags.detach {
            // The driver that goes on with it must not be locked out of what this process would be.
            let reader = runs::reader(Arc::clone(&store.runs))?;
            let run = begin(&reader, &task, limits(&flags.limits)).await?;
            return background::detach(&run, flags.approve, max_time, &*store.runs, session).await;
        }
        let answers = ApprovalSource::from(flags.approve);
        let desk = DriveContext::open(&task, store, answers, session).await?;
        let run = begin(&desk.driver.engine, &task, limits(&flags.limits)).await?;
        session.screen.note(&format!("{} {run}", paint(DIM, "run")));
        desk.tell(&run, &desk.driver.reach(&run, max_time).await?)
            .await
    })
}

/// What the flags ask for, checked as far as it can be before anything is begun.
pub(super) fn task(flags: &RunFlags, session: &CliSession) -> Result<RunTask, CommandFailure> {
    Ok(request(flags).task(&session.host)?)
}

/// What the flags ask for, of this machine or of a server.
pub(super) fn request(flags: &RunFlags) -> TaskRequest {
    TaskRequest {
        text: flags.task.text().to_owned(),
        repositories: flags.repo.clone(),
        repair: flags.repair,
        tests: flags.tests.clone(),
        accept: flags.accept.clone(),
        finish: flags.finish.clone(),
        models: flags.model.clone(),
        effort: flags.effort.as_deref().and_then(ThinkingEffort::from_name),
        judges: flags.judge.clone(),
        lane: match flags.lane {
            LaneChoice::Auto => None,
            LaneChoice::Interactive => Some(TaskLane::Interactive),
            LaneChoice::Deep => Some(TaskLane::DeepPlanning),
        },
        team: flags.agents.map(|at_once| TeamPolicy {
            at_once,
            plan_only: flags.plan_only,
            fail_fast: flags.fail_fast,
            commit_per_task: !flags.squash,
            reviewed: true,
        }),
        best_of: flags.best_of,
        coder: match flags.coder {
            CoderFlag::Auto => CoderChoice::Auto,
            CoderFlag::Repairer => CoderChoice::Repairer,
            CoderFlag::Model => CoderChoice::Model,
        },
        deliver: flags.deliver.mode(),
        approval: match flags.approve {
            None => ApprovalMode::ByRules,
            Some(ApproveMode::Ask) => ApprovalMode::First,
            Some(ApproveMode::Unsure) => ApprovalMode::Unsure,
            Some(ApproveMode::Auto) => ApprovalMode::Beforehand,
        },
        max_loops: flags.max_loops,
        max_turns: flags.max_turns,
        search: flags.search.unwrap_or(Duration::from_mins(2)),
        traceparent: std::env::var("TRACEPARENT").ok(),
    }
}

pub(super) fn resume(flags: &ResumeFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    if flags.detached {
        // A person who closes the terminal does not mean this process.
        rustix::process::setsid().map_err(|error| internal(&error))?;
    } else if let Some(server) = ServerClient::configured(&session.host)? {
        return drive::remote::resume(flags, &server, session);
    }
    runs::block_on(async {
        let store = DriverStore::open(&session.host).await?;
        let run = runs::named(&*store.runs, &flags.run).await?;
        let reader = runs::reader(Arc::clone(&store.runs))?;
        let known = reader.show(&run, None).await?;
        let answer = flags.answer.as_deref();
        worker::prepare(
            &reader,
            &known,
            &limits(&flags.limits),
            answer,
            &local_principal()?,
        )
        .await?;
        let max_time = flags.limits.max_time;
        if flags.detach && known.progress.ended.is_none() {
            return background::detach(&run, flags.approve, max_time, &*store.runs, session).await;
        }
        drop(reader);
        let answers = ApprovalSource::from(flags.approve);
        let desk = DriveContext::open(&known.state.task, store, answers, session).await?;
        desk.tell(&run, &desk.driver.reach(&run, max_time).await?)
            .await
    })
}

fn internal(error: &dyn std::fmt::Display) -> CommandFailure {
    CommandFailure::new(Code::Internal, RunExit::Failed, error.to_string())
}

pub(super) fn limits(flags: &LimitFlags) -> BudgetAmounts {
    let given = [
        (BudgetDimension::MicroUsd, flags.budget),
        (BudgetDimension::ModelCalls, flags.max_calls),
        (BudgetDimension::OutputTokens, flags.max_tokens),
    ];
    given
        .into_iter()
        .filter_map(|(dimension, limit)| Some((dimension, limit?)))
        .collect()
}
