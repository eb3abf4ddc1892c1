//! A network whose every address leads to a listener of the engine: nothing in it leads out.
//!
//! `local 0.0.0.0/0 dev lo` makes each address one of this network's own, so a connection to anywhere
//! arrives, with its original destination, at the socket that listens on that port. Where no socket
//! listens the kernel refuses at once. A descriptor knows which network its socket is in, so these work
//! from the engine, which is in another. Routes and sockets belong to the helper's user namespace:
//! nothing inside can change them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The port of name queries.
pub(crate) const DNS: u16 = 53;

/// How many connections may wait to be taken; the kernel has its own bound.
const WAITING: i32 = 4096;

/// The loopback is always a network's first interface.
const LOOPBACK: u32 = 1;

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_EXCL_CREATE: u16 = 0x600;
const RTA_OIF: u16 = 4;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_BOOT: u8 = 3;
const SCOPE_HOST: u8 = 254;
const TYPE_LOCAL: u8 = 2;
const HEADER: usize = 16;
const ROUTE: usize = 12;

/// What was made of a network: its sockets, and its routes for every address as they were read back.
pub(crate) struct DoorSockets {
    pub(crate) sockets: Vec<OwnedFd>,
    pub(crate) routes: Vec<String>,
}

/// Leads every address of the network this process is in to listeners on the ports given, and to those
/// for name queries. Without IPv6 there is no way to an IPv6 address at all.
pub(super) fn furnish(ports: &[u16]) -> io::Result<DoorSockets> {
    let netlink = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // Routes are its protocol 0.
        None::<Protocol>,
    )?;
    add_route(&netlink, AddressFamily::INET)?;
    let both = add_route(&netlink, AddressFamily::INET6).is_ok();
    let any = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let any6 = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    // Names are asked for by IPv4, where an answer comes from the address that was asked: the kernel gives
    // both ends the same one.
    let mut sockets = vec![
        bound(SocketType::DGRAM, any(DNS))?,
        bound(SocketType::STREAM, any(DNS))?,
    ];
    for port in ports {
        sockets.push(bound(SocketType::STREAM, any(*port))?);
        if both {
            sockets.push(bound(SocketType::STREAM, any6(*port))?);
        }
    }
    let mut routes = routes(&netlink, AddressFamily::INET)?;
    if both {
        routes.extend(self::routes(&netlink, AddressFamily::INET6)?);
    }
    Ok(DoorSockets { sockets, routes })
}

pub(super) fn bound(kind: SocketType, address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None::<Protocol>)?;
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&socket, WAITING)?;
    }
    Ok(socket)
}

/// A message about routes: header, `rtmsg`, attributes.
fn message(kind: u16, flags: u16, family: AddressFamily, attributes: &[u8]) -> Vec<u8> {
    let added = kind == RTM_NEWROUTE;
    let only = |value: u8| if added { value } else { 0 };
    let mut bytes = Vec::with_capacity(HEADER + ROUTE + attributes.len());
    let length = u32::try_from(HEADER + ROUTE + attributes.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags | NLM_F_REQUEST).to_ne_bytes());
    // Sequence number and sender, neither of which matters on a socket that asks one thing at a time.
    bytes.extend([0; 8]);
    // The family, no address of either end, no class.
    bytes.extend([family_number(family), 0, 0, 0]);
    bytes.extend([
        only(TABLE_LOCAL),
        only(PROTOCOL_BOOT),
        only(SCOPE_HOST),
        only(TYPE_LOCAL),
    ]);
    bytes.extend([0; 4]);
    bytes.extend(attributes);
    bytes
}

fn family_number(family: AddressFamily) -> u8 {
    // Both are below 256.
    u8::try_from(family.as_raw()).unwrap_or_default()
}

fn add_route(netlink: &OwnedFd, family: AddressFamily) -> io::Result<()> {
    let mut attribute = 8_u16.to_ne_bytes().to_vec();
    attribute.extend(RTA_OIF.to_ne_bytes());
    attribute.extend(LOOPBACK.to_ne_bytes());
    let flags = NLM_F_ACK | NLM_F_EXCL_CREATE;
    let request = message(RTM_NEWROUTE, flags, family, &attribute);
    rustix::net::send(netlink, &request, SendFlags::empty())?;
    let mut buffer = [0_u8; 1024];
    let (length, _) = rustix::net::recv(netlink, &mut buffer, RecvFlags::empty())?;
    let answer = Message::first(&buffer[..length]).ok_or(io::ErrorKind::InvalidData)?;
    match answer.error() {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The routes for every address, as the kernel lists them.
fn routes(netlink: &OwnedFd, family: AddressFamily) -> io::Result<Vec<String>> {
    let request = message(RTM_GETROUTE, NLM_F_DUMP, family, &[]);
    rustix::net::send(netlink, &request, SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0_u8; 32 * 1024];
    loop {
        let (length, _) = rustix::net::recv(netlink.as_fd(), &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length];
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while let Some(message) = Message::first(rest) {
            match message.kind {
                NLMSG_DONE => return Ok(found),
                NLMSG_ERROR => {
                    return Err(io::Error::from_raw_os_error(message.error().unwrap_or(0)));
                }
                RTM_NEWROUTE => found.extend(described(message.body)),
                _ => {}
            }
            rest = rest.get(message.whole..).unwrap_or_default();
        }
    }
}

/// A message of the kernel's.
struct Message<'a> {
    kind: u16,
    body: &'a [u8],
    /// Its length with what fills it up.
    whole: usize,
}

impl<'a> Message<'a> {
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
        let length = usize::try_from(length).ok()?;
        Some(Self {
            kind: u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?),
            body: bytes.get(HEADER..length)?,
            whole: length.next_multiple_of(4),
        })
    }

    /// The error number it carries, zero for success.
    fn error(&self) -> Option<i32> {
        if self.kind != NLMSG_ERROR {
            return None;
        }
        let number = i32::from_ne_bytes(self.body.get(..4)?.try_into().ok()?);
        number.checked_neg()
    }
}

/// A route for every address, in the words of `ip route`; nothing for one with a destination.
fn described(body: &[u8]) -> Option<String> {
    let [family, 0, _, _, table, _, _, kind] = *body.get(..8)? else {
        return None;
    };
    let to = if i32::from(family) == libc::AF_INET6 {
        "::/0"
    } else {
        "0.0.0.0/0"
    };
    let kind = match kind {
        TYPE_LOCAL => "local".to_owned(),
        other => format!("type {other}"),
    };
    let table = match table {
        TABLE_LOCAL => "local".to_owned(),
        other => other.to_string(),
    };
    let through = match interface(body.get(ROUTE..)?) {
        Some(LOOPBACK) => "lo".to_owned(),
        Some(other) => format!("interface {other}"),
        None => "nothing".to_owned(),
    };
    Some(format!("{kind} {to} dev {through} table {table}"))
}

fn interface(mut attributes: &[u8]) -> Option<u32> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        let value = attributes.get(4..length)?;
        if kind == RTA_OIF {
            return Some(u32::from_ne_bytes(value.try_into().ok()?));
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_for_every_address_is_told_from_others() {
        let body = message(
            RTM_NEWROUTE,
            0,
            AddressFamily::INET,
            &[8, 0, 4, 0, 1, 0, 0, 0],
        );
        assert_eq!(
            described(&body[HEADER..]).as_deref(),
            Some("local 0.0.0.0/0 dev lo table local")
        );
        let mut other = body.clone();
        other[HEADER + ROUTE + 4] = 7;
        assert_eq!(
            described(&other[HEADER..]).as_deref(),
            Some("local 0.0.0.0/0 dev interface 7 table local")
        );
        let mut narrow = body;
        narrow[HEADER + 1] = 8;
        assert_eq!(described(&narrow[HEADER..]), None);
    }

    #[test]
    fn an_answer_says_whether_it_was_done() {
        let answer = |errno: i32| {
            let mut bytes = 20_u32.to_ne_bytes().to_vec();
            bytes.extend(NLMSG_ERROR.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend((-errno).to_ne_bytes());
            bytes
        };
        let error = |bytes: &[u8]| Message::first(bytes).and_then(|message| message.error());
        assert_eq!(error(&answer(0)), Some(0));
        assert_eq!(error(&answer(libc::EPERM)), Some(libc::EPERM));
        assert_eq!(error(&answer(0)[..12]), None);
    }
}
