//! The same for errors of the crates below, which know nothing of exit statuses.

use lula_audit::AuditError;
use lula_gate::approvals::ApprovalsError;
use lula_graph::EngineError;
use lula_protocol::{Code, RunExit};
use lula_repair::RepairError;
use lula_runner::RunnerStartError;
use lula_runner::environments::EnvironmentError;
use lula_sandbox::SandboxError;
use lula_store::StoreError;
use lula_workspace::WorkspaceError;

use crate::environment::BuildRefusal;
use crate::text::visible;

pub(super) fn of_store(error: &StoreError) -> (Code, RunExit, &'static str) {
    match error {
        StoreError::NoRun(_) => (Code::NoSuchRun, RunExit::Usage, "`lula runs` lists them"),
        StoreError::CorruptBlob(_)
        | StoreError::NoBlob(_)
        | StoreError::CorruptEvent { .. }
        | StoreError::BrokenLog { .. } => (
            Code::LogBroken,
            RunExit::Failed,
            "do not rely on it; `lula store restore FILE` brings a backup back",
        ),
        StoreError::Fenced { .. } => (
            Code::RunBusy,
            RunExit::Failed,
            "another process went on with the run",
        ),
        StoreError::Backend {
            backend: "server", ..
        } => (
            Code::ServerUnusable,
            RunExit::Environment,
            "`lula config explain server.url` shows which server is asked",
        ),
        _ => (
            Code::StoreUnusable,
            RunExit::Environment,
            "`lula config explain store.url` shows where runs are kept",
        ),
    }
}

pub(super) fn of_environment(error: &EnvironmentError) -> (Code, RunExit, String) {
    let environment = (Code::NoEnvironment, RunExit::Environment);
    let (code, exit) = match error {
        EnvironmentError::Sandbox(error) => {
            let (code, exit, remedy) = of_sandbox(error);
            return (code, exit, remedy.to_owned());
        }
        EnvironmentError::Unknown(_)
        | EnvironmentError::ElsewhereMade { .. }
        | EnvironmentError::NotExported { .. } => (Code::NoEnvironment, RunExit::Usage),
        _ => environment,
    };
    let remedy = match error {
        EnvironmentError::Step { denied, log, .. } if denied.is_empty() => format!(
            "everything it printed is in {}; `lula env edit` changes the commands",
            log.display()
        ),
        EnvironmentError::Step { denied, .. } => format!(
            "it was denied what this would grant: lula env build {}",
            denied.join(" ")
        ),
        EnvironmentError::Unknown(_) => "`lula env list` names those that are there".to_owned(),
        EnvironmentError::ElsewhereMade { .. } => {
            "an environment knows its path: build one here with `lula env build`".to_owned()
        }
        EnvironmentError::NotExported { .. } => {
            "name a file that `lula env export` wrote".to_owned()
        }
        _ => "check that the state directory has space and is writable".to_owned(),
    };
    (code, exit, remedy)
}

pub(super) const fn of_build(error: &BuildRefusal) -> (Code, RunExit) {
    match error {
        BuildRefusal::NothingToSetUp | BuildRefusal::Missing { .. } => {
            (Code::NoEnvironment, RunExit::Environment)
        }
        BuildRefusal::StrangeGroup { .. }
        | BuildRefusal::Forbidden { .. }
        | BuildRefusal::Asked { .. }
        | BuildRefusal::Recipe { .. } => (Code::RecipeRefused, RunExit::Usage),
    }
}

pub(super) fn of_engine(error: &EngineError) -> (Code, RunExit) {
    match error {
        EngineError::Store(error) => {
            let (code, exit, _) = of_store(error);
            (code, exit)
        }
        EngineError::History { .. } | EngineError::Payload { .. } => {
            (Code::LogBroken, RunExit::Failed)
        }
        EngineError::Fork { .. } | EngineError::Version { .. } | EngineError::OpenVisit { .. } => {
            (Code::RunRefused, RunExit::Usage)
        }
        EngineError::Table { .. } | EngineError::Random(_) => (Code::Internal, RunExit::Failed),
    }
}

pub(super) const fn of_audit(error: &AuditError) -> (Code, RunExit, &'static str) {
    match error {
        AuditError::Key { .. } => (
            Code::KeysUnusable,
            RunExit::Environment,
            "make the key readable by you alone, or remove it",
        ),
        AuditError::Damaged { .. } => (
            Code::AuditBroken,
            RunExit::Environment,
            "run `lula audit verify`",
        ),
        AuditError::NotAKey(_) | AuditError::NotABundle(_) => (
            Code::AuditUnusable,
            RunExit::Usage,
            "name a key or a file that `lula audit export` made",
        ),
        _ => (
            Code::AuditUnusable,
            RunExit::Environment,
            "check the space and the rights of the state directory, or set audit.mode to off",
        ),
    }
}

pub(super) const fn of_sandbox(error: &SandboxError) -> (Code, RunExit, &'static str) {
    let (code, exit) = match error {
        SandboxError::NotStarted { .. } => (Code::CommandNotStarted, RunExit::Environment),
        SandboxError::HelperGone
        | SandboxError::Ended { .. }
        | SandboxError::Protocol(_)
        | SandboxError::Credit(_)
        | SandboxError::Io { .. } => (Code::SandboxBroke, RunExit::Failed),
        _ => (Code::SandboxRefused, RunExit::Environment),
    };
    let remedy = match error {
        SandboxError::NotStarted { .. } => "check that the program exists inside the sandbox",
        SandboxError::HelperGone | SandboxError::Ended { .. } => "run the command again",
        _ => "`lula doctor` shows what works on this machine",
    };
    (code, exit, remedy)
}

pub(super) fn of_workspace(error: &WorkspaceError) -> RunExit {
    match error.code() {
        Code::NoSuchWorkspace => RunExit::Usage,
        Code::HeldBack => RunExit::WaitingForApproval,
        Code::WorkspaceConflict | Code::ChangedSinceReview => RunExit::Failed,
        _ => RunExit::Environment,
    }
}

pub(super) const fn of_approvals(error: &ApprovalsError) -> (Code, RunExit, &'static str) {
    match error {
        ApprovalsError::Unknown(_) => (
            Code::UnknownApproval,
            RunExit::Usage,
            "`lula approvals` lists what waits",
        ),
        ApprovalsError::Vote(_)
        | ApprovalsError::Token(_)
        | ApprovalsError::OtherQuestion
        | ApprovalsError::Refused(_) => (
            Code::VoteRefused,
            RunExit::Failed,
            "`lula approvals show ID` shows the question and every vote",
        ),
        _ => (
            Code::ApprovalsUnusable,
            RunExit::Environment,
            "check the space and the rights of the state directory",
        ),
    }
}

pub(super) fn of_repair(error: &RepairError) -> (Code, RunExit, String) {
    let (code, exit, remedy) = match error {
        RepairError::OnlyFlaky(_) => (
            Code::FlakyTests,
            RunExit::Inconclusive,
            "make the tests deterministic first",
        ),
        RepairError::OutOfTime(_) => (
            Code::TestsCannotRun,
            RunExit::Budget,
            "give a larger --budget, or --tests with fewer tests",
        ),
        RepairError::EnvironmentBroken(broken) => {
            let remedy = broken.remedy.as_ref().map_or_else(
                || "prepare the project as it says itself, or have `lula env build` do it".into(),
                |command| {
                    let command = visible(command);
                    format!(
                        "`lula env build` sets it up in the sandbox, or install it: `{command}`"
                    )
                },
            );
            return (Code::EnvironmentBroken, RunExit::Environment, remedy);
        }
        RepairError::NotInstalled(_) => (
            Code::ToolMissing,
            RunExit::Environment,
            "install it, then run the command again",
        ),
        RepairError::NoTests | RepairError::NoSources => (
            Code::NothingToRepair,
            RunExit::Environment,
            "`lula detect` shows what was found",
        ),
        RepairError::CannotRun(_) | RepairError::Ground(_) => (
            Code::TestsCannotRun,
            RunExit::Environment,
            "`lula exec -- CMD` shows what the tests see",
        ),
    };
    (code, exit, remedy.to_owned())
}

/// What a runner says that does not serve.
pub(super) fn served(error: &RunnerStartError) -> String {
    match error {
        RunnerStartError::Service(refusal) => refusal.problem().message,
        RunnerStartError::Listen(error) => error.to_string(),
        RunnerStartError::Io(error) => error.to_string(),
    }
}

pub(super) fn of_serving(error: &RunnerStartError) -> (Code, RunExit, Option<&'static str>) {
    match error {
        RunnerStartError::Service(refusal) => match refusal.problem().code {
            Code::BadRules => (
                Code::BadRules,
                RunExit::Usage,
                Some("correct that line; `lula policy test` checks the file"),
            ),
            code => (
                code,
                RunExit::Environment,
                Some("`lula doctor` shows what works on this machine"),
            ),
        },
        RunnerStartError::Listen(_) => (
            Code::BadCommandLine,
            RunExit::Usage,
            Some("listen on a Unix socket, or give a port and its key"),
        ),
        RunnerStartError::Io(_) => (Code::EnvironmentUnfit, RunExit::Environment, None),
    }
}
