//! Errors, printed.

use std::fmt::Write;

use serde::Serialize;

use super::style::{BAD, DIM, STRONG, paint};
use crate::failure::Failure;

/// As a compiler would say it.
pub(super) fn as_text(failure: &Failure) -> String {
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

#[derive(Serialize)]
pub(super) struct Document<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    code: &'a str,
    message: &'a str,
    place: Option<&'a str>,
    remedy: Option<&'a str>,
}

/// As a program reads it.
pub(super) fn as_json(failure: &Failure) -> Document<'_> {
    Document {
        error: Body {
            code: failure.code.as_str(),
            message: &failure.message,
            place: failure.place.as_ref().map(|place| place.name.as_str()),
            remedy: failure.remedy.as_deref(),
        },
    }
}
