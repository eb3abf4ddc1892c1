//! `WebSocket`s: once both sides agreed, bytes pass as they are, without the secrets they show.

use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::redact::{Forbidden, Redaction};

/// How long the end of a message that could begin a secret is held back: a conversation has no end to
/// wait for.
const HOLD: Duration = Duration::from_millis(200);

/// Relays between two sides that are about to be upgraded.
pub(super) async fn relay(sandbox: OnUpgrade, server: OnUpgrade, forbidden: Forbidden) {
    let Ok((sandbox, server)) = tokio::try_join!(sandbox, server) else {
        return;
    };
    let (mut up, mut to_sandbox) = tokio::io::split(TokioIo::<Upgraded>::new(sandbox));
    let (mut down, mut to_server) = tokio::io::split(TokioIo::<Upgraded>::new(server));
    let upwards = async {
        let _ = tokio::io::copy(&mut up, &mut to_server).await;
        let _ = to_server.shutdown().await;
    };
    let downwards = async {
        let _ = redacted(&mut down, &mut to_sandbox, forbidden).await;
        let _ = to_sandbox.shutdown().await;
    };
    tokio::join!(upwards, downwards);
}

async fn redacted(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    forbidden: Forbidden,
) -> std::io::Result<()> {
    if forbidden.is_empty() {
        tokio::io::copy(from, to).await?;
        return Ok(());
    }
    let mut redaction = Redaction::new(forbidden);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let passed = match timeout(HOLD, from.read(&mut buffer)).await {
            Err(_) => redaction.finish(),
            Ok(Ok(0)) => {
                to.write_all(&redaction.finish()).await?;
                return Ok(());
            }
            Ok(read) => redaction.push(&buffer[..read?]),
        };
        if !passed.is_empty() {
            to.write_all(&passed).await?;
            to.flush().await?;
        }
    }
}
