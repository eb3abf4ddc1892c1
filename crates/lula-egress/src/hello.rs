//! The first bytes of TLS: what a client hello says, read within bounds. Pure.
//!
//! Only what a decision needs is read, and whatever is not exactly one well-formed hello is refused: what
//! this reader and a server could understand differently must not be relayed.

use crate::DomainName;

/// Most bytes of a hello, its record headers included. Post-quantum hellos have about 2,000.
pub(crate) const LONGEST_HELLO: usize = 32 * 1024;

const RECORD_HEADER: usize = 5;
/// Most bytes in a plaintext record (RFC 8446, 5.1).
const LONGEST_RECORD: usize = 1 << 14;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const ENCRYPTED_SERVER_NAME: u16 = 0xffce;

/// What a client hello says in the clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// The one server name, where there is one.
    pub server_name: Option<DomainName>,
    /// The protocols offered, as they were written.
    pub alpn: Vec<Vec<u8>>,
    /// Whether another hello is hidden in it (ECH, ESNI), which may name another server. Browsers also
    /// send it with nothing inside.
    pub hides_another: bool,
}

/// What a prefix of a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstBytes {
    /// The beginning of a hello, as far as it goes.
    Incomplete,
    Hello(ClientHello),
    /// No hello, whatever follows, and why.
    Other(&'static str),
}

/// Reads the beginning of a connection. Once it is more than incomplete, further bytes change nothing.
pub fn read_client_hello(bytes: &[u8]) -> FirstBytes {
    let bytes = &bytes[..bytes.len().min(LONGEST_HELLO)];
    match handshake(bytes) {
        Ok(Some(message)) => match hello(&message) {
            Ok(hello) => FirstBytes::Hello(hello),
            Err(why) => FirstBytes::Other(why),
        },
        Ok(None) if bytes.len() >= LONGEST_HELLO => FirstBytes::Other("the TLS hello is too long"),
        Ok(None) => FirstBytes::Incomplete,
        Err(why) => FirstBytes::Other(why),
    }
}

/// The first handshake message, put together from its records; `None` while bytes are missing.
fn handshake(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut message = Vec::new();
    loop {
        // Bytes that cannot begin a record are known before all of its header is there.
        if bytes.first().is_some_and(|kind| *kind != HANDSHAKE)
            || bytes.get(1).is_some_and(|major| *major != 3)
        {
            return Err("it does not begin with a TLS handshake");
        }
        let Some((header, rest)) = bytes.split_at_checked(RECORD_HEADER) else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if length == 0 || length > LONGEST_RECORD {
            return Err("a TLS record has an impossible length");
        }
        let (record, rest) = rest.split_at(length.min(rest.len()));
        message.extend_from_slice(record);
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err("the first TLS message is no client hello");
        }
        if let Some([_, a, b, c]) = message.first_chunk() {
            let wanted = 4 + (usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c));
            if wanted > LONGEST_HELLO {
                return Err("the TLS hello is too long");
            }
            // Said by the record's length, before its bytes are there: an answer never changes with more.
            if message.len() + (length - record.len()) > wanted {
                return Err("something follows the TLS hello in its record");
            }
            if message.len() == wanted {
                return Ok(Some(message));
            }
        }
        if record.len() < length {
            return Ok(None);
        }
        bytes = rest;
    }
}

/// A reader that ends where its bytes end.
struct Reader<'a>(&'a [u8]);

const BROKEN: &str = "the TLS hello is malformed";

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(BROKEN)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<usize, &'static str> {
        self.take(1).map(|byte| usize::from(byte[0]))
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        self.take(2)
            .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector16(&mut self) -> Result<Self, &'static str> {
        let length = usize::from(self.u16()?);
        self.take(length).map(Self)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn hello(message: &[u8]) -> Result<ClientHello, &'static str> {
    let mut body = Reader(message.get(4..).ok_or(BROKEN)?);
    body.take(2 + 32)?;
    let session = body.u8()?;
    body.take(session)?;
    body.vector16()?;
    let compressions = body.u8()?;
    body.take(compressions)?;
    let mut hello = ClientHello {
        server_name: None,
        alpn: Vec::new(),
        hides_another: false,
    };
    if body.is_empty() {
        return Ok(hello);
    }
    let mut extensions = body.vector16()?;
    if !body.is_empty() {
        return Err(BROKEN);
    }
    let mut seen = Vec::new();
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.vector16()?;
        if seen.contains(&kind) {
            return Err("the TLS hello has an extension twice");
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => hello.server_name = Some(server_name(content)?),
            ALPN => hello.alpn = alpn(content)?,
            ENCRYPTED_CLIENT_HELLO | ENCRYPTED_SERVER_NAME => hello.hides_another = true,
            _ => {}
        }
    }
    Ok(hello)
}

fn server_name(mut content: Reader<'_>) -> Result<DomainName, &'static str> {
    let mut list = content.vector16()?;
    if !content.is_empty() || list.u8()? != 0 {
        return Err(BROKEN);
    }
    let name = list.vector16()?;
    if !list.is_empty() {
        return Err("the TLS hello names several servers");
    }
    let text = str::from_utf8(name.0).map_err(|_| BROKEN)?;
    // RFC 6066: no dot at the end, and no address.
    if text.ends_with('.') {
        return Err(BROKEN);
    }
    text.parse()
        .map_err(|_| "the server name in the TLS hello is no host name")
}

fn alpn(mut content: Reader<'_>) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut list = content.vector16()?;
    if !content.is_empty() {
        return Err(BROKEN);
    }
    let mut protocols = Vec::new();
    while !list.is_empty() {
        let length = list.u8()?;
        protocols.push(list.take(length)?.to_vec());
    }
    Ok(protocols)
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;
