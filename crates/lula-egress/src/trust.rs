//! Certificates in the form in which Java wants them. Pure.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// What a key store of Java begins with, and the version that every Java reads.
const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
/// An entry that is a certificate to trust.
const TRUSTED: u32 = 2;
/// Bytes of the digest at its end, over a password and the entries. Java looks at it only where it was given a
/// password, and gives none for what it trusts.
const DIGEST: [u8; 20] = [0; 20];

/// The certificates of a PEM file as a trust store for Java (`cacerts`). What is no certificate is left out.
pub fn java_trust_store(pem: &str) -> Vec<u8> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes());
    let certificates: Vec<_> = found.filter_map(Result::ok).collect();
    let mut store = Vec::with_capacity(pem.len());
    store.extend(MAGIC.to_be_bytes());
    store.extend(VERSION.to_be_bytes());
    store.extend(count(certificates.len()));
    for (at, certificate) in certificates.iter().enumerate() {
        store.extend(TRUSTED.to_be_bytes());
        text(&mut store, &format!("certificate-{at}"));
        // When it was made, which nothing asks for.
        store.extend([0; 8]);
        text(&mut store, "X.509");
        store.extend(count(certificate.len()));
        store.extend(certificate.as_ref());
    }
    store.extend(DIGEST);
    store
}

fn count(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

/// Words of ASCII only: there the encoding of Java is plain.
fn text(store: &mut Vec<u8>, words: &str) {
    store.extend(u16::try_from(words.len()).unwrap_or(0).to_be_bytes());
    store.extend(words.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_is_an_entry_and_nothing_else_is() {
        let one = rcgen::generate_simple_self_signed(vec!["a.org".to_owned()]).unwrap();
        let pem = format!(
            "# a comment\n{}\nno certificate\n{}",
            one.cert.pem(),
            one.cert.pem()
        );
        let store = java_trust_store(&pem);
        assert_eq!(
            store[..12],
            [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 2]
        );
        let der = one.cert.der().as_ref();
        let entries = store.windows(der.len()).filter(|window| *window == der);
        assert_eq!(entries.count(), 2);
    }
}
