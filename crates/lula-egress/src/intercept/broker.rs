//! Placeholders exchanged for secrets, where and only where a credential is for. Pure.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use secrecy::{ExposeSecret, SecretString};

use super::redact::Forbidden;
use crate::credential::PLACEHOLDER_PREFIX;
use crate::policy::RequestDetail;
use crate::{BrokeredCredential, CredentialUse, DomainName};

/// The credentials of one engine.
pub(crate) struct Broker {
    credentials: Vec<BrokeredCredential>,
}

/// A request as credentials are bound to it.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) name: &'a DomainName,
    pub(crate) port: u16,
    /// Whether the way to the server is encrypted. No secret goes any other way.
    pub(crate) encrypted: bool,
    pub(crate) detail: RequestDetail<'a>,
}

/// What was put into a request.
#[derive(Default)]
pub(crate) struct Exchanged {
    /// Names of the credentials.
    pub(crate) names: Vec<String>,
    /// What its answer must not show.
    pub(crate) forbidden: Forbidden,
}

/// A placeholder where its credential is not for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misuse {
    /// Which credential, where the placeholder is one of this engine's.
    pub(crate) credential: Option<String>,
    /// Where it stood: `the URL`, `the header cookie`, `the body`.
    pub(crate) place: String,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.credential {
            Some(name) => write!(
                f,
                "the placeholder of credential {name:?} stands in {}, where it is not for",
                self.place
            ),
            None => write!(
                f,
                "a placeholder of no credential of this sandbox stands in {}",
                self.place
            ),
        }
    }
}

impl Broker {
    pub(crate) fn new(credentials: Vec<BrokeredCredential>) -> Self {
        Self { credentials }
    }

    /// Whether a credential is bound to the name, so that its answers are searched.
    pub(crate) fn binds(&self, name: &DomainName, port: u16) -> bool {
        self.credentials
            .iter()
            .any(|one| one.rule().binds(name, port))
    }

    /// What answers of a name must not show, whatever the request carried.
    pub(crate) fn forbidden(&self, name: &DomainName, port: u16, user: Option<&str>) -> Forbidden {
        let secrets: Vec<(&SecretString, Option<&str>)> = self
            .credentials
            .iter()
            .filter(|one| one.rule().binds(name, port))
            .map(|one| (one.secret(), user))
            .collect();
        Forbidden::of(&secrets)
    }

    /// A placeholder in bytes that must have none.
    pub(crate) fn misplaced(&self, bytes: &[u8], place: &str) -> Option<Misuse> {
        let at = memmem::find(bytes, PLACEHOLDER_PREFIX.as_bytes())?;
        let found = &bytes[at..];
        let credential = self
            .credentials
            .iter()
            .find(|one| found.starts_with(one.placeholder().as_bytes()))
            .map(|one| one.rule().name().to_owned());
        Some(Misuse {
            credential,
            place: place.to_owned(),
        })
    }

    /// Exchanges the placeholders of a request, whose URL is given as it was written.
    pub(crate) fn exchange(
        &self,
        bound: Bound<'_>,
        url: &str,
        headers: &mut HeaderMap,
    ) -> Result<Exchanged, Misuse> {
        if let Some(misuse) = self.misplaced(url.as_bytes(), "the URL") {
            return Err(misuse);
        }
        let mut exchanged = Exchanged::default();
        let mut user = None;
        let mut all = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers.iter() {
            let place = format!("the header {name}");
            if let Some(misuse) = self.misplaced(name.as_str().as_bytes(), "the name of a header") {
                return Err(misuse);
            }
            let new =
                self.exchange_value(bound, name, value, &place, &mut exchanged.names, &mut user)?;
            all.append(name, new);
        }
        *headers = all;
        exchanged.forbidden = self.forbidden(bound.name, bound.port, user.as_deref());
        Ok(exchanged)
    }

    fn exchange_value(
        &self,
        bound: Bound<'_>,
        name: &HeaderName,
        value: &HeaderValue,
        place: &str,
        used: &mut Vec<String>,
        seen_user: &mut Option<String>,
    ) -> Result<HeaderValue, Misuse> {
        let (basic, plain) = match decoded_basic(name, value) {
            Some(pair) => (true, pair),
            None => (false, value.as_bytes().to_vec()),
        };
        if let Some(misuse) = self
            .misplaced(value.as_bytes(), place)
            .or_else(|| self.misplaced(&plain, place))
        {
            let mine = misuse.credential.as_deref();
            let one = self
                .credentials
                .iter()
                .find(|one| Some(one.rule().name()) == mine)
                .filter(|one| one.rule().header() == name.as_str())
                .filter(|one| {
                    bound.encrypted
                        && one
                            .rule()
                            .allows_request(bound.name, bound.port, bound.detail)
                });
            let new = one.and_then(|one| match (one.rule().how(), basic) {
                (CredentialUse::ReplaceInHeader, false) => replaced(one, &plain),
                (CredentialUse::BasicPassword, true) => as_password(one, &plain, seen_user),
                _ => None,
            });
            let (Some(one), Some(new)) = (one, new) else {
                return Err(misuse);
            };
            used.push(one.rule().name().to_owned());
            return Ok(new);
        }
        Ok(value.clone())
    }
}

/// The user and password of a header with basic authentication.
fn decoded_basic(name: &HeaderName, value: &HeaderValue) -> Option<Vec<u8>> {
    if *name != AUTHORIZATION && name != "proxy-authorization" {
        return None;
    }
    let text = value.to_str().ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let encoded = encoded.trim().trim_end_matches('=');
    STANDARD_NO_PAD.decode(encoded).ok()
}

/// The value with its one placeholder exchanged; `None` if there is more of one.
fn replaced(credential: &BrokeredCredential, value: &[u8]) -> Option<HeaderValue> {
    let text = str::from_utf8(value).ok()?;
    let (before, after) = text.split_once(credential.placeholder())?;
    if after.contains(PLACEHOLDER_PREFIX) || before.contains(PLACEHOLDER_PREFIX) {
        return None;
    }
    sensitive(&format!(
        "{before}{}{after}",
        credential.secret().expose_secret()
    ))
}

/// The header of basic authentication with the placeholder, which is all of its password, exchanged.
fn as_password(
    credential: &BrokeredCredential,
    pair: &[u8],
    seen_user: &mut Option<String>,
) -> Option<HeaderValue> {
    let (name, password) = str::from_utf8(pair).ok()?.split_once(':')?;
    if password != credential.placeholder() || name.contains(PLACEHOLDER_PREFIX) {
        return None;
    }
    *seen_user = Some(name.to_owned());
    let pair = format!("{name}:{}", credential.secret().expose_secret());
    sensitive(&format!("Basic {}", STANDARD.encode(pair)))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
#[path = "broker_tests.rs"]
mod tests;
