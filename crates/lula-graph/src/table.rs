//! Transition tables: closed, and checked before a run can start.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::graph::{Graph, GraphLabel};

/// Where a way out leads.
pub(crate) enum ExitTarget<G: Graph> {
    To(G::Node),
    Choose {
        among: &'static [G::Node],
        pick: fn(&G::State) -> G::Node,
    },
    Done,
}

impl<G: Graph> ExitTarget<G> {
    fn targets(&self) -> &[G::Node] {
        match self {
            Self::To(node) => std::slice::from_ref(node),
            Self::Choose { among, .. } => among,
            Self::Done => &[],
        }
    }
}

/// Where each way out of each node leads.
pub struct TransitionTable<G: Graph> {
    start: G::Node,
    rows: BTreeMap<(G::Node, G::Outcome), ExitTarget<G>>,
    doubled: Vec<(G::Node, G::Outcome)>,
}

/// What is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionTableError {
    /// A way out leads nowhere.
    #[error("{node} can end with {outcome}, but the table does not say where that leads")]
    Missing {
        /// The node that has the way out.
        node: &'static str,
        outcome: &'static str,
    },
    /// A row is for something that cannot happen.
    #[error("the table says where {node} goes after {outcome}, but it cannot end that way")]
    Impossible {
        /// The node that the row is for.
        node: &'static str,
        outcome: &'static str,
    },
    /// Two rows for one thing.
    #[error("the table says twice where {node} goes after {outcome}")]
    Doubled {
        /// The node that both rows are for.
        node: &'static str,
        outcome: &'static str,
    },
    /// A node that no way leads to.
    #[error("no way leads to {node}")]
    Unreachable {
        /// The node that cannot be reached.
        node: &'static str,
    },
    /// A node from which no way leads to the end.
    #[error("no way leads from {node} to the end")]
    DeadEnd {
        /// The node without a way to the end.
        node: &'static str,
    },
    /// Two labels with one name.
    #[error("two labels are called {0:?}")]
    SameName(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransitionResult<N> {
    Node(N),
    Done,
}

impl<G: Graph> TransitionTable<G> {
    /// A table that begins at a node.
    pub const fn starting_at(start: G::Node) -> Self {
        Self {
            start,
            rows: BTreeMap::new(),
            doubled: Vec::new(),
        }
    }

    /// After this way out of this node, go there.
    #[must_use]
    pub fn on(self, node: G::Node, outcome: G::Outcome, to: G::Node) -> Self {
        self.row(node, outcome, ExitTarget::To(to))
    }

    /// After this way out of this node, let the state decide among some nodes. A choice that is
    /// not among them goes to the first.
    #[must_use]
    pub fn choose(
        self,
        node: G::Node,
        outcome: G::Outcome,
        among: &'static [G::Node],
        pick: fn(&G::State) -> G::Node,
    ) -> Self {
        self.row(node, outcome, ExitTarget::Choose { among, pick })
    }

    /// After this way out of this node, the run is over.
    #[must_use]
    pub fn done(self, node: G::Node, outcome: G::Outcome) -> Self {
        self.row(node, outcome, ExitTarget::Done)
    }

    /// The whole table as text, a line for each node in the order of their names: where each way out of
    /// it leads, the choices of one way between bars.
    pub fn picture(&self) -> String {
        let mut text = String::new();
        for node in G::Node::ALL {
            let rows = self.rows.iter().filter(|((from, _), _)| from == node);
            let ways: Vec<String> = rows
                .map(|((_, outcome), target)| {
                    let names = match target {
                        ExitTarget::To(to) => to.name().to_owned(),
                        ExitTarget::Choose { among, .. } => {
                            let names: Vec<&str> = among.iter().map(|to| to.name()).collect();
                            names.join(" | ")
                        }
                        ExitTarget::Done => "the end".to_owned(),
                    };
                    format!("{} -> {names}", outcome.name())
                })
                .collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}", node.name(), ways.join(", "));
        }
        text
    }

    fn row(mut self, node: G::Node, outcome: G::Outcome, go: ExitTarget<G>) -> Self {
        if self.rows.insert((node, outcome), go).is_some() {
            self.doubled.push((node, outcome));
        }
        self
    }

    pub(crate) const fn start(&self) -> G::Node {
        self.start
    }

    /// What follows a way out; `None` for one the table does not have.
    pub(crate) fn follow(
        &self,
        node: G::Node,
        outcome: G::Outcome,
        state: &G::State,
    ) -> Option<TransitionResult<G::Node>> {
        match self.rows.get(&(node, outcome))? {
            ExitTarget::To(to) => Some(TransitionResult::Node(*to)),
            ExitTarget::Done => Some(TransitionResult::Done),
            ExitTarget::Choose { among, pick } => {
                let picked = pick(state);
                let to = if among.contains(&picked) {
                    picked
                } else {
                    *among.first()?
                };
                Some(TransitionResult::Node(to))
            }
        }
    }

    /// Checks that every way out of every node leads somewhere, that nothing else is in the table,
    /// and that every node is on a way from the start to the end.
    pub fn check(&self, graph: &G) -> Result<(), TransitionTableError> {
        unique(G::Node::ALL)?;
        unique(G::Outcome::ALL)?;
        if let Some((node, outcome)) = self.doubled.first() {
            return Err(TransitionTableError::Doubled {
                node: node.name(),
                outcome: outcome.name(),
            });
        }
        for node in G::Node::ALL {
            for outcome in graph.outcomes(*node) {
                let row = self.rows.get(&(*node, *outcome));
                let empty = |go: &ExitTarget<G>| matches!(go, ExitTarget::Choose { among: [], .. });
                if row.is_none_or(empty) {
                    return Err(TransitionTableError::Missing {
                        node: node.name(),
                        outcome: outcome.name(),
                    });
                }
            }
        }
        for (node, outcome) in self.rows.keys() {
            if !graph.outcomes(*node).contains(outcome) {
                return Err(TransitionTableError::Impossible {
                    node: node.name(),
                    outcome: outcome.name(),
                });
            }
        }
        self.check_ways()
    }

    fn check_ways(&self) -> Result<(), TransitionTableError> {
        let mut reached = BTreeSet::from([self.start]);
        let mut ending = BTreeSet::new();
        // Each round adds at least one node or stops, so there are at most as many as nodes.
        for _ in G::Node::ALL {
            for ((node, _), go) in &self.rows {
                if reached.contains(node) {
                    reached.extend(go.targets());
                }
                let ends = |to: &G::Node| ending.contains(to);
                if matches!(go, ExitTarget::Done) || go.targets().iter().any(ends) {
                    ending.insert(*node);
                }
            }
        }
        for node in G::Node::ALL {
            let node_name = node.name();
            if !reached.contains(node) {
                return Err(TransitionTableError::Unreachable { node: node_name });
            }
            if !ending.contains(node) {
                return Err(TransitionTableError::DeadEnd { node: node_name });
            }
        }
        Ok(())
    }
}

fn unique<L: GraphLabel>(labels: &[L]) -> Result<(), TransitionTableError> {
    let mut seen = BTreeSet::new();
    for label in labels {
        if !seen.insert(label.name()) {
            return Err(TransitionTableError::SameName(label.name()));
        }
    }
    Ok(())
}
