//! The guidelines in force: built in, the person's, the repository's.

use std::path::Path;

use lula_agents::glean::{Guideline, GuidelineError, REPOSITORY_FILE, Source, Trust, load};
use lula_gate::rules;
use lula_protocol::{Code, Exit};

use crate::failure::{Failure, Place};
use crate::rules::read;
use crate::session::Session;

/// A file that was read.
pub(crate) struct GuidelineFile {
    name: String,
    text: String,
    trust: Trust,
}

impl GuidelineFile {
    pub(crate) fn source(&self) -> Source<'_> {
        Source {
            file: &self.name,
            text: &self.text,
            trust: self.trust,
        }
    }

    /// A file, or nothing where there is none.
    pub(crate) fn at(path: &Path, trust: Trust) -> Result<Option<Self>, Failure> {
        // A repository's must be a plain file: a link could point anywhere.
        let whose = match trust {
            Trust::Operator => rules::Trust::Operator,
            Trust::Repository => rules::Trust::Repository,
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
pub(crate) fn files(
    repository: Option<&Path>,
    session: &Session,
) -> Result<Vec<GuidelineFile>, Failure> {
    let beside = session.locations.user.as_deref().and_then(Path::parent);
    let user = beside.map(|directory| directory.join("guidelines.toml"));
    let mut files = Vec::new();
    if let Some(path) = user {
        files.extend(GuidelineFile::at(&path, Trust::Operator)?);
    }
    if let Some(top) = repository {
        files.extend(GuidelineFile::at(
            &top.join(REPOSITORY_FILE),
            Trust::Repository,
        )?);
    }
    Ok(files)
}

/// The guidelines of all files.
pub(crate) fn in_force(
    repository: Option<&Path>,
    session: &Session,
) -> Result<Vec<Guideline>, Failure> {
    let files = files(repository, session)?;
    let sources: Vec<_> = files.iter().map(GuidelineFile::source).collect();
    Ok(load(&sources)?)
}

impl From<GuidelineError> for Failure {
    fn from(error: GuidelineError) -> Self {
        let mut failure = Self::new(Code::BadRules, Exit::Usage, error.what);
        failure.place = Some(Place {
            name: format!("{}:{}", error.file, error.line),
            line: None,
        });
        failure.remedy("`lula guidelines test FILE` runs every example of the file")
    }
}
