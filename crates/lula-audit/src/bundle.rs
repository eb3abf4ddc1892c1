//! A log in one file, with what is needed to check it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::AuditError;
use crate::key::AuditPublicKey;
use crate::line::AuditHead;
use crate::log::{self, AuditLog};
use crate::verify::{AuditCheckReport, AuditCheckState};

const FORMAT: &str = "lula-audit/v1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cover {
    format: String,
    public_key: String,
    head: Option<AuditHead>,
}

/// Writes the whole log: a cover line with the public key and the end, then every line as it is.
/// What is there is sealed first.
pub fn export(
    log: &mut AuditLog,
    directory: &Path,
    mut to: impl Write,
) -> Result<AuditHead, AuditError> {
    let head = log.seal()?;
    let cover = Cover {
        format: FORMAT.to_owned(),
        public_key: log.public_key().to_string(),
        head: Some(head),
    };
    let failed = AuditError::io(Path::new("the exported file"));
    let text = serde_json::to_string(&cover).map_err(std::io::Error::from);
    text.and_then(|text| writeln!(to, "{text}"))
        .map_err(&failed)?;
    for path in log::files(directory)? {
        let mut file = File::open(&path).map_err(AuditError::io(&path))?;
        std::io::copy(&mut file, &mut to).map_err(&failed)?;
    }
    to.flush().map_err(&failed)?;
    Ok(head)
}

/// Checks an exported log. The key on its cover only shows that it is whole; whose it is, a key
/// from elsewhere shows.
pub fn verify_bundle(
    mut reader: impl BufRead,
    key: Option<&AuditPublicKey>,
) -> Result<AuditCheckReport, AuditError> {
    let mut first = Vec::new();
    let failed = AuditError::io(Path::new("the exported file"));
    std::io::Read::take(&mut reader, 64 * 1024)
        .read_until(b'\n', &mut first)
        .map_err(&failed)?;
    let cover: Cover = serde_json::from_slice(&first)
        .map_err(|error| AuditError::NotABundle(error.to_string()))?;
    if cover.format != FORMAT {
        return Err(AuditError::NotABundle(format!(
            "its format is {:?}, not {FORMAT}",
            cover.format
        )));
    }
    let own: AuditPublicKey = cover.public_key.parse()?;
    let mut check = AuditCheckState::new(Some(key.cloned().unwrap_or(own)));
    check.begin_behind("bundle", 1);
    check
        .read("bundle", BufReader::new(reader))
        .map_err(&failed)?;
    Ok(check.finish(&[cover.head]))
}
