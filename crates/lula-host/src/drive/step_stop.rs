//! Stopping one step of a chat, and keeping what it did: a command is ended, an answer broken off. The log
//! holds a step that did not work, so a replay and another driver see the same.

use std::sync::Arc;

use async_trait::async_trait;
use lula_agents::chat::STOPPED;
use lula_graph::{CrashEvidence, EffectOrder, EffectOutput, EffectTrouble, EffectWorld};
use lula_protocol::{BudgetAmounts, Digest, EffectClass};
use serde_json::Value;
use tokio::sync::watch;

/// Steps that can be stopped, as logs call them. Whatever else a run does is quick, or not to be left
/// half done.
const STOPPABLE: [&str; 10] = [
    "ask",
    "exec",
    "job",
    "read_file",
    "search",
    "outline",
    "run_tests",
    "search_patch",
    "survey",
    "weigh",
];
/// Steps of a model that are not begun any more once its turn is stopped.
const NOT_BEGUN: [&str; 10] = [
    "ask",
    "exec",
    "job",
    "read_file",
    "list_files",
    "search",
    "outline",
    "write_file",
    "apply_patch",
    "git",
];

/// How a step is asked to stop.
#[derive(Debug, Clone)]
pub struct StepStop(Arc<watch::Sender<StopsAsked>>);

#[derive(Debug, Clone, Copy, Default)]
struct StopsAsked {
    /// How often a step was stopped.
    steps: u64,
    /// Whether the turn under way is over.
    turn: bool,
}

impl Default for StepStop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(StopsAsked::default())))
    }
}

impl StepStop {
    /// Stops the step under way, if there is one.
    pub fn stop_step(&self) {
        self.0.send_modify(|asked| asked.steps += 1);
    }

    /// Stops it and the turn it is in: nothing more of it is begun.
    pub fn stop_turn(&self) {
        self.0.send_modify(|asked| {
            asked.steps += 1;
            asked.turn = true;
        });
    }

    /// The next turn is not stopped yet.
    pub fn turn_begins(&self) {
        self.0.send_modify(|asked| asked.turn = false);
    }

    /// Waits until a step is to stop that begins now.
    async fn asked(&self) {
        let mut hears = self.0.subscribe();
        // The sender lives as long as this value.
        let _ = hears.changed().await;
    }

    fn is_turn_over(&self) -> bool {
        self.0.borrow().turn
    }
}

/// A world in which steps can be stopped.
pub(super) struct StoppableWorld {
    world: Arc<dyn EffectWorld>,
    stop: StepStop,
}

impl StoppableWorld {
    pub(super) fn new(world: Arc<dyn EffectWorld>, stop: StepStop) -> Self {
        Self { world, stop }
    }
}

/// A step that did not come to its end. What an answer cost is not known where it is broken off: what
/// was held back for it is taken to be spent.
fn stopped(order: &EffectOrder, begun: bool) -> EffectTrouble {
    let held = order.request.get("at_most").filter(|_| begun);
    let spent = held.cloned().unwrap_or(Value::Null);
    EffectTrouble::Failed {
        message: STOPPED.to_owned(),
        spent: serde_json::from_value::<BudgetAmounts>(spent).unwrap_or_default(),
    }
}

#[async_trait]
impl EffectWorld for StoppableWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        let name = order.name.as_str();
        if self.stop.is_turn_over() && NOT_BEGUN.contains(&name) {
            return Err(stopped(order, false));
        }
        if !STOPPABLE.contains(&name) {
            return self.world.perform(order).await;
        }
        tokio::select! {
            done = self.world.perform(order) => done,
            () = self.stop.asked() => {
                // Nothing of it goes on.
                self.world.abort(order).await;
                Err(stopped(order, order.class == EffectClass::Model))
            }
        }
    }

    async fn probe(&self, order: &EffectOrder) -> CrashEvidence {
        self.world.probe(order).await
    }

    async fn abort(&self, order: &EffectOrder) {
        self.world.abort(order).await;
    }

    async fn restore(&self, order: &EffectOrder, to: Option<Digest>) -> Result<(), EffectTrouble> {
        self.world.restore(order, to).await
    }

    async fn tree(&self, order: &EffectOrder) -> Result<Option<Digest>, EffectTrouble> {
        self.world.tree(order).await
    }
}
