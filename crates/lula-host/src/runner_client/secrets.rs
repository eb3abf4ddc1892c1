//! The one secret the runner holds, and those it must not inherit.

use std::ffi::OsString;
use std::path::Path;

use lula_config::variables::RUNNER_KEY as KEY;

use crate::error::HostError;

/// The key from its file or variable.
pub fn key(file: Option<&Path>) -> Result<Option<String>, HostError> {
    use std::os::unix::fs::MetadataExt;
    let Some(path) = file else {
        return Ok(std::env::var(KEY).ok().filter(|key| !key.is_empty()));
    };
    let refused = |why: String| HostError::RunnerKey {
        path: path.to_owned(),
        why,
    };
    let metadata = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(refused("others can read it".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
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
}
