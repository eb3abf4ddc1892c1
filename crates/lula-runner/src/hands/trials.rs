//! Finding something out in private forks of a workspace: what its tests say, and what mends them.

use std::sync::Arc;
use std::time::Duration;

use lula_protocol::WorkspaceId;
use lula_repair::trial::{self, ChangedFile, Looked, Weighing};
use lula_workspace::Project;

use super::Hands;
use super::refusal::Refusal;
use crate::api::{Trial, TrialResult};
use crate::ground::SandboxedGround;
use crate::halt::Halt;

/// Most commands that a change has to satisfy, and the longest of them.
pub(super) const COMMANDS: usize = 32;
pub(super) const COMMAND: usize = 8 << 10;
/// Most tests that are run before the others.
const FIRST: usize = 2_000;

impl Hands {
    /// Finds something out, and leaves nothing behind. Ends early when `stop` is set.
    pub fn trial(
        &self,
        id: &WorkspaceId,
        asked: &Trial,
        watch: &(dyn Fn(&str) + Sync),
        stop: Arc<Halt>,
    ) -> Result<TrialResult, Refusal> {
        let room = self.room(id)?;
        // Nobody writes while it is copied; what comes after goes on beside the workspace.
        let turn = room.turn()?;
        if let Trial::Weigh { accept, .. } | Trial::Examine { accept, .. } = asked
            && (accept.len() > COMMANDS || accept.iter().any(|line| line.len() > COMMAND))
        {
            let message = format!("at most {COMMANDS} commands of {COMMAND} bytes");
            return Err(Refusal::BadRequest(message));
        }
        let change = match asked {
            Trial::Weigh { first, .. } => {
                if first.len() > FIRST {
                    let message = format!("at most {FIRST} tests can be run first");
                    return Err(Refusal::BadRequest(message));
                }
                self.changed_files(id, &room)?
            }
            Trial::Examine { .. } | Trial::Search { .. } => Vec::new(),
        };
        let project = Project::of(&room.workspace(), room.below())?.in_layers(self.forks());
        drop(turn);
        let policy = self.setup.policy.clone();
        let (Trial::Examine { tests, .. }
        | Trial::Search { tests, .. }
        | Trial::Weigh { tests, .. }) = asked;
        let ground = SandboxedGround::on(self.engine.clone(), project, policy)?
            .for_folder(&tests.folder)
            .stopping(stop);
        let wall = self.setup.policy.limits.wall.millis();
        let within = |ms: u64| Duration::from_millis(ms.min(wall).max(1));
        let found = match asked {
            Trial::Examine {
                tests,
                accept,
                tests_ms,
            } => trial::baseline(&ground, tests, within(*tests_ms))
                .and_then(|mut baseline| {
                    // Where nothing can be run nothing has to be accepted.
                    if !matches!(baseline.looked, Looked::EnvironmentBroken(_)) {
                        let within = within(*tests_ms);
                        baseline.accept = trial::tried_before(&ground, accept, tests, within)?;
                    }
                    Ok(baseline)
                })
                .map(|baseline| TrialResult::Examined {
                    baseline: Box::new(baseline),
                }),
            Trial::Search { tests, search_ms } => {
                trial::search(&ground, tests, within(*search_ms), watch)
                    .map(|found| TrialResult::Searched { found })
            }
            Trial::Weigh {
                tests,
                before,
                first,
                accept,
                tests_ms,
            } => trial::weigh(
                &ground,
                &Weighing {
                    change: &change,
                    before,
                    tests,
                    first,
                    accept,
                    deadline: within(*tests_ms),
                },
            )
            .map(|evidence| TrialResult::Weighed {
                evidence: Box::new(evidence),
            }),
        };
        Ok(found.unwrap_or_else(|error| TrialResult::Failed {
            message: error.to_string(),
        }))
    }

    fn changed_files(
        &self,
        id: &WorkspaceId,
        room: &super::room::Room,
    ) -> Result<Vec<ChangedFile>, Refusal> {
        let taken = self.checkout(id)?.take(&room.workspace())?;
        let file = |file: lula_workspace::checkout::TakenFile| ChangedFile {
            path: file.path,
            before: file.before,
            after: file.after,
        };
        Ok(taken.files.into_iter().map(file).collect())
    }
}
