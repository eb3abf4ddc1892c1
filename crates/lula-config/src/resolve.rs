//! Which layer wins, decided purely.

use std::time::Duration;

use crate::keys::{self, ConfigKey, ConfigKeySpec, RepositoryKeyRule, StricterValue};
use crate::kind::{ConfigValue, ConfigValueKind};
use crate::layer::{ConfigLayer, ConfigOrigin, ConfigSetting};

/// The configuration in force, with the history of every key.
#[derive(Debug)]
pub struct Config {
    entries: Vec<ConfigEntry>,
}

/// One key: every layer's say, and what came of it.
#[derive(Debug)]
pub struct ConfigEntry {
    pub spec: &'static ConfigKeySpec,
    /// From the weakest layer to the strongest.
    pub history: Vec<ConsideredSetting>,
}

/// One layer's say about one key.
#[derive(Debug, Clone)]
pub struct ConsideredSetting {
    pub setting: ConfigSetting,
    /// What came of it.
    pub verdict: SettingVerdict,
}

/// What came of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingVerdict {
    /// It is in force.
    Won,
    /// A stronger layer says something else.
    Overridden,
    /// The repository may not say this.
    Refused(String),
}

impl ConfigEntry {
    /// The setting in force.
    pub fn winner(&self) -> &ConfigSetting {
        self.history
            .iter()
            .rev()
            .find(|considered| considered.verdict == SettingVerdict::Won)
            .map_or(&self.history[0].setting, |considered| &considered.setting)
    }
}

impl Config {
    /// Settles every key over the given settings, whatever their order.
    pub fn resolve(mut settings: Vec<ConfigSetting>) -> Self {
        settings.sort_by_key(|setting| setting.layer);
        let entries = keys::all().map(|spec| {
            let default = ConfigSetting {
                spec,
                value: spec.default_value(),
                layer: ConfigLayer::BuiltIn,
                origin: ConfigOrigin::Default,
            };
            let said = settings
                .iter()
                .filter(|setting| setting.spec.name == spec.name)
                .cloned();
            ConfigEntry {
                spec,
                history: settle(default, said),
            }
        });
        Self {
            entries: entries.collect(),
        }
    }

    /// The built-in defaults alone.
    pub fn built_in() -> Self {
        Self::resolve(Vec::new())
    }

    /// Every key with its history, sorted by name.
    pub fn entries(&self) -> &[ConfigEntry] {
        &self.entries
    }

    /// One key with its history.
    pub fn entry(&self, spec: &ConfigKeySpec) -> Option<&ConfigEntry> {
        self.entries
            .iter()
            .find(|entry| entry.spec.name == spec.name)
    }

    /// The value in force.
    pub fn get<T: FromConfigValue>(&self, key: &ConfigKey<T>) -> T {
        let value = self.entry(key.spec()).map_or_else(
            || key.spec().default_value(),
            |entry| entry.winner().value.clone(),
        );
        T::from_value(value)
    }

    /// What the repository asked for and did not get.
    pub fn refused(&self) -> impl Iterator<Item = (&ConfigSetting, &str)> {
        self.entries
            .iter()
            .flat_map(|entry| &entry.history)
            .filter_map(|considered| match &considered.verdict {
                SettingVerdict::Refused(reason) => Some((&considered.setting, reason.as_str())),
                SettingVerdict::Won | SettingVerdict::Overridden => None,
            })
    }
}

fn settle(
    default: ConfigSetting,
    said: impl Iterator<Item = ConfigSetting>,
) -> Vec<ConsideredSetting> {
    let mut history = vec![ConsideredSetting {
        setting: default,
        verdict: SettingVerdict::Won,
    }];
    let mut current = 0;
    for setting in said {
        let refusal = (setting.layer == ConfigLayer::Repository)
            .then(|| refusal(&setting, &history[current].setting))
            .flatten();
        let verdict = if let Some(reason) = refusal {
            SettingVerdict::Refused(reason)
        } else {
            history[current].verdict = SettingVerdict::Overridden;
            current = history.len();
            SettingVerdict::Won
        };
        history.push(ConsideredSetting { setting, verdict });
    }
    history
}

/// Why a repository may not set this, if it may not.
pub(crate) fn refusal(asked: &ConfigSetting, current: &ConfigSetting) -> Option<String> {
    match asked.spec.repository {
        RepositoryKeyRule::Never => Some(never_reason(asked.spec)),
        RepositoryKeyRule::Tighten(stricter) => {
            let looser = is_looser(stricter, asked.spec.kind, &asked.value, &current.value);
            looser.then(|| {
                format!(
                    "a repository can only make this stricter than {} ({} layer)",
                    current.value, current.layer
                )
            })
        }
    }
}

/// Why a key is not for repositories.
pub(crate) fn never_reason(spec: &ConfigKeySpec) -> String {
    format!(
        "only you can set this: use `lula config set {}`, ${} or --{}",
        spec.name,
        spec.variable(),
        spec.flag()
    )
}

fn is_looser(
    stricter: StricterValue,
    kind: ConfigValueKind,
    asked: &ConfigValue,
    current: &ConfigValue,
) -> bool {
    match (stricter, asked, current) {
        (StricterValue::Lower, ConfigValue::Duration(asked), ConfigValue::Duration(current)) => {
            asked > current
        }
        (StricterValue::Lower, ConfigValue::Size(asked), ConfigValue::Size(current)) => {
            asked > current
        }
        (StricterValue::Later, ConfigValue::Text(asked), ConfigValue::Text(current)) => {
            let ConfigValueKind::Choice(words) = kind else {
                return true;
            };
            let rank = |word: &String| words.iter().position(|known| known == word);
            rank(asked) < rank(current)
        }
        // Values whose strictness is not defined are not a repository's to change.
        _ => true,
    }
}

/// Types a value can be read as.
pub trait FromConfigValue {
    /// Converts a value whose kind was checked when it was parsed.
    fn from_value(value: ConfigValue) -> Self;
}

impl FromConfigValue for u64 {
    fn from_value(value: ConfigValue) -> Self {
        match value {
            ConfigValue::Size(number)
            | ConfigValue::Count(number)
            | ConfigValue::Dollars(number) => number,
            _ => 0,
        }
    }
}

impl FromConfigValue for Duration {
    fn from_value(value: ConfigValue) -> Self {
        match value {
            ConfigValue::Duration(duration) => duration,
            _ => Self::ZERO,
        }
    }
}

impl FromConfigValue for String {
    fn from_value(value: ConfigValue) -> Self {
        value.to_string()
    }
}

impl FromConfigValue for Vec<String> {
    fn from_value(value: ConfigValue) -> Self {
        match value {
            ConfigValue::List(items) => items,
            _ => Self::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn setting<T>(key: &ConfigKey<T>, text: &str, layer: ConfigLayer) -> ConfigSetting {
        let spec = key.spec();
        let value = spec.kind.parse(text).unwrap();
        ConfigSetting {
            spec,
            value,
            layer,
            origin: ConfigOrigin::Default,
        }
    }

    #[test]
    fn the_strongest_layer_wins() {
        let config = Config::resolve(vec![
            setting(&keys::OUTPUT_COLOR, "never", ConfigLayer::Environment),
            setting(&keys::OUTPUT_COLOR, "always", ConfigLayer::User),
        ]);
        assert_eq!(config.get(&keys::OUTPUT_COLOR), "never");
    }

    #[test]
    fn a_repository_tightens_but_never_loosens() {
        let with = |repository| {
            Config::resolve(vec![
                setting(&keys::SANDBOX_MIN_TIER, "namespace", ConfigLayer::User),
                setting(&keys::SANDBOX_MIN_TIER, repository, ConfigLayer::Repository),
            ])
        };
        assert_eq!(with("microvm").get(&keys::SANDBOX_MIN_TIER), "microvm");
        let refused = with("process");
        assert_eq!(refused.get(&keys::SANDBOX_MIN_TIER), "namespace");
        let (_, reason) = refused.refused().next().unwrap();
        assert!(
            reason.contains("stricter than namespace (user layer)"),
            "{reason}"
        );
    }

    #[test]
    fn a_repository_cannot_redirect_the_model() {
        let config = Config::resolve(vec![setting(
            &keys::MODELS_OLLAMA_URL,
            "http://evil.example",
            ConfigLayer::Repository,
        )]);
        assert_eq!(
            config.get(&keys::MODELS_OLLAMA_URL),
            "http://127.0.0.1:11434"
        );
        assert_eq!(config.refused().count(), 1);
    }

    #[test]
    fn the_user_can_still_overrule_a_repository() {
        let config = Config::resolve(vec![
            setting(&keys::SANDBOX_TIMEOUT, "1s", ConfigLayer::Repository),
            setting(&keys::SANDBOX_TIMEOUT, "1h", ConfigLayer::Flag),
        ]);
        assert_eq!(config.get(&keys::SANDBOX_TIMEOUT), Duration::from_hours(1));
    }

    #[test]
    fn every_key_reads_back_as_its_type() {
        let config = Config::built_in();
        assert_eq!(config.get(&keys::DOCTOR_MIN_FREE_DISK), 1 << 30);
        assert_eq!(
            config.get(&keys::MODELS_PROBE_TIMEOUT),
            Duration::from_millis(500)
        );
        assert_eq!(config.get(&keys::MODELS_LOCAL_URLS).len(), 3);
    }

    proptest! {
        /// Whatever a repository says, what is in force is never looser than without it.
        #[test]
        fn a_repository_never_loosens(user in 0_usize..5, repository in 0_usize..5, ms in 100_u64..90_000_000) {
            let ConfigValueKind::Choice(tiers) = keys::SANDBOX_MIN_TIER.spec().kind else { unreachable!() };
            let timeout = Duration::from_millis(ms.min(86_400_000));
            let mut settings = vec![setting(&keys::SANDBOX_MIN_TIER, tiers[user], ConfigLayer::User)];
            let without = Config::resolve(settings.clone());
            settings.push(setting(&keys::SANDBOX_MIN_TIER, tiers[repository], ConfigLayer::Repository));
            settings.push(ConfigSetting {
                spec: keys::SANDBOX_TIMEOUT.spec(),
                value: ConfigValue::Duration(timeout),
                layer: ConfigLayer::Repository,
                origin: ConfigOrigin::Default,
            });
            let with = Config::resolve(settings);
            let rank = |config: &Config| {
                let tier = config.get(&keys::SANDBOX_MIN_TIER);
                tiers.iter().position(|known| *known == tier)
            };
            prop_assert!(rank(&with) >= rank(&without));
            prop_assert!(with.get(&keys::SANDBOX_TIMEOUT) <= without.get(&keys::SANDBOX_TIMEOUT));
        }
    }
}
