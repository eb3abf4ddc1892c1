//! Tells the runner for which run and effect it is asked, so that its log names them too.

use std::sync::Arc;

use async_trait::async_trait;
use lula_graph::{CrashEvidence, EffectOrder, EffectOutput, EffectTrouble, EffectWorld};
use lula_protocol::Digest;
use lula_runner_api::client::on_behalf_of;

/// A world whose runner knows the effect it works for.
pub(crate) struct TracedWorld(pub(crate) Arc<dyn EffectWorld>);

#[async_trait]
impl EffectWorld for TracedWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        on_behalf_of(&order.run, &order.effect, self.0.perform(order)).await
    }

    async fn probe(&self, order: &EffectOrder) -> CrashEvidence {
        on_behalf_of(&order.run, &order.effect, self.0.probe(order)).await
    }

    async fn tree(&self, order: &EffectOrder) -> Result<Option<Digest>, EffectTrouble> {
        on_behalf_of(&order.run, &order.effect, self.0.tree(order)).await
    }

    async fn restore(
        &self,
        order: &EffectOrder,
        tree: Option<Digest>,
    ) -> Result<(), EffectTrouble> {
        on_behalf_of(&order.run, &order.effect, self.0.restore(order, tree)).await
    }

    async fn abort(&self, order: &EffectOrder) {
        on_behalf_of(&order.run, &order.effect, self.0.abort(order)).await;
    }
}
