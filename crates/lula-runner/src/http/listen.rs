//! Where requests come from, and who may send them.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::header::AUTHORIZATION;
use lula_protocol::Principal;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use lula_runner_api::client::RunnerAddress;

/// Shortest key that is taken: 128 bits in hexadecimal digits.
const SHORTEST_KEY: usize = 32;

/// Why the runner cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The operating system said no.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// The socket or port to listen on.
        address: String,
        source: io::Error,
    },
    /// A port needs a key.
    #[error(
        "listening on a port needs a key of at least {SHORTEST_KEY} characters: name a file with --key-file, or set LULA_RUNNER_KEY"
    )]
    NoKey,
    /// Another process listens there.
    #[error("another runner listens on {0}")]
    Taken(String),
}

/// A place where requests arrive.
#[derive(Debug)]
pub(super) enum RunnerListener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl RunnerListener {
    pub(super) async fn bind(
        address: &RunnerAddress,
        key: Option<&SecretString>,
    ) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Io {
            address: address.to_string(),
            source,
        };
        match address {
            RunnerAddress::Unix(path) => {
                remove_stale(path, address).await?;
                // Private from its first moment: no other user can connect before the mode is set.
                let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
                let bound = UnixListener::bind(path);
                rustix::process::umask(before);
                Ok(Self::Unix(bound.map_err(failed)?, path.clone()))
            }
            RunnerAddress::Tcp(place) => {
                if key.is_none_or(|key| key.expose_secret().len() < SHORTEST_KEY) {
                    return Err(ListenError::NoKey);
                }
                Ok(Self::Tcp(TcpListener::bind(place).await.map_err(failed)?))
            }
        }
    }

    /// Where it really listens; a port that was left to the system has a number then.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Unix(_, path) => format!("unix:{}", path.display()),
            Self::Tcp(listener) => listener
                .local_addr()
                .map_or_else(|_| "?".to_owned(), |place| place.to_string()),
        }
    }

    /// The next connection from a peer that may connect.
    pub(super) async fn accept(&self) -> io::Result<(RunnerConnection, ConnectionPeer)> {
        loop {
            match self {
                Self::Unix(listener, _) => {
                    let (stream, _) = listener.accept().await?;
                    // The mode keeps others out; this holds where a file system ignores modes.
                    let Ok(peer) = stream.peer_cred() else {
                        continue;
                    };
                    let own = rustix::process::geteuid().as_raw();
                    if peer.uid() == own || peer.uid() == 0 {
                        return Ok((
                            RunnerConnection::Unix(stream),
                            ConnectionPeer::User(peer.uid()),
                        ));
                    }
                }
                Self::Tcp(listener) => {
                    let (stream, _) = listener.accept().await?;
                    let _ = stream.set_nodelay(true);
                    return Ok((RunnerConnection::Tcp(stream), ConnectionPeer::Unknown));
                }
            }
        }
    }
}

impl Drop for RunnerListener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket that no process listens on any more; refuses to remove anything else.
async fn remove_stale(path: &Path, address: &RunnerAddress) -> Result<(), ListenError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(ListenError::Io {
            address: address.to_string(),
            source: io::ErrorKind::AlreadyExists.into(),
        });
    }
    if UnixStream::connect(path).await.is_ok() {
        return Err(ListenError::Taken(address.to_string()));
    }
    std::fs::remove_file(path).map_err(|source| ListenError::Io {
        address: address.to_string(),
        source,
    })
}

/// Who is at the other end, as far as the kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPeer {
    User(u32),
    Unknown,
}

/// Who sends a request; `None` where they may not.
pub(super) fn principal(
    peer: ConnectionPeer,
    headers: &hyper::HeaderMap,
    key: Option<&SecretString>,
) -> Option<Principal> {
    match peer {
        ConnectionPeer::User(uid) => format!("local:{uid}").parse().ok(),
        ConnectionPeer::Unknown => {
            let given = headers.get(AUTHORIZATION)?.to_str().ok()?;
            let given = given.strip_prefix("Bearer ")?;
            let key = key?.expose_secret();
            // Digests have one length, so that the comparison tells nothing about the key's.
            let of = |text: &str| *lula_protocol::Digest::of_bytes(text.as_bytes()).as_bytes();
            let same = of(given).ct_eq(&of(key));
            bool::from(same)
                .then(|| "key:runner".parse().ok())
                .flatten()
        }
    }
}

/// One connection of either kind.
#[derive(Debug)]
pub(super) enum RunnerConnection {
    Unix(UnixStream),
    Tcp(TcpStream),
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            RunnerConnection::Unix($stream) => $call,
            RunnerConnection::Tcp($stream) => $call,
        }
    };
}

impl AsyncRead for RunnerConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for RunnerConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}
