//! A network namespace as a sandbox has it, with an engine that serves it. Programs run in it, and tests
//! get sockets of it.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use lula_egress::{
    BrokeredCredential, ConnectionRecord, Egress, EgressError, EgressHandle, EgressPolicy,
    EgressRefusal, EgressStage, Outside, SandboxListeners, SandboxNeighbours, SandboxNetwork,
};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::resolver::TestResolver;
use crate::server::authority;

/// How long anything may take that is about to happen.
const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Sandbox {
    pub(crate) resolver: TestResolver,
    pub(crate) credentials: Vec<String>,
    handle: Option<EgressHandle>,
    records: Arc<Mutex<Vec<ConnectionRecord>>>,
    control: Arc<Control>,
    helper: Child,
    folder: TempDir,
}

/// Where sockets of the namespace come from.
#[derive(Debug)]
struct Control(Mutex<UnixStream>);

impl SandboxNetwork for Control {
    fn stream(&self, to: IpAddr) -> io::Result<OwnedFd> {
        self.socket("stream", &to.to_string(), 0)
            .map_err(io::Error::other)
    }

    fn listener(&self, port: u16) -> io::Result<OwnedFd> {
        self.socket("listen", "0.0.0.0", port)
            .map_err(io::Error::other)
    }
}

/// What a sandbox is started with.
#[derive(Default)]
pub(crate) struct Setup {
    policy: EgressPolicy,
    credentials: Vec<BrokeredCredential>,
    resolver: TestResolver,
    variables: Vec<(String, String)>,
    ports: Vec<u16>,
    neighbours: Option<Arc<dyn SandboxNeighbours>>,
}

/// The many descriptors of a thousand connections are allowed, once.
pub(crate) fn many_descriptors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let most = getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        setrlimit(Resource::Nofile, limit).unwrap();
    });
}

impl Setup {
    /// A policy in TOML. `PORT` stands for the port of a server.
    pub(crate) fn policy(toml: &str, port: u16) -> Self {
        let policy = toml::from_str(&toml.replace("PORT", &port.to_string())).unwrap();
        Self {
            policy,
            ports: vec![port],
            ..Self::default()
        }
    }

    /// A policy of rules in their short form.
    pub(crate) fn rules(rules: &[&str], port: u16) -> Self {
        let mut setup = Self::policy("", port);
        for rule in rules {
            let rule = rule.replace("PORT", &port.to_string());
            setup.policy.rules.push(rule.parse().unwrap());
        }
        setup
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut lula_egress::EgressLimits)) -> Self {
        change(&mut self.policy.limits);
        self
    }

    pub(crate) fn resolver(mut self, resolver: &TestResolver) -> Self {
        self.resolver = resolver.clone();
        self
    }

    /// Gives every credential of the policy this secret.
    pub(crate) fn secret(mut self, secret: &str) -> Self {
        for rule in &self.policy.credentials {
            let one = BrokeredCredential::new(rule.clone(), secret.into()).unwrap();
            self.credentials.push(one);
        }
        self
    }

    /// Narrows the policy to one rule, as a repository can.
    pub(crate) fn narrowed(mut self, rule: &str) -> Self {
        let narrowing = lula_egress::EgressNarrowing {
            rules: Some(vec![rule.parse().unwrap()]),
            ..Default::default()
        };
        self.policy = self.policy.narrow(&narrowing);
        self
    }

    pub(crate) fn proxy_variables(mut self, variables: &[(&str, &str)]) -> Self {
        for (name, value) in variables {
            self.variables
                .push(((*name).to_owned(), (*value).to_owned()));
        }
        self
    }

    pub(crate) fn neighbours(mut self, neighbours: impl SandboxNeighbours) -> Self {
        self.neighbours = Some(Arc::new(neighbours));
        self
    }

    pub(crate) fn start(self) -> Sandbox {
        self.try_start().unwrap()
    }

    pub(crate) fn try_start(self) -> Result<Sandbox, EgressError> {
        let folder = tempfile::tempdir().unwrap();
        let resolv = folder.path().join("resolv.conf");
        std::fs::write(
            &resolv,
            "nameserver 127.0.0.53\noptions timeout:2 attempts:1\n",
        )
        .unwrap();
        let (control, theirs) = UnixStream::pair().unwrap();
        control.set_read_timeout(Some(SOON)).unwrap();
        let helper = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--net",
                "--mount",
                "python3",
                "-c",
            ])
            .arg(include_str!("namespace.py"))
            .arg(&resolv)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .expect("unshare (util-linux), python3 and ip (iproute2) are needed");
        let mut sandbox = Sandbox {
            resolver: self.resolver.clone(),
            credentials: self
                .credentials
                .iter()
                .map(|one| one.placeholder().to_owned())
                .collect(),
            handle: None,
            records: Arc::default(),
            control: Arc::new(Control(Mutex::new(control))),
            helper,
            folder,
        };
        let mut ready = [0; 6];
        sandbox
            .control
            .0
            .lock()
            .unwrap()
            .read_exact(&mut ready)
            .expect("the namespace is made");
        let listeners = SandboxListeners {
            tcp: self
                .ports
                .iter()
                .flat_map(|port| [(*port, "0.0.0.0"), (*port, "::")])
                .map(|(port, any)| (port, sandbox.socket("listen", any, port).unwrap()))
                .collect(),
            dns_udp: sandbox.socket("udp", "127.0.0.53", 53).unwrap(),
            dns_tcp: sandbox.socket("listen", "127.0.0.53", 53).unwrap(),
            network: Some(Arc::clone(&sandbox.control) as Arc<dyn SandboxNetwork>),
        };
        let outside = Outside {
            resolver: Arc::new(self.resolver),
            resolutions_live: Duration::ZERO,
            proxy: lula_egress::UpstreamProxy::from_variables(self.variables)?,
            extra_roots_pem: vec![authority().pem()],
            neighbours: self.neighbours,
        };
        let records = Arc::clone(&sandbox.records);
        let handle = Egress::start(
            listeners,
            self.policy,
            self.credentials,
            outside,
            move |record| {
                records.lock().unwrap().push(record);
            },
        )?;
        sandbox.handle = Some(handle);
        Ok(sandbox)
    }
}

impl Control {
    fn socket(&self, what: &str, address: &str, port: u16) -> Result<OwnedFd, String> {
        let control = self.0.lock().unwrap();
        writeln!(&*control, "{what} {address} {port}").unwrap();
        let mut answer = [0; 256];
        let mut space = [MaybeUninit::uninit(); 64];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &*control,
            &mut [IoSliceMut::new(&mut answer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
        .unwrap();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
                return Ok(descriptors.next().unwrap());
            }
        }
        Err(String::from_utf8_lossy(&answer[..received.bytes])
            .trim()
            .to_owned())
    }
}

impl Sandbox {
    pub(crate) fn engine(&self) -> &EgressHandle {
        self.handle.as_ref().unwrap()
    }

    pub(crate) fn stop_engine(&mut self) {
        self.handle.take().unwrap().stop();
    }

    /// A socket of the namespace.
    fn socket(&self, what: &str, address: &str, port: u16) -> Result<OwnedFd, String> {
        self.control.socket(what, address, port)
    }
    /// A server of a program inside.
    pub(crate) fn serve(&self, address: &str, port: u16) -> TcpListener {
        TcpListener::from(self.socket("listen", address, port).unwrap())
    }

    /// The namespace as the engines of others reach into it.
    pub(crate) fn network(&self) -> Arc<dyn SandboxNetwork> {
        Arc::clone(&self.control) as Arc<dyn SandboxNetwork>
    }

    pub(crate) fn dial(&self, address: &str, port: u16) -> Result<TcpStream, String> {
        let stream = TcpStream::from(self.socket("dial", address, port)?);
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.set_write_timeout(Some(SOON)).unwrap();
        Ok(stream)
    }

    /// The answer to a question over UDP.
    pub(crate) fn ask(&self, name: &str, kind: RecordType) -> Message {
        let socket = UdpSocket::from(self.socket("datagram", "127.0.0.53", 53).unwrap());
        socket.set_read_timeout(Some(SOON)).unwrap();
        socket.send(&question(name, kind)).unwrap();
        let mut answer = [0; 2048];
        let length = socket.recv(&mut answer).expect("an answer");
        Message::from_vec(&answer[..length]).unwrap()
    }

    /// Asks and does not wait for an answer.
    pub(crate) fn ask_and_go(&self, name: &str) {
        let socket = UdpSocket::from(self.socket("datagram", "127.0.0.53", 53).unwrap());
        socket.send(&question(name, RecordType::A)).unwrap();
    }

    pub(crate) fn ask_over_tcp(&self, name: &str, kind: RecordType) -> Message {
        let mut stream = self.dial("127.0.0.53", 53).unwrap();
        let question = question(name, kind);
        let length = u16::try_from(question.len()).unwrap().to_be_bytes();
        stream
            .write_all(&[&length[..], &question].concat())
            .unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer).unwrap();
        Message::from_vec(&answer).unwrap()
    }

    /// The address that a name is answered with.
    pub(crate) fn resolve(&self, name: &str) -> Result<Ipv4Addr, ResponseCode> {
        let answer = self.ask(name, RecordType::A);
        match answer.answers.first().map(|record| &record.data) {
            Some(RData::A(address)) => Ok(address.0),
            _ => Err(answer.metadata.response_code),
        }
    }

    /// A connection as programs make it: ask for the name, dial the answer.
    pub(crate) fn connect(&self, name: &str, port: u16) -> TcpStream {
        let address = self
            .resolve(name)
            .unwrap_or_else(|code| panic!("{name}: {code}"));
        self.dial(&address.to_string(), port).unwrap()
    }

    /// TLS to a name, trusting the test's authority and the engine's.
    pub(crate) fn tls(&self, name: &str, port: u16) -> Conversation {
        self.tls_as(name, name, port, &[])
    }

    /// TLS to the address of one name with the server name of another.
    pub(crate) fn tls_as(&self, name: &str, said: &str, port: u16, alpn: &[&str]) -> Conversation {
        let server = ServerName::try_from(said.to_owned()).unwrap();
        let mut config = self.client_config();
        config.alpn_protocols = alpn.iter().map(|one| one.as_bytes().to_vec()).collect();
        self.tls_with(name, server, port, config)
    }

    pub(crate) fn tls_with(
        &self,
        name: &str,
        server: ServerName<'static>,
        port: u16,
        config: ClientConfig,
    ) -> Conversation {
        let client = ClientConnection::new(Arc::new(config), server).unwrap();
        Conversation(StreamOwned::new(client, self.connect(name, port)))
    }

    pub(crate) fn client_config(&self) -> ClientConfig {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject;
        let mut roots = RootCertStore::empty();
        for pem in [
            authority().pem(),
            self.engine().ca_certificate_pem().to_owned(),
        ] {
            roots
                .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
                .unwrap();
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// Runs a program inside, trusting the test's authority and the engine's.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap()
    }

    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let bundle = self.folder.path().join("bundle.pem");
        let pem = [
            authority().pem(),
            self.engine().ca_certificate_pem().to_owned(),
        ]
        .concat();
        std::fs::write(&bundle, pem).unwrap();
        let mut command = Command::new("nsenter");
        command
            .args([
                "--target",
                &self.helper.id().to_string(),
                "--user",
                "--net",
                "--mount",
                "--preserve-credentials",
            ])
            .arg(format!("--wd={}", self.folder.path().display()))
            .arg("--")
            .arg(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("SSL_CERT_FILE", &bundle)
            .env("CURL_CA_BUNDLE", &bundle)
            .env("GIT_SSL_CAINFO", &bundle)
            .env("GIT_TERMINAL_PROMPT", "0");
        command
    }

    pub(crate) fn records(&self) -> Vec<ConnectionRecord> {
        self.records.lock().unwrap().clone()
    }

    /// The first record of a stage, once it is told.
    pub(crate) fn record(&self, stage: EgressStage) -> ConnectionRecord {
        self.record_where(|record| record.stage == stage)
    }

    pub(crate) fn record_where(
        &self,
        is_it: impl Fn(&ConnectionRecord) -> bool,
    ) -> ConnectionRecord {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(record) = self.records().into_iter().find(|record| is_it(record)) {
                return record;
            }
            assert!(
                Instant::now() < deadline,
                "no such record among {:#?}",
                self.records()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The record of what was refused for a reason.
    pub(crate) fn refused(&self, reason: EgressRefusal) -> ConnectionRecord {
        self.record_where(|record| {
            record
                .denial
                .as_ref()
                .is_some_and(|denial| denial.reason == reason)
        })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.handle.take());
        let _ = self.helper.kill();
        let _ = self.helper.wait();
    }
}

/// TLS with requests written out.
pub(crate) struct Conversation(pub(crate) StreamOwned<ClientConnection, TcpStream>);

impl Conversation {
    /// Sends a request and reads the answer to its end, which closing the connection marks.
    pub(crate) fn say(mut self, request: &str) -> Result<String, String> {
        self.0
            .write_all(request.as_bytes())
            .map_err(|error| error.to_string())?;
        read_all(&mut self.0).map(whole)
    }

    /// `GET` as programs send it.
    pub(crate) fn get(self, host: &str, path: &str, headers: &str) -> Result<String, String> {
        self.say(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
        ))
    }
}

/// An answer with the pieces of its body put together.
fn whole(answer: String) -> String {
    let Some((head, mut rest)) = answer.split_once("\r\n\r\n") else {
        return answer;
    };
    if !head.contains("transfer-encoding: chunked") {
        return answer;
    }
    let mut all = format!("{head}\r\n\r\n");
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        all.push_str(&after[..length]);
        rest = &after[length + 2..];
    }
    all
}

/// All that comes until the end. A peer that ends without ceremony has ended too.
pub(crate) fn read_all(from: &mut impl Read) -> Result<String, String> {
    let mut all = Vec::new();
    match from.read_to_end(&mut all) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && !all.is_empty() => {}
        Err(error) => return Err(error.to_string()),
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

fn question(name: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::query();
    message.queries.push(Query::query(
        Name::from_ascii(format!("{name}.")).unwrap(),
        kind,
    ));
    message.to_vec().unwrap()
}

pub(crate) fn loopback() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}
