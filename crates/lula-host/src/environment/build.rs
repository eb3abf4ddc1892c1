//! Building an environment: what runs is judged by the rules, reaches the groups of its recipe and nothing
//! else, and is recorded.

use std::path::{Path, PathBuf};

use lula_audit::AuditEnding;
use lula_config::keys;
use lula_env::EnvironmentRecipe;
use lula_gate::rules::{GateAct, RuleSet, Ruling};
use lula_protocol::RunExit;
use lula_runner::environments::{BuildProgress, EnvironmentBuild, EnvironmentRecord};
use lula_sandbox::SandboxEngine;
use lula_sandbox::policy::{Profile, WallTime};
use serde::Serialize;

use super::error::BuildRefusal;
use super::source;
use super::survey::{EnvironmentSurvey, survey};
use crate::error::HostError;
use crate::installation::Installation;
use crate::{network, record, repository, rules, sandbox};

/// What is asked for.
#[derive(Debug)]
pub struct BuildRequest {
    pub top: PathBuf,
    /// Whether one that is there is built anew.
    pub again: bool,
    /// Whether the operator agrees to what a rule asks about.
    pub agreed: bool,
}

impl BuildRequest {
    /// The environment of a repository, unless it is there.
    pub fn of(top: &Path) -> Self {
        Self {
            top: top.to_owned(),
            again: false,
            agreed: false,
        }
    }
}

/// An environment that is there.
#[derive(Debug, Serialize)]
pub struct BuiltEnvironment {
    pub name: String,
    pub directory: PathBuf,
    /// Whether it was there before.
    pub was_there: bool,
    #[serde(flatten)]
    pub record: EnvironmentRecord,
}

/// Builds the environment of a repository, or finds it.
pub fn build(
    request: &BuildRequest,
    watch: &dyn BuildProgress,
    installation: &Installation,
) -> Result<BuiltEnvironment, HostError> {
    let survey = survey(&request.top, installation)?;
    if survey.recipe.steps.is_empty() {
        let missing = survey
            .needs
            .parts
            .iter()
            .flat_map(|part| part.missing.clone());
        return Err(match missing.into_iter().next() {
            Some(missing) => BuildRefusal::Missing {
                what: missing.what,
                remedy: missing.remedy,
            },
            None => BuildRefusal::NothingToSetUp,
        }
        .into());
    }
    judge(&survey.recipe, request.agreed, &rules::load(installation)?)?;
    let mut log = record::begin(installation)?;
    let call = serde_json::json!({ "inputs": survey.inputs, "again": request.again });
    let built = carry_out(request, &survey, watch, installation);
    let outcome = match &built {
        Ok(_) => AuditEnding::Done {
            status: Some(RunExit::Verified.status()),
        },
        Err(error) => AuditEnding::Failed {
            code: error.code().as_str().to_owned(),
        },
    };
    let act = record::OperatorAct {
        tool: "environment",
        about: survey.place.clone(),
        call: &call,
        outcome,
        receipt: None,
        diff: built.as_ref().ok().map(|built| built.record.digest),
    };
    record::act(log.as_mut(), act)?;
    built
}

fn carry_out(
    request: &BuildRequest,
    survey: &EnvironmentSurvey,
    watch: &dyn BuildProgress,
    installation: &Installation,
) -> Result<BuiltEnvironment, HostError> {
    let source = source(installation)?;
    let store = source.store();
    if let Some(found) = store.of(&survey.digest).filter(|_| !request.again) {
        return Ok(BuiltEnvironment {
            name: found.record.name(),
            directory: found.directory,
            was_there: true,
            record: found.record,
        });
    }
    let mut policy = sandbox::policy(installation, Profile::Build);
    let wall = installation.config.get(&keys::ENVIRONMENT_TIMEOUT);
    let wall = WallTime::from_millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
    policy.limits.wall = wall.unwrap_or(policy.limits.wall);
    let mut words = survey.recipe.network.clone();
    // What the operator grants every command is granted here too.
    words.extend(installation.config.get(&keys::NETWORK_ALLOW));
    words.sort();
    words.dedup();
    let (policy, keeper) = network::grant_words(policy, &words, &request.top, installation)?;
    let mut engine = SandboxEngine::start()?;
    if let Some(keeper) = keeper {
        engine = engine.with_door_keeper(keeper);
    }
    let git = repository::find_git(installation).ok();
    let asked = EnvironmentBuild {
        store,
        engine: &engine,
        policy,
        git: git.as_ref(),
        inputs: survey.inputs.clone(),
        installed: survey.installed(),
    };
    let built = asked.run(request.again, watch)?;
    Ok(BuiltEnvironment {
        name: built.record.name(),
        directory: built.directory,
        was_there: false,
        record: built.record,
    })
}

/// What the rules say about every command that may be run.
fn judge(recipe: &EnvironmentRecipe, agreed: bool, rules: &RuleSet) -> Result<(), HostError> {
    for step in &recipe.steps {
        for line in std::iter::once(&step.run).chain(&step.otherwise) {
            let verdict = rules.judge(&GateAct::shell(line));
            let rule = verdict.rule().map(ToString::to_string).unwrap_or_default();
            let line = line.clone();
            match verdict.ruling {
                Ruling::Deny => return Err(BuildRefusal::Forbidden { rule, line }.into()),
                Ruling::Ask if !agreed => {
                    return Err(BuildRefusal::Asked { rule, line }.into());
                }
                Ruling::Ask | Ruling::Allow => {}
            }
        }
    }
    Ok(())
}
