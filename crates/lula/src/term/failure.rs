//! Errors, printed.

use std::fmt::Write;

use lula_protocol::RunExit;
use serde::Serialize;

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

/// What another process of this program printed as its error, read back. It had no terminal, so there
/// are no colours in it.
pub(crate) fn read_text(text: &str) -> Option<CommandFailure> {
    let (_, rest) = text.split_once("error[")?;
    let (code, rest) = rest.split_once("]: ")?;
    let mut failure = CommandFailure::new(code.parse().ok()?, RunExit::Environment, "");
    let mut remedy: Option<String> = None;
    for line in rest.lines() {
        if line.starts_with("  more: ") {
            break;
        } else if let Some(help) = line.strip_prefix("  help: ") {
            remedy = Some(help.to_owned());
        } else if let Some(remedy) = &mut remedy {
            remedy.push('\n');
            remedy.push_str(line.trim_start());
        } else {
            if !failure.message.is_empty() {
                failure.message.push('\n');
            }
            failure.message.push_str(line);
        }
    }
    failure.remedy = remedy;
    Some(failure)
}

#[derive(Serialize)]
pub(super) struct FailureDocument<'a> {
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
pub(super) fn as_json(failure: &CommandFailure) -> FailureDocument<'_> {
    FailureDocument {
        error: Body {
            code: failure.code.as_str(),
            message: &failure.message,
            place: failure.place.as_ref().map(|place| place.name.as_str()),
            remedy: failure.remedy.as_deref(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lula_protocol::Code;

    #[test]
    fn what_one_process_prints_another_reads() {
        let failure = CommandFailure::new(
            Code::EnvironmentUnfit,
            RunExit::Environment,
            "no tier works here:\n  namespace: it is off",
        )
        .remedy("switch it on\nor ask somebody");
        let text = anstream::adapter::strip_str(&as_text(&failure)).to_string();
        let read = read_text(&format!("it ended with exit status: 6: {text}")).unwrap();
        assert_eq!(read.code, failure.code);
        assert_eq!(read.message, failure.message);
        assert_eq!(read.remedy, failure.remedy);
        for text in [
            "",
            "no such file",
            "error[L9999]: x",
            "error[",
            "error[L0201",
        ] {
            assert!(read_text(text).is_none(), "{text}");
        }
    }
}
