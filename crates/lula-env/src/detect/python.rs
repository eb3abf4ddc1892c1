//! Python: which interpreter, which manager, which extras and groups, what the tests import.

use toml::{Table, Value};

use super::requirements::{
    dev_names, imported, plugins_of_pytest, requirement_files, test_names, uses_pytest,
};
use super::tox::{ini_section, tox_needs};
use super::{EnvironmentPart, MissingTool, Surroundings, ToolVersionNeed};
use crate::machine::ProgramVersion;
use crate::project::{ProjectFiles, within};
use crate::recipe::TOOLS_HOME;
use crate::version::{VersionNumber, VersionRange};

/// What the files of a Python project say.
pub(super) struct PythonProject<'a> {
    pub(super) files: &'a ProjectFiles<'a>,
    pub(super) folder: &'a str,
    pub(super) pyproject: Table,
    pub(super) setup_cfg: String,
    pub(super) setup_py: String,
}

impl PythonProject<'_> {
    pub(super) fn at(&self, name: &str) -> String {
        within(self.folder, name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.files.has(&self.at(name))
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.files.text(&self.at(name)).unwrap_or_default()
    }

    /// A table of pyproject.toml.
    pub(super) fn table(&self, path: &[&str]) -> Option<&Table> {
        let mut table = &self.pyproject;
        for name in path {
            table = table.get(*name)?.as_table()?;
        }
        Some(table)
    }

    fn is_package(&self) -> bool {
        !self.setup_py.is_empty()
            || self.setup_cfg.contains("[metadata]")
            || self.pyproject.contains_key("project")
            || self.pyproject.contains_key("build-system")
            || self.table(&["tool", "poetry"]).is_some()
    }

    /// What it says about interpreters, and where.
    fn requires(&self) -> Option<(String, &'static str)> {
        let text = |value: Option<&Value>| value?.as_str().map(str::to_owned);
        let project = self.table(&["project"]);
        if let Some(found) = text(project.and_then(|one| one.get("requires-python"))) {
            return Some((found, "pyproject.toml"));
        }
        let poetry = self.table(&["tool", "poetry", "dependencies"]);
        if let Some(found) = text(poetry.and_then(|one| one.get("python"))) {
            return Some((found, "pyproject.toml"));
        }
        let options = ini_section(&self.setup_cfg, "options");
        let found = options.iter().find(|(name, _)| name == "python_requires");
        if let Some((_, found)) = found {
            return Some((found.trim().to_owned(), "setup.cfg"));
        }
        let (_, rest) = self.setup_py.split_once("python_requires")?;
        let rest = rest.trim_start().strip_prefix('=')?.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let value = rest[1..].split(quote).next()?;
        Some((value.to_owned(), "setup.py"))
    }

    /// The newest version that its classifiers name.
    fn newest_classified(&self) -> Option<VersionNumber> {
        let sign = "Programming Language :: Python :: ";
        let raw = [
            self.files
                .peek(&self.at("pyproject.toml"))
                .unwrap_or_default(),
            self.setup_cfg.clone(),
            self.setup_py.clone(),
        ]
        .concat();
        raw.split(sign)
            .skip(1)
            .filter_map(|rest| rest.split(['"', '\'', '\n', ' ', ',']).next())
            .filter(|version| version.contains('.'))
            .filter_map(|version| version.parse().ok())
            .max()
    }

    /// Names of extras, as written.
    fn extras(&self) -> Vec<String> {
        let mut found = Vec::new();
        let optional = self.table(&["project", "optional-dependencies"]);
        found.extend(optional.into_iter().flat_map(Table::keys).cloned());
        let poetry = self.table(&["tool", "poetry", "extras"]);
        found.extend(poetry.into_iter().flat_map(Table::keys).cloned());
        let of_setup = ini_section(&self.setup_cfg, "options.extras_require");
        found.extend(of_setup.into_iter().map(|(name, _)| name));
        found.extend(keys_of_call(&self.setup_py, "extras_require"));
        found
    }

    /// The interpreter to use, and why that one.
    fn interpreter(
        &self,
        part: &mut EnvironmentPart,
        around: Surroundings<'_>,
    ) -> Option<ProgramVersion> {
        let pythons = &around.machine.pythons;
        let pinned = self.pinned();
        let requires = self.requires();
        let range = requires
            .as_ref()
            .map(|(text, _)| VersionRange::of_python(text));
        let fits = |python: &&ProgramVersion| {
            range
                .as_ref()
                .is_none_or(|range| range.holds(&python.version))
        };
        let chosen = if let Some((version, file)) = &pinned {
            let found = pythons
                .iter()
                .find(|python| python.version.is_of(&version.minor()));
            part.versions.push(ToolVersionNeed {
                tool: "python".to_owned(),
                wanted: version.to_string(),
                file: self.at(file),
                used: found.map(|python| python.version.to_string()),
            });
            found
        } else {
            let newest = self.newest_classified();
            let known = |python: &&ProgramVersion| {
                newest
                    .as_ref()
                    .is_none_or(|newest| python.version.minor() <= *newest)
            };
            let usual = pythons.first().filter(fits).filter(known);
            let fitting = || pythons.iter().filter(fits).filter(known);
            let later = || {
                // What says nothing of newer ones was tried with the one it begins at.
                let first = pythons.first().map(|python| &python.version);
                let later = fitting().filter(|python| Some(&python.version) > first);
                later.min_by_key(|python| &python.version)
            };
            let chosen = usual
                .or_else(|| if newest.is_none() { later() } else { None })
                .or_else(|| fitting().max_by_key(|python| &python.version))
                .or_else(|| pythons.iter().find(fits));
            if let Some((wanted, file)) = &requires {
                part.versions.push(ToolVersionNeed {
                    tool: "python".to_owned(),
                    wanted: wanted.clone(),
                    file: self.at(file),
                    used: chosen.map(|python| python.version.to_string()),
                });
            }
            chosen
        };
        if chosen.is_none() {
            let wanted = pinned
                .map(|(version, _)| version.to_string())
                .or(requires.map(|(text, _)| text))
                .unwrap_or_else(|| "3".to_owned());
            part.missing.push(MissingTool {
                what: format!("no Python {wanted} on this machine"),
                remedy: format!("install Python {wanted} (pyenv, uv or the system's packages) and have it on PATH"),
            });
        }
        chosen.cloned()
    }

    /// The version that `.python-version` or `.tool-versions` asks for.
    fn pinned(&self) -> Option<(VersionNumber, &'static str)> {
        let first = |text: String| {
            let line = text
                .lines()
                .map(str::trim)
                .find(|line| !line.is_empty() && !line.starts_with('#'))?;
            line.trim_start_matches("cpython-").parse().ok()
        };
        if let Some(version) = self.files.text(&self.at(".python-version")).and_then(first) {
            return Some((version, ".python-version"));
        }
        let tools = self.text(".tool-versions");
        let line = tools.lines().find_map(|line| line.strip_prefix("python "));
        Some((line?.trim().parse().ok()?, ".tool-versions"))
    }
}

pub(super) fn look(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
) -> Option<EnvironmentPart> {
    let text = |name: &str| files.text(&within(folder, name)).unwrap_or_default();
    let project = PythonProject {
        files,
        folder,
        pyproject: toml::from_str(&text("pyproject.toml")).unwrap_or_default(),
        setup_cfg: text("setup.cfg"),
        setup_py: text("setup.py"),
    };
    let requirements = requirement_files(&project);
    let has_pipfile = project.has("Pipfile");
    if !project.is_package() && requirements.is_empty() && !has_pipfile && !has_tests(&project) {
        return None;
    }
    let mut part = EnvironmentPart {
        language: "Python",
        folder: folder.to_owned(),
        network: vec!["pypi".to_owned()],
        path: vec![within(folder, ".venv/bin")],
        installed: [".venv", "venv", "env"]
            .map(|name| within(folder, name))
            .to_vec(),
        ..EnvironmentPart::default()
    };
    let Some(python) = project.interpreter(&mut part, around) else {
        return Some(part);
    };
    let program = &python.program;
    if project.has("uv.lock") {
        uv(&project, program, &mut part);
    } else if project.has("poetry.lock") {
        poetry(&project, program, &mut part);
    } else if project.has("pdm.lock") {
        pdm(&project, program, &mut part);
    } else if project.has("Pipfile.lock") {
        part.manager = "pipenv";
        part.reason(project.at("Pipfile.lock"), "every version is pinned there");
        tool(&mut part, program, "pipenv", "pipenv");
        let run = format!(
            "PIPENV_VENV_IN_PROJECT=1 PIPENV_IGNORE_VIRTUALENVS=1 {TOOLS_HOME}/tools/bin/pipenv sync --dev --python {program}"
        );
        part.step(run, "Pipfile.lock");
    } else {
        pip(&project, &python, &requirements, around, &mut part);
        return Some(part);
    }
    beside_the_lock(&project, &mut part);
    Some(part)
}

fn has_tests(project: &PythonProject<'_>) -> bool {
    // Tests without a manifest: of a project of Python, where nothing else is at the top.
    let others = [
        "package.json",
        "Cargo.toml",
        "go.mod",
        "pom.xml",
        "CMakeLists.txt",
    ];
    let prefix = within(project.folder, "");
    let is_test = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        path.starts_with(&prefix)
            && path.strip_suffix(".py").is_some()
            && (name.starts_with("test_") || name.ends_with("_test.py"))
    };
    !others
        .iter()
        .any(|name| project.files.names(&project.at(name)))
        && project.files.all().any(is_test)
}

/// A manager of packages from the registry, in a virtual environment of its own.
fn tool(part: &mut EnvironmentPart, python: &str, package: &str, program: &str) {
    let run = format!(
        "{python} -m venv {TOOLS_HOME}/tools && {TOOLS_HOME}/tools/bin/python -m pip install \
         --disable-pip-version-check --quiet '{package}'"
    );
    let folder = std::mem::take(&mut part.folder);
    part.step(run, format!("{program} sets the environment up"));
    part.folder = folder;
}

fn uv(project: &PythonProject<'_>, python: &str, part: &mut EnvironmentPart) {
    part.manager = "uv";
    part.reason(project.at("uv.lock"), "every version is pinned there");
    tool(part, python, "uv", "uv");
    let groups = project.table(&["dependency-groups"]);
    let groups: Vec<String> = groups.into_iter().flat_map(Table::keys).cloned().collect();
    let mut chosen = String::new();
    for group in test_names(&groups).into_iter().chain(dev_names(&groups)) {
        chosen.push_str(" --group ");
        chosen.push_str(&group);
        part.reason(
            project.at("pyproject.toml"),
            format!("has a group `{group}`"),
        );
    }
    let extras = project.extras();
    let all: Vec<String> = test_names(&extras);
    let all = if all.is_empty() {
        dev_names(&extras)
    } else {
        all
    };
    for extra in all {
        chosen.push_str(" --extra ");
        chosen.push_str(&extra);
        part.reason(
            project.at("pyproject.toml"),
            format!("has an extra `{extra}`"),
        );
    }
    let uv = format!("UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy {TOOLS_HOME}/tools/bin/uv");
    let step = part.step(
        format!("{uv} sync --frozen --all-packages --python {python}{chosen}"),
        "uv.lock",
    );
    step.otherwise = vec![format!("{uv} sync --frozen --python {python}{chosen}")];
}

fn poetry(project: &PythonProject<'_>, python: &str, part: &mut EnvironmentPart) {
    part.manager = "poetry";
    part.reason(project.at("poetry.lock"), "every version is pinned there");
    // A lock file of Poetry 1 is read by both; one of 2 only by 2.
    tool(part, python, "poetry", "poetry");
    let groups = project.table(&["tool", "poetry", "group"]);
    let groups: Vec<String> = groups.into_iter().flat_map(Table::keys).cloned().collect();
    let mut with = test_names(&groups);
    with.extend(dev_names(&groups));
    let with = if with.is_empty() {
        String::new()
    } else {
        for group in &with {
            part.reason(
                project.at("pyproject.toml"),
                format!("has a group `{group}`"),
            );
        }
        format!(" --with {}", with.join(","))
    };
    let poetry = format!(
        "POETRY_VIRTUALENVS_IN_PROJECT=true POETRY_VIRTUALENVS_CREATE=true POETRY_NO_INTERACTION=1 \
         POETRY_CACHE_DIR=/tmp/poetry {TOOLS_HOME}/tools/bin/poetry"
    );
    part.step(
        format!("{poetry} env use {python} && {poetry} install --all-extras{with}"),
        "poetry.lock",
    )
    .otherwise = vec![format!(
        "{poetry} env use {python} && {poetry} install{with}"
    )];
}

fn pdm(project: &PythonProject<'_>, python: &str, part: &mut EnvironmentPart) {
    part.manager = "pdm";
    part.reason(project.at("pdm.lock"), "every version is pinned there");
    tool(part, python, "pdm", "pdm");
    let pdm = format!("{TOOLS_HOME}/tools/bin/pdm");
    part.step(
        format!("{pdm} use -f {python} && {pdm} sync --dev -G :all"),
        "pdm.lock",
    )
    .otherwise = vec![format!("{pdm} use -f {python} && {pdm} sync --dev")];
}

/// pytest is sometimes named nowhere: the tests say so.
fn beside_the_lock(project: &PythonProject<'_>, part: &mut EnvironmentPart) {
    if uses_pytest(project) {
        let step = part.step(
            ".venv/bin/python -c 'import pytest' || .venv/bin/python -m ensurepip && \
             .venv/bin/python -c 'import pytest' || .venv/bin/python -m pip install --quiet pytest",
            "the tests use pytest",
        );
        step.optional = true;
    }
}

fn pip(
    project: &PythonProject<'_>,
    python: &ProgramVersion,
    requirements: &[String],
    around: Surroundings<'_>,
    part: &mut EnvironmentPart,
) {
    part.manager = "pip";
    let mut wanted: Vec<String> = Vec::new();
    let extras = project.extras();
    let mut chosen = test_names(&extras);
    let tox = tox_needs(project);
    for extra in &tox.extras {
        if extras.contains(extra) && !chosen.contains(extra) {
            chosen.push(extra.clone());
        }
    }
    let groups = project.table(&["dependency-groups"]);
    let groups: Vec<String> = groups.into_iter().flat_map(Table::keys).cloned().collect();
    let mut chosen_groups = test_names(&groups);
    let nothing_of_tests = chosen.is_empty()
        && chosen_groups.is_empty()
        && tox.requirements.is_empty()
        && !requirements.iter().any(|file| file.contains("test"));
    if nothing_of_tests {
        chosen.extend(dev_names(&extras));
        chosen_groups.extend(dev_names(&groups));
    }
    if project.is_package() {
        let file = ["pyproject.toml", "setup.cfg", "setup.py"];
        let file = file.iter().find(|name| project.has(name)).unwrap_or(&"");
        part.reason(
            project.at(file),
            "the project is a package: it is installed as its developers have it, from its folder",
        );
        let listed = if chosen.is_empty() {
            String::new()
        } else {
            format!("[{}]", chosen.join(","))
        };
        for extra in &chosen {
            part.reason(project.at(file), format!("has an extra `{extra}`"));
        }
        wanted.push(format!("-e '.{listed}'"));
    }
    for file in requirements {
        part.reason(project.at(file), "lists packages");
        wanted.push(format!("-r {}", shell(file)));
    }
    let group_lines = super::requirements::group_requirements(project, &chosen_groups);
    for group in &chosen_groups {
        part.reason(
            project.at("pyproject.toml"),
            format!("has a group `{group}`"),
        );
    }
    wanted.extend(group_lines.iter().map(|line| shell(line)));
    if !tox.requirements.is_empty() && (chosen.is_empty() || nothing_of_tests) {
        part.reason(tox.file.clone(), "says what the tests need");
        for line in &tox.requirements {
            let word = match line.strip_prefix("-r").map(str::trim) {
                // Source packages often come without it.
                Some(file) if !project.has(file) => continue,
                Some(file) => format!("-r {}", shell(file)),
                None => shell(line),
            };
            if !wanted.contains(&word) {
                wanted.push(word);
            }
        }
    }
    let listed = requirements.iter().map(|file| project.text(file));
    let listed: String = listed.flat_map(|text| [" ".to_owned(), text]).collect();
    let declared = wanted.join(" ") + &listed + &project.declared();
    for (package, why) in plugins_of_pytest(project)
        .into_iter()
        .chain(imported(project))
    {
        let known = declared.to_lowercase().replace('_', "-");
        let is_known = known
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')))
            .any(|word| word == package);
        if !is_known && !wanted.contains(&package.to_owned()) {
            part.reason(why, format!("shows that the tests use {package}"));
            wanted.push(package.to_owned());
        }
    }
    part.step(
        format!("{} -m venv .venv", python.program),
        "a virtual environment",
    );
    if wanted.is_empty() {
        return;
    }
    let wanted = wanted.join(" ");
    // uv's resolution can be held to a day; that of older versions of pip cannot.
    tool(part, &python.program, "uv", "uv");
    let uv = format!(
        "UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy {TOOLS_HOME}/tools/bin/uv pip install --python .venv/bin/python"
    );
    let date = around
        .date
        .map(|date| format!(" --exclude-newer {date}"))
        .unwrap_or_default();
    let pip = format!(".venv/bin/python -m pip install --disable-pip-version-check {wanted}");
    let because = match around.date {
        Some(date) => format!(
            "nothing pins every version: packages as they were on {}",
            date.get(..10).unwrap_or(date)
        ),
        None => "nothing pins every version".to_owned(),
    };
    let step = part.step(format!("{uv}{date} {wanted}"), because);
    step.otherwise = vec![
        format!("{uv} {wanted}"),
        format!("SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 {pip}"),
    ];
}

impl PythonProject<'_> {
    /// Everything that the project declares by itself, as text in which names are looked for.
    fn declared(&self) -> String {
        let mut text = String::new();
        let mut add = |value: Option<&Value>| {
            for one in value.and_then(Value::as_array).into_iter().flatten() {
                text.push(' ');
                text.push_str(one.as_str().unwrap_or_default());
            }
        };
        let project = self.table(&["project"]);
        add(project.and_then(|one| one.get("dependencies")));
        let options = ini_section(&self.setup_cfg, "options");
        for (name, value) in options {
            if name == "install_requires" || name == "tests_require" {
                text.push(' ');
                text.push_str(&value);
            }
        }
        text
    }
}

/// The keys of a dictionary that is given in a call of Python: `extras_require={"test": […]}`.
fn keys_of_call(text: &str, name: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once(name) else {
        return Vec::new();
    };
    let Some((between, rest)) = rest.split_once('{') else {
        return Vec::new();
    };
    if !between.trim().trim_matches('=').trim().is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (mut depth, mut quote, mut word) = (1_u32, None, String::new());
    for c in rest.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None => match c {
                '"' | '\'' => {
                    quote = Some(c);
                    word.clear();
                }
                '{' | '[' | '(' => depth += 1,
                '}' | ']' | ')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                ':' if depth == 1 && !word.is_empty() => found.push(std::mem::take(&mut word)),
                _ => {}
            },
        }
    }
    found
}

/// A word for the shell.
pub(super) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
