//! Secrets from where the operator says they are. They stay in this process.

use std::path::Path;

use lula_egress::{BrokeredCredential, CredentialRule, CredentialSource};
use lula_files::{FinalLink, read_private};
use secrecy::SecretString;

use super::error::NetworkError;
use super::questions::answer;
use crate::diagnosis;
use crate::error::HostError;

const MAX_BYTES: u64 = 64 << 10;

/// A credential with its secret, under a new placeholder.
pub(super) fn broker(rule: &CredentialRule) -> Result<BrokeredCredential, HostError> {
    let secret = look_up(rule)?;
    diagnosis::conceal(&secret);
    Ok(BrokeredCredential::new(
        rule.clone(),
        SecretString::from(secret),
    )?)
}

fn look_up(rule: &CredentialRule) -> Result<String, HostError> {
    let missing = |why: String| NetworkError::Credential {
        name: rule.name().to_owned(),
        why,
    };
    let text = match rule.source() {
        CredentialSource::Env(name) => std::env::var(name)
            .map_err(|_| missing(format!("the variable {name} is not set, or is not text")))?,
        CredentialSource::File(path) => in_file(path).map_err(missing)?,
        CredentialSource::Command(words) => {
            let (program, arguments) = words
                .split_first()
                .ok_or_else(|| missing("its command is empty".to_owned()))?;
            answer(Path::new(program), arguments)
                .ok_or_else(|| missing(format!("`{program}` did not print it")))?
        }
        CredentialSource::Keyring { service, account } => {
            let (program, arguments) = keyring(service, account.as_deref());
            answer(Path::new(program), &arguments).ok_or_else(|| {
                missing(format!(
                    "`{program}` found nothing for the service {service:?}"
                ))
            })?
        }
    };
    let first = text.lines().next().unwrap_or_default().trim();
    Ok(first.to_owned())
}

/// How the keyring of this system is asked.
fn keyring<'a>(service: &'a str, account: Option<&'a str>) -> (&'static str, Vec<&'a str>) {
    let (program, mut arguments, named) = if cfg!(target_os = "macos") {
        let ask = vec!["find-generic-password", "-w", "-s", service];
        ("security", ask, "-a")
    } else {
        ("secret-tool", vec!["lookup", "service", service], "account")
    };
    if let Some(account) = account {
        arguments.extend([named, account]);
    }
    (program, arguments)
}

fn in_file(path: &Path) -> Result<String, String> {
    // A person names it, and may keep it behind a link of their own.
    let bytes = read_private(path, MAX_BYTES, FinalLink::Followed)
        .map_err(|error| format!("{}: {error}", path.display()))?
        .ok_or_else(|| format!("{}: there is no such file", path.display()))?;
    String::from_utf8(bytes).map_err(|_| format!("{}: it is not text", path.display()))
}
