//! Errors, printed.

use std::fmt::Write;

use lula_protocol::{FailureDocument, FailureReport};

use super::style::{BAD, DIM, STRONG, paint};
use crate::failure::CommandFailure;

/// As a compiler would say it.
pub(super) fn as_text(failure: &CommandFailure) -> String {
    let mut out = format!(
        "{} {}\n",
        paint(BAD, format!("error[{}]:", failure.code)),
        paint(STRONG, &failure.message)
    );
    if let Some(place) = &failure.place {
        let _ = writeln!(out, "  {} {}", paint(DIM, "-->"), place.name);
        if let Some((number, text)) = &place.line {
            let _ = writeln!(out, "{} {text}", paint(DIM, format!("{number:>4} |")));
        }
    }
    if let Some(remedy) = &failure.remedy {
        let remedy = remedy.replace('\n', "\n          ");
        let _ = writeln!(out, "  {} {remedy}", paint(STRONG, "help:"));
    }
    let _ = writeln!(
        out,
        "  {} lula explain {}",
        paint(DIM, "more:"),
        failure.code
    );
    out
}

/// As a program reads it, another process of this one included.
pub(super) fn as_json(failure: &CommandFailure) -> FailureDocument {
    FailureDocument {
        error: FailureReport::from(failure),
    }
}

impl From<&CommandFailure> for FailureReport {
    fn from(failure: &CommandFailure) -> Self {
        Self {
            code: failure.code,
            message: failure.message.clone(),
            place: failure.place.as_ref().map(|place| place.name.clone()),
            remedy: failure.remedy.clone(),
            exit: failure.exit,
        }
    }
}
