//! One connection, from its first byte to its record.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::Shutdown;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::Engine;
use super::dial::DialFailure;
use super::meter::{Direction, Meter, Metered};
use super::relay::{Broken, relay, write_all};
use crate::hello::{ClientHello, FirstBytes, LONGEST_HELLO, read_client_hello};
use crate::intercept::Serving;
use crate::policy::ConnectionRuling;
use crate::record::{ConnectionSide, EgressRefusal, EgressVerdict, Relay};
use crate::{ConnectionRecord, DomainName, EgressProtocol};

/// A fatal alert of TLS, `access_denied`: programs print it.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
/// How long, and how much, a refused program may go on talking before it reads the refusal.
const LAST_WORDS: Duration = Duration::from_secs(1);
const LAST_BYTES: u64 = 256 * 1024;

/// A refusal, and the smallest rule that would lift it.
pub(crate) struct Refused {
    pub(crate) reason: EgressRefusal,
    pub(crate) text: String,
    pub(crate) grant: Option<String>,
}

/// How a connection ended before its time.
pub(crate) enum Ended {
    Refused(Refused),
    Failed(String),
    /// Its client dropped it.
    Dropped(ConnectionSide),
}

impl Ended {
    pub(super) fn refused(reason: EgressRefusal, text: impl Into<String>) -> Self {
        Self::Refused(Refused {
            reason,
            text: text.into(),
            grant: None,
        })
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What is known of a connection that rules allow.
#[derive(Clone)]
pub(crate) struct Admitted {
    pub(crate) name: DomainName,
    pub(crate) port: u16,
    pub(crate) ruling: ConnectionRuling,
    pub(crate) number: u64,
    pub(crate) client: SocketAddr,
    pub(crate) attribution: Option<String>,
}

pub(super) async fn serve(engine: Arc<Engine>, stream: TcpStream, client: SocketAddr) {
    let started = Instant::now();
    let Ok(dialled) = stream.local_addr() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let mut record = engine.record_of_connection(client, dialled);
    let number = record.connection;
    let meter = Arc::new(Meter::new(&engine.traffic));
    match admit(&engine, &mut record) {
        Ok(admitted) => {
            let is_cut = engine.opened(number, &admitted.name, admitted.port, &admitted.ruling);
            // A rule that was revoked since it was asked found no connection to cut.
            let still = !engine.is_ending()
                && engine
                    .rules()
                    .still_allows(&admitted.name, admitted.port, &admitted.ruling);
            let ended = if still {
                tokio::select! {
                    ended = drive(&engine, &admitted, &mut record, stream, &meter) => ended,
                    _ = is_cut => Err(Ended::refused(EgressRefusal::Revoked, "what allowed it was revoked, or the sandbox ended")),
                    () = idle(&meter, engine.idle_timeout()) => Err(Ended::Failed("nothing was said for too long".to_owned())),
                }
            } else {
                Err(Ended::refused(
                    EgressRefusal::Revoked,
                    "what allowed it was revoked",
                ))
            };
            engine.closed(number);
            conclude(&mut record, ended, &meter);
        }
        Err(refused) => {
            let text = refused.text.clone();
            conclude(&mut record, Err(Ended::Refused(refused)), &meter);
            engine.told(record, started);
            refuse(stream, dialled.port(), &text).await;
            return;
        }
    }
    record.bytes_up = meter.up();
    record.bytes_down = meter.down();
    engine.told(record, started);
}

/// How a relayed connection whose client is on that side broke.
pub(super) fn broken(client: ConnectionSide) -> impl Fn(Broken) -> Ended {
    move |Broken { side, error }| {
        if !is_drop(&error) {
            Ended::Failed(error.to_string())
        } else if side == client {
            Ended::Dropped(side)
        } else {
            Ended::Failed(format!("the server broke it off: {error}"))
        }
    }
}

/// Whether an error of a socket says that the other end is gone.
pub(crate) fn is_drop(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}

pub(super) fn conclude(record: &mut ConnectionRecord, ended: Result<(), Ended>, meter: &Meter) {
    match ended {
        _ if meter.limit_reached() => record.deny(
            EgressRefusal::LimitReached,
            "the policy's limit of bytes is reached: raise bytes_up or bytes_down".to_owned(),
            None,
        ),
        Ok(()) => record.verdict = EgressVerdict::Allowed,
        Err(Ended::Refused(refused)) => record.deny(refused.reason, refused.text, refused.grant),
        Err(Ended::Failed(why)) => record.fail(why),
        Err(Ended::Dropped(side)) => {
            record.verdict = EgressVerdict::Allowed;
            record.dropped_by = Some(side);
        }
    }
}

/// Whether rules allow the name that the dialled address stands for.
fn admit(engine: &Engine, record: &mut ConnectionRecord) -> Result<Admitted, Refused> {
    let port = record.port;
    let name = record
        .dialled
        .and_then(|address| engine.pins().name_of(address, Instant::now()));
    let Some(name) = name else {
        let dialled = record
            .dialled
            .map_or_else(String::new, |address| address.to_string());
        return Err(Refused {
            reason: EgressRefusal::AddressWithoutName,
            text: format!(
                "{dialled}:{port} was dialled without asking for a name; only names can be allowed"
            ),
            grant: None,
        });
    };
    record.name = Some(name.to_string());
    let rules = engine.rules();
    let Some(ruling) = rules.connection(&name, port) else {
        let reason = if rules.allows_name(&name) {
            EgressRefusal::PortNotAllowed
        } else {
            EgressRefusal::NameNotAllowed
        };
        return Err(Refused {
            reason,
            text: format!("no rule allows {name} on port {port}"),
            grant: Some(format!("{name}:{port}")),
        });
    };
    record.rule = Some(ruling.rule.clone());
    Ok(Admitted {
        name,
        port,
        ruling,
        number: record.connection,
        client: record.client.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0))),
        attribution: record.attribution.clone(),
    })
}

/// Resolves once nothing passed in either direction for that long.
pub(super) async fn idle(meter: &Meter, patience: Duration) {
    let mut before = None;
    loop {
        let now = (meter.up(), meter.down());
        if before == Some(now) {
            return;
        }
        before = Some(now);
        sleep(patience).await;
    }
}

async fn drive(
    engine: &Arc<Engine>,
    admitted: &Admitted,
    record: &mut ConnectionRecord,
    stream: TcpStream,
    meter: &Arc<Meter>,
) -> Result<(), Ended> {
    match admitted.ruling.protocol {
        EgressProtocol::Tcp => splice(engine, admitted, record, stream, &[], meter).await,
        EgressProtocol::Http => {
            record.relay = Some(Relay::Intercepted);
            let stream = Metered::new(stream, Arc::clone(meter), Vec::new())?;
            Serving::new(engine, admitted, meter)
                .plain(stream, record)
                .await
        }
        EgressProtocol::Tls => tls(engine, admitted, record, stream, meter).await,
    }
}

async fn tls(
    engine: &Arc<Engine>,
    admitted: &Admitted,
    record: &mut ConnectionRecord,
    mut stream: TcpStream,
    meter: &Arc<Meter>,
) -> Result<(), Ended> {
    let read = match timeout(engine.header_timeout(), read_hello(&mut stream)).await {
        Ok(read) => read,
        Err(_) => Err(Ended::refused(
            EgressRefusal::TooSlow,
            "the TLS hello did not come in time",
        )),
    };
    let checked =
        read.and_then(|(hello, bytes)| agrees(&admitted.name, &hello).map(|()| (hello, bytes)));
    let (hello, bytes) = match checked {
        Ok(fine) => fine,
        Err(Ended::Refused(refused)) => {
            refuse(stream, 443, &refused.text).await;
            return Err(Ended::Refused(refused));
        }
        Err(ended) => return Err(ended),
    };
    // What hides another hello could mean another server than it says. Opened here, it ends here.
    if admitted.ruling.intercept || hello.hides_another {
        record.relay = Some(Relay::Intercepted);
        let stream = Metered::new(stream, Arc::clone(meter), bytes)?;
        return Serving::new(engine, admitted, meter)
            .tls(stream, record)
            .await;
    }
    splice(engine, admitted, record, stream, &bytes, meter).await
}

async fn read_hello(stream: &mut TcpStream) -> Result<(ClientHello, Vec<u8>), Ended> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        match read_client_hello(&bytes) {
            FirstBytes::Hello(hello) => return Ok((hello, bytes)),
            FirstBytes::Other(why) => {
                return Err(Ended::refused(EgressRefusal::WrongProtocol, why));
            }
            FirstBytes::Incomplete => {}
        }
        let room = (LONGEST_HELLO - bytes.len()) as u64;
        match (&mut *stream).take(room).read_buf(&mut bytes).await {
            Ok(0) => return Err(Ended::Dropped(ConnectionSide::Inside)),
            Ok(_) => {}
            Err(error) if is_drop(&error) => return Err(Ended::Dropped(ConnectionSide::Inside)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether the server name is the name whose address was dialled.
fn agrees(name: &DomainName, hello: &ClientHello) -> Result<(), Ended> {
    match &hello.server_name {
        None => Err(Ended::refused(
            EgressRefusal::NoServerName,
            format!("the TLS hello to {name} has no server name"),
        )),
        Some(said) if said != name => Err(Ended::refused(
            EgressRefusal::ServerNameMismatch,
            format!("the TLS hello names {said}, but the address of {name} was dialled"),
        )),
        Some(_) => Ok(()),
    }
}

async fn splice(
    engine: &Engine,
    admitted: &Admitted,
    record: &mut ConnectionRecord,
    stream: TcpStream,
    first: &[u8],
    meter: &Meter,
) -> Result<(), Ended> {
    record.relay = Some(Relay::Spliced);
    let ruling = &admitted.ruling;
    let dialled = match engine
        .dial(&admitted.name, admitted.port, ruling.private)
        .await
    {
        Ok(dialled) => dialled,
        Err(failure) => {
            let ended = explain(record, admitted, failure);
            if ruling.protocol == EgressProtocol::Tls {
                refuse(stream, 443, "").await;
            }
            return Err(ended);
        }
    };
    record.address = dialled.address;
    meter.add(Direction::Up, first.len())?;
    write_all(&dialled.stream, first).await?;
    relay(&stream, &dialled.stream, meter)
        .await
        .map_err(broken(ConnectionSide::Inside))
}

/// A failure to reach a server as the end of its connection.
pub(crate) fn explain(
    record: &mut ConnectionRecord,
    admitted: &Admitted,
    failure: DialFailure,
) -> Ended {
    match failure {
        DialFailure::Connect(why) => Ended::Failed(why),
        DialFailure::Resolve(failure) => {
            record.unresolved(&admitted.name, admitted.port, failure);
            match record.denial.take() {
                Some(denial) => Ended::Refused(Refused {
                    reason: denial.reason,
                    text: denial.text,
                    grant: denial.grant,
                }),
                None => Ended::Failed(record.failure.take().unwrap_or_default()),
            }
        }
    }
}

/// Tells the program what its port usually understands, and closes.
async fn refuse(stream: TcpStream, port: u16, text: &str) {
    let words = match EgressProtocol::usual(port) {
        EgressProtocol::Http => {
            let text = format!("lula: {text}\n");
            let length = text.len();
            format!(
                "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            )
            .into_bytes()
        }
        _ => ACCESS_DENIED.to_vec(),
    };
    let _ = timeout(LAST_WORDS, async {
        write_all(&stream, &words).await?;
        rustix::net::shutdown(&stream, Shutdown::Write)?;
        // Closed with bytes unread, the kernel would take the refusal back.
        tokio::io::copy(&mut stream.take(LAST_BYTES), &mut tokio::io::sink()).await?;
        Ok::<_, io::Error>(())
    })
    .await;
}
