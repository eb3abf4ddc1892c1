//! For which run and effect a request is sent. The runner puts both into its diagnostic log, and decides
//! nothing by them: the ids that count are those in the request itself.

use std::future::Future;

use hyper::HeaderMap;
use hyper::http::request::Builder;
use lula_protocol::{EffectId, RunId};

const RUN: &str = "lula-run";
const EFFECT: &str = "lula-effect";

tokio::task_local! {
    static CURRENT: RequestCorrelation;
}

/// The run and the effect that a request belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestCorrelation {
    pub run: RunId,
    /// The effect of that run.
    pub effect: EffectId,
}

/// Sends every request of `work` on behalf of an effect.
pub async fn on_behalf_of<T>(run: &RunId, effect: &EffectId, work: impl Future<Output = T>) -> T {
    let current = RequestCorrelation {
        run: run.clone(),
        effect: effect.clone(),
    };
    CURRENT.scope(current, work).await
}

pub(super) fn headers(request: Builder) -> Builder {
    let named = |current: &RequestCorrelation| {
        (
            current.run.as_str().to_owned(),
            current.effect.as_str().to_owned(),
        )
    };
    match CURRENT.try_with(named) {
        Ok((run, effect)) => request.header(RUN, run).header(EFFECT, effect),
        Err(_) => request,
    }
}

impl RequestCorrelation {
    /// What a request says, where it says it in the form of ids.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name| headers.get(name)?.to_str().ok();
        Some(Self {
            run: text(RUN)?.parse().ok()?,
            effect: text(EFFECT)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_names_the_effect_it_is_sent_for() {
        let (run, effect) = (
            RunId::from_parts(1, [2; 10]),
            EffectId::from_parts(3, [4; 10]),
        );
        let sent = || headers(hyper::Request::builder()).body(()).unwrap();
        let named = on_behalf_of(&run, &effect, async { sent() }).await;
        let expected = RequestCorrelation { run, effect };
        assert_eq!(RequestCorrelation::of(named.headers()), Some(expected));
        assert_eq!(RequestCorrelation::of(sent().headers()), None);
        let forged = hyper::Request::builder()
            .header(RUN, "x")
            .header(EFFECT, "y");
        assert_eq!(
            RequestCorrelation::of(forged.body(()).unwrap().headers()),
            None
        );
    }
}
