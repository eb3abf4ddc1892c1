//! Finding something out in private forks of a workspace: what its tests say, and what mends them.

use std::sync::Arc;
use std::time::Duration;

use lula_protocol::WorkspaceId;
use lula_repair::trial::{self, ChangedFile, TestRunAttempt, VerificationRequest};
use lula_workspace::ForkableProject;

use super::RunnerService;
use super::refusal::RequestRefusal;
use crate::ground::SandboxedForkSource;
use crate::halt::CommandStopper;
use lula_runner_api::{TestRunRequest, TestRunResult};

/// Most commands that a change has to satisfy, and the longest of them.
pub(super) const COMMANDS: usize = 32;
pub(super) const COMMAND: usize = 8 << 10;
/// Most tests that are run before the others.
const FIRST: usize = 2_000;

impl RunnerService {
    /// Finds something out, and leaves nothing behind. Ends early when `stop` is set.
    pub fn run_tests(
        &self,
        id: &WorkspaceId,
        asked: &TestRunRequest,
        watch: &(dyn Fn(&str) + Sync),
        stop: Arc<CommandStopper>,
    ) -> Result<TestRunResult, RequestRefusal> {
        // Before its own turn: two workspaces whose tests are run with each other's code never wait for
        // each other.
        let others = match asked {
            TestRunRequest::RunOthersTests { of, .. } => {
                let other = self.room(of)?;
                let _turn = other.turn()?;
                self.changed_files(of, &other)?
            }
            _ => Vec::new(),
        };
        let room = self.room(id)?;
        // No other call writes while it is copied; what comes after goes on beside the workspace.
        let turn = room.turn()?;
        if let TestRunRequest::Verify { accept, .. } | TestRunRequest::RunTests { accept, .. } =
            asked
            && (accept.len() > COMMANDS || accept.iter().any(|line| line.len() > COMMAND))
        {
            let message = format!("at most {COMMANDS} commands of {COMMAND} bytes");
            return Err(RequestRefusal::BadRequest(message));
        }
        let change = match asked {
            TestRunRequest::Verify { first, .. } => {
                if first.len() > FIRST {
                    let message = format!("at most {FIRST} tests can be run first");
                    return Err(RequestRefusal::BadRequest(message));
                }
                self.changed_files(id, &room)?
            }
            TestRunRequest::RunTests { .. }
            | TestRunRequest::Search { .. }
            | TestRunRequest::RunOthersTests { .. } => Vec::new(),
        };
        let project = ForkableProject::of(&room.workspace(), room.below())?.in_layers(self.forks());
        drop(turn);
        let policy = self.setup.policy.clone();
        let (TestRunRequest::RunTests { tests, .. }
        | TestRunRequest::Search { tests, .. }
        | TestRunRequest::RunOthersTests { tests, .. }
        | TestRunRequest::Verify { tests, .. }) = asked;
        let ground =
            SandboxedForkSource::on(self.engine.clone(), project, policy, &self.environments())?
                .for_folder(&tests.folder)
                .stopping(stop);
        let wall = self.setup.policy.limits.wall.millis();
        let within = |ms: u64| Duration::from_millis(ms.min(wall).max(1));
        tracing::debug!(workspace = %id, folder = %tests.folder, "test run begins");
        let begun = std::time::Instant::now();
        let found = match asked {
            TestRunRequest::RunTests {
                tests,
                accept,
                tests_ms,
            } => trial::baseline(&ground, tests, within(*tests_ms))
                .and_then(|mut baseline| {
                    // Where nothing can be run nothing has to be accepted.
                    if !matches!(baseline.looked, TestRunAttempt::EnvironmentBroken(_)) {
                        let within = within(*tests_ms);
                        baseline.accept = trial::tried_before(&ground, accept, tests, within)?;
                    }
                    Ok(baseline)
                })
                .map(|baseline| TestRunResult::Ran {
                    baseline: Box::new(baseline),
                }),
            TestRunRequest::Search { tests, search_ms } => {
                trial::search(&ground, tests, within(*search_ms), watch)
                    .map(|found| TestRunResult::Searched { found })
            }
            TestRunRequest::RunOthersTests {
                tests, tests_ms, ..
            } => trial::others_tests(&ground, &others, tests, within(*tests_ms)).map(|baseline| {
                TestRunResult::Ran {
                    baseline: Box::new(baseline),
                }
            }),
            TestRunRequest::Verify {
                tests,
                before,
                first,
                accept,
                tests_ms,
            } => trial::verify(
                &ground,
                &VerificationRequest {
                    change: &change,
                    before,
                    tests,
                    first,
                    accept,
                    deadline: within(*tests_ms),
                },
            )
            .map(|evidence| TestRunResult::Verified {
                evidence: Box::new(evidence),
            }),
        };
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(ms, ran = found.is_ok(), "test run done");
        Ok(found.unwrap_or_else(|error| TestRunResult::Failed {
            message: error.to_string(),
        }))
    }

    fn changed_files(
        &self,
        id: &WorkspaceId,
        room: &super::room::RunnerWorkspace,
    ) -> Result<Vec<ChangedFile>, RequestRefusal> {
        let taken = self.checkout(id)?.take(&room.workspace())?;
        let file = |file: lula_workspace::checkout::ChangedGitFile| ChangedFile {
            path: file.path,
            before: file.before,
            after: file.after,
        };
        Ok(taken.files.into_iter().map(file).collect())
    }
}
