//! Which isolation works here: found by running a command through each tier, not by looking.

mod cache;

use std::path::Path;
use std::time::Duration;

use lula_protocol::IsolationTier;

use crate::error::SandboxError;
use crate::frames::SetupStage;
use crate::mounts::HostToolchains;
use crate::policy::Profile;
use crate::session::{Sandbox, SandboxCommand, SandboxEngine};

/// How long a tier has to run `/bin/true`.
const TRIAL: Duration = Duration::from_secs(3);

/// The tiers this engine can build, strongest first. `process` is not among them: it is never
/// chosen, only named.
const CHOSEN: [IsolationTier; 2] = [IsolationTier::Namespace, IsolationTier::Landlock];

/// Why a tier is not used.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierRefusal {
    /// The tier that is not used.
    pub tier: IsolationTier,
    pub reason: String,
    /// What a person can do about it, where we know.
    pub remedy: Option<String>,
}

/// Whether this engine knows how to build a tier at all.
pub(crate) fn is_built_here(tier: IsolationTier) -> bool {
    tier == IsolationTier::Process || CHOSEN.contains(&tier)
}

impl TierRefusal {
    pub(crate) fn not_built(tier: IsolationTier) -> Self {
        Self {
            tier,
            reason: "this version does not have it yet".to_owned(),
            remedy: None,
        }
    }

    pub(crate) fn below_floor(tier: IsolationTier) -> Self {
        Self {
            tier,
            reason: "it is weaker than the policy's floor".to_owned(),
            remedy: Some("lower min_tier in the policy".to_owned()),
        }
    }
}

impl std::fmt::Display for TierRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.tier, self.reason)?;
        if let Some(remedy) = &self.remedy {
            write!(f, " ({remedy})")?;
        }
        Ok(())
    }
}

/// The strongest tier at or above the floor that runs a command here.
pub(crate) fn choose(
    engine: &SandboxEngine,
    floor: IsolationTier,
) -> Result<IsolationTier, SandboxError> {
    let mut refusals = Vec::new();
    for tier in CHOSEN {
        if tier < floor {
            refusals.push(TierRefusal::below_floor(tier));
            continue;
        }
        match verdict(engine, tier) {
            Ok(()) => return Ok(tier),
            Err(refusal) => refusals.push(refusal),
        }
    }
    Err(SandboxError::FloorNotMet { floor, refusals })
}

/// Whether each tier works here, tried now or remembered from the same boot and program.
pub fn survey(engine: &SandboxEngine) -> Vec<(IsolationTier, Result<(), TierRefusal>)> {
    CHOSEN
        .into_iter()
        .chain([IsolationTier::Process])
        .map(|tier| (tier, verdict(engine, tier)))
        .collect()
}

fn verdict(engine: &SandboxEngine, tier: IsolationTier) -> Result<(), TierRefusal> {
    let key = cache::TierCacheKey::of(engine.helper(), tier);
    if let Some(key) = &key
        && let Some(known) = cache::recall(key)
    {
        return known;
    }
    let verdict = trial(engine, tier);
    if let Some(key) = &key {
        cache::remember(key, &verdict);
    }
    verdict
}

/// Runs `/bin/true` through a tier.
fn trial(engine: &SandboxEngine, tier: IsolationTier) -> Result<(), TierRefusal> {
    let refused = |reason: String, remedy| TierRefusal {
        tier,
        reason,
        remedy,
    };
    let mut policy = Profile::Strict.policy();
    policy.min_tier = tier;
    // What the tier itself stands for, and not what control groups add to it.
    policy
        .required_layers
        .retain(|layer| layers_of(tier).contains(&layer.name()));
    let workspace = std::env::temp_dir();
    let sandbox = Sandbox::new(policy, workspace)
        .tier(tier)
        .toolchains(HostToolchains::none());
    let run = engine.open_in(tier, &sandbox).and_then(|session| {
        let command = SandboxCommand::new("/bin/true")
            .directory("/")
            .timeout(TRIAL);
        session.run(&command)
    });
    match run {
        Ok(finished) if finished.succeeded() => Ok(()),
        Ok(finished) => Err(refused(
            format!("/bin/true ended with {:?}", finished.receipt.ended),
            None,
        )),
        Err(SandboxError::Setup {
            stage,
            detail,
            source,
            remedy,
        }) => Err(refused(format!("{stage} ({detail}): {source}"), remedy)),
        Err(error) => Err(refused(error.to_string(), None)),
    }
}

/// Layers without which a tier is not that tier.
fn layers_of(tier: IsolationTier) -> &'static [&'static str] {
    match tier {
        IsolationTier::Namespace => &[
            "namespaces",
            "private_root",
            "landlock",
            "seccomp",
            "no_new_privileges",
            "no_capabilities",
            "no_network",
            "clean_environment",
        ],
        IsolationTier::Landlock => &[
            "landlock",
            "seccomp",
            "no_new_privileges",
            "no_capabilities",
            "no_network",
            "clean_environment",
        ],
        _ => &["clean_environment"],
    }
}

/// What a person can do about a failed step, from the settings that are known to cause it.
pub(crate) fn remedy(stage: SetupStage, errno: u32) -> Option<String> {
    let setting = |path: &str| std::fs::read_to_string(Path::new("/proc/sys").join(path)).ok();
    remedy_from(stage, errno, &setting)
}

fn remedy_from(
    stage: SetupStage,
    errno: u32,
    setting: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    const EPERM: u32 = 1;
    const ENOSPC: u32 = 28;
    let is = |path: &str, value: &str| setting(path).is_some_and(|text| text.trim() == value);
    match stage {
        SetupStage::UserNamespace | SetupStage::MountNamespace | SetupStage::Identity => {
            if is("kernel/apparmor_restrict_unprivileged_userns", "1") && errno != ENOSPC {
                return Some(
                    "AppArmor forbids user namespaces to this program: give it a profile with \
                     `userns,`, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
                        .to_owned(),
                );
            }
            if is("kernel/unprivileged_userns_clone", "0") {
                return Some("`sysctl kernel.unprivileged_userns_clone=1`".to_owned());
            }
            if is("user/max_user_namespaces", "0") || errno == ENOSPC {
                return Some("raise `sysctl user.max_user_namespaces`".to_owned());
            }
            (errno == EPERM).then(|| {
                "a container or security module forbids user namespaces: allow `unshare` and \
                 `clone` with CLONE_NEWUSER in its seccomp profile"
                    .to_owned()
            })
        }
        SetupStage::Proc if errno == EPERM => Some(
            "the /proc of this container is masked: run it with an unmasked /proc \
             (docker: --security-opt systempaths=unconfined; Kubernetes: procMount: Unmasked) or as \
             root with CAP_SYS_ADMIN"
                .to_owned(),
        ),
        SetupStage::Landlock => Some(
            "Landlock is off: boot with `landlock` in the kernel's lsm= list (Linux 5.13 or later)"
                .to_owned(),
        ),
        SetupStage::Network if errno == ENOSPC => {
            Some("raise `sysctl user.max_net_namespaces`".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
