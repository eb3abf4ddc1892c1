//! The way out to a name: its judged addresses one after the other, or a proxy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::resolve::ResolveFailure;
use super::{Engine, inward};
use crate::DomainName;
use crate::outside::ProxyAddress;

/// Time for one address while others are left.
const IMPATIENCE: Duration = Duration::from_secs(3);
/// Time for the last one, and for a proxy.
const PATIENCE: Duration = Duration::from_secs(15);
/// Most bytes of a proxy's answer.
const LONGEST_ANSWER: usize = 8 * 1024;
/// Most addresses of one name that are tried.
const MOST_ADDRESSES: usize = 6;

/// A connection to a server.
pub(crate) struct Dialled {
    pub(crate) stream: TcpStream,
    /// Where it leads; unknown behind a proxy.
    pub(crate) address: Option<IpAddr>,
}

/// Why a server was not reached.
pub(crate) enum DialFailure {
    Resolve(ResolveFailure),
    Connect(String),
}

impl Engine {
    /// A connection to the name, resolved and judged now; through the proxy that is set for it.
    pub(crate) async fn dial(
        &self,
        name: &DomainName,
        port: u16,
        private: bool,
    ) -> Result<Dialled, DialFailure> {
        if !name.is_of_sandbox()
            && let Some(proxy) = self.outside().proxy.for_connection(name)
        {
            self.is_not_refused(name, private).await?;
            let stream = through(&proxy, name, port).await.map_err(|why| {
                DialFailure::Connect(format!(
                    "the proxy {} did not connect to {name}:{port}: {why}",
                    proxy.shown()
                ))
            })?;
            return Ok(Dialled {
                stream,
                address: None,
            });
        }
        self.dial_directly(name, port, private).await
    }

    /// A connection to one of the addresses of a name, resolved and judged now.
    pub(crate) async fn dial_directly(
        &self,
        name: &DomainName,
        port: u16,
        private: bool,
    ) -> Result<Dialled, DialFailure> {
        if name.is_of_sandbox() {
            return self.dial_neighbour(name, port).await;
        }
        let addresses = self
            .resolve(name, private)
            .await
            .map_err(DialFailure::Resolve)?;
        let mut why = String::new();
        let last = addresses.len().min(MOST_ADDRESSES) - 1;
        for (at, address) in addresses.into_iter().take(MOST_ADDRESSES).enumerate() {
            let patience = if at == last { PATIENCE } else { IMPATIENCE };
            match timeout(patience, TcpStream::connect(SocketAddr::new(address, port))).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(Dialled {
                        stream,
                        address: Some(address),
                    });
                }
                Ok(Err(error)) => why = format!("{address}: {error}"),
                Err(_) => why = format!("{address}: it did not answer in time"),
            }
        }
        Err(DialFailure::Connect(format!(
            "{name}:{port} could not be reached, {why}"
        )))
    }

    /// A connection to the server of another sandbox.
    async fn dial_neighbour(&self, name: &DomainName, port: u16) -> Result<Dialled, DialFailure> {
        let network = self
            .neighbour(name, port)
            .ok_or(DialFailure::Resolve(ResolveFailure::NoAddress))?;
        let (stream, address) = inward::reach(&network, port).await.map_err(|error| {
            DialFailure::Connect(format!(
                "no server of that sandbox answers at {name}:{port}: {error}"
            ))
        })?;
        Ok(Dialled {
            stream,
            address: Some(address),
        })
    }

    /// A connection to the proxy that is to be asked for plain HTTP of a name, if there is one.
    pub(crate) async fn dial_http_proxy(
        &self,
        name: &DomainName,
        private: bool,
    ) -> Result<Option<(Dialled, ProxyAddress)>, DialFailure> {
        let proxy = self.outside().proxy.for_http(name);
        let Some(proxy) = proxy.filter(|_| !name.is_of_sandbox()) else {
            return Ok(None);
        };
        self.is_not_refused(name, private).await?;
        let stream = reach(&proxy).await.map_err(|why| {
            DialFailure::Connect(format!(
                "the proxy {} was not reached: {why}",
                proxy.shown()
            ))
        })?;
        let dialled = Dialled {
            stream,
            address: None,
        };
        Ok(Some((dialled, proxy)))
    }

    /// What is known here of a name that a proxy resolves must not speak against it. A name that is known
    /// only there passes.
    async fn is_not_refused(&self, name: &DomainName, private: bool) -> Result<(), DialFailure> {
        match self.resolve(name, private).await {
            Err(refused @ ResolveFailure::Refused(_)) => Err(DialFailure::Resolve(refused)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

async fn reach(proxy: &ProxyAddress) -> io::Result<TcpStream> {
    let stream = timeout(PATIENCE, TcpStream::connect((proxy.host(), proxy.port()))).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A tunnel through a proxy, by `CONNECT`.
async fn through(proxy: &ProxyAddress, name: &DomainName, port: u16) -> io::Result<TcpStream> {
    let mut stream = reach(proxy).await?;
    let mut request = format!("CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n");
    if let Some(authorization) = proxy.authorization() {
        request.push_str("Proxy-Authorization: ");
        request.push_str(&authorization);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    let tunnel = async {
        stream.write_all(request.as_bytes()).await?;
        // Byte by byte: what follows the head belongs to the server.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= LONGEST_ANSWER {
                return Err(io::Error::other("its answer is too long"));
            }
            answer.push(stream.read_u8().await?);
        }
        let line = answer
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let mut words = line.split(' ');
        let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
        if is_http
            && words
                .next()
                .is_some_and(|status| status.len() == 3 && status.starts_with('2'))
        {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "it answered {:?}",
            line.chars().take(80).collect::<String>()
        )))
    };
    timeout(PATIENCE, tunnel).await??;
    Ok(stream)
}
