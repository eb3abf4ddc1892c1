//! Secrets taken out of what a server answers, as it streams by. Pure.
//!
//! A match is overwritten with as many asterisks, so lengths that were announced stay true. Bytes at the end
//! of a chunk that could be the beginning of a secret are held back until the next one decides.
//!
//! This catches what a server says back: it does not bind a server that wants to tell the secret in
//! another form. Which servers are told the secret at all is what bounds that.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;
use secrecy::{ExposeSecret, SecretString};

/// Byte strings that must not be seen. Its memory is not printed.
#[derive(Clone, Default)]
pub(crate) struct Forbidden(Arc<Vec<SecretString>>);

impl Forbidden {
    /// The spellings of secrets that servers are known to reflect: as they are, percent-encoded, in base64
    /// alone and as the password of basic authentication with the user names that were seen.
    pub(crate) fn of(secrets: &[(&SecretString, Option<&str>)]) -> Self {
        let mut spellings: Vec<SecretString> = Vec::new();
        for (secret, user) in secrets {
            let text = secret.expose_secret();
            let mut add = |spelling: String| {
                if !spellings
                    .iter()
                    .any(|known| known.expose_secret() == spelling)
                {
                    spellings.push(SecretString::from(spelling));
                }
            };
            add(text.to_owned());
            add(percent_encoded(text));
            add(STANDARD_NO_PAD.encode(text));
            add(URL_SAFE_NO_PAD.encode(text));
            if let Some(user) = user {
                add(STANDARD.encode(format!("{user}:{text}")));
                add(STANDARD_NO_PAD.encode(format!("{user}:{text}")));
            }
        }
        // Longer ones first: a spelling can be the beginning of another.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.expose_secret().len()));
        Self(Arc::new(spellings))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Overwrites every secret in a whole text; whether there was one.
    pub(crate) fn overwrite(&self, text: &mut [u8]) -> bool {
        let mut found = false;
        for secret in self.0.iter() {
            let secret = secret.expose_secret().as_bytes();
            let places: Vec<usize> = memmem::find_iter(text, secret).collect();
            for at in places {
                found = true;
                text[at..at + secret.len()].fill(b'*');
            }
        }
        found
    }

    /// How many bytes at the end could be the beginning of a secret.
    fn undecided(&self, text: &[u8]) -> usize {
        self.0
            .iter()
            .map(|secret| {
                let secret = secret.expose_secret().as_bytes();
                let longest = text.len().min(secret.len() - 1);
                (1..=longest)
                    .rev()
                    .find(|length| secret.starts_with(&text[text.len() - length..]))
                    .unwrap_or(0)
            })
            .max()
            .unwrap_or(0)
    }
}

/// A stream from which secrets are taken.
pub(crate) struct Redaction {
    forbidden: Forbidden,
    held: Vec<u8>,
    found: bool,
}

impl Redaction {
    pub(crate) fn new(forbidden: Forbidden) -> Self {
        Self {
            forbidden,
            held: Vec::new(),
            found: false,
        }
    }

    /// What may be passed on once this chunk has come.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(chunk);
        self.found |= self.forbidden.overwrite(&mut text);
        let keep = self.forbidden.undecided(&text);
        self.held = text.split_off(text.len() - keep);
        text
    }

    /// What was held back, at the end.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    pub(crate) fn found(&self) -> bool {
        self.found
    }
}

fn percent_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "s3cr3t/s3cr3t/canary";

    fn forbidden() -> Forbidden {
        Forbidden::of(&[(&SecretString::from(SECRET), Some("git"))])
    }

    fn redacted(chunks: &[&[u8]]) -> Vec<u8> {
        let mut redaction = Redaction::new(forbidden());
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend(redaction.push(chunk));
        }
        out.extend(redaction.finish());
        out
    }

    #[test]
    fn a_secret_is_overwritten_in_its_length() {
        let out = redacted(&[b"token: s3cr3t/s3cr3t/canary;"]);
        assert_eq!(
            out,
            format!("token: {};", "*".repeat(SECRET.len())).as_bytes()
        );
    }

    #[test]
    fn spellings_that_servers_reflect_are_found() {
        for spelling in [
            percent_encoded(SECRET),
            STANDARD.encode(SECRET),
            STANDARD.encode(format!("git:{SECRET}")),
        ] {
            let out = redacted(&[spelling.as_bytes()]);
            assert!(
                out.iter().filter(|byte| **byte != b'*').count() <= 2,
                "{spelling}"
            );
        }
    }

    #[test]
    fn what_is_no_secret_is_not_held_back_for_long() {
        let mut redaction = Redaction::new(forbidden());
        assert_eq!(redaction.push(b"hello"), b"hello");
        assert_eq!(redaction.push(b"a s3cr3t/"), b"a ");
        assert_eq!(redaction.push(b"!"), b"s3cr3t/!");
        assert!(!redaction.found());
    }

    proptest! {
        #[test]
        fn a_secret_is_found_wherever_the_chunks_end(
            before in "[s3/a-z]{0,40}", after in "[s3/a-z]{0,40}", sizes in proptest::collection::vec(1..30_usize, 1..60),
        ) {
            let text = format!("{before}{SECRET}{after}");
            let mut chunks: Vec<&[u8]> = Vec::new();
            let mut rest = text.as_bytes();
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break; }
                let (chunk, more) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = more;
            }
            let out = redacted(&chunks);
            prop_assert_eq!(out.len(), text.len());
            prop_assert!(memmem::find(&out, SECRET.as_bytes()).is_none());
        }

        #[test]
        fn other_text_passes_unchanged(chunks in proptest::collection::vec("[s3crt/]{0,12}", 0..20)) {
            let text = chunks.concat();
            prop_assume!(!text.contains(SECRET));
            let bytes: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
            prop_assert_eq!(redacted(&bytes), text.into_bytes());
        }
    }
}
