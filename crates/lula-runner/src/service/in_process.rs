//! A runner's service for tests of effects: in this process, without a server, the binary, or a sandbox.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lula_audit::{AuditEntry as Recorded, AuditFilter};
use lula_gate::approvals::ApprovalKeyring;
use lula_protocol::{
    ApprovalChallenge, ApprovalDecision, EffectId, IsolationTier, Principal, RunId, WorkspaceId,
};
use lula_sandbox::policy::Profile;
use lula_sandbox::{HelperProgram, SandboxEngine};
use lula_workspace::{PathContent, PathReplacement, WorkspacePath};

use super::room::RunnerWorkspace;
use super::{RunnerService, RunnerSetup};
use lula_runner_api::OpenWorkspace;

/// A state directory and a person's tree, which outlive the service.
pub(super) struct InProcessSite {
    place: tempfile::TempDir,
}

impl InProcessSite {
    pub(super) fn new() -> Self {
        let site = Self {
            place: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(site.tree()).unwrap();
        site
    }

    pub(super) fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.place.path().join("tree")
    }

    /// A service over this place: at first, and whenever an earlier one ended.
    pub(super) fn service(&self) -> RunnerService {
        std::fs::create_dir_all(self.state()).unwrap();
        let setup = RunnerSetup {
            environment: crate::environments::EnvironmentChoice::None,
            door: None,
            state: self.state().canonicalize().unwrap(),
            roots: vec![self.tree().canonicalize().unwrap()],
            policy: Profile::Build.policy(),
            explain: false,
            max_bytes: 1 << 30,
            home: None,
            rules: Vec::new(),
            beforehand: false,
            git: None,
        };
        RunnerService::with(setup, no_sandbox(), IsolationTier::Process).unwrap()
    }

    /// A workspace over the tree.
    pub(super) fn open(&self, service: &RunnerService) -> WorkspaceId {
        let asked = OpenWorkspace {
            path: self.tree().display().to_string(),
            title: "test".to_owned(),
            write_scope: Vec::new(),
            checkout: None,
        };
        service.open(&asked).unwrap().id
    }

    /// Agrees to what people are asked.
    pub(super) fn approve(&self, service: &RunnerService, challenge: &ApprovalChallenge) {
        let keys = ApprovalKeyring::open(&self.state()).unwrap();
        let token = keys.sign(challenge, &person(), "owner", ApprovalDecision::Approve);
        service.vote(&challenge.id, &token.unwrap()).unwrap();
    }

    /// What the audit has of an effect, oldest first.
    pub(super) fn audit(&self, effect: &EffectId) -> Vec<Recorded> {
        let filter = AuditFilter {
            effect: Some(effect.clone()),
            ..AuditFilter::default()
        };
        let shown = lula_audit::show(&self.state().join("audit"), &filter).unwrap();
        shown.into_iter().map(|shown| shown.entry).collect()
    }

    /// The ledger's database, for looking.
    pub(super) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state().join("hands.db")).unwrap()
    }
}

/// An engine that opens no sandbox: whatever needs one is refused. One for all services of a test.
fn no_sandbox() -> SandboxEngine {
    static ENGINE: OnceLock<SandboxEngine> = OnceLock::new();
    let start = || SandboxEngine::start_with(HelperProgram::program("/bin/true")).unwrap();
    ENGINE.get_or_init(start).clone()
}

pub(super) fn person() -> Principal {
    "local:1000".parse().unwrap()
}

pub(super) fn run() -> RunId {
    RunId::from_parts(1, [7; 10])
}

pub(super) fn effect(number: u8) -> EffectId {
    EffectId::from_parts(1, [number; 10])
}

/// Writes a file into a workspace, as a command in its sandbox would.
pub(super) fn write(room: &RunnerWorkspace, path: &str, text: &str) {
    let piece = PathReplacement {
        path: WorkspacePath::from_path(Path::new(path)).unwrap(),
        before: None,
        after: Some(PathContent::File {
            bytes: text.as_bytes().to_vec(),
            executable: false,
        }),
    };
    room.lay(&[piece]).unwrap();
}
