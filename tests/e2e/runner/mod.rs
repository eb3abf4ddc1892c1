//! `lula runner` as the driver meets it: the real binary, a real socket, real sandboxes.

mod approvals;
mod branches;
mod checkouts;
mod jobs;
mod kills;
mod people;
mod scope;
mod serving;
mod sessions;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lula_protocol::{
    EffectId, ProtocolVersion, RunId, ToolAction, ToolCall, ToolOutcome, ToolOutput,
    ToolOutputDetails, ToolResult, WorkspaceId,
};
use lula_runner_api::CommitWorkspace;
use lula_runner_api::client::{RunnerChild, RunnerClient, RunnerClientError, RunnerCommand};
use serde_json::{Value, json};

use crate::support::LulaEnv;

/// A project, a runner beside it, and one open workspace.
pub(crate) struct Scene {
    world: LulaEnv,
    runtime: tokio::runtime::Runtime,
    spawned: Option<RunnerChild>,
    rules: Option<PathBuf>,
    /// Whether receipts shall name the paths that were denied.
    explain: bool,
    workspace: WorkspaceId,
    run: RunId,
}

/// Ids that differ within a test run.
pub(crate) fn fresh() -> [u8; 10] {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [0; 10];
    bytes[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    bytes
}

pub(crate) fn effect() -> EffectId {
    EffectId::from_parts(1, fresh())
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with_rules(files, "")
    }

    pub(crate) fn with_rules(files: &[(&str, &str)], rules: &str) -> Self {
        let world = LulaEnv::new();
        for (path, text) in files {
            let path = world.work().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let rules = (!rules.is_empty()).then(|| {
            let path = world.home().join("rules.toml");
            std::fs::write(&path, rules).unwrap();
            path
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let mut scene = Self {
            world,
            runtime,
            spawned: None,
            rules,
            explain: false,
            workspace: WorkspaceId::from_parts(0, [0; 10]),
            run: RunId::from_parts(1, fresh()),
        };
        scene.start();
        scene.workspace = scene.open();
        scene
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.world.home().join("state")
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.world.work()
    }

    /// Starts the runner, again after it was killed.
    pub(crate) fn start(&mut self) {
        let mut spawn = RunnerCommand::new(env!("CARGO_BIN_EXE_lula"))
            .pass_on(lula_sandbox::HostToolchains::variables())
            .root(self.tree())
            .state(self.state())
            .variable("HOME", self.world.home());
        if let Some(rules) = &self.rules {
            spawn = spawn.argument("--rules").argument(rules);
        }
        if self.explain {
            spawn = spawn.argument("--explain");
        }
        self.spawned = Some(self.runtime.block_on(spawn.start()).unwrap());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.spawned.as_ref().unwrap().pid().unwrap()
    }

    pub(crate) fn client(&self) -> &RunnerClient {
        self.spawned.as_ref().unwrap().client()
    }

    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    pub(crate) fn open(&self) -> WorkspaceId {
        let path = self.tree();
        let opened = self.client().open(path.to_str().unwrap(), "a test");
        self.wait(opened).unwrap().id
    }

    pub(crate) fn call(&self, tool: &str, input: Value) -> ToolCall {
        self.call_as(&effect(), 1, tool, input)
    }

    #[allow(clippy::needless_pass_by_value)] // reads better where it is called
    pub(crate) fn call_as(
        &self,
        effect: &EffectId,
        epoch: u64,
        tool: &str,
        input: Value,
    ) -> ToolCall {
        let action: ToolAction =
            serde_json::from_value(json!({"tool": tool, "input": input})).unwrap();
        ToolCall {
            protocol: ProtocolVersion,
            effect: effect.clone(),
            epoch,
            run: self.run.clone(),
            workspace: self.workspace.clone(),
            action,
        }
    }

    pub(crate) fn send(&self, call: &ToolCall) -> Result<ToolResult, RunnerClientError> {
        self.wait(self.client().execute(call))
    }

    /// Calls a tool and expects that it is done.
    #[track_caller]
    pub(crate) fn does(&self, tool: &str, input: Value) -> ToolOutput {
        done(self.send(&self.call(tool, input)).unwrap())
    }

    #[track_caller]
    pub(crate) fn sh(&self, line: &str) -> String {
        let output = self.does("exec", json!({"argv": ["sh", "-c", line]}));
        match output.details {
            Some(ToolOutputDetails::Command {
                status: 0, stdout, ..
            }) => stdout,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Commits everything, after looking at it.
    pub(crate) fn commit(&self) -> Result<lula_runner_api::CommittedWorkspace, RunnerClientError> {
        let diff = self.wait(self.client().diff(&self.workspace)).unwrap();
        self.wait(
            self.client()
                .commit(&self.workspace, &self.commit_of(diff.digest)),
        )
    }

    pub(crate) fn commit_of(&self, digest: lula_protocol::Digest) -> CommitWorkspace {
        CommitWorkspace {
            effect: effect(),
            epoch: 1,
            run: self.run.clone(),
            digest,
            paths: Vec::new(),
            include_git: false,
        }
    }
}

#[track_caller]
pub(crate) fn done(result: ToolResult) -> ToolOutput {
    match result.outcome {
        ToolOutcome::Done { output } => output,
        other => panic!("{other:?}"),
    }
}

/// The code of a call that was tried and did not work.
#[track_caller]
pub(crate) fn failure(result: Result<ToolResult, RunnerClientError>) -> String {
    match result.unwrap().outcome {
        ToolOutcome::Failed { code, .. } => code.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The code of a request that was refused.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, RunnerClientError>) -> (u16, String) {
    match result {
        Err(RunnerClientError::Refused { status, problem }) => {
            (status.as_u16(), problem.code.to_string())
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
