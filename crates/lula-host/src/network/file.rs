//! The operator's file of network rules, and the repository's, which can only narrow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_egress::{CredentialRule, EgressLimits, EgressNarrowing, EgressPolicy, EgressRule};
use lula_files::FinalLink;
use serde::{Deserialize, Deserializer};

use super::error::NetworkError;
use crate::error::HostError;
use crate::installation::Installation;

/// The file of a repository, at its top.
pub const REPOSITORY_FILE: &str = ".lula-network.toml";

const MAX_BYTES: u64 = 256 * 1024;

/// What the operator wrote down beside `network.allow`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NetworkFile {
    /// Groups of the operator's own, which also go over those of tools.
    pub(super) groups: BTreeMap<String, Vec<ShortRule>>,
    pub(super) credentials: Vec<CredentialRule>,
    /// The variable inside that holds the placeholder of each credential.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) limits: EgressLimits,
}

/// A rule in its short form.
#[derive(Debug, Clone)]
pub(super) struct ShortRule(pub(super) EgressRule);

impl<'de> Deserialize<'de> for ShortRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let rule = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(rule))
    }
}

/// A repository's file, with rules in their short form.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RepositoryNetworkFile {
    /// The only rules that count.
    allow: Option<Vec<ShortRule>>,
    credentials: Option<std::collections::BTreeSet<String>>,
    limits: lula_egress::EgressNarrowingLimits,
}

impl NetworkFile {
    /// Reads the file that the configuration names, or the one beside it.
    pub(super) fn load(installation: &Installation) -> Result<Self, HostError> {
        let configured = installation.config.get(&keys::NETWORK_RULES);
        let user = installation.locations.user.as_deref();
        let beside = user.and_then(Path::parent);
        let path = if configured.is_empty() {
            beside.map(|directory| directory.join("network.toml"))
        } else {
            Some(PathBuf::from(&configured))
        };
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let bad = |why: String| NetworkError::File {
            path: path.clone(),
            why,
        };
        let text = lula_files::read_regular_text(&path, MAX_BYTES, FinalLink::Followed)
            .map_err(|error| bad(error.to_string()))?;
        let Some(text) = text else {
            return if configured.is_empty() {
                Ok(Self::default())
            } else {
                Err(bad("there is no such file".to_owned()).into())
            };
        };
        let file: Self = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
        for (variable, credential) in &file.variables {
            if !file.credentials.iter().any(|one| one.name() == credential) {
                return Err(bad(format!(
                    "variables.{variable} names the credential {credential:?}, which is not there"
                ))
                .into());
            }
        }
        Ok(file)
    }
}

/// A policy under what the repository in that directory says: less, or the same.
pub(super) fn narrowed(policy: EgressPolicy, directory: &Path) -> Result<EgressPolicy, HostError> {
    let path = directory.join(REPOSITORY_FILE);
    let bad = |why: String| NetworkError::File {
        path: path.clone(),
        why,
    };
    let text = lula_files::read_regular_text(&path, MAX_BYTES, FinalLink::Refused)
        .map_err(|error| bad(error.to_string()))?;
    let Some(text) = text else {
        return Ok(policy);
    };
    let file: RepositoryNetworkFile =
        toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let rules = |rules: Vec<ShortRule>| rules.into_iter().map(|rule| rule.0).collect();
    Ok(policy.narrow(&EgressNarrowing {
        rules: file.allow.map(rules),
        credentials: file.credentials,
        limits: file.limits,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(words: &[&str]) -> EgressPolicy {
        let mut policy = EgressPolicy::default();
        policy.rules = words.iter().map(|word| word.parse().unwrap()).collect();
        policy
    }

    #[test]
    fn a_repository_can_take_names_away_and_add_none() {
        let directory = tempfile::tempdir().unwrap();
        let allows = |policy: &EgressPolicy, name: &str| {
            policy.explain(&name.parse().unwrap(), 443).is_some()
        };
        let wide = narrowed(
            policy(&["a.example.org", "b.example.org"]),
            directory.path(),
        )
        .unwrap();
        assert!(allows(&wide, "a.example.org") && allows(&wide, "b.example.org"));
        let text = "allow = [\"a.example.org\", \"c.example.org\"]\n";
        std::fs::write(directory.path().join(REPOSITORY_FILE), text).unwrap();
        let narrow = narrowed(
            policy(&["a.example.org", "b.example.org"]),
            directory.path(),
        );
        let narrow = narrow.unwrap();
        assert!(allows(&narrow, "a.example.org"));
        assert!(!allows(&narrow, "b.example.org"));
        assert!(!allows(&narrow, "c.example.org"));
    }

    #[test]
    fn a_repository_names_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let text =
            "[[credentials]]\nname = \"x\"\nsecret = { env = \"HOME\" }\nhosts = [\"a.b\"]\n";
        std::fs::write(directory.path().join(REPOSITORY_FILE), text).unwrap();
        let refused = narrowed(policy(&[]), directory.path()).unwrap_err();
        assert!(refused.to_string().contains(REPOSITORY_FILE), "{refused}");
    }
}
