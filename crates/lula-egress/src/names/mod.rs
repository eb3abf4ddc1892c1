//! The answers to the names that a sandbox asks for.
//!
//! A name that no rule allows is said not to exist, and no packet leaves for it: its letters could be
//! a message. An allowed one is resolved outside and its addresses are judged before the sandbox learns the
//! address that stands for it.

mod message;
mod pins;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::DomainName;
use crate::engine::Engine;
use crate::engine::resolve::ResolveFailure;
use crate::record::{EgressRefusal, EgressVerdict};
use message::{Asked, NameAnswer, Question};

pub(crate) use pins::Pins;

/// Longest question that is read.
const LONGEST_QUESTION: usize = 4096;
/// Questions that wait for the outside at once, over UDP and over TCP.
const MOST_WAITING: usize = 128;
/// Time for one question over TCP.
const TCP_PATIENCE: Duration = Duration::from_secs(5);

/// Answers over UDP until the engine ends.
pub(crate) async fn serve_udp(engine: Arc<Engine>, socket: UdpSocket) {
    let socket = Arc::new(socket);
    let waiting = Arc::new(Semaphore::new(MOST_WAITING));
    let mut buffer = vec![0; LONGEST_QUESTION];
    loop {
        // Errors of earlier answers (a client that went away) arrive here too.
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        if !engine.names_rate.take(Instant::now()) {
            engine.told_overload(client, 53);
            continue;
        }
        match message::read(&buffer[..length]) {
            Asked::Noise => {}
            Asked::Refused(reply) => {
                let _ = socket.try_send_to(&reply, client);
            }
            Asked::Name(question) => {
                let Ok(permit) = Arc::clone(&waiting).try_acquire_owned() else {
                    let _ = socket.try_send_to(&question.answered(NameAnswer::Failure), client);
                    continue;
                };
                let (engine, socket) = (Arc::clone(&engine), Arc::clone(&socket));
                tokio::spawn(async move {
                    let answer = answer(&engine, &question, client).await;
                    let _ = socket.send_to(&question.answered(answer), client).await;
                    drop(permit);
                });
            }
        }
    }
}

/// Answers over TCP until the engine ends.
pub(crate) async fn serve_tcp(engine: Arc<Engine>, listener: TcpListener) {
    let waiting = Arc::new(Semaphore::new(MOST_WAITING));
    loop {
        let Ok((stream, client)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&waiting).try_acquire_owned() else {
            continue;
        };
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            let _ = answer_stream(&engine, stream, client).await;
            drop(permit);
        });
    }
}

async fn answer_stream(
    engine: &Arc<Engine>,
    mut stream: TcpStream,
    client: SocketAddr,
) -> io::Result<()> {
    loop {
        let question = timeout(TCP_PATIENCE, async {
            let length = usize::from(stream.read_u16().await?);
            let mut question = vec![0; length.min(LONGEST_QUESTION)];
            stream.read_exact(&mut question).await?;
            Ok::<_, io::Error>((question, length))
        });
        let (question, length) = question.await??;
        if length > LONGEST_QUESTION || !engine.names_rate.take(Instant::now()) {
            return Ok(());
        }
        let reply = match message::read(&question) {
            Asked::Noise => return Ok(()),
            Asked::Refused(reply) => reply,
            Asked::Name(question) => {
                let answer = answer(engine, &question, client).await;
                question.answered(answer)
            }
        };
        let length = u16::try_from(reply.len()).unwrap_or_default();
        stream
            .write_all(&[&length.to_be_bytes()[..], &reply].concat())
            .await?;
    }
}

async fn answer(engine: &Arc<Engine>, question: &Question, client: SocketAddr) -> NameAnswer {
    let started = Instant::now();
    let mut record = engine.record_of_name(&question.text, client);
    let allowed = question
        .name
        .as_ref()
        .filter(|name| engine.rules().allows_name(name));
    let Some(name) = allowed else {
        if !question.wants_address && is_service_of_allowed(engine, &question.text) {
            return NameAnswer::NoSuchName;
        }
        let grant = question.name.as_ref().map(|name| format!("{name}:443"));
        record.deny(
            EgressRefusal::NameNotAllowed,
            format!(
                "the name {} is not among those this sandbox may reach",
                question.text
            ),
            grant,
        );
        engine.told_name(record, started);
        return NameAnswer::NoSuchName;
    };
    if !question.wants_address {
        return NameAnswer::NoRecord;
    }
    let private = engine.rules().name_may_be_private(name);
    let found = if name.is_of_sandbox() {
        neighbour(engine, name).await
    } else {
        engine.resolve(name, private).await.map(drop)
    };
    match found {
        Ok(()) => {}
        // Behind a proxy, names are often only known there.
        Err(ResolveFailure::NoAddress | ResolveFailure::Unavailable(_))
            if engine.is_proxied(name) => {}
        Err(failure) => {
            let answer = match failure {
                ResolveFailure::NoAddress | ResolveFailure::Refused(_) => NameAnswer::NoSuchName,
                ResolveFailure::Unavailable(_) => NameAnswer::Failure,
            };
            let port = engine.rules().port_of(name).unwrap_or(443);
            record.unresolved(name, port, failure);
            engine.told_name(record, started);
            return answer;
        }
    }
    let Some(address) = engine.pins().pin(name, Instant::now()) else {
        record.deny(
            EgressRefusal::LimitReached,
            "this sandbox asked for too many names within ten minutes".to_owned(),
            None,
        );
        engine.told_name(record, started);
        return NameAnswer::Failure;
    };
    record.verdict = EgressVerdict::Allowed;
    record.dialled = Some(address.into());
    engine.told_name(record, started);
    NameAnswer::Address(address)
}

/// Whether a question is for the servers of a service (`_https._tcp.NAME`) of a name that is allowed, as apt asks
/// before it asks for the name itself. There are none, which is no refusal to be told.
fn is_service_of_allowed(engine: &Engine, text: &str) -> bool {
    let mut labels = text.splitn(3, '.');
    let service = [labels.next(), labels.next()];
    let is_service = service
        .iter()
        .all(|label| label.is_some_and(|label| label.starts_with('_')));
    let name = labels
        .next()
        .and_then(|name| name.parse::<DomainName>().ok());
    is_service && name.is_some_and(|name| engine.rules().allows_name(&name))
}

/// Whether the name of a sandbox leads to one now. Its ports are answered from then on: before, a program here
/// may have them for a server of its own.
async fn neighbour(engine: &Arc<Engine>, name: &DomainName) -> Result<(), ResolveFailure> {
    let ports = engine.rules().ports_of(name);
    let mut found = Err(ResolveFailure::NoAddress);
    for port in ports {
        if engine.neighbour(name, port).is_none() {
            continue;
        }
        let late = Arc::clone(engine);
        let runtime = tokio::runtime::Handle::current();
        let made = tokio::task::spawn_blocking(move || {
            let _inside = runtime.enter();
            late.listen_late(port)
        });
        found = match made
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
        {
            Ok(()) => Ok(()),
            Err(error) => Err(ResolveFailure::Unavailable(format!(
                "port {port} cannot be answered in this sandbox: {error}"
            ))),
        };
    }
    found
}
