//! The lessons of a repository, found by name and as data.

use std::path::Path;

use lula_agents::lessons::LessonRecord;
use lula_store::SecretGuard;
use serde_json::{Value, json};

use crate::error::HostError;
use crate::history::History;
use crate::installation::Installation;
use crate::repository::{around, find_git};
use crate::{runs, store};

/// All lessons of the repository around a directory.
pub fn of_repository(
    named: Option<&Path>,
    installation: &Installation,
) -> Result<Vec<LessonRecord>, HostError> {
    let (top, _) = around(named, &find_git(installation)?)?;
    if !store::is_there(installation)? {
        return Ok(Vec::new());
    }
    runs::block_on(async {
        let store = store::open(installation, SecretGuard::default()).await?;
        let history = History::read(store).await?;
        history.lessons(&top.to_string_lossy(), installation).await
    })
}

/// The one lesson whose id begins so.
pub fn named(
    id: &str,
    repository: Option<&Path>,
    installation: &Installation,
) -> Result<LessonRecord, HostError> {
    let mut records = of_repository(repository, installation)?;
    records.retain(|record| record.lesson.id.starts_with(id));
    let why = match records.len() {
        1 => return Ok(records.remove(0)),
        0 => format!("there is no lesson {id:?} of this repository"),
        _ => format!("several lessons begin with {id:?}"),
    };
    Err(HostError::NoLesson(why))
}

/// A lesson for programs.
pub fn document(record: &LessonRecord) -> Result<Value, HostError> {
    let mut value = serde_json::to_value(&record.lesson)
        .map_err(|error| HostError::Internal(error.to_string()))?;
    value["retired"] = json!(record.retired);
    value["uplift_permille"] = json!(record.lesson.uplift());
    Ok(value)
}

/// How much better runs do with a lesson, in words.
pub fn uplift(record: &LessonRecord) -> String {
    record.lesson.uplift().map_or_else(
        || "unknown".to_owned(),
        |uplift| format!("{:+} %", uplift / 10),
    )
}
