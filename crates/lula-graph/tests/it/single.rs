//! A graph with one node whose body is a closure, for tests about one thing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lula_graph::{
    EffectOrder, EffectOutput, EffectTrouble, EffectWorld, Graph, NodeContext, NodeExit,
    NodeVisitFuture, RunEndReport, TransitionTable, VisitStop, async_trait, labels,
};
use lula_protocol::RunExit;
use serde_json::json;

labels! { pub(crate) enum Only { Work = "work" } }
labels! { pub(crate) enum Out { Done = "done" } }

pub(crate) type Answer<'c> = Pin<Box<dyn Future<Output = Result<String, VisitStop>> + Send + 'c>>;

/// Does one thing and reports what came of it.
pub(crate) struct Single(
    Arc<dyn for<'c, 'd> Fn(&'c mut NodeContext<'d>) -> Answer<'c> + Send + Sync>,
);

impl Single {
    pub(crate) fn new(
        body: impl for<'c, 'd> Fn(&'c mut NodeContext<'d>) -> Answer<'c> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(body))
    }
}

#[async_trait]
impl Graph for Single {
    type Node = Only;
    type Outcome = Out;
    type Input = ();
    type State = String;
    type Event = String;
    const NAME: &'static str = "single";
    const VERSION: u32 = 1;

    fn outcomes(&self, _: Only) -> &'static [Out] {
        &[Out::Done]
    }
    fn table(&self) -> TransitionTable<Self> {
        TransitionTable::starting_at(Only::Work).done(Only::Work, Out::Done)
    }
    fn begin(&self, (): ()) -> String {
        String::new()
    }
    fn apply(&self, state: &mut String, event: &String) {
        state.clone_from(event);
    }
    async fn visit(&self, _: Only, _: &String, ctx: &mut NodeContext<'_>) -> NodeVisitFuture<Self> {
        let answer = (self.0)(ctx).await?;
        Ok(NodeExit::by(Out::Done).with(answer))
    }
    fn report(&self, state: &String) -> RunEndReport {
        RunEndReport {
            exit: RunExit::Verified,
            summary: state.clone(),
        }
    }
}

/// A world that does what it is told and says so.
pub(crate) struct ObligingWorld;

#[async_trait]
impl EffectWorld for ObligingWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        Ok(EffectOutput::free(json!(format!(
            "did {} {}",
            order.name, order.request
        ))))
    }
}
