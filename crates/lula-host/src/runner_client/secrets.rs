//! The one secret the runner holds, and those it must not inherit.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use lula_config::variables::RUNNER_KEY as KEY;
use lula_files::{FinalLink, read_private};

use crate::diagnosis;
use crate::error::HostError;

const MAX_KEY_BYTES: u64 = 64 << 10;

/// The key from its file or variable.
pub fn key(file: Option<&Path>) -> Result<Option<String>, HostError> {
    let Some(path) = file else {
        return Ok(std::env::var(KEY).ok().filter(|key| !key.is_empty()));
    };
    let refused = |why: String| HostError::RunnerKey {
        path: path.to_owned(),
        why,
    };
    // A person names it, and may keep it behind a link of their own.
    let bytes = read_private(path, MAX_KEY_BYTES, FinalLink::Followed)
        .map_err(|error| refused(error.to_string()))?
        .ok_or_else(|| refused("there is no such file".to_owned()))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not text".to_owned()))?;
    diagnosis::conceal(text.trim());
    Ok(Some(text.trim().to_owned()))
}

/// Whether a variable's name says that it holds a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name != KEY
        && [
            "_API_KEY",
            "_TOKEN",
            "_SECRET",
            "_PASSWORD",
            "_ACCESS_KEY",
            "_CREDENTIALS",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}

/// The variables of this process that hold secrets, by their names.
pub fn secrets_inherited() -> Vec<OsString> {
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(is_secret))
        .map(|(name, _)| name)
        .collect()
}

/// Starts this very program anew, with these arguments and without those variables. Returns only where
/// that does not work.
pub fn without_secrets(
    arguments: impl Iterator<Item = OsString>,
    secrets: &[OsString],
) -> io::Error {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments);
    for name in secrets {
        command.env_remove(name);
    }
    command.exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_models_are_known_by_their_names() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "db_password",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "LULA_RUNNER_KEY", "TOKENIZERS"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runner.key");
        assert!(key(Some(&path)).is_err());
        std::fs::write(&path, "sesame\n").unwrap();
        for (mode, good) in [(0o644, false), (0o620, false), (0o600, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(key(Some(&path)).is_ok(), good, "{mode:o}");
        }
        assert_eq!(key(Some(&path)).unwrap().as_deref(), Some("sesame"));
    }
}
