//! The policy rules in force: built in, the machine's, the person's, the repository's.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_gate::rules::{Policy, REPOSITORY_FILE, RulesError, Source, Trust};
use lula_protocol::{Code, Exit};
use rustix::fs::{Mode, OFlags};

use crate::failure::{Failure, Place};
use crate::session::Session;

const SYSTEM_FILE: &str = "/etc/lula/rules.toml";
const MAX_BYTES: u64 = 256 * 1024;

/// A rules file that was read.
pub(crate) struct RulesFile {
    name: String,
    text: String,
    trust: Trust,
}

impl RulesFile {
    pub(crate) fn source(&self) -> Source<'_> {
        Source {
            file: &self.name,
            text: &self.text,
            trust: self.trust,
        }
    }
}

/// Every rules file there is beside the built-in one.
pub(crate) fn files(session: &Session) -> Result<Vec<RulesFile>, Failure> {
    let configured = session.config.get(&keys::POLICY_RULES);
    let user = if configured.is_empty() {
        let beside = session.locations.user.as_deref().and_then(Path::parent);
        beside.map(|directory| (directory.join("rules.toml"), false))
    } else {
        Some((PathBuf::from(configured), true))
    };
    let repository = session.locations.repository.as_deref();
    let repository = repository
        .and_then(Path::parent)
        .map(|top| top.join(REPOSITORY_FILE));
    let mut files = Vec::new();
    files.extend(read(Path::new(SYSTEM_FILE), Trust::Operator)?);
    if let Some((path, named)) = user {
        let file = read(&path, Trust::Operator)?;
        if file.is_none() && named {
            let message = format!("the rules file {} does not exist", path.display());
            return Err(Failure::new(Code::BadRules, Exit::Usage, message)
                .remedy("correct policy.rules, or make the file"));
        }
        files.extend(file);
    }
    if let Some(path) = repository {
        files.extend(read(&path, Trust::Repository)?);
    }
    Ok(files)
}

/// The rules of whoever runs this, for the hands; they read a repository's rules themselves.
pub(crate) fn for_hands(
    session: &Session,
    more: &[PathBuf],
) -> Result<Vec<lula_runner::hands::RulesFile>, Failure> {
    let mut files = files(session)?;
    files.retain(|file| file.trust == Trust::Operator);
    for path in more {
        let Some(file) = read(path, Trust::Operator)? else {
            let message = format!("the rules file {} does not exist", path.display());
            return Err(Failure::new(Code::BadRules, Exit::Usage, message)
                .remedy("name a file that you can read"));
        };
        files.push(file);
    }
    let hand_over = |RulesFile { name, text, .. }| lula_runner::hands::RulesFile { name, text };
    Ok(files.into_iter().map(hand_over).collect())
}

/// The policy of all files.
pub(crate) fn load(session: &Session) -> Result<Policy, Failure> {
    let files = files(session)?;
    let sources: Vec<_> = files.iter().map(RulesFile::source).collect();
    Ok(Policy::load(&sources)?)
}

/// A file, or nothing where there is none. A repository's must be a plain file: a link could point
/// anywhere and a pipe would never end.
pub(crate) fn read(path: &Path, trust: Trust) -> Result<Option<RulesFile>, Failure> {
    let unreadable = |reason: String| {
        let message = format!("the rules file {} cannot be read: {reason}", path.display());
        Failure::new(Code::BadRules, Exit::Usage, message).remedy("make it a plain, readable file")
    };
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if trust == Trust::Repository {
        flags |= OFlags::NOFOLLOW;
    }
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(handle) => File::from(handle),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err(unreadable("it is not a plain file".to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(RulesFile {
        name: path.display().to_string(),
        text,
        trust,
    }))
}

impl From<RulesError> for Failure {
    fn from(error: RulesError) -> Self {
        let line = std::fs::read_to_string(&error.file).ok().and_then(|text| {
            let line = text.lines().nth(error.line.checked_sub(1)?)?;
            let shown = line.chars().filter(|c| !c.is_control() || *c == '\t');
            Some((error.line, shown.take(120).collect()))
        });
        let mut failure = Self::new(Code::BadRules, Exit::Usage, error.what);
        failure.place = Some(Place {
            name: format!("{}:{}", error.file, error.line),
            line,
        });
        failure.remedy("`lula policy test FILE` runs every example of the file")
    }
}
