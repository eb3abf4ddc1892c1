//! Builds test binaries and says which places do not compile.

use std::time::Duration;

use serde_json::Value;

use super::SuiteError;
use crate::ground::{ForkCommand, ProjectFork};

/// A binary that cargo built, with tests in it.
#[derive(Debug, Clone)]
pub(super) struct TestBinary {
    pub(super) target: String,
    path: String,
    folder: String,
}

impl TestBinary {
    /// Started in its package's folder, as cargo does.
    pub(super) fn argv(&self) -> Vec<String> {
        [
            "sh",
            "-c",
            "cd \"$1\" && shift && exec \"$@\"",
            "sh",
            &self.folder,
            &self.path,
        ]
        .map(str::to_owned)
        .to_vec()
    }

    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// What makes cargo build this one and no other.
    pub(super) fn selector(&self) -> Vec<String> {
        match self.target.split_once('/') {
            Some(("tests", name)) => vec!["--test".to_owned(), name.to_owned()],
            Some(("bin", name)) => vec!["--bin".to_owned(), name.to_owned()],
            _ => vec!["--lib".to_owned()],
        }
    }

    #[cfg(test)]
    pub(super) fn named(target: &str) -> Self {
        Self {
            target: target.to_owned(),
            path: String::new(),
            folder: String::new(),
        }
    }

    pub(super) fn id(&self, name: &str) -> String {
        format!("{} {name}", self.target)
    }

    pub(super) fn name_of<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(self.target.as_str())?.strip_prefix(' ')
    }
}

/// What came of a build.
pub(super) enum CargoBuildResult {
    /// It holds these binaries.
    Done(Vec<TestBinary>),
    /// It failed at these files and bytes.
    Broken {
        places: Vec<(String, usize)>,
        summary: String,
        /// What cargo itself had to say.
        printed: String,
    },
}

/// How a build differs from the developer's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CargoBuildLints {
    /// In nothing: what was built before is used again.
    AsTheyAre,
    /// In that warnings which the project denies do not decide over a candidate. Only the project's own
    /// crates are built so; a flag for all would build everything that they need anew.
    Capped,
}

/// Where the program that caps lints lies, below the folder of the build.
const WRAPPER: &str = "target/lula-rustc";

pub(super) fn build(
    fork: &mut dyn ProjectFork,
    folder: &str,
    options: &[String],
    (targets, lints): (&[String], CargoBuildLints),
    deadline: Duration,
) -> Result<CargoBuildResult, SuiteError> {
    let all = ["--tests".to_owned()];
    let targets = if targets.is_empty() { &all } else { targets };
    let argv = [
        "cargo",
        "test",
        "--offline",
        "--no-run",
        "--message-format=json",
    ]
    .iter()
    .map(|&part| part.to_owned())
    .chain(targets.iter().cloned())
    .chain(options.iter().cloned());
    let mut command = ForkCommand::new(argv, deadline)
        .in_folder(folder)
        .env("CARGO_TERM_COLOR", "never");
    if lints == CargoBuildLints::Capped {
        let script = "[ -x \"$1\" ] || { mkdir -p target && printf '#!/bin/sh\\nexec \"$@\" --cap-lints=warn -Cdebuginfo=0\\n' > \"$1\" && chmod +x \"$1\"; }";
        let make = ForkCommand::new(["sh", "-c", script, "sh", WRAPPER], Duration::from_secs(10));
        fork.run(&make.in_folder(folder))?;
        let parts =
            [&fork.root(), folder, WRAPPER].map(|part| part.trim_end_matches('/').to_owned());
        let path: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        command = command.env("RUSTC_WORKSPACE_WRAPPER", &path.join("/"));
    }
    let ran = fork.run(&command)?;
    let mut binaries = Vec::new();
    let mut places = Vec::new();
    let mut summary = String::new();
    for message in ran
        .out()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        match message["reason"].as_str() {
            Some("compiler-artifact") => {
                if let (Some(path), Some(manifest)) = (
                    message["executable"].as_str(),
                    message["manifest_path"].as_str(),
                ) && message["profile"]["test"] == true
                {
                    let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
                    let name = message["target"]["name"].as_str().unwrap_or_default();
                    binaries.push(TestBinary {
                        target: match kind {
                            "test" => format!("tests/{name}"),
                            "bin" => format!("bin/{name}"),
                            _ => name.to_owned(),
                        },
                        path: path.to_owned(),
                        folder: manifest.trim_end_matches("Cargo.toml").to_owned(),
                    });
                }
            }
            Some("compiler-message") if message["message"]["level"] == "error" => {
                if summary.is_empty() {
                    message["message"]["message"]
                        .as_str()
                        .unwrap_or_default()
                        .clone_into(&mut summary);
                }
                for span in message["message"]["spans"].as_array().into_iter().flatten() {
                    place_of(span, &mut places);
                }
            }
            _ => {}
        }
    }
    if ran.exit == Some(0) {
        return Ok(CargoBuildResult::Done(binaries));
    }
    if summary.is_empty() {
        summary = if ran.timed_out {
            "the build did not end in time".to_owned()
        } else {
            "cargo failed".to_owned()
        };
    }
    Ok(CargoBuildResult::Broken {
        places,
        summary,
        printed: ran.err(),
    })
}

/// The place of a span, and of the macro calls that it came from.
fn place_of(span: &Value, places: &mut Vec<(String, usize)>) {
    if let (Some(file), Some(byte)) = (span["file_name"].as_str(), span["byte_start"].as_u64()) {
        places.push((file.to_owned(), usize::try_from(byte).unwrap_or(usize::MAX)));
    }
    if span["expansion"]["span"].is_object() {
        place_of(&span["expansion"]["span"], places);
    }
}
