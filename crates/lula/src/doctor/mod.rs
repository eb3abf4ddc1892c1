//! What works on this machine, and why not. Each check looks at one thing and changes nothing.

mod machine;
mod providers;
mod tiers;

use lula_models::discover::Provider;
use serde::Serialize;

use crate::session::Session;

pub(crate) use tiers::TierReport;

/// Everything that was found.
#[derive(Debug, Serialize)]
pub(crate) struct Examination {
    /// Whether the main job can run here.
    pub(crate) fit: bool,
    /// The same in a sentence.
    pub(crate) summary: String,
    /// Every sandbox tier, strongest first.
    pub(crate) tiers: Vec<TierReport>,
    /// Everything else the job needs.
    pub(crate) checks: Vec<Check>,
    /// Where models could come from.
    pub(crate) providers: Vec<Provider>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) state: State,
    pub(crate) reason: String,
    pub(crate) remedy: Option<String>,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It works.
    Good,
    /// The main job runs, but not everything does.
    Limited,
    /// The main job cannot run.
    Bad,
}

impl Check {
    fn good(name: &'static str, reason: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Good,
            reason: reason.into(),
            remedy: None,
        }
    }

    fn not(
        name: &'static str,
        state: State,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state,
            reason: reason.into(),
            remedy: Some(remedy.into()),
        }
    }
}

/// Looks at everything.
pub(crate) fn examine(session: &Session) -> Examination {
    // The servers are asked at the same time as the tiers are tried: both mostly wait.
    let (tiers, providers) = std::thread::scope(|scope| {
        let providers = scope.spawn(|| crate::models::providers(&session.config));
        (tiers::examine(), providers.join().unwrap_or_default())
    });
    let mut checks = vec![tiers::floor(&tiers, session)];
    checks.extend(machine::checks(session));
    checks.push(providers::check(&providers));
    let bad: Vec<_> = checks
        .iter()
        .filter(|check| check.state == State::Bad)
        .map(|check| check.name)
        .collect();
    let summary = if bad.is_empty() {
        "Lula can work on this machine.".to_owned()
    } else {
        format!(
            "Lula cannot work on this machine yet: see {}.",
            bad.join(", ")
        )
    };
    Examination {
        fit: bad.is_empty(),
        summary,
        tiers,
        checks,
        providers,
    }
}
