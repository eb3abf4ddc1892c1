//! The policy rules in force: built in, the machine's, the person's, the repository's.

use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_files::FinalLink;
use lula_gate::rules::{REPOSITORY_FILE, RuleSet, RulesFileSource, RulesFileTrust};

use crate::error::HostError;
use crate::installation::Installation;

const SYSTEM_FILE: &str = "/etc/lula/rules.toml";
const MAX_BYTES: u64 = 256 * 1024;
const HELD_COMMITS: &str = r#"
[[rule]]
id = "commit.held"
match = ["lula", "commit"]
decision = "ask"
reason = "an agent asks to put its change into your files"
examples.match = ["lula commit"]
examples.not = ["git commit -m x"]
"#;

/// A rules file that was read.
pub struct LoadedRulesFile {
    name: String,
    text: String,
    trust: RulesFileTrust,
}

impl LoadedRulesFile {
    /// Its text, with where it stands and who answers for it.
    pub fn source(&self) -> RulesFileSource<'_> {
        RulesFileSource {
            file: &self.name,
            text: &self.text,
            trust: self.trust,
        }
    }
}

/// Every rules file there is beside the built-in one.
pub fn files(installation: &Installation) -> Result<Vec<LoadedRulesFile>, HostError> {
    let configured = installation.config.get(&keys::POLICY_RULES);
    let user = if configured.is_empty() {
        let beside = installation
            .locations
            .user
            .as_deref()
            .and_then(Path::parent);
        beside.map(|directory| (directory.join("rules.toml"), false))
    } else {
        Some((PathBuf::from(configured), true))
    };
    let repository = installation.locations.repository.as_deref();
    let repository = repository
        .and_then(Path::parent)
        .map(|top| top.join(REPOSITORY_FILE));
    let mut files = Vec::new();
    files.extend(read(Path::new(SYSTEM_FILE), RulesFileTrust::Operator)?);
    if let Some((path, named)) = user {
        let file = read(&path, RulesFileTrust::Operator)?;
        if file.is_none() && named {
            return Err(HostError::NoRulesFile {
                path,
                configured: true,
            });
        }
        files.extend(file);
    }
    if let Some(path) = repository {
        files.extend(read(&path, RulesFileTrust::Repository)?);
    }
    Ok(files)
}

/// The rules of the operator, for the runner; it reads a repository's rules itself.
pub fn for_runner(
    installation: &Installation,
    more: &[PathBuf],
) -> Result<Vec<lula_runner::service::RunnerRulesFile>, HostError> {
    let mut files = files(installation)?;
    files.retain(|file| file.trust == RulesFileTrust::Operator);
    for path in more {
        let Some(file) = read(path, RulesFileTrust::Operator)? else {
            return Err(HostError::NoRulesFile {
                path: path.clone(),
                configured: false,
            });
        };
        files.push(file);
    }
    let hand_over =
        |LoadedRulesFile { name, text, .. }| lula_runner::service::RunnerRulesFile { name, text };
    Ok(files.into_iter().map(hand_over).collect())
}

/// The rule by which an approver is asked before a held change reaches the operator's files: for agents from
/// elsewhere, whose changes no verdict stands behind.
pub fn holding_commits() -> lula_runner::service::RunnerRulesFile {
    lula_runner::service::RunnerRulesFile {
        name: "held commits".to_owned(),
        text: HELD_COMMITS.to_owned(),
    }
}

/// The policy of all files.
pub fn load(installation: &Installation) -> Result<RuleSet, HostError> {
    let files = files(installation)?;
    let sources: Vec<_> = files.iter().map(LoadedRulesFile::source).collect();
    Ok(RuleSet::load(&sources)?)
}

/// A file, or nothing where there is none. A repository's must be a plain file: a link could point
/// anywhere and a pipe would never end.
pub fn read(path: &Path, trust: RulesFileTrust) -> Result<Option<LoadedRulesFile>, HostError> {
    let unreadable = |why: String| HostError::UnreadableRules {
        path: path.to_owned(),
        why,
    };
    let link = match trust {
        RulesFileTrust::Repository => FinalLink::Refused,
        RulesFileTrust::Operator => FinalLink::Followed,
    };
    let text = lula_files::read_regular_text(path, MAX_BYTES, link)
        .map_err(|error| unreadable(error.to_string()))?;
    Ok(text.map(|text| LoadedRulesFile {
        name: path.display().to_string(),
        text,
        trust,
    }))
}
