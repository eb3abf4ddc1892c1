//! By which code an error is known, with which status a command ends for it, and what to do about it.

use lula_graph::EngineError;
use lula_graph::bundle::BundleError;
use lula_protocol::{Code, RunExit};
use lula_sandbox::probes::TierAttackError;
use lula_workspace::scratch::ScratchError;

use super::HostError;
use super::foreign::{
    of_approvals, of_audit, of_build, of_engine, of_environment, of_repair, of_sandbox, of_serving,
    of_store, of_workspace,
};

impl HostError {
    /// By which code it is known.
    pub fn code(&self) -> Code {
        match self {
            Self::Store(error)
            | Self::Engine(EngineError::Store(error))
            | Self::Bundle(BundleError::Store(error)) => of_store(error).0,
            Self::Engine(error) => of_engine(error).0,
            Self::Audit(error) => of_audit(error).0,
            Self::Git(error) | Self::Scratch(ScratchError::Git(error)) => error.code(),
            Self::Sandbox(error) | Self::Attack(TierAttackError::Sandbox(error)) => {
                of_sandbox(error).0
            }
            Self::Held(error) => error.code(),
            Self::Network(error) => error.code(),
            Self::Environment(error) => of_environment(error).0,
            Self::Build(error) => of_build(error).0,
            Self::Repair(error) => of_repair(error).0,
            Self::Serving(error) => of_serving(error).0,
            Self::Approvals(error) => of_approvals(error).0,
            Self::Config(error) => error.code(),
            Self::NoUserConfiguration | Self::NoRepositoryConfiguration => Code::ConfigUnreadable,
            Self::NothingToAttack => Code::SandboxRefused,
            Self::VoteRefused(_) => Code::VoteRefused,
            Self::ApprovalForged(_) => Code::ApprovalsUnusable,
            Self::Keyring(_) => Code::KeysUnusable,
            Self::Bundle(_) => Code::LogBroken,
            Self::Fork(_) => Code::CannotFork,
            Self::AddsSecret { .. } => Code::HeldBack,
            Self::NothingWaits(_) => Code::NoSuchWorkspace,
            Self::NoBranches(_) | Self::NoLesson(_) => Code::NothingThere,
            Self::NoQuestion(_) => Code::UnknownApproval,
            Self::Rules(_)
            | Self::Guidelines(_)
            | Self::NoRulesFile { .. }
            | Self::UnreadableRules { .. } => Code::BadRules,
            Self::NoStateDirectory => Code::NoStateDirectory,
            Self::StoreAddress(_) | Self::PasswordInAddress | Self::BackupFile { .. } => {
                Code::StoreUnusable
            }
            Self::NoSuchRun(_) => Code::NoSuchRun,
            Self::RunBusy { .. } | Self::HealerBusy(_) | Self::NotEnded(_) => Code::RunBusy,
            Self::Checkout(_)
            | Self::RunOver(_)
            | Self::NotUndone(_)
            | Self::RunStuck { .. }
            | Self::NoChoice(_)
            | Self::NoChat(_)
            | Self::NotOffered { .. }
            | Self::PartOfAnother { .. } => Code::RunRefused,
            Self::Scratch(_)
            | Self::Background { .. }
            | Self::Unlisted { .. }
            | Self::HealHistory { .. }
            | Self::File { .. }
            | Self::SealKey { .. }
            | Self::NoDirectory { .. }
            | Self::PolicyFile { .. }
            | Self::Workspace { .. }
            | Self::NoSuchDirectory { .. }
            | Self::Supervisor(_)
            | Self::RunnerKey { .. }
            | Self::TextUnreadable(_)
            | Self::Output { .. }
            | Self::Answer(_) => Code::FileAccess,
            Self::NoteRefused(_)
            | Self::TaskRefused { .. }
            | Self::Attack(TierAttackError::Tier(_)) => Code::BadCommandLine,
            Self::NotARepository { .. } => Code::NotARepository,
            Self::EmptyRepository(_) => Code::EmptyRepository,
            Self::PolicyInWorkspace(_) => Code::RepositoryOverreach,
            Self::WorkspaceTooWide(_) => Code::WorkspaceTooWide,
            Self::Runner(_)
            | Self::RunnerPort(_)
            | Self::Fence(_)
            | Self::NotTakenUp { .. }
            | Self::Attack(_)
            | Self::OwnProgram(_)
            | Self::RunnerKilled { .. } => Code::EnvironmentUnfit,
            Self::ModelName(_) => Code::BadModelName,
            Self::ModelKey { .. } => Code::NoModelKey,
            Self::ModelUnusable(_) => Code::ModelUnusable,
            Self::BadPolicy { .. }
            | Self::BadCapability { .. }
            | Self::BadEffort(_)
            | Self::BadKeys(_)
            | Self::BadPrices(_)
            | Self::BadLogFilter { .. }
            | Self::BadLogFormat(_)
            | Self::CommitsNotHeld(_)
            | Self::RunnerAddress(_) => Code::BadValue,
            Self::Server(report) => report.code,
            Self::NoRuntime(_) | Self::Watch(_) | Self::Internal(_) => Code::Internal,
        }
    }

    /// With which status a command ends for it.
    pub fn exit(&self) -> RunExit {
        match self {
            Self::Store(error)
            | Self::Engine(EngineError::Store(error))
            | Self::Bundle(BundleError::Store(error)) => of_store(error).1,
            Self::Engine(error) => of_engine(error).1,
            Self::Audit(error) => of_audit(error).1,
            Self::Sandbox(error) | Self::Attack(TierAttackError::Sandbox(error)) => {
                of_sandbox(error).1
            }
            Self::Held(error) => of_workspace(error),
            Self::Network(error) => error.exit(),
            Self::Environment(error) => of_environment(error).1,
            Self::Build(error) => of_build(error).1,
            Self::Repair(error) => of_repair(error).1,
            Self::Serving(error) => of_serving(error).1,
            Self::Approvals(error) => of_approvals(error).1,
            Self::Server(report) => report.exit,
            Self::AddsSecret { .. } => RunExit::WaitingForApproval,
            Self::Rules(_)
            | Self::Guidelines(_)
            | Self::NoRulesFile { .. }
            | Self::UnreadableRules { .. }
            | Self::Config(_)
            | Self::NoUserConfiguration
            | Self::NoRepositoryConfiguration
            | Self::NoLesson(_)
            | Self::BackupFile { .. }
            | Self::TextUnreadable(_)
            | Self::Attack(TierAttackError::Tier(_))
            | Self::NothingWaits(_)
            | Self::NoBranches(_)
            | Self::NoQuestion(_)
            | Self::NoteRefused(_)
            | Self::NoSuchRun(_)
            | Self::NoChoice(_)
            | Self::NoChat(_)
            | Self::NotOffered { .. }
            | Self::ModelName(_)
            | Self::BadCapability { .. }
            | Self::BadEffort(_)
            | Self::BadKeys(_)
            | Self::BadPrices(_)
            | Self::BadLogFilter { .. }
            | Self::BadLogFormat(_)
            | Self::RunnerKey { .. }
            | Self::TaskRefused { .. }
            | Self::PartOfAnother { .. }
            | Self::NoSuchDirectory { .. }
            | Self::NotARepository { .. }
            | Self::EmptyRepository(_)
            | Self::PolicyFile { .. }
            | Self::PolicyInWorkspace(_)
            | Self::BadPolicy { .. }
            | Self::Workspace { .. }
            | Self::WorkspaceTooWide(_)
            | Self::CommitsNotHeld(_)
            | Self::RunnerAddress(_) => RunExit::Usage,
            Self::RunBusy { .. }
            | Self::HealerBusy(_)
            | Self::NotEnded(_)
            | Self::RunOver(_)
            | Self::NotUndone(_)
            | Self::Checkout(_)
            | Self::Bundle(_)
            | Self::VoteRefused(_)
            | Self::ApprovalForged(_)
            | Self::Internal(_) => RunExit::Failed,
            Self::Git(_)
            | Self::Fork(_)
            | Self::Scratch(_)
            | Self::Keyring(_)
            | Self::Background { .. }
            | Self::NotTakenUp { .. }
            | Self::Unlisted { .. }
            | Self::NoStateDirectory
            | Self::NothingToAttack
            | Self::Attack(_)
            | Self::OwnProgram(_)
            | Self::Output { .. }
            | Self::StoreAddress(_)
            | Self::PasswordInAddress
            | Self::RunStuck { .. }
            | Self::HealHistory { .. }
            | Self::File { .. }
            | Self::SealKey { .. }
            | Self::NoDirectory { .. }
            | Self::Runner(_)
            | Self::RunnerPort(_)
            | Self::Fence(_)
            | Self::ModelKey { .. }
            | Self::ModelUnusable(_)
            | Self::Supervisor(_)
            | Self::RunnerKilled { .. }
            | Self::Watch(_)
            | Self::Answer(_)
            | Self::NoRuntime(_) => RunExit::Environment,
        }
    }

    /// What to do about it, where that is known.
    pub fn remedy(&self) -> Option<String> {
        if let Some(text) = self.remedy_of_a_request() {
            return Some(text.to_owned());
        }
        if let Some(text) = self.remedy_of_a_setting() {
            return Some(text.to_owned());
        }
        if let Some(text) = self.remedy_by_name() {
            return Some(text);
        }
        let text = match self {
            Self::Store(error)
            | Self::Engine(EngineError::Store(error))
            | Self::Bundle(BundleError::Store(error)) => of_store(error).2,
            Self::Audit(error) => of_audit(error).2,
            Self::Sandbox(error) => of_sandbox(error).2,
            Self::Held(error) => error.remedy(),
            Self::Network(error) => error.remedy(),
            Self::Repair(error) => return Some(of_repair(error).2),
            Self::Server(report) => return report.remedy.clone(),
            Self::Serving(error) => return of_serving(error).2.map(str::to_owned),
            Self::Approvals(error) => of_approvals(error).2,
            Self::Keyring(lula_gate::approvals::ApprovalKeyError::NoKeyFor { .. }) => {
                "a person who holds that role has to answer"
            }
            Self::Keyring(_) => "check the key file in the state directory",
            Self::Bundle(_) => "do not rely on it; ask for another copy",
            Self::Config(error) => return Some(error.remedy()),
            Self::Fork(_) => "name a smaller part of the project with --workspace",
            Self::Scratch(_) => {
                "check that the temporary directory ($TMPDIR) has space and is writable"
            }
            Self::AddsSecret { .. } => {
                "look at it with `lula diff`, choose other paths with --path, or add \
                 --allow-secrets if it is none"
            }
            Self::NothingWaits(_) => "`lula workspaces` lists all there are; name one by its id",
            Self::NoBranches(_) => "`lula workspaces --branches` lists them",
            Self::NoChat(_) => "`lula chat` begins one; `lula steer` says something to any run",
            Self::RunOver(_) => "`lula show` tells what came of it; `lula fork` goes on otherwise",
            Self::NotUndone(_) => "`lula show` tells what the run delivered",
            Self::NoQuestion(_) => "`lula approvals` lists other questions",
            Self::NoteRefused(_) => "say in a few sentences what the coder should know",
            Self::Unlisted { .. } => "check that you may read the directory",
            Self::Rules(_) => "`lula policy test FILE` runs every example of the file",
            Self::Guidelines(_) => "`lula guidelines test FILE` runs every example of the file",
            Self::Runner(_) => {
                "`lula doctor` shows what works here; `lula config explain runner.address`"
            }
            Self::RunnerPort(_) => "`lula doctor` shows what works here",
            Self::NoSuchRun(_) => "`lula runs` lists them",
            Self::HealerBusy(_) => {
                "wait for it, or end it; `lula heal --history` shows what it did"
            }
            Self::HealHistory { .. } => {
                "make it a readable file of yours, or move it away to forget what is in it"
            }
            Self::File { .. } => "check the space and the rights of the state directory",
            Self::TaskRefused { remedy, .. } => remedy,
            Self::NoSuchDirectory { .. } | Self::Workspace { .. } => "name an existing directory",
            Self::NotARepository { .. } => {
                "name a repository with --repo, or use `lula repair`, which works in any directory"
            }
            Self::EmptyRepository(_) => "make a first commit: `git add --all && git commit`",
            Self::PolicyInWorkspace(_) => {
                "keep policies where commands in the sandbox cannot write"
            }
            Self::BadPolicy { .. } => "correct the lines named",
            Self::WorkspaceTooWide(_) => {
                "change to the project's own directory, or name it with --workspace"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// The same where a setting, or a file that one names, is to be corrected.
    const fn remedy_of_a_setting(&self) -> Option<&'static str> {
        Some(match self {
            Self::RunnerKey { .. } => "name a file of your own that no other user can read",
            Self::NoUserConfiguration => "set HOME or LULA_CONFIG_FILE",
            Self::NoStateDirectory => "set $LULA_STATE_DIR, or state.dir in the configuration",
            Self::StoreAddress(_) => "`lula config explain store.url` shows where runs are kept",
            Self::PasswordInAddress => {
                "keep the whole address elsewhere and name the place: env:NAME, file:PATH"
            }
            Self::NoRulesFile {
                configured: true, ..
            } => "correct policy.rules, or make the file",
            Self::NoRulesFile { .. } | Self::PolicyFile { .. } => "name a file that you can read",
            Self::UnreadableRules { .. } => "make it a plain, readable file",
            Self::ModelName(_) => "`lula models list` shows what is there",
            Self::BadCapability { .. } => "write text, grammar, json-schema or tool-calls",
            Self::BadEffort(_) => "write default, low, medium or high, or MODEL=low for one model",
            Self::BadKeys(_) => "write models.keys as PROVIDER=env:NAME or URL=file:PATH",
            Self::BadPrices(_) => "docs/models.md shows the form of the table of models.prices",
            Self::RunnerAddress(_) => "correct runner.address, or leave it empty",
            Self::CommitsNotHeld(_) => {
                "leave runner.address empty, or let its rules decide: --commits rules"
            }
            _ => return None,
        })
    }

    /// The same where it names the run or the provider.
    fn remedy_by_name(&self) -> Option<String> {
        Some(match self {
            Self::Git(error) | Self::Scratch(ScratchError::Git(error)) => error.remedy(),
            Self::Environment(error) => of_environment(error).2,
            Self::Build(error) => error.remedy(),
            Self::NotEnded(run) => format!("`lula logs -f {run}` shows when it does"),
            Self::Background { run, .. } => format!("`lula resume {run}` works on it here"),
            Self::RunBusy { run, .. } => {
                format!("`lula logs -f {run}` follows it, `lula cancel {run}` ends it")
            }
            Self::RunStuck { run, .. } => format!("`lula resume {run}` tries again"),
            Self::NotTakenUp { run, .. } | Self::NoChoice(run) => {
                format!("`lula resume {run}` goes on with it")
            }
            Self::NotOffered { options, .. } => format!("say one of: {}", options.join(", ")),
            Self::PartOfAnother { parent, .. } => {
                format!("`lula resume {parent}` goes on with all of it")
            }
            Self::ModelKey { provider, .. } => {
                format!("set models.keys to {provider}=REFERENCE, or the provider's usual variable")
            }
            _ => return None,
        })
    }

    /// The same for what an operator asked for in a command.
    const fn remedy_of_a_request(&self) -> Option<&'static str> {
        Some(match self {
            Self::Attack(TierAttackError::Sandbox(error)) => of_sandbox(error).2,
            Self::Attack(TierAttackError::Tier(_)) => {
                "name namespace or landlock, or leave --tier out"
            }
            Self::NothingToAttack => "`lula doctor` shows why not",
            Self::Output { .. } => "name a file in a directory that exists and can be written",
            Self::NoLesson(_) => "`lula lessons list` names them",
            Self::BackupFile { remedy, .. } => remedy,
            Self::TextUnreadable(_) => "name a file that you can read",
            Self::VoteRefused(_) => "is the runner there, and LULA_RUNNER_KEY its key?",
            Self::ApprovalForged(_) => "do not approve it, and look at that runner",
            Self::NoRepositoryConfiguration => {
                "change to a repository, or leave out `--in repository`"
            }
            Self::BadLogFormat(_) => "write text or json",
            Self::BadLogFilter { .. } => {
                "write a level (error, warn, info, debug, trace) or targets with levels, as in \
                 LULA_LOG=lula_graph=debug,lula_runner=trace"
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lula_protocol::RunId;
    use lula_store::StoreError;

    #[test]
    fn an_error_is_known_by_the_same_code_however_deep_it_lies() {
        let run = RunId::from_parts(0, [1; 10]);
        let bare = HostError::from(StoreError::NoRun(run.clone()));
        let wrapped = HostError::from(EngineError::Store(StoreError::NoRun(run)));
        assert_eq!(
            (bare.code(), bare.exit()),
            (Code::NoSuchRun, RunExit::Usage)
        );
        assert_eq!(
            (bare.code(), bare.exit(), bare.remedy()),
            (wrapped.code(), wrapped.exit(), wrapped.remedy())
        );
    }

    #[test]
    fn a_busy_run_is_told_by_its_name() {
        let run = RunId::from_parts(0, [1; 10]);
        let owner = "host/1/2".to_owned();
        let busy = HostError::RunBusy {
            run: run.clone(),
            owner,
        };
        assert!(busy.remedy().unwrap().contains(run.as_str()));
        assert_eq!((busy.code(), busy.exit()), (Code::RunBusy, RunExit::Failed));
    }
}
