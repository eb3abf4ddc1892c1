//! Connections that are opened, so that each request is judged by itself.
//!
//! Both sides speak through hyper, which reads a request wholly and writes it anew: what two readers could
//! understand differently does not survive. A request that is refused is answered here and no server hears
//! of it.

mod authority;
mod body;
mod broker;
mod head;
mod redact;
mod serving;
mod tasks;
mod tunnel;
mod upstream;

use std::sync::Arc;

use rustls::ClientConfig;

use crate::{EgressError, Outside};
use authority::Authority;

pub(crate) use broker::Broker;
pub(crate) use serving::Serving;

/// What opened connections share: the authority of the sandbox, and how servers are verified.
pub(crate) struct Interception {
    authority: Authority,
    with_h2: Arc<ClientConfig>,
    without_h2: Arc<ClientConfig>,
}

impl Interception {
    pub(crate) fn new(outside: &Outside) -> Result<Self, EgressError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut without_h2 = authority::client_config(Arc::clone(&provider), outside)?;
        let mut with_h2 = without_h2.clone();
        with_h2.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        without_h2.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            authority: Authority::new(provider)?,
            with_h2: Arc::new(with_h2),
            without_h2: Arc::new(without_h2),
        })
    }

    pub(crate) fn certificate_pem(&self) -> String {
        self.authority.certificate_pem()
    }

    fn client_config(&self, offers_h2: bool) -> Arc<ClientConfig> {
        Arc::clone(if offers_h2 {
            &self.with_h2
        } else {
            &self.without_h2
        })
    }
}
