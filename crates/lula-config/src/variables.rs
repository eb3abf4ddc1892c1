//! The environment and flag layers.

use crate::error::ConfigError;
use crate::keys;
use crate::layer::{ConfigLayer, ConfigOrigin, ConfigSetting};
use crate::suggest::nearest;

/// Points to another user file.
pub const CONFIG_FILE: &str = "LULA_CONFIG_FILE";

/// Holds the bearer key of a runner. A secret is no setting: it is in no file and in no list.
pub const RUNNER_KEY: &str = "LULA_RUNNER_KEY";

/// What the diagnostic log holds. No key: it is read before the configuration is.
pub const LOG: &str = "LULA_LOG";

/// How its lines are written: `text` or `json`.
pub const LOG_FORMAT: &str = "LULA_LOG_FORMAT";

/// Variables of ours that are no configuration keys.
const RESERVED: &[&str] = &[CONFIG_FILE, RUNNER_KEY, LOG, LOG_FORMAT];
/// The test suite's own variables.
const RESERVED_PREFIX: &str = "LULA_TEST_";

/// Settings from `LULA_*` variables. One that is no key is an error: a typing mistake in a
/// variable must not leave a default silently in force.
pub fn from_environment(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Vec<ConfigSetting>, ConfigError> {
    let mut settings = Vec::new();
    for (name, text) in variables {
        let ours = name.starts_with("LULA_")
            && !name.starts_with(RESERVED_PREFIX)
            && !RESERVED.contains(&name.as_str());
        if !ours {
            continue;
        }
        let origin = ConfigOrigin::Variable(name.clone());
        let Some(spec) = keys::all().find(|spec| spec.variable() == name) else {
            let dotted = name["LULA_".len()..].to_lowercase().replacen('_', ".", 1);
            return Err(ConfigError::UnknownKey {
                nearest: nearest(&dotted, keys::all().map(|spec| spec.name)),
                name,
                origin: Some(origin),
            });
        };
        settings.push(parse(spec, &text, ConfigLayer::Environment, origin)?);
    }
    settings.sort_by_key(|setting| setting.spec.name);
    Ok(settings)
}

/// A setting from the flag of a key.
pub fn from_flag(
    spec: &'static keys::ConfigKeySpec,
    text: &str,
) -> Result<ConfigSetting, ConfigError> {
    parse(
        spec,
        text,
        ConfigLayer::Flag,
        ConfigOrigin::Flag(format!("--{}", spec.flag())),
    )
}

fn parse(
    spec: &'static keys::ConfigKeySpec,
    text: &str,
    layer: ConfigLayer,
    origin: ConfigOrigin,
) -> Result<ConfigSetting, ConfigError> {
    match spec.kind.parse(text) {
        Some(value) => Ok(ConfigSetting {
            spec,
            value,
            layer,
            origin,
        }),
        None => Err(ConfigError::BadValue {
            spec,
            given: format!("{text:?}"),
            origin: Some(origin),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Vec<ConfigSetting>, ConfigError> {
        from_environment(
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned())),
        )
    }

    #[test]
    fn only_our_variables_are_read() {
        let settings = read(&[
            ("PATH", "/bin"),
            ("LULA_OUTPUT_COLOR", "never"),
            ("LULA_CONFIG_FILE", "/x"),
            ("LULA_TEST_POSTGRES_URL", "x"),
        ])
        .unwrap();
        assert_eq!(settings.len(), 1);
        assert_eq!(settings[0].origin.to_string(), "$LULA_OUTPUT_COLOR");
    }

    #[test]
    fn a_misspelt_variable_is_an_error() {
        let error = read(&[("LULA_SANDBOX_MIN_TEIR", "process")]).unwrap_err();
        assert!(
            error.remedy().contains("sandbox.min_tier"),
            "{}",
            error.remedy()
        );
    }

    #[test]
    fn a_bad_value_names_the_variable() {
        let error = read(&[("LULA_OUTPUT_COLOR", "pink")]).unwrap_err();
        assert_eq!(error.origin().unwrap().to_string(), "$LULA_OUTPUT_COLOR");
    }
}
