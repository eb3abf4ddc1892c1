//! What an attacker does inside: one connection, message or question, in bytes that are made by hand.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use lula_sandbox::BuiltInProgram;

/// The attacker, as it runs inside.
pub const NETWORK_ATTACKER: BuiltInProgram = BuiltInProgram {
    name: "lula-network-attacker",
    main: attack,
};

/// The end of what servers of the stage answer.
pub(super) const HEARD: &str = "a server heard this";

const PATIENCE: Duration = Duration::from_secs(3);

/// One act. A target is an address, or a name that is asked for first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NetworkAct {
    /// Bytes over TCP; `\n` in them is a line end of HTTP.
    Text {
        target: String,
        port: u16,
        text: String,
    },
    /// A TLS hello with that server name, or with none.
    Hello {
        target: String,
        port: u16,
        server_name: String,
    },
    /// A datagram with these bytes.
    Packet {
        target: String,
        port: u16,
        text: String,
    },
    /// A question for a name, of that type, over TCP or UDP.
    Question {
        server: String,
        tcp: bool,
        kind: u16,
        name: String,
    },
    /// Listening on a port.
    Listen { port: u16 },
    /// Answering every client on a port of its own loopback, for as long as the sandbox stands.
    Serve { port: u16 },
}

impl NetworkAct {
    /// As arguments of the attacker.
    pub(super) fn arguments(&self) -> Vec<String> {
        let words: [String; 5] = match self {
            Self::Text { target, port, text } => [
                "text".into(),
                target.clone(),
                port.to_string(),
                text.clone(),
                String::new(),
            ],
            Self::Hello {
                target,
                port,
                server_name,
            } => [
                "hello".into(),
                target.clone(),
                port.to_string(),
                server_name.clone(),
                String::new(),
            ],
            Self::Packet { target, port, text } => [
                "packet".into(),
                target.clone(),
                port.to_string(),
                text.clone(),
                String::new(),
            ],
            Self::Question {
                server,
                tcp,
                kind,
                name,
            } => [
                "question".into(),
                server.clone(),
                kind.to_string(),
                name.clone(),
                tcp.to_string(),
            ],
            Self::Listen { port } => [
                "listen".into(),
                "0.0.0.0".into(),
                port.to_string(),
                String::new(),
                String::new(),
            ],
            Self::Serve { port } => [
                "serve".into(),
                "127.0.0.1".into(),
                port.to_string(),
                String::new(),
                String::new(),
            ],
        };
        words.into()
    }

    fn from_arguments(words: &[String]) -> Option<Self> {
        let [kind, target, number, text, more] = words else {
            return None;
        };
        let (target, text) = (target.clone(), text.clone());
        let number = number.parse().ok()?;
        Some(match kind.as_str() {
            "text" => Self::Text {
                target,
                port: number,
                text,
            },
            "hello" => Self::Hello {
                target,
                port: number,
                server_name: text,
            },
            "packet" => Self::Packet {
                target,
                port: number,
                text,
            },
            "question" => Self::Question {
                server: target,
                tcp: more == "true",
                kind: number,
                name: text,
            },
            "listen" => Self::Listen { port: number },
            "serve" => Self::Serve { port: number },
            _ => return None,
        })
    }

    fn run(&self) -> std::io::Result<String> {
        match self {
            Self::Text { target, port, text } => {
                let bytes = text.replace('\n', "\r\n").into_bytes();
                spoken(connect(target, *port)?, &bytes)
            }
            Self::Hello {
                target,
                port,
                server_name,
            } => spoken(connect(target, *port)?, &hello(server_name)),
            Self::Packet { target, port, text } => packet(address(target, *port)?, text.as_bytes()),
            Self::Question {
                server,
                tcp,
                kind,
                name,
            } => ask(server, *tcp, &question(*kind, name)),
            Self::Listen { port } => {
                TcpListener::bind(("0.0.0.0", *port))?;
                Ok("listens".to_owned())
            }
            Self::Serve { port } => {
                let listener = TcpListener::bind(("127.0.0.1", *port))?;
                for stream in listener.incoming() {
                    let mut stream = stream?;
                    let _ = stream.read(&mut [0; 64]);
                    let _ = stream.write_all(HEARD.as_bytes());
                }
                Ok("served".to_owned())
            }
        }
    }
}

/// Does one act, and says what came of it in a line.
#[expect(
    clippy::print_stdout,
    reason = "standard output is how an attempt reports"
)]
fn attack(arguments: &[String]) -> i32 {
    let Some(act) = NetworkAct::from_arguments(arguments) else {
        return 2;
    };
    match act.run() {
        Ok(said) => println!("answered {}", said.escape_default()),
        Err(error) => println!("refused {error}"),
    }
    0
}

fn address(target: &str, port: u16) -> std::io::Result<SocketAddr> {
    if let Ok(address) = target.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, port));
    }
    let mut found = (target, port).to_socket_addrs()?;
    found
        .next()
        .ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

fn connect(target: &str, port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address(target, port)?, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends bytes and reads what comes back.
fn spoken(mut stream: TcpStream, bytes: &[u8]) -> std::io::Result<String> {
    stream.write_all(bytes)?;
    let mut said = Vec::new();
    while !said.ends_with(HEARD.as_bytes()) && said.len() < 2048 {
        let mut answer = [0; 512];
        match stream.read(&mut answer) {
            Ok(length) if length > 0 => said.extend(&answer[..length]),
            Ok(_) | Err(_) if !said.is_empty() => break,
            Ok(_) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return Err(error),
        }
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    // What a server says. Anything else is the engine's own word: an alert of TLS, an answer 403.
    if !said.ends_with(HEARD) {
        return Err(std::io::Error::other(said.escape_default().to_string()));
    }
    Ok(said)
}

fn packet(to: SocketAddr, bytes: &[u8]) -> std::io::Result<String> {
    let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(from)?;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    socket.connect(to)?;
    socket.send(bytes)?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

fn ask(server: &str, tcp: bool, question: &[u8]) -> std::io::Result<String> {
    let mut answer = [0; 1024];
    let to = address(server, 53)?;
    let read = if tcp {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = u16::try_from(question.len()).unwrap_or(u16::MAX);
        stream.write_all(&length.to_be_bytes())?;
        stream.write_all(question)?;
        stream.read(&mut answer)?.saturating_sub(2)
    } else {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(to)?;
        socket.send(question)?;
        socket.recv(&mut answer)?
    };
    let answer = if tcp { &answer[2..] } else { &answer[..] };
    if read < 12 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let count = u16::from_be_bytes([answer[6], answer[7]]);
    if answer[3] & 0xf != 0 || count == 0 {
        return Err(std::io::Error::other(format!(
            "answer code {}",
            answer[3] & 0xf
        )));
    }
    Ok(format!("{count} answers"))
}

/// A query as RFC 1035 has it.
fn question(kind: u16, name: &str) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        let label = &label.as_bytes()[..label.len().min(63)];
        bytes.push(u8::try_from(label.len()).unwrap_or(63));
        bytes.extend(label);
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes
}

/// A hello of TLS 1.2 as RFC 5246 has it, with that server name where it is not empty.
fn hello(server_name: &str) -> Vec<u8> {
    let name = server_name.as_bytes();
    let mut extensions = Vec::new();
    if !name.is_empty() {
        extensions.extend([0, 0]);
        extensions.extend(long(name.len() + 5));
        extensions.extend(long(name.len() + 3));
        extensions.push(0);
        extensions.extend(long(name.len()));
        extensions.extend(name);
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    body.extend([0, 2, 0xc0, 0x2f, 1, 0]);
    body.extend(long(extensions.len()));
    body.extend(extensions);
    let mut handshake = vec![1, 0];
    handshake.extend(long(body.len()));
    handshake.extend(body);
    let mut record = vec![22, 3, 1];
    record.extend(long(handshake.len()));
    record.extend(handshake);
    record
}

fn long(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_reaches_the_attacker_as_it_is() {
        for act in [
            NetworkAct::Text {
                target: "a.b".to_owned(),
                port: 1,
                text: "x\n y".to_owned(),
            },
            NetworkAct::Question {
                server: "::1".to_owned(),
                tcp: true,
                kind: 16,
                name: "a.b".to_owned(),
            },
            NetworkAct::Listen { port: 80 },
            NetworkAct::Serve { port: 8080 },
        ] {
            assert_eq!(NetworkAct::from_arguments(&act.arguments()), Some(act));
        }
    }

    #[test]
    fn a_hello_is_as_long_as_it_says() {
        for name in ["", "a.example.org"] {
            let bytes = hello(name);
            let said = usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
            assert_eq!(said, bytes.len() - 5);
        }
    }
}
