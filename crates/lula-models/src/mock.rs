//! A server on loopback that plays a script over real sockets, for tests from end to end.
//!
//! It speaks every protocol this crate speaks, with faults on the level of bytes: statuses,
//! connections that break after a byte, connections that stand still. It has no dependencies and
//! one thread a connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::script::{ModelScript, ScriptPlayer, ScriptReply};

/// Longest request that is read.
const MAX_REQUEST: usize = 64 << 20;
/// How long a connection that stands still is stood open.
const STALL: Duration = Duration::from_hours(1);

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRequest {
    pub method: String,
    /// The path of the request that arrived.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body of the request, as it arrived.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// The value of a header that arrived.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The running server. It ends when it is dropped.
#[derive(Debug)]
pub struct MockModelServer {
    address: SocketAddr,
    player: Arc<ScriptPlayer>,
    arrived: Arc<Mutex<Vec<ReceivedRequest>>>,
    ended: Arc<AtomicBool>,
}

impl MockModelServer {
    /// Starts a server on a free port of the loopback address.
    pub fn start(script: ModelScript) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let server = Self {
            address: listener.local_addr()?,
            player: Arc::new(ScriptPlayer::new(script)),
            arrived: Arc::default(),
            ended: Arc::default(),
        };
        let (player, arrived) = (Arc::clone(&server.player), Arc::clone(&server.arrived));
        let ended = Arc::clone(&server.ended);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), player, arrived) =
                    (stream, Arc::clone(&player), Arc::clone(&arrived))
                else {
                    continue;
                };
                let ended = Arc::clone(&ended);
                std::thread::spawn(move || {
                    // A client that goes away is nothing to report.
                    let _ = serve(&stream, &player, &arrived, &ended);
                });
            }
        });
        Ok(server)
    }

    /// The address, as `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    pub fn arrived(&self) -> Vec<ReceivedRequest> {
        self.arrived
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Turns that no request asked for.
    pub fn unused(&self) -> usize {
        self.player.unused()
    }
}

impl Drop for MockModelServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    stream: &TcpStream,
    player: &ScriptPlayer,
    arrived: &Mutex<Vec<ReceivedRequest>>,
    ended: &AtomicBool,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        arrived
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.clone());
        let reply = player.play(&request.path, &request.body);
        std::thread::sleep(Duration::from_millis(reply.wait_ms));
        while !ended.load(Ordering::SeqCst) && !has_come(reply.after.as_deref(), arrived) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !answer(stream, &reply, ended)? {
            return stream.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// Whether a request has come that holds this.
fn has_come(text: Option<&str>, arrived: &Mutex<Vec<ReceivedRequest>>) -> bool {
    let Some(text) = text else { return true };
    let arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bodies = arrived.iter().map(|one| String::from_utf8_lossy(&one.body));
    bodies.any(|body| body.contains(text))
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<ReceivedRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0_usize);
    if length > MAX_REQUEST {
        return Err(std::io::Error::other("the request is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(ReceivedRequest {
        method,
        path,
        headers,
        body,
    }))
}

/// Writes an answer; `false` where the connection must end.
fn answer(
    mut stream: &TcpStream,
    played: &ScriptReply,
    ended: &AtomicBool,
) -> std::io::Result<bool> {
    let mut head = format!(
        "HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n",
        played.status
    );
    for (name, value) in &played.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    for piece in played.pieces.iter().filter(|piece| !piece.is_empty()) {
        stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
        stream.write_all(piece)?;
        stream.write_all(b"\r\n")?;
    }
    stream.flush()?;
    if played.stalls {
        let mut stood = Duration::ZERO;
        while stood < STALL && !ended.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(50));
            stood += Duration::from_millis(50);
        }
        return Ok(false);
    }
    if played.breaks_off {
        return Ok(false);
    }
    stream.write_all(b"0\r\n\r\n")?;
    Ok(true)
}
