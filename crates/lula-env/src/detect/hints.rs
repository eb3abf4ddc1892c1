//! What a project wrote for others about its set-up: containers, CI, agents, make. Shown, and never run.

use super::{NeededService, SetupProposal};
use crate::project::ProjectFiles;

/// Most commands of one file that are shown.
const SHOWN: usize = 12;
/// Words of a command that sets something up.
const SETUP: [&str; 16] = [
    "install",
    "apt-get",
    "apt ",
    "pip",
    "npm ",
    "pnpm",
    "yarn",
    "poetry",
    "uv ",
    "cargo fetch",
    "bundle",
    "composer",
    "go mod",
    "mvn",
    "gradle",
    "make ",
];

pub(super) fn proposals(files: &ProjectFiles<'_>) -> Vec<SetupProposal> {
    let mut found = Vec::new();
    for path in files.all() {
        let what = match path {
            ".devcontainer/devcontainer.json" | ".devcontainer.json" => "a development container",
            ".github/workflows/copilot-setup-steps.yml" | ".openhands/setup.sh" => {
                "set-up steps of an agent"
            }
            "Dockerfile" => "a container",
            "Makefile" => "targets of make",
            "noxfile.py" => "sessions of nox",
            _ if path.starts_with(".github/workflows/")
                && matches!(ending(path), "yml" | "yaml") =>
            {
                "a workflow"
            }
            _ => continue,
        };
        let Some(text) = files.peek(path) else {
            continue;
        };
        let mut commands = match path {
            "Dockerfile" => after(&text, "RUN "),
            "Makefile" => targets(&text),
            ".openhands/setup.sh" => script(&text),
            "noxfile.py" => calls(&text),
            _ if ending(path) == "json" => of_container(&text),
            _ => of_workflow(&text),
        };
        commands.dedup();
        commands.truncate(SHOWN);
        if !commands.is_empty() {
            found.push(SetupProposal {
                file: path.to_owned(),
                what,
                commands,
            });
        }
    }
    found
}

fn ending(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default()
}

fn sets_up(line: &str) -> bool {
    SETUP.iter().any(|word| line.contains(word))
}

fn after(text: &str, word: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(word));
    lines
        .filter(|line| sets_up(line))
        .map(str::to_owned)
        .collect()
}

fn script(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn targets(text: &str) -> Vec<String> {
    let names = [
        "install",
        "setup",
        "deps",
        "dev",
        "develop",
        "bootstrap",
        "init",
    ];
    let lines = text
        .lines()
        .filter(|line| !line.starts_with([' ', '\t', '#', '.']));
    let found = lines.filter_map(|line| Some(line.split_once(':')?.0.trim()));
    found
        .filter(|name| names.contains(name))
        .map(|name| format!("make {name}"))
        .collect()
}

fn calls(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| line.starts_with("session.install(") || line.starts_with("session.run("))
        .map(str::to_owned)
        .collect()
}

/// Commands of a devcontainer. The file may hold comments, so it is read line by line.
fn of_container(text: &str) -> Vec<String> {
    let names = [
        "postCreateCommand",
        "onCreateCommand",
        "updateContentCommand",
        "image",
    ];
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| {
            names
                .iter()
                .any(|name| line.starts_with(&format!("\"{name}\"")))
        })
        .map(|line| line.trim_end_matches(',').to_owned())
        .collect()
}

/// Commands of `run:`, on its line or in the block below it.
fn of_workflow(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim().trim_start_matches("- ").trim();
        if let Some(depth) = block {
            if indent > depth && !trimmed.is_empty() {
                if sets_up(trimmed) {
                    found.push(trimmed.to_owned());
                }
                continue;
            }
            block = None;
        }
        if let Some(rest) = trimmed.strip_prefix("run:") {
            let rest = rest.trim();
            if rest.is_empty() || rest.starts_with(['|', '>']) {
                block = Some(indent);
            } else if sets_up(rest) {
                found.push(rest.to_owned());
            }
        }
    }
    found
}

/// Images and programs by which services are known.
const SERVICES: [(&str, &str); 7] = [
    ("postgres", "postgres"),
    ("postgis", "postgres"),
    ("mysql", "mysql"),
    ("mariadb", "mariadb"),
    ("redis", "redis"),
    ("mongo", "mongodb"),
    ("rabbitmq", "rabbitmq"),
];

pub(super) fn services(files: &ProjectFiles<'_>) -> Vec<NeededService> {
    let mut found: Vec<NeededService> = Vec::new();
    for path in files.all() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_compose = name.starts_with("docker-compose") || name.starts_with("compose.y");
        if !(is_compose || path.starts_with(".github/workflows/")) {
            continue;
        }
        for line in files.peek(path).unwrap_or_default().lines() {
            let line = line.trim();
            let Some(image) = line.strip_prefix("image:") else {
                continue;
            };
            let image = image.trim().trim_matches(['"', '\'']);
            let short = image.rsplit('/').next().unwrap_or(image);
            let known = SERVICES.iter().find(|(sign, _)| short.starts_with(sign));
            if let Some((_, name)) = known
                && !found.iter().any(|service| service.name == *name)
            {
                found.push(NeededService {
                    name,
                    file: path.to_owned(),
                    line: line.to_owned(),
                });
            }
        }
    }
    found
}
