//! A durable state graph.
//!
//! Runs last minutes to days, wait for people, and die with their machines. This crate drives them:
//! a graph of nodes over a typed state, where the state is a pure fold of events, the next step is
//! a pure function of the state, and nodes act on the world only through journaled effects. Kill
//! the process at any moment; another one claims the run, verifies its log, finds out what the last
//! effect came to, and goes on.
//!
//! It must never do an effect outside twice without evidence or a person's word, never let two
//! owners write one log, and never go on after a body asked for something else than its journal
//! holds. It knows nothing of agents, models or git. It depends on `lula-store` and
//! `lula-protocol`.
//!
//! ```
//! use std::sync::Arc;
//! use lula_graph::{async_trait, labels, *};
//! use lula_protocol::RunExit;
//! use lula_store::{SqliteStore, sqlite::SqliteOptions};
//!
//! labels! { pub enum Node { Draft = "draft", Publish = "publish" } }
//! labels! { pub enum Way { Ok = "ok", Weak = "weak" } }
//!
//! /// Drafts a text until it is long enough, then publishes it once.
//! struct Article;
//!
//! #[async_trait]
//! impl Graph for Article {
//!     type Node = Node;
//!     type Outcome = Way;
//!     type Input = String;
//!     type State = String;
//!     type Event = String;
//!     const NAME: &'static str = "article";
//!     const VERSION: u32 = 1;
//!
//!     fn outcomes(&self, node: Node) -> &'static [Way] {
//!         match node { Node::Draft => &[Way::Ok, Way::Weak], Node::Publish => &[Way::Ok] }
//!     }
//!     fn table(&self) -> TransitionTable<Self> {
//!         TransitionTable::starting_at(Node::Draft)
//!             .on(Node::Draft, Way::Weak, Node::Draft)
//!             .on(Node::Draft, Way::Ok, Node::Publish)
//!             .done(Node::Publish, Way::Ok)
//!     }
//!     fn begin(&self, topic: String) -> String { topic }
//!     fn apply(&self, text: &mut String, more: &String) { text.push_str(more) }
//!     async fn visit(&self, node: Node, text: &String, ctx: &mut NodeContext<'_>) -> NodeVisitFuture<Self> {
//!         match node {
//!             Node::Draft => {
//!                 let more: String = ctx.effect(EffectRequest::model("write", text)).await?;
//!                 let way = if text.len() + more.len() > 20 { Way::Ok } else { Way::Weak };
//!                 Ok(NodeExit::by(way).with(more))
//!             }
//!             Node::Publish => {
//!                 let () = ctx.effect(EffectRequest::external("publish", text)).await?;
//!                 Ok(NodeExit::by(Way::Ok))
//!             }
//!         }
//!     }
//!     fn report(&self, text: &String) -> RunEndReport {
//!         RunEndReport { exit: RunExit::Verified, summary: format!("published {text:?}") }
//!     }
//! }
//!
//! struct Press;
//!
//! #[async_trait]
//! impl EffectWorld for Press {
//!     async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
//!         Ok(match order.name.as_str() {
//!             "write" => EffectOutput::free(" and more".into()),
//!             _ => EffectOutput::default(),
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("runs.db");
//! let store = Arc::new(SqliteStore::open(path, SqliteOptions::default())?);
//! let engine = GraphEngine::new(Article, store, Arc::new(Press), EngineOptions::default())?;
//! let (run, rested) = engine.run(&"Rust".to_owned(), &RunStart::default()).await?;
//! let RestReason::Done(ended) = rested else { panic!("{rested:?}") };
//! assert_eq!(ended.summary, "published \"Rust and more and more\"");
//! assert!(engine.replay(&run).await?.differences.is_empty());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod approval;
pub mod bundle;
mod clock;
mod ctx;
mod desk;
mod drive;
mod effects;
mod engine;
mod error;
mod fork;
mod graph;
mod journal;
pub mod ledger;
mod linger;
mod load;
mod options;
pub mod progress;
mod replay;
mod scribe;
pub mod seal;
pub mod signals;
mod stop;
mod table;
mod together;
mod traced;
mod world;

pub use async_trait::async_trait;
pub use clock::{SystemWallClock, WallClock};
pub use ctx::{ApprovalAnswer, ApprovalAsk, NodeContext, PersonChoice};
pub use drive::RestReason;
pub use ed25519_dalek::SigningKey;
pub use engine::GraphEngine;
pub use error::EngineError;
pub use graph::{Graph, GraphLabel, LoopGuard, NodeExit, NodeVisitFuture, RunEndReport};
pub use journal::OperatorNote;
pub use load::{NextRunStep, RunState};
pub use options::{BudgetPolicy, EngineOptions, RunStart, VisitObserver};
pub use replay::{ReplayDifference, ReplayDrift, ReplayReport};
pub use stop::{EffectError, VisitStop};
pub use table::{TransitionTable, TransitionTableError};
pub use tokio_util::sync::CancellationToken;
pub use world::{
    CrashEvidence, EffectOrder, EffectOutput, EffectRecovery, EffectRequest, EffectTrouble,
    EffectWorld, recovery,
};
