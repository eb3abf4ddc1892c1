//! A store that refuses to write secrets.
//!
//! Events and blobs name secrets, they never hold them. This guard knows the values and refuses an
//! append that contains one, so that a mistake elsewhere fails loudly instead of leaving a key in
//! a database, a backup and a bundle.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use memchr::memmem::Finder;

use crate::append::{Blob, LogAppend};
use crate::error::{StoreError, StoreResult};
use crate::record::LogRecord;
use crate::run::NewRun;

/// Values that must not be stored. Clones watch for the same values: what one learns, a store that was
/// opened with another refuses from then on.
#[derive(Clone, Default)]
pub struct SecretGuard {
    secrets: Arc<RwLock<GuardedSecrets>>,
}

/// Names of secrets, and what finds each.
type GuardedSecrets = Vec<(String, Finder<'static>)>;

impl std::fmt::Debug for SecretGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let secrets = self.known();
        let names = secrets.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

impl SecretGuard {
    /// Shortest value that is looked for: a shorter one would be found everywhere.
    pub const MIN_LEN: usize = 8;

    /// Adds a secret. Its escaped form is looked for too, as text in JSON has it.
    #[must_use]
    pub fn watch_for(self, name: &str, value: &str) -> Self {
        if value.len() < Self::MIN_LEN {
            return self;
        }
        let mut forms = vec![value.to_owned()];
        if let Ok(quoted) = serde_json::to_string(value) {
            let escaped = &quoted[1..quoted.len() - 1];
            if escaped != value {
                forms.push(escaped.to_owned());
            }
        }
        let finder = |form: String| Finder::new(form.as_bytes()).into_owned();
        let found = forms
            .into_iter()
            .map(|form| (name.to_owned(), finder(form)));
        self.secrets
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(found);
        self
    }

    /// Watches for everything that another guard watches for too.
    pub fn learn(&self, from: &Self) {
        let learned = from.known().clone();
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        secrets.extend(learned);
    }

    fn known(&self) -> RwLockReadGuard<'_, GuardedSecrets> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a piece of text holds a secret; then its name.
    pub fn find(&self, bytes: &[u8]) -> Option<String> {
        let secrets = self.known();
        let mut found = secrets
            .iter()
            .filter(|(_, finder)| finder.find(bytes).is_some());
        found.next().map(|(name, _)| name.clone())
    }

    fn refuse(&self, what: impl FnOnce() -> String, bytes: &[u8]) -> StoreResult<()> {
        match self.find(bytes) {
            None => Ok(()),
            Some(name) => Err(StoreError::Secret { what: what(), name }),
        }
    }

    fn check(&self, records: &[LogRecord], blobs: &[Blob]) -> StoreResult<()> {
        for record in records {
            self.refuse(
                || format!("event {} of {}", record.seq, record.run),
                &record.body,
            )?;
        }
        for blob in blobs {
            self.refuse(|| format!("blob {}", blob.digest), &blob.bytes)?;
        }
        Ok(())
    }

    pub(crate) fn check_append(&self, append: &LogAppend) -> StoreResult<()> {
        if self.known().is_empty() {
            return Ok(());
        }
        self.check(&append.records, &append.blobs)?;
        match &append.snapshot {
            None => Ok(()),
            Some(snapshot) => self.refuse(|| "a snapshot".to_owned(), &snapshot.bytes),
        }
    }

    pub(crate) fn check_new(&self, run: &NewRun) -> StoreResult<()> {
        self.check(&run.records, &run.blobs)
    }

    pub(crate) fn check_text(&self, what: &str, text: &str) -> StoreResult<()> {
        self.refuse(|| what.to_owned(), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_plain_and_as_json_writes_it() {
        let guard = SecretGuard::default().watch_for("deploy key", "line one\nline two");
        let json = serde_json::to_vec(&"x line one\nline two y").unwrap();
        assert_eq!(guard.find(&json).as_deref(), Some("deploy key"));
        assert!(guard.find(b"x line one\nline two y").is_some());
        assert_eq!(guard.find(b"line one"), None);
    }

    #[test]
    fn a_guard_that_is_in_use_learns_more() {
        let guard = SecretGuard::default();
        let of_store = guard.clone();
        guard.learn(&SecretGuard::default().watch_for("api key", "sk-very-secret"));
        assert!(of_store.find(b"it is sk-very-secret").is_some());
    }

    #[test]
    fn the_guard_does_not_show_what_it_guards() {
        let guard = SecretGuard::default().watch_for("api key", "sk-very-secret");
        assert!(!format!("{guard:?}").contains("very"));
    }
}
