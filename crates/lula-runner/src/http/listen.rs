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

use crate::client::Address;

/// Shortest key that is taken: 128 bits in hexadecimal digits.
const SHORTEST_KEY: usize = 32;

/// Why nobody can be listened to.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The operating system said no.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// Where.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// A port needs a key.
    #[error(
        "listening on a port needs a key of at least {SHORTEST_KEY} characters: name a file with --key-file, or set LULA_RUNNER_KEY"
    )]
    NoKey,
    /// Somebody listens there.
    #[error("another runner listens on {0}")]
    Taken(String),
}

/// A place where requests arrive.
#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    pub(super) async fn bind(
        address: &Address,
        key: Option<&SecretString>,
    ) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Io {
            address: address.to_string(),
            source,
        };
        match address {
            Address::Unix(path) => {
                remove_stale(path, address).await?;
                // Private from its first moment: nobody can connect before the mode is set.
                let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
                let bound = UnixListener::bind(path);
                rustix::process::umask(before);
                Ok(Self::Unix(bound.map_err(failed)?, path.clone()))
            }
            Address::Tcp(place) => {
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

    /// The next connection from somebody who may connect.
    pub(super) async fn accept(&self) -> io::Result<(Connection, Peer)> {
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
                        return Ok((Connection::Unix(stream), Peer::User(peer.uid())));
                    }
                }
                Self::Tcp(listener) => {
                    let (stream, _) = listener.accept().await?;
                    let _ = stream.set_nodelay(true);
                    return Ok((Connection::Tcp(stream), Peer::Unknown));
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket that nobody listens on any more; refuses to remove anything else.
async fn remove_stale(path: &Path, address: &Address) -> Result<(), ListenError> {
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
pub(super) enum Peer {
    User(u32),
    Unknown,
}

/// Who sends a request, or nobody who may.
pub(super) fn principal(
    peer: Peer,
    headers: &hyper::HeaderMap,
    key: Option<&SecretString>,
) -> Option<Principal> {
    match peer {
        Peer::User(uid) => format!("local:{uid}").parse().ok(),
        Peer::Unknown => {
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
pub(super) enum Connection {
    Unix(UnixStream),
    Tcp(TcpStream),
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Connection::Unix($stream) => $call,
            Connection::Tcp($stream) => $call,
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
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
