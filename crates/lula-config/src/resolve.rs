//! Which layer wins, decided purely.

use std::time::Duration;

use crate::keys::{self, Key, Repository, Spec, Stricter};
use crate::kind::{Kind, Value};
use crate::layer::{Layer, Origin, Setting};

/// The configuration in force, with the history of every key.
#[derive(Debug)]
pub struct Config {
    entries: Vec<Entry>,
}

/// One key: every layer's say, and what came of it.
#[derive(Debug)]
pub struct Entry {
    /// The key.
    pub spec: &'static Spec,
    /// From the weakest layer to the strongest.
    pub history: Vec<Considered>,
}

/// One layer's say about one key.
#[derive(Debug, Clone)]
pub struct Considered {
    /// What it says.
    pub setting: Setting,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is in force.
    Won,
    /// A stronger layer says something else.
    Overridden,
    /// The repository may not say this.
    Refused(String),
}

impl Entry {
    /// The setting in force.
    pub fn winner(&self) -> &Setting {
        self.history
            .iter()
            .rev()
            .find(|considered| considered.verdict == Verdict::Won)
            .map_or(&self.history[0].setting, |considered| &considered.setting)
    }
}

impl Config {
    /// Settles every key over the given settings, whatever their order.
    pub fn resolve(mut settings: Vec<Setting>) -> Self {
        settings.sort_by_key(|setting| setting.layer);
        let entries = keys::all().map(|spec| {
            let default = Setting {
                spec,
                value: spec.default_value(),
                layer: Layer::BuiltIn,
                origin: Origin::Default,
            };
            let said = settings
                .iter()
                .filter(|setting| setting.spec.name == spec.name)
                .cloned();
            Entry {
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
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// One key with its history.
    pub fn entry(&self, spec: &Spec) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.spec.name == spec.name)
    }

    /// The value in force.
    pub fn get<T: FromValue>(&self, key: &Key<T>) -> T {
        let value = self.entry(key.spec()).map_or_else(
            || key.spec().default_value(),
            |entry| entry.winner().value.clone(),
        );
        T::from_value(value)
    }

    /// What the repository asked for and did not get.
    pub fn refused(&self) -> impl Iterator<Item = (&Setting, &str)> {
        self.entries
            .iter()
            .flat_map(|entry| &entry.history)
            .filter_map(|considered| match &considered.verdict {
                Verdict::Refused(reason) => Some((&considered.setting, reason.as_str())),
                Verdict::Won | Verdict::Overridden => None,
            })
    }
}

fn settle(default: Setting, said: impl Iterator<Item = Setting>) -> Vec<Considered> {
    let mut history = vec![Considered {
        setting: default,
        verdict: Verdict::Won,
    }];
    let mut current = 0;
    for setting in said {
        let refusal = (setting.layer == Layer::Repository)
            .then(|| refusal(&setting, &history[current].setting))
            .flatten();
        let verdict = if let Some(reason) = refusal {
            Verdict::Refused(reason)
        } else {
            history[current].verdict = Verdict::Overridden;
            current = history.len();
            Verdict::Won
        };
        history.push(Considered { setting, verdict });
    }
    history
}

/// Why a repository may not set this, if it may not.
pub(crate) fn refusal(asked: &Setting, current: &Setting) -> Option<String> {
    match asked.spec.repository {
        Repository::Never => Some(never_reason(asked.spec)),
        Repository::Tighten(stricter) => {
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
pub(crate) fn never_reason(spec: &Spec) -> String {
    format!(
        "only you can set this: use `lula config set {}`, ${} or --{}",
        spec.name,
        spec.variable(),
        spec.flag()
    )
}

fn is_looser(stricter: Stricter, kind: Kind, asked: &Value, current: &Value) -> bool {
    match (stricter, asked, current) {
        (Stricter::Lower, Value::Duration(asked), Value::Duration(current)) => asked > current,
        (Stricter::Lower, Value::Size(asked), Value::Size(current)) => asked > current,
        (Stricter::Later, Value::Text(asked), Value::Text(current)) => {
            let Kind::Choice(words) = kind else {
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
pub trait FromValue {
    /// Converts a value whose kind was checked when it was parsed.
    fn from_value(value: Value) -> Self;
}

impl FromValue for u64 {
    fn from_value(value: Value) -> Self {
        match value {
            Value::Size(number) | Value::Dollars(number) => number,
            _ => 0,
        }
    }
}

impl FromValue for Duration {
    fn from_value(value: Value) -> Self {
        match value {
            Value::Duration(duration) => duration,
            _ => Self::ZERO,
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Self {
        value.to_string()
    }
}

impl FromValue for Vec<String> {
    fn from_value(value: Value) -> Self {
        match value {
            Value::List(items) => items,
            _ => Self::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn setting<T>(key: &Key<T>, text: &str, layer: Layer) -> Setting {
        let spec = key.spec();
        let value = spec.kind.parse(text).unwrap();
        Setting {
            spec,
            value,
            layer,
            origin: Origin::Default,
        }
    }

    #[test]
    fn the_strongest_layer_wins() {
        let config = Config::resolve(vec![
            setting(&keys::OUTPUT_COLOR, "never", Layer::Environment),
            setting(&keys::OUTPUT_COLOR, "always", Layer::User),
        ]);
        assert_eq!(config.get(&keys::OUTPUT_COLOR), "never");
    }

    #[test]
    fn a_repository_tightens_but_never_loosens() {
        let with = |repository| {
            Config::resolve(vec![
                setting(&keys::SANDBOX_MIN_TIER, "namespace", Layer::User),
                setting(&keys::SANDBOX_MIN_TIER, repository, Layer::Repository),
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
            Layer::Repository,
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
            setting(&keys::SANDBOX_TIMEOUT, "1s", Layer::Repository),
            setting(&keys::SANDBOX_TIMEOUT, "1h", Layer::Flag),
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
            let Kind::Choice(tiers) = keys::SANDBOX_MIN_TIER.spec().kind else { unreachable!() };
            let timeout = Duration::from_millis(ms.min(86_400_000));
            let mut settings = vec![setting(&keys::SANDBOX_MIN_TIER, tiers[user], Layer::User)];
            let without = Config::resolve(settings.clone());
            settings.push(setting(&keys::SANDBOX_MIN_TIER, tiers[repository], Layer::Repository));
            settings.push(Setting {
                spec: keys::SANDBOX_TIMEOUT.spec(),
                value: Value::Duration(timeout),
                layer: Layer::Repository,
                origin: Origin::Default,
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
