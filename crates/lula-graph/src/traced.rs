//! Effects in the diagnostic log: which run, which effect, of which class, how long it took and what kind
//! of end it had. Requests and answers are not logged.

use std::time::Instant;

use tracing::Instrument;

use crate::world::{EffectOrder, EffectOutput, EffectTrouble, EffectWorld};

/// Most characters of a reason that are logged.
const REASON: usize = 300;

/// Has an effect done, in a span that every line about it stands in.
pub(crate) async fn perform(
    world: &dyn EffectWorld,
    order: &EffectOrder,
) -> Result<EffectOutput, EffectTrouble> {
    // Of the highest level: a line of any level names its effect.
    let span = tracing::error_span!(
        "effect",
        id = %order.effect,
        name = %order.name,
        class = ?order.class,
        attempt = order.attempt,
    );
    let work = async {
        tracing::debug!("effect begins");
        let begun = Instant::now();
        let done = world.perform(order).await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &done {
            Ok(_) => tracing::debug!(ms, "effect done"),
            Err(EffectTrouble::Failed { message, .. }) => {
                tracing::info!(ms, reason = %short(message), "effect failed");
            }
            Err(EffectTrouble::Held { reason, .. }) => {
                tracing::info!(ms, reason = %short(reason), "effect held for approval");
            }
            Err(EffectTrouble::Unreachable(message)) => {
                tracing::warn!(ms, reason = %short(message), "effect not possible now");
            }
            Err(EffectTrouble::Lost(message)) => {
                tracing::warn!(ms, reason = %short(message), "effect lost: its end is not known");
            }
        }
        done
    };
    work.instrument(span).await
}

fn short(text: &str) -> String {
    text.chars().take(REASON).collect()
}
