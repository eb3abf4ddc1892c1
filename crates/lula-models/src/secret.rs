//! Keys, and where they come from. A key never prints, and no configuration holds one: it holds a
//! reference to it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use lula_files::{FinalLink, PrivateFileError, read_private};
use secrecy::{ExposeSecret, SecretString};

/// What stands where a key would have been.
pub const HIDDEN: &str = "[secret]";
/// Shorter keys are not replaced in text: they would hide ordinary words.
const SHORTEST_SCRUBBED: usize = 6;
/// Most bytes a key may have.
const LONGEST: usize = 16 * 1024;

/// A key in memory. `Debug` and `Display` show [`HIDDEN`]; its memory is wiped when dropped.
#[derive(Clone)]
pub struct SecretKey(SecretString);

impl SecretKey {
    pub fn new(key: impl Into<String>) -> Self {
        Self(SecretString::from(key.into()))
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Lends the key to something that needs its bytes: a guard against storing it, an address
    /// that holds a password. The borrower must neither print nor keep it.
    pub fn lend<T>(&self, to: impl FnOnce(&str) -> T) -> T {
        to(self.expose())
    }

    /// The text without the key: providers repeat keys in their error messages.
    pub fn scrub(&self, text: &str) -> String {
        let key = self.expose();
        if key.len() < SHORTEST_SCRUBBED {
            return text.to_owned();
        }
        text.replace(key, HIDDEN)
    }

    /// The bytes without the key.
    pub fn scrub_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let key = self.expose().as_bytes();
        if key.len() < SHORTEST_SCRUBBED {
            return bytes.to_vec();
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at..].starts_with(key) {
                out.extend_from_slice(HIDDEN.as_bytes());
                at += key.len();
            } else {
                out.push(bytes[at]);
                at += 1;
            }
        }
        out
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Where a key is kept: `env:NAME`, `file:PATH`, `command:PROGRAM ARG…` or `keyring:SERVICE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelKeyReference {
    /// A variable of the environment.
    Env(String),
    /// The first line of a file.
    File(PathBuf),
    /// The first line a program prints. Words are split at blanks; no shell reads them.
    Command(Vec<String>),
    /// The system's keyring, asked through its own program.
    Keyring(String),
}

/// Why a key could not be had. Never holds what was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelKeyError {
    /// Not a reference. The text is not repeated: it may be a key.
    #[error(
        "this is not a reference to a key: write env:NAME, file:PATH, command:PROGRAM or keyring:SERVICE, never the key itself"
    )]
    NotAReference,
    /// The variable is not set.
    #[error("the variable {0} is not set: set it, or name another place for the key")]
    NotSet(String),
    /// The file could not be read.
    #[error("the key file {path} cannot be read: {reason}")]
    Unreadable {
        path: String,
        /// What the system said.
        reason: String,
    },
    /// Others on this machine may read the file.
    #[error("the key file {0} can be read by others: run `chmod 600 {0}`")]
    Exposed(String),
    /// The program did not give a key.
    #[error("{program:?} gave no key: {reason}")]
    Program {
        /// The program that was to print the key.
        program: String,
        reason: String,
    },
    /// There is nothing, or nothing usable, at the place.
    #[error("there is no usable key at {0}: expected one line of printable characters")]
    Empty(String),
}

impl FromStr for ModelKeyReference {
    type Err = ModelKeyError;
    fn from_str(given: &str) -> Result<Self, ModelKeyError> {
        let (kind, place) = given.split_once(':').ok_or(ModelKeyError::NotAReference)?;
        if place.trim().is_empty() {
            return Err(ModelKeyError::NotAReference);
        }
        match kind {
            "env" if is_variable(place) => Ok(Self::Env(place.to_owned())),
            "file" => Ok(Self::File(PathBuf::from(place))),
            "command" => Ok(Self::Command(
                place.split_whitespace().map(str::to_owned).collect(),
            )),
            "keyring" => Ok(Self::Keyring(place.to_owned())),
            _ => Err(ModelKeyError::NotAReference),
        }
    }
}

fn is_variable(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl ModelKeyReference {
    /// Fetches the key from the place it refers to.
    pub fn resolve(&self) -> Result<SecretKey, ModelKeyError> {
        match self {
            Self::Env(name) => {
                let value = std::env::var(name).map_err(|_| ModelKeyError::NotSet(name.clone()))?;
                one_line(&value, &format!("env:{name}"))
            }
            Self::File(path) => read_file(path),
            Self::Command(words) => run(words),
            Self::Keyring(service) => run(&keyring_program(service)),
        }
    }
}

fn keyring_program(service: &str) -> Vec<String> {
    let words: &[&str] = if cfg!(target_os = "macos") {
        &["security", "find-generic-password", "-w", "-s", service]
    } else {
        &["secret-tool", "lookup", "service", service]
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn read_file(path: &Path) -> Result<SecretKey, ModelKeyError> {
    let shown = path.display().to_string();
    let unreadable = |reason: String| ModelKeyError::Unreadable {
        path: shown.clone(),
        reason,
    };
    // A person names it, and may keep it behind a link of their own.
    let bytes = match read_private(path, LONGEST as u64, FinalLink::Followed) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(unreadable("there is no such file".to_owned())),
        Err(PrivateFileError::NotPrivate { .. }) => return Err(ModelKeyError::Exposed(shown)),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    one_line(&text, &format!("file:{shown}"))
}

fn run(words: &[String]) -> Result<SecretKey, ModelKeyError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(ModelKeyError::NotAReference);
    };
    let failed = |reason: String| ModelKeyError::Program {
        program: program.clone(),
        reason,
    };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed("not text".to_owned()))?;
    one_line(&text, &format!("command:{program}"))
}

/// A key is one line without blanks or control characters: anything else would break a header.
fn one_line(text: &str, place: &str) -> Result<SecretKey, ModelKeyError> {
    let line = text.lines().next().unwrap_or_default().trim();
    let usable =
        !line.is_empty() && line.len() <= LONGEST && line.bytes().all(|b| b.is_ascii_graphic());
    if usable {
        Ok(SecretKey::new(line))
    } else {
        Err(ModelKeyError::Empty(place.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_print() {
        let key = SecretKey::new("sk-canary-123456");
        assert_eq!(
            format!("{key:?} {key} {:?}", Some(&key)),
            "[secret] [secret] Some([secret])"
        );
    }

    #[test]
    fn a_key_is_taken_out_of_what_others_wrote() {
        let key = SecretKey::new("sk-canary-123456");
        assert_eq!(key.scrub("bad key sk-canary-123456."), "bad key [secret].");
        assert_eq!(
            key.scrub_bytes(b"\xffsk-canary-123456\x00"),
            b"\xff[secret]\x00"
        );
    }

    #[test]
    fn a_key_in_place_of_a_reference_is_refused_and_not_repeated() {
        for given in ["sk-ant-abc", "env:", "env:a b", "literal:sk-ant-abc"] {
            let error = given.parse::<ModelKeyReference>().unwrap_err();
            assert!(!error.to_string().contains("sk-ant"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-canary-123456\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let reference = ModelKeyReference::File(path.clone());
        assert!(matches!(
            reference.resolve(),
            Err(ModelKeyError::Exposed(_))
        ));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(reference.resolve().unwrap().expose(), "sk-canary-123456");
    }

    #[test]
    fn a_program_gives_the_first_line_it_prints() {
        let reference: ModelKeyReference = "command:echo sk-canary-123456".parse().unwrap();
        assert_eq!(reference.resolve().unwrap().expose(), "sk-canary-123456");
        let missing: ModelKeyReference = "command:false".parse().unwrap();
        assert!(matches!(
            missing.resolve(),
            Err(ModelKeyError::Program { .. })
        ));
    }

    #[test]
    fn a_key_that_would_break_a_header_is_refused() {
        assert!(one_line("a b", "x").is_err());
        assert!(one_line("\n", "x").is_err());
    }
}
