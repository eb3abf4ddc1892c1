//! Getting packets out or in.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::act::call;
use super::probe::{
    AttackBodyResult, AttackExpectation, AttackFamily, AttackObservation, AttackProbe,
};
use super::scene::AttackScene;

/// In a network of its own no process listens; in the host's, no such socket can be made.
const fn probe(
    name: &'static str,
    attempts: &'static str,
    errno: &'static [i32],
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Network, name, attempts, body).by_tier(
        Some(AttackExpectation::Fails(errno)),
        Some(AttackExpectation::Fails(&[libc::EPERM])),
    )
}

fn connect(address: impl Into<SocketAddr>) -> AttackBodyResult {
    TcpStream::connect_timeout(&address.into(), Duration::from_secs(2))?;
    Ok(String::new())
}

/// Sends a datagram from a socket that may reach that far.
fn send(address: impl Into<SocketAddr>) -> AttackBodyResult {
    let address = address.into();
    let socket = UdpSocket::bind(if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    })?;
    socket.connect(address)?;
    socket.send(b"probe")?;
    Ok(String::new())
}

/// The host's own address on its network: reachable from outside without any packet on a wire.
fn host(scene: &AttackScene) -> Ipv4Addr {
    scene.host_address()
}

pub(super) const PROBES: &[AttackProbe] = &[
    probe(
        "host_loopback",
        "connect to a service on the host's loopback",
        &[libc::ECONNREFUSED],
        |s| connect((Ipv4Addr::LOCALHOST, s.tcp_port())),
    ),
    probe(
        "host_loopback_other_name",
        "the same by 127.1.2.3",
        &[libc::ECONNREFUSED],
        |s| connect((Ipv4Addr::new(127, 1, 2, 3), s.tcp_port())),
    ),
    probe(
        "host_any_address",
        "the same by 0.0.0.0",
        &[libc::ECONNREFUSED],
        |s| connect((Ipv4Addr::UNSPECIFIED, s.tcp_port())),
    ),
    probe(
        "host_loopback_mapped",
        "the same by an IPv4 address inside IPv6",
        &[libc::ECONNREFUSED],
        |s| connect((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), s.tcp_port())),
    ),
    probe(
        "host_loopback_v6",
        "the same by IPv6",
        &[libc::ECONNREFUSED, libc::EADDRNOTAVAIL],
        |s| connect((Ipv6Addr::LOCALHOST, s.tcp6_port())),
    ),
    probe(
        "host_address",
        "connect to the host by its own address",
        &[libc::ENETUNREACH],
        |s| connect((host(s), s.tcp_port())),
    ),
    probe(
        "host_datagram",
        "send a datagram to the host (UDP, QUIC, DNS)",
        &[libc::ENETUNREACH],
        |s| send((host(s), s.udp_port())),
    ),
    probe(
        "metadata_service",
        "reach the cloud's metadata service",
        &[libc::ENETUNREACH],
        |_| send((Ipv4Addr::new(169, 254, 169, 254), 80)),
    )
    .controlled_by(|s| send((host(s), s.udp_port()))),
    probe(
        "public_resolver",
        "send a name to a public resolver",
        &[libc::ENETUNREACH],
        |_| send((Ipv4Addr::new(9, 9, 9, 9), 53)),
    )
    .controlled_by(|s| send((host(s), s.udp_port()))),
    probe(
        "multicast",
        "announce oneself on the local network",
        &[libc::ENETUNREACH],
        |_| send((Ipv4Addr::new(224, 0, 0, 251), 5353)),
    )
    .controlled_by(|s| send((host(s), s.udp_port()))),
    probe(
        "abstract_socket",
        "connect to an abstract Unix socket of the host",
        &[libc::ECONNREFUSED],
        |s| {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(s.abstract_socket())?;
            std::os::unix::net::UnixStream::connect_addr(&address)?;
            Ok(String::new())
        },
    ),
    probe(
        "unix_socket",
        "connect to a Unix socket of the host (an ssh agent, docker)",
        &[libc::ENOENT],
        |s| {
            std::os::unix::net::UnixStream::connect(s.socket())?;
            Ok(String::new())
        },
    ),
    probe(
        "unix_datagram_pair",
        "send from a datagram pair to a socket of the host",
        &[libc::ENOENT],
        |s| {
            let (one, _other) = std::os::unix::net::UnixDatagram::pair()?;
            match one.connect(s.socket()) {
                // The host's is a stream socket: it was found, which is the point.
                Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => Ok(String::new()),
                other => Ok(other.map(|()| String::new())?),
            }
        },
    ),
    probe(
        "interfaces",
        "see the host's network interfaces",
        &[],
        |_| interfaces(),
    )
    .outside(AttackExpectation::Yields("more than lo"))
    .by_tier(Some(AttackExpectation::Yields("lo")), None),
    probe(
        "raise_interface",
        "bring up a network interface",
        &[libc::EPERM],
        |_| {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            // struct ifreq: name, then flags. IFF_UP | IFF_LOOPBACK | IFF_RUNNING changes nothing.
            let mut request = [0_u8; 40];
            request[..2].copy_from_slice(b"lo");
            request[16] = 0x49;
            let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket)
                .unsigned_abs()
                .into();
            call(
                "ioctl",
                &[descriptor, SET_FLAGS, request.as_ptr().addr() as u64],
            )
            .map(|_| String::new())
        },
    )
    .privileged(),
    probe(
        "low_port",
        "serve on a port below 1024",
        &[libc::EACCES],
        |_| {
            TcpListener::bind("127.0.0.1:909")?;
            Ok(String::new())
        },
    )
    .privileged(),
    AttackProbe::new(
        AttackFamily::Network,
        "raw_socket",
        "make packets by hand (raw IP)",
        |_| socket(2, 3, 255),
    )
    .privileged(),
    AttackProbe::new(
        AttackFamily::Network,
        "packet_socket",
        "read packets from the wire",
        |_| socket(17, 3, 0),
    )
    .inside(AttackExpectation::Fails(&[libc::EAFNOSUPPORT]))
    .privileged(),
    AttackProbe::new(
        AttackFamily::Network,
        "vsock",
        "reach the hypervisor by vsock",
        |_| socket(40, 1, 0),
    )
    .outside(AttackExpectation::Works)
    .controlled_by(kernel_answers)
    .inside(AttackExpectation::Fails(&[libc::EAFNOSUPPORT])),
    AttackProbe::new(
        AttackFamily::Network,
        "kernel_crypto_socket",
        "open a kernel crypto socket (AF_ALG)",
        |_| socket(38, 5, 0),
    )
    .controlled_by(kernel_answers)
    .inside(AttackExpectation::Fails(&[libc::EAFNOSUPPORT])),
    AttackProbe::new(
        AttackFamily::Network,
        "bluetooth_socket",
        "open a Bluetooth socket",
        |_| socket(31, 3, 1),
    )
    .controlled_by(kernel_answers)
    .inside(AttackExpectation::Fails(&[libc::EAFNOSUPPORT])),
    AttackProbe::new(
        AttackFamily::Network,
        "netlink_audit",
        "listen to the kernel's audit channel",
        |_| socket(16, 3, 9),
    )
    // Podman's own filter says it is invalid, before ours says anything.
    .inside(AttackExpectation::Fails(&[libc::EPERM, libc::EINVAL]))
    .controlled_by(|_| socket(16, 3, 0)),
    AttackProbe::new(
        AttackFamily::Network,
        "netlink_netfilter",
        "change the firewall (netfilter)",
        |_| socket(16, 3, 12),
    )
    .controlled_by(|_| socket(16, 3, 0)),
];

/// The number of `SIOCSIFFLAGS` among the requests of `ioctl`.
const SET_FLAGS: u64 = 0x8914;

fn socket(family: u64, kind: u64, protocol: u64) -> AttackBodyResult {
    call("socket", &[family, kind, protocol]).map(|_| String::new())
}

/// A family may be missing from this kernel; that socket calls reach it is shown by one that is
/// not.
fn kernel_answers(_: &AttackScene) -> AttackBodyResult {
    socket(1, 1, 0)
}

fn interfaces() -> AttackBodyResult {
    let text = std::fs::read_to_string("/proc/self/net/dev")?;
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once(':').map(|(name, _)| name.trim()))
        .collect();
    match names.as_slice() {
        ["lo"] => Ok("lo".to_owned()),
        [] => Err(AttackObservation::Ended("no interface at all".to_owned())),
        _ => Ok("more than lo".to_owned()),
    }
}
