//! What a graph is: nodes, ways out of them, a pure state, and bodies that may act.

use async_trait::async_trait;
use lula_protocol::RunExit;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ctx::NodeContext;
use crate::stop::VisitStop;
use crate::table::TransitionTable;

/// A closed set of names: the nodes of a graph, or the ways out of them. [`labels!`](crate::labels)
/// writes one.
pub trait GraphLabel: Copy + Eq + Ord + std::fmt::Debug + Send + Sync + 'static {
    /// Every label of the set.
    const ALL: &'static [Self];

    /// The name in the log. Part of the format: never renamed.
    fn name(self) -> &'static str;

    /// The label of a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|label| label.name() == name)
    }
}

/// Writes an enum and its [`GraphLabel`].
///
/// ```
/// lula_graph::labels! {
///     /// The rooms of a house.
///     pub enum Room { Kitchen = "kitchen", Cellar = "cellar" }
/// }
/// use lula_graph::GraphLabel;
/// assert_eq!(Room::from_name("cellar"), Some(Room::Cellar));
/// ```
#[macro_export]
macro_rules! labels {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $label:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name { $($(#[$doc])* $label),* }

        impl $crate::GraphLabel for $name {
            const ALL: &'static [Self] = &[$(Self::$label),*];
            fn name(self) -> &'static str {
                match self { $(Self::$label => $text),* }
            }
        }
    };
}

/// How a visit to a node ended: the way out, and what changed.
#[derive(Debug, Clone)]
pub struct NodeExit<O, E> {
    pub(crate) outcome: O,
    pub(crate) events: Vec<E>,
}

impl<O, E> NodeExit<O, E> {
    /// Leaves with nothing changed.
    pub const fn by(outcome: O) -> Self {
        Self {
            outcome,
            events: Vec::new(),
        }
    }

    /// Leaves with one more thing changed.
    #[must_use]
    pub fn with(mut self, event: E) -> Self {
        self.events.push(event);
        self
    }
}

/// What a visit comes to.
pub type NodeVisitFuture<G> =
    Result<NodeExit<<G as Graph>::Outcome, <G as Graph>::Event>, VisitStop>;

/// What is said when a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEndReport {
    pub exit: RunExit,
    /// The result in one sentence, for people.
    pub summary: String,
}

/// When a run is taken to be stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopGuard {
    /// So many visits to a node that ask the same, see the same and say the same are a strike.
    pub repeats: u32,
    /// So many strikes end the run.
    pub strikes: u32,
}

impl Default for LoopGuard {
    fn default() -> Self {
        Self {
            repeats: 3,
            strikes: 2,
        }
    }
}

/// A graph.
///
/// `begin`, `apply`, `report` and the choices of the table are pure: no clock, no randomness, no
/// environment, no I/O. `visit` may act, but only through its [`NodeContext`], and given the same state
/// and the same answers it must ask for the same things in the same order: after a crash it is
/// started again, and what it already did is answered from the journal.
#[async_trait]
pub trait Graph: Send + Sync + 'static {
    type Node: GraphLabel;
    /// The ways out of nodes.
    type Outcome: GraphLabel;
    /// What a run starts with.
    type Input: Serialize + DeserializeOwned + Send + Sync;
    /// What the events add up to.
    type State: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What changes the state.
    type Event: Serialize + DeserializeOwned + Send + Sync;

    /// Name of the graph. Part of the format.
    const NAME: &'static str;
    /// Raised when a change makes the graph decide otherwise on an old log.
    const VERSION: u32;

    /// The ways out of a node.
    fn outcomes(&self, node: Self::Node) -> &'static [Self::Outcome];

    /// Where each way out leads.
    fn table(&self) -> TransitionTable<Self>
    where
        Self: Sized;

    /// The state a run starts with.
    fn begin(&self, input: Self::Input) -> Self::State;

    /// Changes the state by one event.
    fn apply(&self, state: &mut Self::State, event: &Self::Event);

    /// The body of a node. Long computation belongs on a thread of its own: a body that keeps its
    /// thread also keeps what it was told from being committed
    /// ([`EngineOptions::linger`](crate::EngineOptions::linger)).
    async fn visit(
        &self,
        node: Self::Node,
        state: &Self::State,
        ctx: &mut NodeContext<'_>,
    ) -> NodeVisitFuture<Self>
    where
        Self: Sized;

    /// What is said when the graph has come to its end.
    fn report(&self, state: &Self::State) -> RunEndReport;

    /// The event that `fork --set key=value` stands for.
    fn set(&self, _state: &Self::State, key: &str, _value: &str) -> Result<Self::Event, String> {
        Err(format!("{} has nothing called {key:?} to set", Self::NAME))
    }

    /// When a run is taken to be stuck; `None` switches the guard off.
    fn loop_guard(&self) -> Option<LoopGuard> {
        Some(LoopGuard::default())
    }

    /// Versions of the graph whose logs this program can follow: `apply` gives the same state.
    fn supports(&self, version: u32) -> bool {
        version == Self::VERSION
    }

    /// Whether the body of a node still asks for the same things in the same order as it did in that
    /// version. Where it does not, a visit that is open cannot be gone on with, and one that a replay
    /// derives otherwise is taken as it was recorded.
    fn rederives(&self, _node: Self::Node, version: u32) -> bool {
        version == Self::VERSION
    }
}
