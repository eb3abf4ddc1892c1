//! Credentials with their secrets, which the sandbox never sees.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::EgressError;
use crate::policy::CredentialRule;

/// Secrets shorter than this would be found in ordinary text, and so could not be redacted.
const SHORTEST_SECRET: usize = 8;
/// Longer ones are files, not header values.
const LONGEST_SECRET: usize = 8 * 1024;
/// What a placeholder begins with, so that people recognise it.
pub(crate) const PLACEHOLDER_PREFIX: &str = "lula-placeholder-";
/// Random bytes of a placeholder.
const PLACEHOLDER_BYTES: usize = 24;

/// How a secret stands in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialUse {
    /// In place of the placeholder, with what stands around it kept: `Bearer PLACEHOLDER`, `token PLACEHOLDER`.
    #[default]
    ReplaceInHeader,
    /// As the password of basic authentication, whose user name is kept: what git and package registries
    /// send.
    BasicPassword,
}

/// A credential that can be used: its rule, its secret, and the placeholder that a sandbox is given in the
/// secret's place. Neither `Debug` nor an error shows the secret.
pub struct BrokeredCredential {
    rule: CredentialRule,
    placeholder: String,
    secret: SecretString,
}

impl BrokeredCredential {
    /// Binds a secret that the caller looked up to its rule, under a new random placeholder.
    pub fn new(rule: CredentialRule, secret: SecretString) -> Result<Self, EgressError> {
        let mut random = [0; PLACEHOLDER_BYTES];
        getrandom::fill(&mut random).map_err(|error| EgressError::Start(error.into()))?;
        let placeholder = format!("{PLACEHOLDER_PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
        let refused = |why| EgressError::Credential {
            name: rule.name().to_owned(),
            why,
        };
        let text = secret.expose_secret();
        if text.len() < SHORTEST_SECRET || text.len() > LONGEST_SECRET {
            return Err(refused(
                "its secret has fewer than 8 or more than 8192 characters",
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused(
                "its secret has characters that no header can hold; visible ASCII is expected",
            ));
        }
        Ok(Self {
            rule,
            placeholder,
            secret,
        })
    }

    pub fn rule(&self) -> &CredentialRule {
        &self.rule
    }

    pub(crate) fn secret(&self) -> &SecretString {
        &self.secret
    }

    /// What the sandbox is given in the place of the secret, in a variable or a file.
    pub fn placeholder(&self) -> &str {
        &self.placeholder
    }
}

impl fmt::Debug for BrokeredCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokeredCredential")
            .field("rule", &self.rule)
            .field("placeholder", &self.placeholder)
            .finish_non_exhaustive()
    }
}
