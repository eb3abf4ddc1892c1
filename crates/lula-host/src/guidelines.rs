//! The guidelines in force: built in, the person's, the repository's.

use std::path::Path;

use lula_agents::guidelines::{
    Guideline, GuidelineFileSource, GuidelineFileTrust, REPOSITORY_FILE, load,
};
use lula_gate::rules;

use crate::error::HostError;
use crate::installation::Installation;
use crate::rules::read;

/// A file that was read.
pub struct GuidelineFile {
    name: String,
    text: String,
    trust: GuidelineFileTrust,
}

impl GuidelineFile {
    /// Its text, with where it stands and who answers for it.
    pub fn source(&self) -> GuidelineFileSource<'_> {
        GuidelineFileSource {
            file: &self.name,
            text: &self.text,
            trust: self.trust,
        }
    }

    /// A file, or nothing where there is none.
    pub fn at(path: &Path, trust: GuidelineFileTrust) -> Result<Option<Self>, HostError> {
        // A repository's must be a plain file: a link could point anywhere.
        let whose = match trust {
            GuidelineFileTrust::Operator => rules::RulesFileTrust::Operator,
            GuidelineFileTrust::Repository => rules::RulesFileTrust::Repository,
        };
        let found = read(path, whose)?;
        Ok(found.map(|file| Self {
            name: file.source().file.to_owned(),
            text: file.source().text.to_owned(),
            trust,
        }))
    }
}

/// Every file there is beside the built-in one, for work in this repository.
pub fn files(
    repository: Option<&Path>,
    installation: &Installation,
) -> Result<Vec<GuidelineFile>, HostError> {
    let beside = installation
        .locations
        .user
        .as_deref()
        .and_then(Path::parent);
    let user = beside.map(|directory| directory.join("guidelines.toml"));
    let mut files = Vec::new();
    if let Some(path) = user {
        files.extend(GuidelineFile::at(&path, GuidelineFileTrust::Operator)?);
    }
    if let Some(top) = repository {
        files.extend(GuidelineFile::at(
            &top.join(REPOSITORY_FILE),
            GuidelineFileTrust::Repository,
        )?);
    }
    Ok(files)
}

/// The guidelines of all files.
pub fn in_force(
    repository: Option<&Path>,
    installation: &Installation,
) -> Result<Vec<Guideline>, HostError> {
    let files = files(repository, installation)?;
    let sources: Vec<_> = files.iter().map(GuidelineFile::source).collect();
    Ok(load(&sources)?)
}
