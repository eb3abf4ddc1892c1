//! `cargo xtask bench egress` runs this: the same client and server of TLS, directly and through each relay.
//!
//! One program in four roles, each a process of its own: the race, the server, the namespace and the
//! client. Every client runs in the namespace of its relay, so what is timed is a program's own connect.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic
)]

use std::error::Error;
use std::io::{BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use lula_egress::{
    DomainName, Egress, EgressHandle, EgressPolicy, NameResolver, Outside, SandboxListeners,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Bytes that one download moves.
const DOWNLOAD: usize = DOWNLOAD_MIB as usize * (1 << 20);
const DOWNLOAD_MIB: u32 = 192;
/// Connects of one round.
const CONNECTS: usize = 40;
/// Where names are asked for in the namespace.
const RESOLVER: &str = "127.0.0.53";

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["server", folder] => server(Path::new(folder)),
        ["namespace", port] => namespace(port.parse()?),
        ["client", way, name, port, folder] => client(way, name, port.parse()?, Path::new(folder)),
        [rounds, folder, mitmdump, tinyproxy] => race(
            rounds.parse()?,
            Path::new(folder),
            Path::new(mitmdump),
            Path::new(tinyproxy),
        ),
        _ => Err("usage: egress_bench ROUNDS FOLDER MITMDUMP TINYPROXY".into()),
    }
}

/// A process that ends with what holds it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Loopback;

impl NameResolver for Loopback {
    fn resolve(&self, _: &DomainName) -> std::io::Result<Vec<std::net::IpAddr>> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

/// A contender: its way, the name it asks for, and the namespace it runs in.
struct Contender {
    /// The process that relays.
    relay: Option<u32>,
    key: &'static str,
    way: String,
    name: &'static str,
    inside: bool,
}

/// What was measured of one contender.
#[derive(Default)]
struct Measured {
    throughput: Vec<f64>,
    connects: Vec<f64>,
    /// Processor time of the relay: it says what a relay costs on a machine that is busy otherwise.
    relay_ms: f64,
}

/// Processor time of a process, all threads.
fn cpu_ms(process: u32) -> Outcome<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after_name = stat.rsplit_once(')').ok_or("no name in stat")?.1;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || -> Outcome<f64> { Ok(fields.next().ok_or("stat is short")?.parse()?) };
    let per_second = f64::from(u32::try_from(rustix::param::clock_ticks_per_second())?);
    Ok((ticks()? + ticks()?) * 1000.0 / per_second)
}

fn race(rounds: usize, folder: &Path, mitmdump: &Path, tinyproxy: &Path) -> Outcome<()> {
    certificates(folder)?;
    let own = std::env::current_exe()?;
    let mut server = Process(
        Command::new(&own)
            .arg("server")
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let port: u16 = line.trim().parse()?;

    let (sandbox, holder) = enter_namespace(&own, port)?;
    let handle = engine(&sandbox, port, folder)?;
    std::fs::write(folder.join("engine.pem"), handle.ca_certificate_pem())?;

    let mut contenders = vec![
        Contender {
            relay: None,
            key: "direct",
            way: "direct".to_owned(),
            name: "a.example.org",
            inside: false,
        },
        Contender {
            relay: Some(std::process::id()),
            key: "spliced",
            way: "asked".to_owned(),
            name: "spliced.example.org",
            inside: true,
        },
        Contender {
            relay: Some(std::process::id()),
            key: "intercepted",
            way: "asked".to_owned(),
            name: "opened.example.org",
            inside: true,
        },
    ];
    let mut report = json!({});
    let mut rivals = Vec::new();
    let confdir = folder.join("mitmproxy");
    let (mitm_port, tiny_port) = (free_port()?, free_port()?);
    match start_mitmproxy(mitmdump, &confdir, mitm_port, folder) {
        Ok(process) => {
            let relay = Some(process.0.id());
            rivals.push(process);
            contenders.push(Contender {
                relay,
                key: "mitmproxy",
                way: mitm_port.to_string(),
                name: "a.example.org",
                inside: false,
            });
        }
        Err(why) => report["mitmproxy"] = json!({"reason": why.to_string()}),
    }
    match start_tinyproxy(tinyproxy, tiny_port, folder) {
        Ok(process) => {
            let relay = Some(process.0.id());
            rivals.push(process);
            contenders.push(Contender {
                relay,
                key: "tinyproxy",
                way: tiny_port.to_string(),
                name: "a.example.org",
                inside: false,
            });
        }
        Err(why) => report["tinyproxy"] = json!({"reason": why.to_string()}),
    }

    let mut measured: Vec<Measured> = contenders.iter().map(|_| Measured::default()).collect();
    for round in 0..rounds {
        // Each round begins with another contender, so that none always runs on a warm machine.
        for at in 0..contenders.len() {
            let at = (at + round) % contenders.len();
            let one = &contenders[at];
            let before = one.relay.map(cpu_ms).transpose()?;
            let said = timed(one, &own, holder.0.id(), port, folder)?;
            let after = one.relay.map(cpu_ms).transpose()?;
            let row = &mut measured[at];
            row.throughput
                .push(said["mib_per_s"].as_f64().ok_or("no throughput")?);
            let connects = said["connect_us"].as_array().ok_or("no connects")?;
            row.connects
                .extend(connects.iter().filter_map(Value::as_f64));
            row.relay_ms += after
                .zip(before)
                .map_or(0.0, |(after, before)| after - before);
        }
    }
    for (one, mut row) in contenders.iter().zip(measured) {
        row.throughput.sort_by(f64::total_cmp);
        row.connects.sort_by(f64::total_cmp);
        let at = |sorted: &[f64], part: usize| sorted[(sorted.len() - 1) * part / 100];
        let gib = f64::from(DOWNLOAD_MIB) / 1024.0 * f64::from(u32::try_from(rounds)?);
        report[one.key] = json!({
            "mib_per_s": at(&row.throughput, 50), "mib_per_s_best": at(&row.throughput, 100),
            "connect_p50_us": at(&row.connects, 50), "connect_p95_us": at(&row.connects, 95),
            "n": row.connects.len(), "relay_cpu_ms_per_gib": one.relay.map(|_| row.relay_ms / gib),
        });
    }
    println!("{report}");
    handle.stop();
    Ok(())
}

/// One run of the client by a contender's way.
fn timed(one: &Contender, own: &Path, holder: u32, port: u16, folder: &Path) -> Outcome<Value> {
    let mut command = if one.inside {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &holder.to_string(), "--user", "--net"])
            .args(["--preserve-credentials", "--"])
            .arg(own);
        command
    } else {
        Command::new(own)
    };
    let output = command
        .args(["client", &one.way, one.name, &port.to_string()])
        .arg(folder)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("the client of {} ended with {}", one.key, output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn engine(sandbox: &UnixStream, port: u16, folder: &Path) -> Outcome<EgressHandle> {
    let mut descriptors = received(sandbox, 3)?.into_iter();
    let mut next = || descriptors.next().ok_or("a descriptor is missing");
    let listeners = SandboxListeners {
        tcp: vec![(port, next()?)],
        dns_udp: next()?,
        dns_tcp: next()?,
        network: None,
    };
    let mut policy = EgressPolicy::default();
    for rule in [
        "spliced.example.org:PORT private",
        "opened.example.org:PORT/** private",
    ] {
        policy
            .rules
            .push(rule.replace("PORT", &port.to_string()).parse()?);
    }
    policy.limits.connects_per_second = 100_000;
    policy.limits.bytes_down = u64::MAX;
    let outside = Outside {
        resolver: Arc::new(Loopback),
        extra_roots_pem: vec![std::fs::read_to_string(folder.join("ca.pem"))?],
        ..Outside::default()
    };
    Ok(Egress::start(
        listeners,
        policy,
        Vec::new(),
        outside,
        |_| {},
    )?)
}

/// An authority and a server's certificate.
fn certificates(folder: &Path) -> Outcome<()> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(vec!["*.example.org".to_owned()])?.signed_by(&key, &ca)?;
    std::fs::write(folder.join("ca.pem"), ca.pem())?;
    std::fs::write(folder.join("leaf.pem"), leaf.pem())?;
    std::fs::write(folder.join("key.pem"), key.serialize_pem())?;
    Ok(())
}

/// Answers each request with as many bytes as its path names.
fn server(folder: &Path) -> Outcome<()> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(folder.join("leaf.pem"))?],
            PrivateKeyDer::from_pem_file(folder.join("key.pem"))?,
        )?;
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let (config, stream) = (Arc::clone(&config), stream?);
        std::thread::spawn(move || {
            let _ = serve(config, stream);
        });
    }
    Ok(())
}

fn serve(config: Arc<ServerConfig>, stream: TcpStream) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, stream));
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let count: usize = line
        .split('/')
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .ok_or("no path")?
        .parse()?;
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line)?;
    }
    let stream = stream.get_mut();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n")?;
    let block = vec![b'x'; 64 * 1024];
    let mut left = count;
    while left > 0 {
        let now = left.min(block.len());
        stream.write_all(&block[..now])?;
        left -= now;
    }
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(())
}

/// Starts a namespace as a sandbox has it; the socket brings its listeners.
fn enter_namespace(own: &Path, port: u16) -> Outcome<(UnixStream, Process)> {
    let (ours, theirs) = UnixStream::pair()?;
    let holder = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .arg(own)
        .args(["namespace", &port.to_string()])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()?;
    Ok((ours, Process(holder)))
}

fn namespace(port: u16) -> Outcome<()> {
    for words in ["link set lo up", "route add local 0.0.0.0/0 dev lo"] {
        let status = Command::new("ip")
            .args(words.split(' '))
            .stdin(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(format!("ip {words} ended with {status}").into());
        }
    }
    let tcp = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    let udp = UdpSocket::bind((RESOLVER, 53))?;
    let names = TcpListener::bind((RESOLVER, 53))?;
    let descriptors = [tcp.as_fd(), udp.as_fd(), names.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let control = std::io::stdin();
    sendmsg(
        &control,
        &[IoSlice::new(b"ready")],
        &mut ancillary,
        SendFlags::empty(),
    )?;
    drop((tcp, udp, names));
    // Until the race is over.
    let _ = control.lock().read(&mut [0]);
    std::thread::sleep(Duration::from_hours(1));
    Ok(())
}

fn received(control: &UnixStream, count: usize) -> Outcome<Vec<OwnedFd>> {
    let mut said = [0; 16];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        control,
        &mut [IoSliceMut::new(&mut said)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut found = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            found.extend(descriptors);
        }
    }
    if found.len() == count {
        Ok(found)
    } else {
        Err("the namespace was not made".into())
    }
}

/// Times connects and a download, and tells them.
fn client(way: &str, name: &str, port: u16, folder: &Path) -> Outcome<()> {
    let mut roots = RootCertStore::empty();
    for file in ["ca.pem", "engine.pem", "mitmproxy/mitmproxy-ca-cert.pem"] {
        if let Ok(certificate) = CertificateDer::from_pem_file(folder.join(file)) {
            roots.add(certificate)?;
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // Every connect is a first one.
    config.resumption = rustls::client::Resumption::disabled();
    let config = Arc::new(config);
    let address = if way == "asked" {
        ask(name)?
    } else {
        Ipv4Addr::LOCALHOST
    };
    let connect = || -> Outcome<StreamOwned<ClientConnection, TcpStream>> {
        let proxied = way.parse::<u16>().ok();
        let mut stream = TcpStream::connect((address, proxied.unwrap_or(port)))?;
        stream.set_nodelay(true)?;
        if proxied.is_some() {
            write!(
                stream,
                "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
            )?;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                head.push(byte[0]);
            }
        }
        let server = ServerName::try_from(name.to_owned())?;
        let mut stream =
            StreamOwned::new(ClientConnection::new(Arc::clone(&config), server)?, stream);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(stream)
    };
    let get = |bytes: usize| -> Outcome<()> {
        let mut stream = connect()?;
        write!(
            stream,
            "GET /{bytes} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
        )?;
        let mut buffer = vec![0; 256 * 1024];
        let mut got = 0;
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error.into()),
            }
        }
        if got < bytes {
            Err(format!("{got} of {bytes} bytes came").into())
        } else {
            Ok(())
        }
    };
    get(1 << 20)?;
    let mut connects = Vec::new();
    for _ in 0..CONNECTS {
        let started = Instant::now();
        let stream = connect()?;
        connects.push(started.elapsed().as_secs_f64() * 1e6);
        drop(stream);
    }
    let started = Instant::now();
    get(DOWNLOAD)?;
    let mib_per_s = f64::from(DOWNLOAD_MIB) / started.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({"mib_per_s": mib_per_s, "connect_us": connects})
    );
    Ok(())
}

/// The address of a name, as the namespace's resolver answers.
fn ask(name: &str) -> Outcome<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((RESOLVER, 53))?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut message = Message::query();
    message.queries.push(Query::query(
        Name::from_ascii(format!("{name}."))?,
        RecordType::A,
    ));
    socket.send(&message.to_vec()?)?;
    let mut answer = [0; 1500];
    let length = socket.recv(&mut answer)?;
    match Message::from_vec(&answer[..length])?
        .answers
        .first()
        .map(|record| &record.data)
    {
        Some(RData::A(address)) => Ok(address.0),
        _ => Err(format!("{name} has no address").into()),
    }
}

fn start_mitmproxy(program: &Path, confdir: &Path, port: u16, folder: &Path) -> Outcome<Process> {
    let process = Command::new(program)
        .args([
            "--quiet",
            "--listen-host",
            "127.0.0.1",
            "--listen-port",
            &port.to_string(),
        ])
        .args(["--set", &format!("confdir={}", confdir.display())])
        .args(["--set", "stream_large_bodies=1"])
        .args([
            "--set",
            &format!(
                "ssl_verify_upstream_trusted_ca={}",
                folder.join("ca.pem").display()
            ),
        ])
        // The certificate is for the name that the client says, the address is one of loopback.
        .args(["--set", "ssl_insecure=true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let process = Process(process);
    listening(port)?;
    Ok(process)
}

fn start_tinyproxy(program: &Path, port: u16, folder: &Path) -> Outcome<Process> {
    let configuration: PathBuf = folder.join("tinyproxy.conf");
    let text = format!(
        "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 200\nAllow 127.0.0.1\nLogLevel Error\n"
    );
    std::fs::write(&configuration, text)?;
    let process = Command::new(program)
        .arg("-d")
        .arg("-c")
        .arg(&configuration)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let process = Process(process);
    listening(port)?;
    Ok(process)
}

/// Waits until something listens.
fn listening(port: u16) -> Outcome<()> {
    let deadline = Instant::now() + Duration::from_mins(1);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if Instant::now() > deadline {
            return Err("it did not listen within a minute".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}
