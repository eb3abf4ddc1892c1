//! Which pages may reach the server through a browser: those of its own, and those that are configured.
//! A page of elsewhere that has its own name lead here is known by the Host it asks for.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use lula_config::{Config, keys};

use crate::problem::{ApiRefusal, ApiResult};

/// What a page of another origin may send along.
const HEADERS: &str = "authorization, content-type, idempotency-key, last-event-id";
const METHODS: &str = "GET, POST";

/// By which names the server is reached, and from which pages.
#[derive(Debug, Clone)]
pub(crate) struct OriginRules {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Whether it listens on loopback, and any other name is another's.
    is_near: bool,
}

/// A host without its port.
fn bare(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

impl OriginRules {
    pub(crate) fn of(config: &Config, is_near: bool) -> Self {
        Self {
            hosts: config.get(&keys::SERVER_HOSTS),
            origins: config
                .get(&keys::SERVER_ORIGINS)
                .iter()
                .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
                .collect(),
            is_near,
        }
    }

    fn knows(&self, host: &str) -> bool {
        let name = bare(host);
        let near = ["localhost", "127.0.0.1", "[::1]"];
        let known = self.hosts.iter();
        let listed = known
            .map(|one| bare(one))
            .any(|one| one.eq_ignore_ascii_case(name));
        listed
            || (self.is_near && near.iter().any(|one| one.eq_ignore_ascii_case(name)))
            // Without names every one is taken: what browsers send by themselves opens nothing here.
            || (!self.is_near && self.hosts.is_empty())
    }

    /// Whether a request may be looked at. Tells the origin that may read the answer.
    pub(crate) fn check(&self, headers: &HeaderMap) -> ApiResult<Option<HeaderValue>> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().unwrap_or_default(),
            _ => "",
        };
        if host.is_empty() || !self.knows(host) {
            let detail = "the Host of the request is no name of this server";
            return Err(ApiRefusal::forbidden(detail)
                .remedy("name it in server.hosts, if clients reach the server by it"));
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = match (origins.next(), origins.next()) {
            (None, _) => return Ok(None),
            (Some(origin), None) => origin,
            (Some(_), Some(_)) => return Err(ApiRefusal::bad("Origin is there twice")),
        };
        let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        if self.origins.contains(&text) {
            return Ok(Some(origin.clone()));
        }
        let own = ["http", "https"].map(|scheme| format!("{scheme}://{host}"));
        if own.iter().any(|own| own.eq_ignore_ascii_case(&text)) {
            return Ok(None);
        }
        Err(
            ApiRefusal::forbidden("pages of that origin may not use this server")
                .remedy("name the origin in server.origins, if they may"),
        )
    }
}

/// Whether a browser only asks what it may.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    let asks = headers.contains_key("access-control-request-method");
    method == Method::OPTIONS && asks
}

/// The headers of every answer.
pub(crate) fn protect(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
        ("cache-control", "no-store"),
        ("vary", "Origin"),
    ];
    for (name, value) in fixed {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    if let Some(origin) = origin {
        headers.insert("access-control-allow-origin", origin);
        let readable = HeaderValue::from_static("location, retry-after, idempotency-replayed");
        headers.insert("access-control-expose-headers", readable);
        let other = HeaderValue::from_static("cross-origin");
        headers.insert("cross-origin-resource-policy", other);
    }
}

/// What a browser is told that asks what it may.
pub(crate) fn allow(headers: &mut HeaderMap) {
    let methods = HeaderValue::from_static(METHODS);
    headers.insert("access-control-allow-methods", methods);
    let named = HeaderValue::from_static(HEADERS);
    headers.insert("access-control-allow-headers", named);
    headers.insert("access-control-max-age", HeaderValue::from_static("600"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(is_near: bool, hosts: &[&str], origins: &[&str]) -> OriginRules {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        OriginRules {
            hosts: owned(hosts),
            origins: owned(origins),
            is_near,
        }
    }

    fn asked(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_name_that_was_led_here_is_refused() {
        let near = rules(true, &[], &[]);
        for good in [
            "127.0.0.1:7410",
            "localhost:7410",
            "[::1]:7410",
            "LOCALHOST",
        ] {
            assert!(near.check(&asked(good, None)).is_ok(), "{good}");
        }
        for bad in [
            "evil.example.org:7410",
            "127.0.0.1.example.org",
            "localhost.evil",
            "",
        ] {
            assert!(near.check(&asked(bad, None)).is_err(), "{bad}");
        }
        assert!(near.check(&HeaderMap::new()).is_err());
        let named = rules(false, &["lula.example.org"], &[]);
        assert!(named.check(&asked("lula.example.org", None)).is_ok());
        assert!(named.check(&asked("127.0.0.1:7410", None)).is_err());
    }

    #[test]
    fn pages_of_elsewhere_are_refused_and_those_that_are_named_may_read() {
        let rules = rules(true, &[], &["https://app.example.org"]);
        let host = "127.0.0.1:7410";
        let own = rules.check(&asked(host, Some("http://127.0.0.1:7410")));
        assert_eq!(own.unwrap(), None);
        let named = rules.check(&asked(host, Some("https://app.example.org")));
        assert_eq!(named.unwrap().unwrap(), "https://app.example.org");
        for bad in [
            "https://evil.example.org",
            "null",
            "http://127.0.0.1:9999",
            "https://app.example.org.evil",
        ] {
            assert!(rules.check(&asked(host, Some(bad))).is_err(), "{bad}");
        }
    }
}
