//! The command that would install what is missing, from the files that say how a project is set up.

use serde_json::Value;

use super::ProjectFolderFiles;

/// Names under which people keep what only tests need.
const EXTRAS: &[&str] = &["test", "tests", "testing", "dev", "all", "develop"];
const REQUIREMENTS: &[&str] = &[
    "requirements-dev.txt",
    "requirements_dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "requirements-tests.txt",
    "test-requirements.txt",
    "requirements_test.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "requirements.txt",
];

/// How a Python project is set up, with these names in it, for this interpreter.
pub(crate) fn python(
    project: &ProjectFolderFiles<'_>,
    names: &[String],
    interpreter: &str,
) -> String {
    for (lock, command) in [
        ("uv.lock", "uv sync --all-extras --all-groups"),
        ("poetry.lock", "poetry install"),
        ("pdm.lock", "pdm install -G :all"),
        ("Pipfile.lock", "pipenv install --dev"),
        ("Pipfile", "pipenv install --dev"),
    ] {
        if project.has(lock) {
            return command.to_owned();
        }
    }
    let pyproject = project.text("pyproject.toml");
    let mut known = String::new();
    let mut parts = String::new();
    if pyproject.contains("[project]")
        || pyproject.contains("[build-system]")
        || project.has("setup.py")
    {
        let extra = EXTRAS
            .iter()
            .find(|name| key_below(&pyproject, "[project.optional-dependencies]", name).is_some());
        let group = EXTRAS
            .iter()
            .find(|name| key_below(&pyproject, "[dependency-groups]", name).is_some());
        if let Some(name) = extra {
            parts = format!(" -e '.[{name}]'");
            known.push_str(&pyproject);
        } else {
            " -e .".clone_into(&mut parts);
        }
        if let (Some(name), None) = (group, extra) {
            parts = format!("{parts} --group {name}");
            known.push_str(&pyproject);
        }
    }
    if known.is_empty()
        && let Some(file) = REQUIREMENTS.iter().find(|file| project.has(file))
    {
        parts = format!("{parts} -r {file}");
        known.push_str(&project.text(file));
    }
    let known = known.to_ascii_lowercase();
    for name in names {
        if !known.contains(&name.to_ascii_lowercase()) {
            parts = format!("{parts} {name}");
        }
    }
    format!("{interpreter} -m pip install{parts}")
}

/// The line that sets a key in a table of TOML.
fn key_below<'a>(text: &'a str, table: &str, key: &str) -> Option<&'a str> {
    text.lines()
        .skip_while(|line| line.trim() != table)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .find(|line| {
            line.split_once('=')
                .is_some_and(|(name, _)| name.trim().trim_matches('"') == key)
        })
}

/// How a Node project is set up.
pub(super) fn node(project: &ProjectFolderFiles<'_>) -> String {
    let named = manager(project);
    let locked = [
        "package-lock.json",
        "npm-shrinkwrap.json",
        "pnpm-lock.yaml",
        "yarn.lock",
        "bun.lockb",
        "bun.lock",
    ]
    .iter()
    .any(|lock| project.has(lock));
    match (named, locked) {
        ("pnpm", true) => "pnpm install --frozen-lockfile",
        ("yarn", true) if project.has(".yarnrc.yml") => "yarn install --immutable",
        ("yarn", true) => "yarn install --frozen-lockfile",
        ("bun", true) => "bun install --frozen-lockfile",
        ("npm", true) => "npm ci",
        ("pnpm", false) => "pnpm install",
        ("yarn", false) => "yarn install",
        ("bun", false) => "bun install",
        _ => "npm install",
    }
    .to_owned()
}

/// The package manager that a Node project names, or that wrote its lock file.
fn manager(project: &ProjectFolderFiles<'_>) -> &'static str {
    let manifest: Value =
        serde_json::from_str(&project.text("package.json")).unwrap_or(Value::Null);
    let named = manifest["packageManager"].as_str().unwrap_or_default();
    for name in ["pnpm", "yarn", "bun", "npm"] {
        if named.starts_with(name) {
            return name;
        }
    }
    for (lock, name) in [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lockb", "bun"),
        ("bun.lock", "bun"),
    ] {
        if project.has(lock) {
            return name;
        }
    }
    "npm"
}
