//! A run as it is watched: one line that moves (node, tool, tests, spend, time), the plan below it where
//! several agents share one, and lines that stay.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lula_agents::plan::PlanGraph;
use lula_host::story::facts::{TestTally, spend};
use lula_host::story::{LiveRelevance, StoryEvent, StoryEventKind, StoryTeller};
use lula_protocol::BudgetAmounts;

use super::board::board;
use crate::term::{BAD, DIM, GOOD, LiveProgress, STRONG, WARN, paint, plain};

/// Widest name of a node.
const NODE: usize = 15;

/// What is shown of a run under way.
pub(crate) struct LiveRunView {
    live: LiveProgress,
    scene: Mutex<Scene>,
}

#[derive(Debug, Default, Clone)]
struct Scene {
    node: String,
    doing: String,
    tests: Option<TestTally>,
    spent: BudgetAmounts,
    /// The plan that agents share, and what each of them does.
    plan: Option<PlanGraph>,
    agents: BTreeMap<String, String>,
    /// Events before this one were told.
    from: u64,
    /// How many visits were begun here, and of how many the log told the end.
    begun: usize,
    ended: usize,
    /// What is done in a visit that began before the end of the one before was told.
    early: Vec<String>,
}

impl LiveRunView {
    /// Of a run whose log has so many events that need not be told again.
    pub(crate) fn new(live: LiveProgress, from: u64) -> Self {
        let scene = Scene {
            from,
            ..Scene::default()
        };
        Self {
            live,
            scene: Mutex::new(scene),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Scene)) {
        let mut scene = self.scene.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut scene);
        self.live.show(&status(&scene));
        if let Some(plan) = &scene.plan {
            self.live
                .show_below(&board(plan, &scene.agents, self.live.room()));
        }
    }

    /// Shows the node that the run is in now.
    pub(crate) fn visiting(&self, node: &str) {
        self.change(|scene| {
            node.clone_into(&mut scene.node);
            scene.doing.clear();
            scene.begun += 1;
        });
    }

    /// Something that takes a while is done.
    pub(crate) fn doing(&self, what: &str) {
        let what = plain(what, 160);
        let line = paint(DIM, format!("  {what}"));
        let mut now = true;
        self.change(|scene| {
            now = scene.begun <= scene.ended + 1;
            if !now {
                scene.early.push(line.clone());
            }
            scene.doing = what;
        });
        if now {
            self.live.mention(&line);
        }
    }

    /// The same of an agent that works on a task.
    pub(crate) fn agent_doing(&self, task: &str, what: &str) {
        let what = plain(what, 160);
        self.change(|scene| {
            if scene.plan.is_none() {
                scene.doing = format!("{task}: {what}");
            }
            scene.agents.insert(task.to_owned(), what.clone());
        });
        self.live.mention(&paint(DIM, format!("  {task}: {what}")));
    }

    /// Something a person who watches should know.
    pub(crate) fn warn(&self, text: &str) {
        self.live.tell(&paint(WARN, plain(text, 400)));
    }

    /// Something is in the log. What was told before is not told again.
    pub(crate) fn happened(&self, moment: &StoryEvent, teller: &StoryTeller) {
        let mut new = true;
        self.change(|scene| {
            scene.tests = teller.tests;
            scene.spent = teller.spent.clone();
            scene.plan.clone_from(&teller.plan);
            new = moment.seq >= scene.from;
            scene.from = scene.from.max(moment.seq + 1);
        });
        // What the plan below shows need not be told beside it.
        let on_board = self.live.is_drawn() && moment.relevance == LiveRelevance::ShownInPlan;
        if let Some(line) = line(moment).filter(|_| new && !on_board) {
            self.live.tell(&line);
        }
        if new && moment.event == "node_left" {
            self.node_ended();
        }
    }

    /// What was done since then is told after it, in the order in which it happened.
    fn node_ended(&self) {
        let mut early = Vec::new();
        self.change(|scene| {
            scene.ended += 1;
            if scene.begun <= scene.ended + 1 {
                early = std::mem::take(&mut scene.early);
            }
        });
        for line in early {
            self.live.mention(&line);
        }
    }
}

/// The line that moves.
fn status(scene: &Scene) -> String {
    let mut parts = vec![paint(STRONG, &scene.node)];
    if !scene.doing.is_empty() {
        parts.push(scene.doing.clone());
    }
    if let Some(tests) = scene.tests {
        let style = if tests.failing > 0 { WARN } else { GOOD };
        parts.push(format!("tests {}", paint(style, tests)));
    }
    parts.extend(spend(&scene.spent));
    parts.join(&paint(DIM, " · "))
}

/// A line that stays: the end of a node, what people said, what went wrong.
fn line(moment: &StoryEvent) -> Option<String> {
    let (mark, style) = match (moment.kind, moment.good) {
        (StoryEventKind::Step | StoryEventKind::Person, Some(false)) => ("✗", BAD),
        (StoryEventKind::Step, _) => ("•", GOOD),
        (StoryEventKind::Person, _) => ("»", STRONG),
        (StoryEventKind::Trouble, _) => ("!", WARN),
        // The end is told by the command itself.
        (StoryEventKind::Aside | StoryEventKind::Act | StoryEventKind::End, _) => return None,
    };
    if moment.relevance == LiveRelevance::Known {
        return None;
    }
    let name = format!("{:<NODE$}", moment.name);
    Some(format!(
        "{} {} {}",
        paint(style, mark),
        paint(STRONG, name),
        moment.text
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lula_protocol::BudgetDimension;

    fn shown(scene: &Scene) -> String {
        anstream::adapter::strip_str(&status(scene)).to_string()
    }

    #[test]
    fn the_moving_line_says_node_tool_tests_and_spend() {
        let mut scene = Scene {
            node: "coder".to_owned(),
            doing: "runs pytest -q".to_owned(),
            ..Scene::default()
        };
        assert_eq!(shown(&scene), "coder · runs pytest -q");
        scene.tests = Some(TestTally {
            passing: 10,
            failing: 2,
            flaky: 0,
        });
        scene.spent = BudgetAmounts::none()
            .with(BudgetDimension::ModelCalls, 4)
            .with(BudgetDimension::MicroUsd, 12_000);
        assert_eq!(
            shown(&scene),
            "coder · runs pytest -q · tests 10 pass, 2 fail · 4 calls $0.0120"
        );
    }
}
