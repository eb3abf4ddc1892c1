//! Heads of requests and answers: which are served, and what of them is passed on. Pure.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Version};

use crate::record::EgressRefusal;
use crate::{DomainName, EgressProtocol};

/// Headers that belong to one connection (RFC 9110, 7.6.1). hyper writes those that the next one needs.
const OF_THE_CONNECTION: &[&str] = &[
    "connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "keep-alive",
    "proxy-connection",
    "http2-settings",
];

/// A request that may be judged by its method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path without its query.
    pub(super) path: String,
    /// Path and query, as they are passed on.
    pub(super) target: String,
    /// Whether the connection is to become a WebSocket.
    pub(super) is_websocket: bool,
}

/// Why a request is not even looked at.
pub(super) type Unfit = (EgressRefusal, String);

/// Reads the head of a request to a name. What two readers could understand differently is refused.
pub(super) fn read(
    parts: &Parts,
    name: &DomainName,
    port: u16,
    protocol: EgressProtocol,
) -> Result<Request, Unfit> {
    let wrong = |why: &str| (EgressRefusal::WrongProtocol, why.to_owned());
    if parts.method == Method::CONNECT {
        return Err((
            EgressRefusal::RequestNotAllowed,
            "CONNECT would reach a host behind the named one".to_owned(),
        ));
    }
    let hosts: Vec<&HeaderValue> = parts.headers.get_all(header::HOST).iter().collect();
    if hosts.len() > 1 {
        return Err((
            EgressRefusal::HostMismatch,
            "the request has several Host headers".to_owned(),
        ));
    }
    let mut said = Vec::new();
    if let Some(authority) = parts.uri.authority() {
        said.push(authority.as_str());
    }
    if let Some(host) = hosts.first() {
        said.push(
            host.to_str()
                .map_err(|_| wrong("the Host header is no text"))?,
        );
    }
    if said.is_empty() {
        return Err((
            EgressRefusal::HostMismatch,
            format!("the request to {name} names no host"),
        ));
    }
    for host in said {
        if !is_host(host, name, port, protocol) {
            let shown: String = host.chars().take(80).collect();
            return Err((
                EgressRefusal::HostMismatch,
                format!(
                    "the request names the host {shown:?}, but the connection is to {name}:{port}"
                ),
            ));
        }
    }
    if parts.headers.contains_key(header::CONTENT_LENGTH)
        && parts.headers.contains_key(header::TRANSFER_ENCODING)
    {
        return Err(wrong("the request gives two lengths for its body"));
    }
    let is_websocket = parts.version == Version::HTTP_11
        && parts.method == Method::GET
        && parts
            .headers
            .get(header::UPGRADE)
            .is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"));
    Ok(Request {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        target: parts
            .uri
            .path_and_query()
            .map_or_else(|| "/".to_owned(), ToString::to_string),
        is_websocket,
    })
}

/// Whether an authority is the name, with its port or with the one its protocol usually has.
fn is_host(said: &str, name: &DomainName, port: u16, protocol: EgressProtocol) -> bool {
    let (host, said_port) = match said.rsplit_once(':') {
        Some((host, digits)) => (host, digits.parse::<u16>().ok()),
        None => (said, Some(usual_port(protocol))),
    };
    said_port == Some(port) && host.parse::<DomainName>().is_ok_and(|host| host == *name)
}

pub(super) fn usual_port(protocol: EgressProtocol) -> u16 {
    if protocol == EgressProtocol::Http {
        80
    } else {
        443
    }
}

/// The `Host` that is passed on.
pub(super) fn host_header(name: &DomainName, port: u16, protocol: EgressProtocol) -> String {
    if port == usual_port(protocol) {
        name.to_string()
    } else {
        format!("{name}:{port}")
    }
}

/// Takes out what belongs to the connection it came on.
pub(super) fn strip(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|one| one.trim().parse().ok())
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in OF_THE_CONNECTION {
        headers.remove(*name);
    }
}

/// Puts the pieces of a cookie together that HTTP/2 may send apart (RFC 9113, 8.2.3): HTTP/1.1 has one line.
pub(super) fn join_cookies(headers: &mut HeaderMap) {
    let pieces: Vec<&[u8]> = headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if pieces.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&pieces.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, whole);
    }
}

/// Makes answers readable: a secret in a compressed or a partial answer would not be found.
pub(super) fn ask_for_plain(headers: &mut HeaderMap) {
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    headers.remove(header::RANGE);
    headers.remove(header::IF_RANGE);
    headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
}

/// Whether an answer is readable.
pub(super) fn is_plain(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity") || value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = hyper::Request::builder().method("GET").uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn read_at(port: u16, uri: &str, headers: &[(&str, &str)]) -> Result<Request, EgressRefusal> {
        let name = "api.example.org".parse().unwrap();
        read(&head(uri, headers), &name, port, EgressProtocol::Tls).map_err(|(reason, _)| reason)
    }

    #[test]
    fn the_host_must_be_the_name_of_the_connection() {
        assert!(read_at(443, "/a?b=c", &[("host", "API.example.org")]).is_ok());
        assert!(read_at(443, "/", &[("host", "api.example.org:443")]).is_ok());
        assert!(read_at(8443, "/", &[("host", "api.example.org:8443")]).is_ok());
        for (port, uri, host) in [
            (443, "/", "evil.example.org"),
            (443, "/", "api.example.org.evil.com"),
            (443, "/", "api.example.org:444"),
            (8443, "/", "api.example.org"),
            (443, "/", "user@api.example.org"),
            (443, "https://evil.example.org/", "api.example.org"),
            (443, "/", ""),
            (443, "/", "127.0.0.1"),
        ] {
            assert_eq!(
                read_at(port, uri, &[("host", host)]),
                Err(EgressRefusal::HostMismatch),
                "{uri} {host}"
            );
        }
        let twice = [("host", "api.example.org"), ("host", "evil.example.org")];
        assert_eq!(read_at(443, "/", &twice), Err(EgressRefusal::HostMismatch));
        assert_eq!(read_at(443, "/", &[]), Err(EgressRefusal::HostMismatch));
    }

    #[test]
    fn headers_of_the_connection_are_not_passed_on() {
        let mut headers = head(
            "/",
            &[
                ("connection", "close, x-secret-hop"),
                ("x-secret-hop", "1"),
                ("transfer-encoding", "chunked"),
                ("te", "trailers"),
                ("upgrade", "h2c"),
                ("http2-settings", "AAMAAABk"),
                ("proxy-authorization", "Basic eA=="),
                ("accept", "*/*"),
            ],
        )
        .headers;
        strip(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["accept"]);
    }

    #[test]
    fn a_cookie_in_pieces_is_one_line() {
        let mut headers = head("/", &[("cookie", "a=1"), ("cookie", "b=2")]).headers;
        join_cookies(&mut headers);
        assert_eq!(
            headers.get_all("cookie").iter().collect::<Vec<_>>(),
            ["a=1; b=2"]
        );
    }

    #[test]
    fn two_lengths_are_refused() {
        let two = [
            ("host", "api.example.org"),
            ("content-length", "3"),
            ("transfer-encoding", "chunked"),
        ];
        assert_eq!(read_at(443, "/", &two), Err(EgressRefusal::WrongProtocol));
    }

    #[test]
    fn only_websockets_upgrade() {
        let upgrade = |to: &str| {
            read_at(
                443,
                "/",
                &[
                    ("host", "api.example.org"),
                    ("connection", "upgrade"),
                    ("upgrade", to),
                ],
            )
            .unwrap()
            .is_websocket
        };
        assert!(upgrade("WebSocket"));
        assert!(!upgrade("h2c") && !upgrade("TLS/1.0"));
    }
}
