//! Hints through LISTEN and NOTIFY.
//!
//! A NOTIFY inside an append would make all commits of the database queue behind one another, so
//! hints go out beside the appends, gathered for a moment. They may be lost; nothing relies on them.

use std::collections::BTreeSet;
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::StreamExt;
use lula_protocol::RunId;
use tokio::sync::{broadcast, mpsc};
use tokio_postgres::{AsyncMessage, Config};

use super::tls::PostgresTls;
use crate::store::StoreHint;

const GATHER: Duration = Duration::from_millis(10);
const RECONNECT: Duration = Duration::from_secs(1);

fn spell(hint: &StoreHint) -> String {
    match hint {
        StoreHint::Run(run) => format!("r:{run}"),
        StoreHint::Signal(run) => format!("s:{run}"),
        StoreHint::Any => "a:".to_owned(),
    }
}

fn read(text: &str) -> StoreHint {
    let run = |text: &str| text.parse::<RunId>().ok();
    match text.split_once(':') {
        Some(("r", id)) => run(id).map_or(StoreHint::Any, StoreHint::Run),
        Some(("s", id)) => run(id).map_or(StoreHint::Any, StoreHint::Signal),
        _ => StoreHint::Any,
    }
}

/// Sends gathered hints until the store is gone.
pub(super) async fn send(
    pool: Pool,
    channel: String,
    mut hints: mpsc::UnboundedReceiver<StoreHint>,
) {
    while let Some(first) = hints.recv().await {
        tokio::time::sleep(GATHER).await;
        let mut texts = BTreeSet::from([spell(&first)]);
        while let Ok(more) = hints.try_recv() {
            texts.insert(spell(&more));
        }
        if texts.len() > 1_000 {
            texts = BTreeSet::from([spell(&StoreHint::Any)]);
        }
        let texts: Vec<String> = texts.into_iter().collect();
        if let Ok(client) = pool.get().await {
            let sql = "SELECT pg_notify($1, text) FROM unnest($2::text[]) AS text";
            let _ = client.query(sql, &[&channel, &texts]).await;
        }
    }
}

/// Passes hints on until no receiver is left.
pub(super) async fn listen(
    config: Config,
    tls: PostgresTls,
    channel: String,
    out: broadcast::WeakSender<StoreHint>,
) {
    loop {
        if let Ok((client, mut connection)) = config.connect(tls.clone()).await {
            let mut messages =
                futures_util::stream::poll_fn(move |context| connection.poll_message(context));
            let subscribe = format!("LISTEN \"{channel}\"");
            let subscribed = client.batch_execute(&subscribe);
            tokio::pin!(subscribed);
            let mut ready = false;
            loop {
                let message = tokio::select! {
                    done = &mut subscribed, if !ready => {
                        ready = true;
                        if done.is_err() { break }
                        // Whatever happened before is not known here.
                        Some(None)
                    }
                    message = messages.next() => match message {
                        Some(Ok(AsyncMessage::Notification(note))) => Some(Some(read(note.payload()))),
                        Some(Ok(_)) => None,
                        Some(Err(_)) | None => break,
                    },
                };
                let Some(out) = out.upgrade() else { return };
                if let Some(hint) = message {
                    drop(out.send(hint.unwrap_or(StoreHint::Any)));
                }
            }
        }
        if out.upgrade().is_none() {
            return;
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_read_as_they_were_spelled() {
        let run = RunId::from_parts(1, [1; 10]);
        for hint in [
            StoreHint::Run(run.clone()),
            StoreHint::Signal(run),
            StoreHint::Any,
        ] {
            assert_eq!(read(&spell(&hint)), hint);
        }
        assert_eq!(read("nonsense"), StoreHint::Any);
    }
}
