//! Values of flags that clap does not know.

use std::time::Duration;

use lula_config::keys;
use lula_protocol::IsolationTier;
use lula_sandbox::policy::Profile;

pub(crate) fn parse_profile(text: &str) -> Result<Profile, String> {
    Profile::from_name(text).ok_or_else(|| "expected strict, build or browser".to_owned())
}

pub(crate) fn parse_tier(text: &str) -> Result<IsolationTier, String> {
    let names = || IsolationTier::ALL.map(IsolationTier::name).join(", ");
    IsolationTier::from_name(text).ok_or_else(|| format!("expected one of {}", names()))
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let kind = keys::SANDBOX_TIMEOUT.spec().kind;
    match kind.parse(text) {
        Some(lula_config::ConfigValue::Duration(duration)) => Ok(duration),
        _ => Err(format!("expected {}", kind.expected())),
    }
}
