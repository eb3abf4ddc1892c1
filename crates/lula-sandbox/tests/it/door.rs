//! A network by name: every address leads to a listener outside, and nothing else leads anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lula_protocol::denial::DeniedAttempt;
use lula_protocol::digest::DigestDomain;
use lula_protocol::receipt::ProtectionLayer;
use lula_protocol::{Digest, IsolationTier, SandboxDenial};
use lula_sandbox::policy::Network;
use lula_sandbox::{
    DoorKeeper, DoorListeners, DoorPlan, DoorSubject, FinishedCommand, HostToolchains, OpenDoor,
    Sandbox, SandboxCommand, SandboxEngine, SandboxError,
};

use crate::support::{build_policy, engine, new_engine, workspace};

/// Answers each connection with where it was to go to, and counts the sandboxes that are gone.
#[derive(Debug, Default)]
struct Echo {
    gone: Arc<Mutex<u32>>,
    certificates: Option<std::path::PathBuf>,
}

#[derive(Debug)]
struct EchoDoor {
    over: Arc<AtomicBool>,
    gone: Arc<Mutex<u32>>,
}

impl DoorKeeper for Echo {
    fn plan(&self, subject: &DoorSubject) -> io::Result<DoorPlan> {
        assert!(subject.workspace.is_absolute());
        let gone = Arc::clone(&self.gone);
        Ok(DoorPlan {
            policy: policy_digest(),
            ports: BTreeSet::from([80, 443]),
            variables: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
            certificates: self.certificates.clone(),
            java_certificates: None,
            published: Vec::new(),
            open: Box::new(move |listeners| {
                let over = Arc::new(AtomicBool::new(false));
                serve(listeners, &over);
                Ok(Box::new(EchoDoor { over, gone }) as Box<dyn OpenDoor>)
            }),
        })
    }
}

impl OpenDoor for EchoDoor {
    fn command_begins(&self, _program: &str) -> u64 {
        0
    }

    fn denials_since(&self, _mark: u64) -> Vec<SandboxDenial> {
        Vec::new()
    }

    fn name_of(&self, address: IpAddr) -> Option<String> {
        (address == IpAddr::from([198, 18, 0, 7])).then(|| "seven.example.org".to_owned())
    }
}

impl Drop for EchoDoor {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        *self.gone.lock().unwrap() += 1;
    }
}

fn policy_digest() -> Digest {
    Digest::of(DigestDomain::Policy, &"echo").unwrap()
}

fn serve(listeners: DoorListeners, over: &Arc<AtomicBool>) {
    assert_eq!(listeners.dns_udp.len(), 1);
    assert_eq!(listeners.dns_tcp.len(), 1);
    for listener in listeners.tcp {
        let over = Arc::clone(over);
        std::thread::spawn(move || answer(&listener, &over));
    }
    let names = listeners.dns_udp.into_iter().next().unwrap();
    let over = Arc::clone(over);
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while !over.load(Ordering::Relaxed) {
            if let Ok((length, from)) = names.recv_from(&mut buffer) {
                names.send_to(&buffer[..length], from).unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

fn answer(listener: &TcpListener, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if let Ok((mut stream, _)) = listener.accept() {
            let to = stream.local_addr().unwrap();
            // One piece: the client reads once.
            let _ = stream.write_all(to.to_string().as_bytes());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn with_door() -> SandboxEngine {
    new_engine().with_door_keeper(Arc::new(Echo::default()))
}

fn python(engine: &SandboxEngine, script: &str) -> FinishedCommand {
    let folder = workspace();
    let policy = build_policy().with_network(Network::Allowlist);
    let sandbox = Sandbox::new(policy, folder.path()).toolchains(HostToolchains::of_this_process());
    let session = engine.open(&sandbox).unwrap();
    let command = SandboxCommand::new("python3").arguments(["-c", script]);
    let finished = session.run(&command).unwrap();
    session.close().unwrap();
    finished
}

const CONNECT: &str = "
import socket
def connect(address, port):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    with socket.socket(family) as s:
        s.settimeout(5)
        try:
            s.connect((address, port))
            return s.recv(100).decode()
        except OSError as error:
            return type(error).__name__
";

#[test]
fn a_connection_arrives_with_where_it_was_to_go() {
    let finished = python(
        &with_door(),
        &format!(
            "{CONNECT}
for address in ['93.184.216.34', '169.254.169.254', '10.0.0.1', '127.0.0.1', '2001:db8::1', '::1', '::ffff:1.2.3.4']:
    print(connect(address, 443))
"
        ),
    );
    assert_eq!(
        finished.stdout.text(),
        "93.184.216.34:443\n169.254.169.254:443\n10.0.0.1:443\n127.0.0.1:443\n\
         [2001:db8::1]:443\n[::1]:443\n1.2.3.4:443\n",
        "{}",
        finished.stderr.text()
    );
}

#[test]
fn every_other_port_is_refused_at_once() {
    let script = format!(
        "{CONNECT}
for address in ['93.184.216.34', '127.0.0.1', '198.18.0.7', '2001:db8::1']:
    print(connect(address, 8080))
for address in [('93.184.216.34', 443), ('8.8.8.8', 853)]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.connect(address)
        s.send(b'x')
        try: s.recv(1)
        except OSError as error: print(type(error).__name__)
"
    );
    let finished = python(&with_door(), &script);
    let refused = "ConnectionRefusedError\n".repeat(6);
    assert_eq!(
        finished.stdout.text(),
        refused,
        "{}",
        finished.stderr.text()
    );
    let denied: Vec<_> = finished.receipt.denials.iter().collect();
    let named = denied.iter().find(|denial| {
        denial.attempt
            == DeniedAttempt::Connect {
                host: "seven.example.org".to_owned(),
                port: 8080,
            }
    });
    assert_eq!(
        named.unwrap().grant.as_deref(),
        Some("--net seven.example.org:8080")
    );
    let of_443 = |denial: &&&SandboxDenial| {
        matches!(denial.attempt, DeniedAttempt::Connect { port: 443, .. })
    };
    // The datagram to port 443 was a connect too; no listener of datagrams is there.
    assert!(denied.iter().filter(of_443).count() <= 1, "{denied:?}");
}

#[test]
fn names_are_asked_for_at_any_address() {
    let script = "
import socket
print(open('/etc/resolv.conf').read(), end='')
for address in ['127.0.0.1', '8.8.8.8']:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        s.connect((address, 53))
        s.send(b'who')
        print(s.recv(10).decode())
";
    let finished = python(&with_door(), script);
    assert_eq!(
        finished.stdout.text(),
        "nameserver 127.0.0.1\nwho\nwho\n",
        "{}",
        finished.stderr.text()
    );
}

#[test]
fn nothing_inside_can_change_the_network() {
    // A route to delete, an address to add, an interface to make: RTM_DELROUTE, RTM_NEWADDR, RTM_NEWLINK.
    let script = "
import socket, struct
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
for kind, body in [
    (25, struct.pack('BBBBBBBBI', 2, 0, 0, 0, 255, 3, 254, 2, 0)),
    (20, struct.pack('BBBBI', 2, 8, 0, 0, 1)),
    (16, struct.pack('BxHiII', 0, 0, 0, 1, 1)),
]:
    n.send(struct.pack('IHHII', 16 + len(body), kind, 1 | 4 | 0x400, 1, 0) + body)
    print(-struct.unpack('i', n.recv(4096)[16:20])[0])
";
    let finished = python(&with_door(), script);
    assert_eq!(
        finished.stdout.text(),
        "1\n1\n1\n",
        "{}",
        finished.stderr.text()
    );
}

#[test]
fn the_receipt_says_what_was_read_back() {
    let finished = python(&with_door(), "import os; print(os.environ['GREETING'])");
    assert_eq!(finished.stdout.text(), "hello\n");
    let layers = &finished.receipt.layers;
    assert!(!layers.iter().any(|layer| layer.name() == "no_network"));
    let Some(ProtectionLayer::Egress {
        policy,
        interfaces,
        routes,
        listening,
        published,
    }) = layers.iter().find(|layer| layer.name() == "egress")
    else {
        panic!("{layers:?}");
    };
    assert_eq!(*policy, policy_digest());
    assert_eq!(interfaces, &["lo"]);
    assert!(published.is_empty());
    assert_eq!(
        routes,
        &[
            "local 0.0.0.0/0 dev lo table local",
            "local ::/0 dev lo table local"
        ]
    );
    for socket in [
        "udp 0.0.0.0:53",
        "tcp 0.0.0.0:53",
        "tcp 0.0.0.0:443",
        "tcp [::]:80",
    ] {
        assert!(
            listening.iter().any(|one| one == socket),
            "{socket}: {listening:?}"
        );
    }
}

#[test]
fn a_network_with_a_door_is_never_anothers() {
    let engine = with_door();
    for _ in 0..4 {
        python(&engine, "pass");
        let folder = workspace();
        let session = engine
            .open(&Sandbox::new(build_policy(), folder.path()))
            .unwrap();
        let script = "import socket; s = socket.socket(); print(s.connect_ex(('1.2.3.4', 443)))";
        let command = SandboxCommand::new("python3").arguments(["-c", script]);
        let finished = session.run(&command).unwrap();
        let unreachable = format!("{}\n", libc::ENETUNREACH);
        assert_eq!(
            finished.stdout.text(),
            unreachable,
            "{}",
            finished.stderr.text()
        );
    }
}

#[test]
fn what_answers_is_gone_with_its_sandbox() {
    let keeper = Echo::default();
    let gone = Arc::clone(&keeper.gone);
    let engine = new_engine().with_door_keeper(Arc::new(keeper));
    python(&engine, "pass");
    assert_eq!(*gone.lock().unwrap(), 1);
}

#[test]
fn the_certificates_of_the_door_are_those_of_the_system() {
    let folder = workspace();
    let path = folder.path().join("bundle.pem");
    std::fs::write(&path, "-- ours --\n").unwrap();
    let keeper = Echo {
        certificates: Some(path.clone()),
        ..Echo::default()
    };
    let engine = new_engine().with_door_keeper(Arc::new(keeper));
    let script = "
import os
print(open('/etc/lula/certificates.pem').read(), end='')
system = '/etc/ssl/certs/ca-certificates.crt'
print(open(system).read() if os.path.exists(system) else '-- ours --\\n', end='')
try: open('/etc/lula/certificates.pem', 'a')
except OSError as error: print(type(error).__name__)
";
    let finished = python(&engine, script);
    let said = finished.stdout.text();
    let (shown, refused) = said.split_at(22);
    assert_eq!(
        shown,
        "-- ours --\n-- ours --\n",
        "{}",
        finished.stderr.text()
    );
    assert!(
        ["PermissionError\n", "OSError\n"].contains(&refused),
        "{refused}"
    );
}

#[test]
fn where_nothing_answers_nothing_runs() {
    let folder = workspace();
    let policy = build_policy().with_network(Network::Allowlist);
    let refused = engine().open(&Sandbox::new(policy.clone(), folder.path()));
    assert!(
        matches!(refused, Err(SandboxError::NoDoorKeeper)),
        "{refused:?}"
    );
    let landlock = Sandbox::new(policy, folder.path()).tier(IsolationTier::Landlock);
    let refused = with_door().open(&landlock);
    assert!(
        matches!(refused, Err(SandboxError::AllowlistNeedsNamespaces { .. })),
        "{refused:?}"
    );
}

#[test]
fn the_hosts_network_is_given_only_as_a_whole_and_said() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port();
    let answering =
        std::thread::spawn(move || host.accept().unwrap().0.write_all(b"host").unwrap());
    let folder = workspace();
    let policy = build_policy().with_network(Network::Host);
    let sandbox = Sandbox::new(policy, folder.path());
    let session = engine().open(&sandbox).unwrap();
    let script = format!(
        "import socket; s = socket.create_connection(('127.0.0.1', {port})); print(s.recv(9).decode())"
    );
    let finished = session
        .run(&SandboxCommand::new("python3").arguments(["-c", &script]))
        .unwrap();
    assert_eq!(
        finished.stdout.text(),
        "host\n",
        "{}",
        finished.stderr.text()
    );
    answering.join().unwrap();
    let receipt = &finished.receipt;
    let names: Vec<_> = receipt.layers.iter().map(ProtectionLayer::name).collect();
    assert!(
        !names.contains(&"no_network") && !names.contains(&"egress"),
        "{names:?}"
    );
    let said = receipt
        .not_applied
        .iter()
        .any(|one| one.reason.contains("network = \"host\""));
    assert!(said, "{:?}", receipt.not_applied);
    assert_eq!(receipt.denials, []);
}

#[test]
fn an_ordinary_user_has_both_networks() {
    crate::unprivileged::as_ordinary_user("door::unprivileged_by_name");
    crate::unprivileged::as_ordinary_user("door::unprivileged_on_host");
}

#[test]
#[ignore = "run as an ordinary user by the test above"]
fn unprivileged_by_name() {
    assert!(!rustix::process::geteuid().is_root());
    a_connection_arrives_with_where_it_was_to_go();
    nothing_inside_can_change_the_network();
    a_network_with_a_door_is_never_anothers();
}

#[test]
#[ignore = "run as an ordinary user by the test above"]
fn unprivileged_on_host() {
    assert!(!rustix::process::geteuid().is_root());
    the_hosts_network_is_given_only_as_a_whole_and_said();
}

/// What a client says is heard outside as it is: for protocols where the client begins.
#[test]
fn bytes_go_both_ways() {
    #[derive(Debug)]
    struct Upper;
    impl DoorKeeper for Upper {
        fn plan(&self, _subject: &DoorSubject) -> io::Result<DoorPlan> {
            Ok(DoorPlan {
                policy: policy_digest(),
                ports: BTreeSet::from([7]),
                variables: BTreeMap::new(),
                certificates: None,
                java_certificates: None,
                published: Vec::new(),
                open: Box::new(|mut listeners| {
                    let listener = listeners.tcp.remove(0);
                    listener.set_nonblocking(false)?;
                    std::thread::spawn(move || {
                        let (mut stream, _) = listener.accept().unwrap();
                        let mut bytes = [0; 5];
                        stream.read_exact(&mut bytes).unwrap();
                        bytes.make_ascii_uppercase();
                        stream.write_all(&bytes).unwrap();
                    });
                    let gone = Arc::default();
                    let over = Arc::default();
                    Ok(Box::new(EchoDoor { over, gone }) as Box<dyn OpenDoor>)
                }),
            })
        }
    }
    let engine = new_engine().with_door_keeper(Arc::new(Upper));
    let script = "
import socket
s = socket.create_connection(('192.0.2.1', 7))
s.send(b'hello')
print(s.recv(9).decode())
";
    let finished = python(&engine, script);
    assert_eq!(
        finished.stdout.text(),
        "HELLO\n",
        "{}",
        finished.stderr.text()
    );
}

/// Keeps what makes sockets in the network of its sandbox.
#[derive(Debug, Default)]
struct Sockets(Arc<Mutex<Option<lula_sandbox::SandboxSockets>>>);

impl DoorKeeper for Sockets {
    fn plan(&self, subject: &DoorSubject) -> io::Result<DoorPlan> {
        let kept = Arc::clone(&self.0);
        let mut plan = Echo::default().plan(subject)?;
        let open = plan.open;
        plan.open = Box::new(move |mut listeners: DoorListeners| {
            *kept.lock().unwrap() = listeners.sockets.take();
            open(listeners)
        });
        Ok(plan)
    }
}

#[test]
fn a_server_inside_is_reached_by_a_socket_of_its_network_as_long_as_it_stands() {
    let keeper = Sockets::default();
    let kept = Arc::clone(&keeper.0);
    let engine = new_engine().with_door_keeper(Arc::new(keeper));
    let folder = workspace();
    let policy = build_policy().with_network(Network::Allowlist);
    let sandbox = Sandbox::new(policy, folder.path()).toolchains(HostToolchains::of_this_process());
    let session = engine.open(&sandbox).unwrap();
    let sockets = kept.lock().unwrap().clone().unwrap();
    let script = "
import socket
s = socket.create_server(('127.0.0.1', 8080))
print('ready', flush=True)
c, _ = s.accept()
c.sendall(b'from inside')
c.close()
";
    let command = SandboxCommand::new("python3").arguments(["-c", script]);
    let process = session.start_in_background(&command).unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], 8080));
    // A socket of this process's network finds nothing there.
    assert!(TcpStream::connect(to).is_err());
    let begun = std::time::Instant::now();
    let mut answer = String::new();
    while answer.is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(1), "no server");
        let socket = sockets.stream(to.ip()).unwrap();
        rustix::io::ioctl_fionbio(&socket, false).unwrap();
        if rustix::net::connect(&socket, &to).is_ok() {
            TcpStream::from(socket).read_to_string(&mut answer).unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(answer, "from inside");
    process.wait().unwrap();
    // A port that a program has is not taken away from it; a free one is given, once.
    let taken = sockets.listener(443).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    let listener = sockets.listener(9000).unwrap();
    assert_eq!(listener.local_addr().unwrap().port(), 9000);
    session.close().unwrap();
    // The sandbox is no more, and neither is a later one's network given in its place.
    let later = engine.open(&sandbox).unwrap();
    assert!(sockets.stream(to.ip()).is_err());
    later.close().unwrap();
}
