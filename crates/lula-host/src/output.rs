//! Files that an operator names for a result.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::error::HostError;

/// Writes a file whole or not at all.
pub fn write_whole(file: &Path, text: &str) -> Result<(), HostError> {
    let failed = |error| HostError::Output {
        path: file.to_owned(),
        error,
    };
    let directory = match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let mut draft = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    draft.write_all(text.as_bytes()).map_err(failed)?;
    draft.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Writes a document, in place: what is named may be a device or a pipe.
pub fn write_document(file: &Path, document: &impl Serialize) -> Result<(), HostError> {
    let mut text = serde_json::to_string_pretty(document)
        .map_err(|error| HostError::Internal(error.to_string()))?;
    text.push('\n');
    std::fs::write(file, text).map_err(|error| HostError::Output {
        path: file.to_owned(),
        error,
    })
}
