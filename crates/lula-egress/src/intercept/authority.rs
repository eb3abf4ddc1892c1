//! The certificates that a sandbox is shown, and those that servers are verified with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::{DomainName, EgressError, Outside};

/// Certificates begin to count so long ago: clocks differ.
const EARLIER: Duration = Duration::from_hours(24);
/// And end so long from now: longer than any sandbox lives, shorter than what programs distrust.
const LATER: Duration = Duration::from_hours(30 * 24);
/// Most names for which a certificate is kept.
const MOST_LEAVES: usize = 4096;

/// An authority of one engine. Its key is made with it, written nowhere, and gone with it.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// One key for all leaves: a program that could take it from memory could take the authority's too.
    leaf_key: KeyPair,
    provider: Arc<CryptoProvider>,
    leaves: Mutex<HashMap<DomainName, Arc<ServerConfig>>>,
}

impl Authority {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Result<Self, EgressError> {
        let failed = |error: rcgen::Error| EgressError::Authority(error.to_string());
        let mut params = params(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Lula");
        params
            .distinguished_name
            .push(DnType::CommonName, "Lula sandbox egress");
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, key).map_err(failed)?,
            leaf_key: KeyPair::generate().map_err(failed)?,
            provider,
            leaves: Mutex::default(),
        })
    }

    pub(crate) fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// What a program in the sandbox is shown for a name.
    pub(crate) fn server_config(
        &self,
        name: &DomainName,
    ) -> Result<Arc<ServerConfig>, EgressError> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = leaves.get(name) {
            return Ok(Arc::clone(config));
        }
        let failed = |error: &dyn std::fmt::Display| EgressError::Authority(error.to_string());
        let mut params = params(vec![name.to_string()])?;
        params
            .distinguished_name
            .push(DnType::CommonName, "Lula sandbox egress");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let leaf = params
            .signed_by(&self.leaf_key, &self.issuer)
            .map_err(|error| failed(&error))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_no_client_auth()
                    .with_single_cert(vec![leaf.der().clone()], key)
            })
            .map_err(|error| failed(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let config = Arc::new(config);
        if leaves.len() >= MOST_LEAVES {
            leaves.clear();
        }
        leaves.insert(name.clone(), Arc::clone(&config));
        Ok(config)
    }
}

fn params(names: Vec<String>) -> Result<CertificateParams, EgressError> {
    let mut params =
        CertificateParams::new(names).map_err(|error| EgressError::Authority(error.to_string()))?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(EARLIER);
    params.not_after = epoch + now + LATER;
    Ok(params)
}

/// How servers are verified: with the system's roots and those of the caller.
pub(crate) fn client_config(
    provider: Arc<CryptoProvider>,
    outside: &Outside,
) -> Result<ClientConfig, EgressError> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    for pem in &outside.extra_roots_pem {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| EgressError::Roots(error.to_string()))?;
            roots
                .add(certificate)
                .map_err(|error| EgressError::Roots(error.to_string()))?;
        }
    }
    // Without any root nothing is trusted, so requests fail one by one and say so.
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| EgressError::Roots(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
