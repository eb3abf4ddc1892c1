//! The last thing a line of the log passes: secrets and control characters do not get by.

use std::io::{self, Write};
use std::sync::{OnceLock, PoisonError, RwLock};

use lula_gate::redact::{names_a_secret, redact};
use tracing_subscriber::fmt::MakeWriter;

/// What stands in place of a secret whose value is known.
const CONCEALED: &str = "[redacted]";
/// A shorter value occurs in other words too.
const SHORTEST: usize = 6;

/// Values that must not be written, whatever they look like.
static KNOWN: OnceLock<RwLock<Vec<String>>> = OnceLock::new();

/// Keeps a value out of the log of this process: a key that was read from a file or a keyring.
pub fn conceal(value: &str) {
    if value.len() < SHORTEST {
        return;
    }
    let mut known = known().write().unwrap_or_else(PoisonError::into_inner);
    if !known.iter().any(|one| one == value) {
        known.push(value.to_owned());
    }
}

/// They begin with the variables of this process whose names say that they hold secrets.
fn known() -> &'static RwLock<Vec<String>> {
    KNOWN.get_or_init(|| {
        let named =
            |name: &str| names_a_secret(name) || name.to_ascii_uppercase().ends_with("_KEY");
        let values = std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(named))
            .filter_map(|(_, value)| value.into_string().ok())
            .filter(|value| value.len() >= SHORTEST);
        RwLock::new(values.collect())
    })
}

/// A text without secrets: those that are known by their value, and those that look like one.
pub(crate) fn redacted_text(text: &str) -> String {
    let mut text = text.to_owned();
    for value in known()
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
    {
        if text.contains(value.as_str()) {
            text = text.replace(value.as_str(), CONCEALED);
        }
    }
    redact(&text).into_owned()
}

/// A line as it may be written: without secrets, and without anything that acts on a terminal or looks
/// like another line.
fn clean(line: &str) -> String {
    let mut text: String = redacted_text(line.trim_end_matches('\n'))
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.push('\n');
    text
}

/// Writes every line redacted.
pub(super) struct RedactedWriter<W>(W);

impl<W> RedactedWriter<W> {
    pub(super) const fn new(sink: W) -> Self {
        Self(sink)
    }
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for RedactedWriter<W> {
    type Writer = RedactedLine<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactedLine(self.0.make_writer())
    }
}

/// The writer of one line, which the formatter hands over whole.
pub(super) struct RedactedLine<W>(W);

impl<W: Write> Write for RedactedLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // In one call: lines of several processes meet in one file.
        self.0
            .write_all(clean(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Sheet(Arc<Mutex<Vec<u8>>>);

    impl Write for Sheet {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(say: impl FnOnce()) -> String {
        let sheet = Sheet::default();
        let sink = sheet.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(RedactedWriter::new(move || sink.clone()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), say);
        let bytes = sheet.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_secret_is_redacted_by_its_look_and_by_its_value() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        conceal("plain words as a key");
        let log = logged(|| {
            let span = tracing::info_span!("run", task = %token);
            let _in = span.enter();
            tracing::info!(key = "plain words as a key", "asked with {token}");
        });
        assert!(!log.contains(&token), "{log}");
        assert!(!log.contains("plain words"), "{log}");
        assert_eq!(log.matches("[redacted:github-token]").count(), 2, "{log}");
    }

    #[test]
    fn a_value_cannot_look_like_another_line() {
        let log = logged(|| {
            tracing::info!(text = %"one\ntwo\u{1b}[31m\rthree", "said");
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(!log.contains('\u{1b}') && !log.contains('\r'), "{log}");
    }
}
