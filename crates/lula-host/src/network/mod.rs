//! What sandboxes may reach over the network: settled from flags and configuration, answered for, written
//! down, and changed while a sandbox runs.
//!
//! Nothing is reachable unless it was granted: by `--net`, by `network.allow`, or live by `lula grant`. A
//! repository's `.lula-network.toml` narrows every one of them but the last.

mod bundle;
mod credentials;
mod door;
mod error;
mod file;
pub mod grants;
pub mod groups;
pub mod journal;
mod keeper;
mod publish;
mod questions;
mod urls;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_agents::runner_port::workspace_of;
use lula_config::keys;
use lula_egress::{CredentialSource, DomainName, EgressGroups, EgressPolicy, EgressRule};
use lula_protocol::denial::DeniedAttempt;
use lula_protocol::{SandboxDenial, SandboxReceipt};
use lula_sandbox::DoorKeeper;
use lula_sandbox::policy::{Network, SandboxPolicy};
use lula_store::SecretGuard;
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;
use crate::{runs, sandbox, store};
use file::NetworkFile;
use groups::{GroupAnswers, NetworkGroup};
use keeper::EgressKeeper;
pub(crate) use keeper::served;
use publish::PublishedPorts;
pub(crate) use questions::answer;

pub use error::NetworkError;
pub use file::REPOSITORY_FILE;

/// Whose sandboxes a process answers for, and so whether they may know each other by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxOwner {
    /// One command or run.
    OneRun,
    /// Whatever drivers a runner serves.
    SeveralRuns,
}

/// Adds what an operator granted to a sandbox's policy. Returns what answers for its network, where
/// anything is to.
pub fn grant(
    policy: SandboxPolicy,
    on_host: bool,
    base: &Path,
    installation: &Installation,
) -> Result<(SandboxPolicy, Option<Arc<dyn DoorKeeper>>), HostError> {
    grant_to(SandboxOwner::OneRun, policy, on_host, base, installation)
}

/// As [`grant`], for sandboxes of that owner.
pub fn grant_to(
    owner: SandboxOwner,
    policy: SandboxPolicy,
    on_host: bool,
    base: &Path,
    installation: &Installation,
) -> Result<(SandboxPolicy, Option<Arc<dyn DoorKeeper>>), HostError> {
    let words = installation.config.get(&keys::NETWORK_ALLOW);
    let published = installation.config.get(&keys::NETWORK_PUBLISH);
    if on_host {
        if !published.is_empty() {
            return Err(HostError::TaskRefused {
                why: "with --net-host a server inside is on this machine's network already"
                    .to_owned(),
                remedy: "leave --publish out",
            });
        }
        if !words.is_empty() {
            return Err(HostError::TaskRefused {
                why: "--net-host gives every host there is, and --net only those it names"
                    .to_owned(),
                remedy: "leave one of the two out",
            });
        }
        return Ok((policy.with_network(Network::Host), None));
    }
    settled_grant(owner, policy, (&words, &published), base, installation)
}

/// As [`grant`], for words that are not those of the configuration, with nothing published.
pub(crate) fn grant_words(
    policy: SandboxPolicy,
    words: &[String],
    base: &Path,
    installation: &Installation,
) -> Result<(SandboxPolicy, Option<Arc<dyn DoorKeeper>>), HostError> {
    settled_grant(
        SandboxOwner::OneRun,
        policy,
        (words, &[]),
        base,
        installation,
    )
}

fn settled_grant(
    owner: SandboxOwner,
    policy: SandboxPolicy,
    (words, published): (&[String], &[String]),
    base: &Path,
    installation: &Installation,
) -> Result<(SandboxPolicy, Option<Arc<dyn DoorKeeper>>), HostError> {
    if words.is_empty() && published.is_empty() && policy.network != Network::Allowlist {
        return Ok((policy, None));
    }
    let settled = SettledNetwork::of(words, base, installation)?;
    let published = PublishedPorts::reserve(published)?;
    let keeper = EgressKeeper::new(settled, published, owner, installation)?;
    Ok((
        policy.with_network(Network::Allowlist),
        Some(Arc::new(keeper)),
    ))
}

/// As [`grant`], for a command that is watched to find out what it needs: it gets a network by name even
/// where nothing is granted.
pub fn learn(policy: SandboxPolicy) -> SandboxPolicy {
    policy.with_network(Network::Allowlist)
}

/// What is granted, with every group taken in.
#[derive(Debug)]
pub struct SettledNetwork {
    pub(crate) policy: EgressPolicy,
    /// Variables that lead tools to what their groups name.
    pub(crate) variables: BTreeMap<String, String>,
    /// Which variable inside stands for which credential.
    pub(crate) placeholders: BTreeMap<String, String>,
}

impl SettledNetwork {
    /// What these words grant, under the operator's file.
    pub fn of(
        words: &[String],
        base: &Path,
        installation: &Installation,
    ) -> Result<Self, HostError> {
        let file = NetworkFile::load(installation)?;
        let mut rules = Vec::new();
        let mut named = BTreeSet::new();
        for word in &whole(words) {
            if is_group(word, &file) {
                named.insert(word.clone());
            } else {
                rules.push(word.parse::<EgressRule>()?);
            }
        }
        let mut variables = BTreeMap::new();
        let mut found = EgressGroups::default();
        if !named.is_empty() {
            let mut answers = GroupAnswers::open(installation)?;
            for name in &named {
                let group = match file.groups.get(name) {
                    Some(rules) => NetworkGroup::of_operator(name, rules),
                    None => answers.group(name, base)?,
                };
                variables.extend(group.variables.clone());
                found.0.insert(name.clone(), group.rules);
            }
        }
        let mut policy = EgressPolicy::default();
        policy.groups = named;
        policy.rules = rules;
        policy.limits = file.limits;
        policy.credentials = file.credentials;
        let policy = policy.with_groups(&found)?;
        // A secret is looked up only where something that may be reached can take it.
        let mut policy = policy;
        let reachable = |host: &DomainName, port| policy.explain(host, port).is_some();
        let kept: BTreeSet<String> = policy
            .credentials
            .iter()
            .filter(|one| one.hosts().any(|host| reachable(host, one.port())))
            .map(|one| one.name().to_owned())
            .collect();
        policy.credentials.retain(|one| kept.contains(one.name()));
        let mut placeholders = file.variables;
        placeholders.retain(|_, credential| kept.contains(credential));
        Ok(Self {
            policy,
            variables,
            placeholders,
        })
    }
}

/// The words of a list as they were meant: a rule with several methods or paths has commas of its own, at which
/// the list was split.
fn whole(words: &[String]) -> Vec<String> {
    let is_method = |word: &str| {
        let letter = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
        !word.is_empty() && word.bytes().all(letter)
    };
    let begins_with_method = |word: &String| {
        let first = word.split_once(' ').map_or("", |(first, _)| first);
        first.split(',').all(is_method)
    };
    let mut joined: Vec<String> = Vec::new();
    // From the end: methods belong to the rule behind them.
    for word in words.iter().rev() {
        match joined.last_mut() {
            Some(next) if is_method(word) && begins_with_method(next) => {
                *next = format!("{word},{next}");
            }
            _ => joined.push(word.clone()),
        }
    }
    let mut rules: Vec<String> = Vec::new();
    for word in joined.into_iter().rev() {
        match rules.last_mut() {
            Some(rule) if word.starts_with('/') => *rule = format!("{rule},{word}"),
            _ => rules.push(word),
        }
    }
    rules
}

/// A word without a dot is the name of a group; each name of a host has one.
fn is_group(word: &str, file: &NetworkFile) -> bool {
    file.groups.contains_key(word) || groups::is_known(word) || !word.contains(['.', '/', ':', ' '])
}

/// What is said about a name.
#[derive(Debug, Serialize)]
pub struct NameRuling {
    pub name: String,
    pub port: u16,
    /// The rule that allows it, where one does.
    pub rule: Option<String>,
    /// What would allow it, where nothing does.
    pub grant: Option<String>,
    /// The groups of this machine that contain it.
    pub groups: Vec<String>,
    /// What happened there last.
    pub seen: Vec<journal::NetworkLogEntry>,
}

/// Variables that a process needs which answers for networks by name: the proxy of this machine, its
/// certificates, and where secrets of credentials are. None, where nothing is granted.
pub fn variables(installation: &Installation) -> Result<Vec<String>, HostError> {
    let config = &installation.config;
    let granted = [&keys::NETWORK_ALLOW, &keys::NETWORK_PUBLISH];
    if granted.iter().all(|key| config.get(key).is_empty()) {
        return Ok(Vec::new());
    }
    let file = NetworkFile::load(installation)?;
    let of_secrets = file
        .credentials
        .iter()
        .filter_map(|one| match one.source() {
            CredentialSource::Env(name) => Some(name.clone()),
            // Where the keyring of the session is.
            CredentialSource::Keyring { .. } => Some("DBUS_SESSION_BUS_ADDRESS".to_owned()),
            CredentialSource::File(_) | CredentialSource::Command(_) => None,
        });
    let of_machine = keeper::VARIABLES.iter().map(|name| (*name).to_owned());
    Ok(of_machine.chain(of_secrets).collect())
}

/// The project that the caller is in.
pub fn project() -> PathBuf {
    let home = std::env::var_os("HOME");
    let project = sandbox::workspace(None, home.as_deref().map(Path::new));
    project
        .or_else(|_| std::env::current_dir())
        .unwrap_or_default()
}

/// What the sandboxes of a run are called, where a word means one; else the word itself.
pub(crate) fn subject(word: &str, installation: &Installation) -> Result<String, HostError> {
    // The latest door, and the name of one, are no runs.
    if word == "last" || word.starts_with("net-") {
        return Ok(word.to_owned());
    }
    runs::block_on(async {
        let store = store::open(installation, SecretGuard::default()).await?;
        let run = runs::named(&*store, word).await.ok();
        Ok(run.map_or_else(|| word.to_owned(), |run| workspace_of(&run).to_string()))
    })
}

/// What was denied on the way out of a sandbox with a network by name, a line each.
pub fn denials(receipt: &SandboxReceipt) -> Vec<String> {
    let by_name = receipt.layers.iter().any(|layer| layer.name() == "egress");
    if !by_name {
        return Vec::new();
    }
    let denials = receipt.denials.iter().filter(|denial| is_outward(denial));
    denials.map(sandbox::denied).collect()
}

/// The smallest allowlist that a command would have needed more, as it is typed.
pub fn proposal(receipt: &SandboxReceipt) -> String {
    let outward = receipt.denials.iter().filter(|denial| is_outward(denial));
    let grants: BTreeSet<&str> = outward
        .filter_map(|denial| denial.grant.as_deref())
        .collect();
    if grants.is_empty() {
        return "it asked for no name that it may not reach".to_owned();
    }
    let grants: Vec<_> = grants.into_iter().collect();
    format!("it needs at least: lula exec {}", grants.join(" "))
}

fn is_outward(denial: &SandboxDenial) -> bool {
    let attempt = &denial.attempt;
    matches!(
        attempt,
        DeniedAttempt::Connect { .. } | DeniedAttempt::Resolve { .. }
    )
}

/// A rule as it is typed on a command line.
pub(super) fn as_flag(rule: &str) -> String {
    if rule.contains([' ', '*']) {
        format!("--net '{rule}'")
    } else {
        format!("--net {rule}")
    }
}

impl NameRuling {
    /// The ruling for a person, a line each.
    pub fn lines(&self) -> Vec<String> {
        let name = format!("{}:{}", self.name, self.port);
        let ruling = match (&self.rule, &self.grant) {
            (Some(rule), _) => format!("{name} is reached: {rule} allows it"),
            (None, Some(grant)) => format!("{name} is not reached; {grant} would allow it"),
            (None, None) => format!("{name} is not reached"),
        };
        let groups = self.groups.iter();
        let groups = groups.map(|group| format!("the group {group} contains it"));
        [ruling].into_iter().chain(groups).collect()
    }
}

/// Explains what a sandbox here would be told about a name.
pub fn explain(host: &str, installation: &Installation) -> Result<NameRuling, HostError> {
    let base = &project();
    let asked: EgressRule = host.parse()?;
    let name: DomainName = asked.domain().to_string().parse()?;
    let words = installation.config.get(&keys::NETWORK_ALLOW);
    let settled = SettledNetwork::of(&words, base, installation)?;
    let policy = file::narrowed(settled.policy, base)?;
    let rule = policy.explain(&name, asked.port()).map(ToString::to_string);
    let answers = GroupAnswers::open(installation)?;
    let mut seen = journal::read(installation)?;
    seen.retain(|entry| entry.record.name.as_deref() == Some(name.as_str()));
    let last = seen.len().saturating_sub(5);
    Ok(NameRuling {
        grant: rule.is_none().then(|| as_flag(&asked.to_string())),
        groups: answers.containing(&name, asked.port()),
        name: name.to_string(),
        port: asked.port(),
        rule,
        seen: seen.split_off(last),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_with_commas_of_its_own_is_one_rule() {
        let split = |list: &str| -> Vec<String> { list.split(',').map(str::to_owned).collect() };
        for rules in [
            &["GET,HEAD pkg.example.org/**"][..],
            &["pypi", "GET,HEAD,POST a.example.org/x,/y/*", "npm"],
            &["a.example.org", "b.example.org:8443 private"],
            &["WORK", "a.example.org"],
        ] {
            assert_eq!(whole(&split(&rules.join(","))), rules);
        }
    }
}
