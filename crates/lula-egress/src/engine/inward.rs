//! Connections into the sandbox: to a port of a server inside that was published.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::Engine;
use super::connection::{Ended, broken, idle};
use super::meter::Meter;
use super::relay::relay;
use crate::record::{ConnectionSide, EgressRefusal, EgressStage, Relay};
use crate::{ConnectionRecord, PublishedPort, SandboxNetwork};

/// Where servers inside listen, in the order in which they are tried.
const INSIDE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
/// How long a server inside may take to be connected to.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after an error of `accept`, which is a lack of descriptors.
const BREATH: Duration = Duration::from_millis(20);

/// A connection to a server inside a sandbox.
pub(super) async fn reach(
    network: &Arc<dyn SandboxNetwork>,
    port: u16,
) -> io::Result<(TcpStream, IpAddr)> {
    let mut failed = io::Error::from(io::ErrorKind::ConnectionRefused);
    for address in INSIDE {
        let network = Arc::clone(network);
        let made = tokio::task::spawn_blocking(move || network.stream(address)).await;
        let socket = made.map_err(io::Error::other)??;
        let socket = TcpSocket::from_std_stream(socket.into());
        let connected = socket.connect(SocketAddr::new(address, port));
        match timeout(PATIENCE, connected).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok((stream, address));
            }
            // A sandbox without IPv6 says so; what IPv4 said is what is told.
            Ok(Err(error)) if address.is_ipv4() => failed = error,
            Ok(Err(_)) => {}
            Err(_) => failed = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

/// Serves a published port until it is no longer published.
pub(crate) async fn serve(
    engine: Arc<Engine>,
    listener: TcpListener,
    port: PublishedPort,
    mut over: watch::Receiver<()>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = over.changed() => return,
        };
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection to a published port was not accepted");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        if engine.is_ending() {
            return;
        }
        let Some(place) = engine.places.take() else {
            engine.told_overload(client, port.inside());
            continue;
        };
        let (engine, port, mut over) = (Arc::clone(&engine), port.clone(), over.clone());
        tokio::spawn(async move {
            let started = Instant::now();
            let mut record = ConnectionRecord::begun(
                EgressStage::Published,
                engine.number(),
                engine.attribution(),
            );
            record.client = Some(client);
            record.name = port.name().map(ToString::to_string);
            record.port = port.inside();
            record.rule = Some(format!("--publish {port}"));
            let meter = Meter::new(&engine.traffic);
            let ended = tokio::select! {
                ended = drive(&engine, &port, &mut record, stream, &meter) => ended,
                _ = over.changed() => Err(Ended::refused(EgressRefusal::Revoked, "the port is no longer published")),
                () = idle(&meter, engine.idle_timeout()) => Err(Ended::Failed("nothing was said for too long".to_owned())),
            };
            super::connection::conclude(&mut record, ended, &meter);
            record.bytes_up = meter.up();
            record.bytes_down = meter.down();
            engine.told(record, started);
            drop(place);
        });
    }
}

async fn drive(
    engine: &Engine,
    port: &PublishedPort,
    record: &mut ConnectionRecord,
    stream: TcpStream,
    meter: &Meter,
) -> Result<(), Ended> {
    let network = engine
        .network
        .as_ref()
        .ok_or_else(|| Ended::Failed("the sandbox has no network to reach into".to_owned()))?;
    let _ = stream.set_nodelay(true);
    let (inside, address) = reach(network, port.inside()).await.map_err(|error| {
        Ended::Failed(format!(
            "no server inside answers on port {}: {error}",
            port.inside()
        ))
    })?;
    record.address = Some(address);
    record.relay = Some(Relay::Spliced);
    relay(&inside, &stream, meter)
        .await
        .map_err(broken(ConnectionSide::Outside))
}
