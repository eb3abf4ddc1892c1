//! A visit, and what it was told: committed without it where it takes its time.
//!
//! What the world answered is committed with the next thing that needs a commit anyway, so that a
//! body that goes straight on to its next effect waits for the disk once instead of twice. A body
//! that does something else first must not keep the answer to itself: when it has waited for
//! [`Options::linger`](crate::Options::linger), it is committed alone. Until then nothing outside is
//! shown anything that follows from it.
//!
//! This works beside the body wherever the body waits. One that computes without waiting holds its
//! thread, and its answer until it waits or leaves.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

use crate::scribe::RunLogWriter;
use crate::stop::VisitStop;

/// A body under way.
type Body<'a, T> = Pin<Box<dyn Future<Output = Result<T, VisitStop>> + Send + 'a>>;

/// Why the body is looked up from.
enum BodyWakeup<T> {
    Left(Result<T, VisitStop>),
    Overdue,
    Panicked(Box<dyn std::any::Any + Send>),
}

/// Runs a body to its end and commits answers that have waited long enough meanwhile.
pub(crate) async fn attend<T>(
    mut body: Body<'_, T>,
    scribe: &RunLogWriter,
) -> Result<T, VisitStop> {
    let mut alarm = None;
    loop {
        match poll_fn(|cx| look(cx, &mut body, &mut alarm, scribe)).await {
            BodyWakeup::Left(left) => return left,
            BodyWakeup::Overdue => scribe.flush().await?,
            BodyWakeup::Panicked(panic) => {
                // The body is at fault, not what it was told. A store that fails now has the same
                // outcome as a crash.
                let _ = scribe.flush().await;
                resume_unwind(panic);
            }
        }
    }
}

fn look<T>(
    cx: &mut Context<'_>,
    body: &mut Body<'_, T>,
    alarm: &mut Option<(Instant, Pin<Box<Sleep>>)>,
    scribe: &RunLogWriter,
) -> Poll<BodyWakeup<T>> {
    match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx))) {
        Ok(Poll::Pending) => {}
        Ok(Poll::Ready(left)) => return Poll::Ready(BodyWakeup::Left(left)),
        Err(panic) => return Poll::Ready(BodyWakeup::Panicked(panic)),
    }
    let Some(due) = scribe.sheet().due else {
        *alarm = None;
        return Poll::Pending;
    };
    let set = match alarm {
        Some((at, set)) if *at == due => set,
        _ => &mut alarm.insert((due, Box::pin(sleep_until(due.into())))).1,
    };
    set.as_mut().poll(cx).map(|()| BodyWakeup::Overdue)
}
