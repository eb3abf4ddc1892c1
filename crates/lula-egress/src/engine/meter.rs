//! Bytes counted as they pass, and stopped where a limit is reached.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What went through an engine, and what may.
#[derive(Debug)]
pub(crate) struct Traffic {
    up: AtomicU64,
    down: AtomicU64,
    most_up: u64,
    most_down: u64,
}

impl Traffic {
    pub(crate) fn new(most_up: u64, most_down: u64) -> Self {
        Self {
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            most_up,
            most_down,
        }
    }
}

/// The bytes of one connection.
#[derive(Debug)]
pub(crate) struct Meter {
    traffic: Arc<Traffic>,
    up: AtomicU64,
    down: AtomicU64,
    limit_reached: std::sync::atomic::AtomicBool,
}

/// A direction, seen from the sandbox.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Meter {
    pub(crate) fn new(traffic: &Arc<Traffic>) -> Self {
        Self {
            traffic: Arc::clone(traffic),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            limit_reached: std::sync::atomic::AtomicBool::new(false),
        }
    }

    pub(crate) fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    pub(crate) fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Whether a limit of bytes ended the connection.
    pub(crate) fn limit_reached(&self) -> bool {
        self.limit_reached.load(Ordering::Relaxed)
    }

    /// Counts bytes that were read and are about to be passed on; an error if they may not be.
    pub(crate) fn add(&self, direction: Direction, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        let (own, all, most) = match direction {
            Direction::Up => (&self.up, &self.traffic.up, self.traffic.most_up),
            Direction::Down => (&self.down, &self.traffic.down, self.traffic.most_down),
        };
        if all
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes)
            > most
        {
            self.limit_reached.store(true, Ordering::Relaxed);
            return Err(io::Error::other("the limit of bytes is reached"));
        }
        own.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// A stream of the sandbox whose bytes are counted, and that may begin with bytes that were read already.
pub(crate) struct Metered<S> {
    inner: S,
    meter: Arc<Meter>,
    first: Vec<u8>,
}

impl<S> Metered<S> {
    /// Bytes read before, `first`, are counted too.
    pub(crate) fn new(inner: S, meter: Arc<Meter>, first: Vec<u8>) -> io::Result<Self> {
        meter.add(Direction::Up, first.len())?;
        Ok(Self {
            inner,
            meter,
            first,
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let count = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first[..count]);
            self.first.drain(..count);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        Poll::Ready(
            self.meter
                .add(Direction::Up, buffer.filled().len() - before),
        )
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))?;
        Poll::Ready(self.meter.add(Direction::Down, written).map(|()| written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, pieces))?;
        Poll::Ready(self.meter.add(Direction::Down, written).map(|()| written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
