//! One request to a route, after everything about it was checked.

use axum::extract::Query;
use axum::http::{HeaderMap, Uri};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::identity::Identity;
use crate::problem::{ApiRefusal, ApiResult};

/// What a route's handler is given.
pub(crate) struct RouteCall {
    pub(crate) identity: Identity,
    /// The variable part of the path.
    pub(crate) name: String,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl RouteCall {
    /// The body, of which nothing may be unknown.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> ApiResult<T> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ApiRefusal::bad(format!("the body is not what is taken: {error}")))
    }

    /// The same, where a body that is left out says nothing.
    pub(crate) fn json_or_default<T: DeserializeOwned + Default>(&self) -> ApiResult<T> {
        if self.body.is_empty() {
            return Ok(T::default());
        }
        self.json()
    }

    /// The query, of which nothing may be unknown.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> ApiResult<T> {
        let query = Query::<T>::try_from_uri(&self.uri);
        let query = query
            .map_err(|error| ApiRefusal::bad(format!("the query is not what is taken: {error}")));
        Ok(query?.0)
    }

    /// A header that is there once, as text.
    pub(crate) fn header(&self, name: &str) -> ApiResult<Option<&str>> {
        let mut values = self.headers.get_all(name).iter();
        let (first, second) = (values.next(), values.next());
        if second.is_some() {
            return Err(ApiRefusal::bad(format!("{name} is there twice")));
        }
        let text = first.map(|value| value.to_str());
        text.transpose()
            .map_err(|_| ApiRefusal::bad(format!("{name} is no text")))
    }

    /// What it was, for the audit log.
    pub(crate) fn digestible<'a>(&'a self, route: &'static str) -> impl Serialize + 'a {
        (route, &self.name, String::from_utf8_lossy(&self.body))
    }
}
