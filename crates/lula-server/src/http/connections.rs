//! Connections: accepted within a number, read within times, and given up where the other end does not
//! read what it is sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;

/// How long a client may take for its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// A client that reads nothing for so long is given up: it can come back with what it saw last.
const STALLED: Duration = Duration::from_secs(30);
/// How long answers may go on after the end was asked for.
const DRAIN: Duration = Duration::from_secs(5);
/// Connections beside those of streams.
const BESIDE_STREAMS: usize = 512;

/// Answers connections until the end is asked for, then finishes what was begun, for a while.
pub(crate) async fn answer(
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    most_streams: usize,
    mut end: watch::Receiver<bool>,
) {
    let most = most_streams.saturating_add(BESIDE_STREAMS);
    let places = Arc::new(Semaphore::new(most));
    let until = end.clone();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            break;
        };
        tokio::select! {
            () = asked_for(&mut end) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (router, end, tls) = (router.clone(), until.clone(), tls.clone());
                    tokio::spawn(async move {
                        welcome(stream, router, tls, end).await;
                        drop(place);
                    });
                }
                // Out of descriptors, most likely: those in use come back.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
        }
    }
    drop(listener);
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(DRAIN, places.acquire_many(all)).await;
}

async fn asked_for(end: &mut watch::Receiver<bool>) {
    let _ = end.wait_for(|end| *end).await;
}

/// Opens TLS first, where the server has it.
async fn welcome(
    stream: TcpStream,
    router: Router,
    tls: Option<TlsAcceptor>,
    end: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return converse(stream, router, end).await;
    };
    let opened = tokio::time::timeout(HEADERS_WITHIN, tls.accept(stream)).await;
    if let Ok(Ok(stream)) = opened {
        converse(stream, router, end).await;
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    mut end: watch::Receiver<bool>,
) {
    let io = TokioIo::new(StallGuard::new(stream, STALLED));
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(32 << 10)
        .serve_connection(io, TowerToHyperService::new(router));
    tokio::pin!(conversation);
    tokio::select! {
        // A connection that broke is the client's affair.
        _ = conversation.as_mut() => return,
        () = asked_for(&mut end) => conversation.as_mut().graceful_shutdown(),
    }
    let _ = conversation.await;
}

/// A stream whose writes fail where the other end takes nothing for too long.
struct StallGuard<S> {
    stream: S,
    patience: Duration,
    /// Runs while a write waits.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    const fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            waits: None,
        }
    }

    fn judge<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waits = None;
            return polled;
        }
        let patience = self.patience;
        let waits = self
            .waits
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match waits.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut guard = StallGuard::new(near, Duration::from_secs(30));
        guard.write_all(&[1; 16]).await.unwrap();
        let error = guard.write_all(&[2; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut read = [0; 16];
        far.read_exact(&mut read).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_not() {
        let (near, mut far) = tokio::io::duplex(16);
        let reader = tokio::spawn(async move {
            let mut read = [0; 16];
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                far.read_exact(&mut read).await.unwrap();
            }
        });
        let mut guard = StallGuard::new(near, Duration::from_secs(30));
        guard.write_all(&[1; 128]).await.unwrap();
        reader.await.unwrap();
    }
}
