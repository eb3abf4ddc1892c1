//! Where a service is.

use std::fmt;

use hyper::Uri;

/// Hosts that are this machine.
const HERE: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// A text that is not the URL of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadServiceUrl {
    /// It is no URL with a host.
    #[error("{0:?} is no URL of a service: expected https://HOST[:PORT][/PATH]")]
    NotAUrl(String),
    /// It would be spoken to in clear.
    #[error("{0:?} would be spoken to in clear: use https://, or http:// on this machine")]
    InClear(String),
}

/// The URL of a service, with no slash at its end.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceUrl(Uri);

impl ServiceUrl {
    /// A URL that may be spoken to with a key: over TLS, or on this machine.
    pub fn private(text: &str) -> Result<Self, BadServiceUrl> {
        let url = Self::any(text)?;
        if url.is_secure() || url.is_here() {
            Ok(url)
        } else {
            Err(BadServiceUrl::InClear(text.to_owned()))
        }
    }

    /// A URL that may be spoken to in clear, so without a key.
    pub fn any(text: &str) -> Result<Self, BadServiceUrl> {
        let wrong = || BadServiceUrl::NotAUrl(text.to_owned());
        let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| wrong())?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        let authority = uri.authority().map_or("", |one| one.as_str());
        // A password in a URL would be printed with it.
        let plain = !authority.is_empty() && !authority.contains('@');
        (known && plain && uri.host().is_some_and(|host| !host.is_empty()))
            .then_some(Self(uri))
            .ok_or_else(wrong)
    }

    /// Whether it is spoken to over TLS.
    pub fn is_secure(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Whether it is on this machine.
    pub fn is_here(&self) -> bool {
        HERE.contains(&self.0.host().unwrap_or_default())
    }

    /// The host with its port, as the header of a request names it.
    pub fn authority(&self) -> &str {
        self.0.authority().map_or("", |one| one.as_str())
    }

    /// The host, without the brackets of an address.
    pub(crate) fn host(&self) -> &str {
        let host = self.0.host().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        let usual = if self.is_secure() { 443 } else { 80 };
        self.0.port_u16().unwrap_or(usual)
    }

    /// The path of something below it; `below` begins with a slash.
    pub(crate) fn path(&self, below: &str) -> String {
        if below.is_empty() {
            let own = self.0.path_and_query().map_or("/", |path| path.as_str());
            return own.to_owned();
        }
        let own = self.0.path().trim_end_matches('/');
        format!("{own}{below}")
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let path = self.0.path().trim_end_matches('/');
        // A query may hold what is not for every eye.
        write!(f, "{scheme}://{}{path}", self.authority())
    }
}

impl fmt::Debug for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_over_tls_or_stays_on_this_machine() {
        for good in [
            "https://id.example.org/keys",
            "http://127.0.0.1:8000/",
            "http://[::1]",
            "http://localhost:7410",
        ] {
            assert!(ServiceUrl::private(good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example.org/keys",
            "http://127.0.0.1.example.org/keys",
            "http://localhost.example.org",
        ] {
            let refused = ServiceUrl::private(bad).unwrap_err();
            assert!(matches!(refused, BadServiceUrl::InClear(_)), "{bad}");
            assert!(ServiceUrl::any(bad).is_ok(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_place_of_a_service_is_refused() {
        for bad in [
            "",
            "/etc/keys",
            "ftp://127.0.0.1/keys",
            "https://",
            "https://ada:secret@example.org",
            "example.org",
        ] {
            assert!(ServiceUrl::any(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_lies_below_it_has_one_slash_between() {
        let path = |url: &str, below: &str| ServiceUrl::any(url).unwrap().path(below);
        assert_eq!(path("https://a/", "/v1/runs"), "/v1/runs");
        assert_eq!(path("https://a/otel/", "/v1/traces"), "/otel/v1/traces");
        assert_eq!(path("https://a", ""), "/");
        assert_eq!(path("https://a/keys?app=1", ""), "/keys?app=1");
        let shown = ServiceUrl::any("https://a/keys?app=1").unwrap().to_string();
        assert_eq!(shown, "https://a/keys");
    }
}
