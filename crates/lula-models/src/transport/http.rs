//! The live transport.

use std::time::Duration;

use super::{
    BoxedFuture, HttpMethod, ModelTransport, ResponseBody, TransportError, WireRequest,
    WireResponse,
};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// HTTP with TLS. It follows no redirect, so a key goes to the configured address or nowhere.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    remote: reqwest::Client,
    local: reqwest::Client,
}

impl HttpTransport {
    /// A transport with its own connections.
    pub fn new() -> Result<Self, TransportError> {
        let build = |builder: reqwest::ClientBuilder| {
            builder
                .connect_timeout(CONNECT)
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("lula/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| TransportError::Unreachable {
                    place: "the network".to_owned(),
                    reason: error.to_string(),
                })
        };
        Ok(Self {
            remote: build(reqwest::Client::builder())?,
            // What runs on this machine is never asked through a proxy.
            local: build(reqwest::Client::builder().no_proxy())?,
        })
    }
}

impl ModelTransport for HttpTransport {
    fn send<'a>(
        &'a self,
        request: &'a WireRequest,
    ) -> BoxedFuture<'a, Result<WireResponse, TransportError>> {
        Box::pin(async move {
            let place = &request.base;
            let unreachable = |reason: String| TransportError::Unreachable {
                place: without_user(place),
                reason,
            };
            let address = format!("{place}{}", request.path);
            let url =
                reqwest::Url::parse(&address).map_err(|error| unreachable(error.to_string()))?;
            let (local, is_https) = (is_loopback(&url), url.scheme() == "https");
            let client = if local { &self.local } else { &self.remote };
            let mut builder = match request.method {
                HttpMethod::Get => client.get(url),
                HttpMethod::Post => client
                    .post(url)
                    .header("content-type", "application/json")
                    .body(request.body.clone()),
            };
            for (name, value) in &request.headers {
                builder = builder.header(name, value);
            }
            if let Some((header, before, key)) = &request.key {
                if !is_https && !local {
                    let reason = "a key leaves this machine only over https".to_owned();
                    return Err(TransportError::Unsafe {
                        place: without_user(place),
                        reason,
                    });
                }
                let text = format!("{before}{}", key.expose());
                let mut value = reqwest::header::HeaderValue::from_str(&text)
                    .map_err(|_| unreachable("the key cannot stand in a header".to_owned()))?;
                value.set_sensitive(true);
                builder = builder.header(*header, value);
            }
            let response = builder.send().await.map_err(|error| {
                // Without the address: it may hold a password.
                let reason = deepest(&error.without_url());
                reason_of(reason, &unreachable)
            })?;
            Ok(WireResponse {
                status: response.status().as_u16(),
                headers: response
                    .headers()
                    .iter()
                    .filter_map(|(name, value)| {
                        value
                            .to_str()
                            .ok()
                            .map(|value| (name.to_string(), value.to_owned()))
                    })
                    .collect(),
                body: Box::new(ReqwestBody(response)),
            })
        })
    }
}

fn reason_of(
    (connect, reason): (bool, String),
    unreachable: &impl Fn(String) -> TransportError,
) -> TransportError {
    if connect {
        unreachable(reason)
    } else {
        TransportError::Broken(reason)
    }
}

/// Whether it failed while connecting, and the innermost words, which say most.
fn deepest(error: &reqwest::Error) -> (bool, String) {
    let mut at: &dyn std::error::Error = error;
    while let Some(inner) = at.source() {
        at = inner;
    }
    (error.is_connect() || error.is_builder(), at.to_string())
}

fn is_loopback(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|ip| ip.is_loopback()),
        None => false,
    }
}

fn without_user(place: &str) -> String {
    match (place.find("://"), place.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}://{}", &place[..scheme], &place[at + 1..])
        }
        _ => place.to_owned(),
    }
}

struct ReqwestBody(reqwest::Response);

impl ResponseBody for ReqwestBody {
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        Box::pin(async move {
            match self.0.chunk().await {
                Ok(chunk) => Ok(chunk.map(|bytes| bytes.to_vec())),
                Err(error) => Err(TransportError::Broken(deepest(&error.without_url()).1)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        assert_eq!(
            without_user("http://ada:secret@host:1/v1"),
            "http://host:1/v1"
        );
        assert_eq!(without_user("http://host:1/v1"), "http://host:1/v1");
    }

    #[tokio::test]
    async fn a_key_does_not_leave_the_machine_in_clear_text() {
        use crate::secret::SecretKey;
        let request = WireRequest {
            method: HttpMethod::Post,
            base: "http://192.0.2.1:9".into(),
            path: "/v1/messages".into(),
            headers: Vec::new(),
            key: Some(("x-api-key", "", SecretKey::new("sk-canary-123456"))),
            body: Vec::new(),
        };
        let error = HttpTransport::new()
            .unwrap()
            .send(&request)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("only over https"), "{error}");
    }

    #[test]
    fn only_this_machine_is_local() {
        let local = |url: &str| is_loopback(&reqwest::Url::parse(url).unwrap());
        assert!(
            local("http://127.0.0.1:1/") && local("http://localhost/") && local("http://[::1]/")
        );
        assert!(!local("http://127.0.0.1.example.com/") && !local("http://10.0.0.1/"));
    }
}
