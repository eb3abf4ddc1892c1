//! What tox, hatch and nox are told that tests need.

use toml::Value;

use super::python::PythonProject;

/// What the tests need, as one of these tools is told.
#[derive(Debug, Default)]
pub(super) struct ToxNeeds {
    pub(super) file: String,
    pub(super) requirements: Vec<String>,
    pub(super) extras: Vec<String>,
}

/// A section of an INI file: names and values, those of several lines joined by line ends.
pub(super) fn ini_section(text: &str, section: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with('[') && trimmed.ends_with(']') {
            inside = trimmed[1..trimmed.len() - 1].trim() == section;
            continue;
        }
        if !inside || trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = found.last_mut() {
                value.push('\n');
                value.push_str(trimmed);
            }
        } else if let Some((name, value)) = trimmed.split_once(['=', ':']) {
            let name = name.trim().to_owned();
            found.push((name, value.trim().to_owned()));
        }
    }
    found
}

pub(super) fn tox_needs(project: &PythonProject<'_>) -> ToxNeeds {
    let mut needs = ToxNeeds::default();
    let section = ini_section(&project.text("tox.ini"), "testenv");
    if !section.is_empty() {
        needs.file = project.at("tox.ini");
    }
    for (name, value) in section {
        let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
        match name.as_str() {
            "deps" => needs.requirements.extend(lines.filter_map(requirement)),
            "extras" => {
                let names = lines.flat_map(|line| line.split(','));
                let names = names.filter_map(|name| name.rsplit(':').next());
                needs
                    .extras
                    .extend(names.map(|name| name.trim().to_owned()));
            }
            _ => {}
        }
    }
    if needs.requirements.is_empty() {
        of_hatch(project, &mut needs);
    }
    needs
}

/// A line of `deps`, unless it is about some of several environments or names a place.
fn requirement(line: &str) -> Option<String> {
    let line = line.split(" #").next().unwrap_or(line).trim();
    if line.starts_with('#') || line.contains(['{', '}']) {
        // The folder of the project is the usual one.
        let plain = line.replace("{toxinidir}/", "");
        return (!plain.contains(['{', '}']) && !line.starts_with('#')).then_some(plain);
    }
    let conditional = line
        .split_once(": ")
        .is_some_and(|(factor, _)| !factor.contains([' ', '=', '<', '>', '[']));
    (!conditional && !line.is_empty()).then(|| line.to_owned())
}

/// The environments of hatch in which tests run.
fn of_hatch(project: &PythonProject<'_>, needs: &mut ToxNeeds) {
    let names = ["hatch-test", "test", "tests", "default", "dev"];
    for name in names {
        let Some(table) = project.table(&["tool", "hatch", "envs", name]) else {
            continue;
        };
        let strings = |key: &str| -> Vec<String> {
            let listed = table.get(key).and_then(Value::as_array);
            let listed = listed.into_iter().flatten().filter_map(Value::as_str);
            listed.map(str::to_owned).collect()
        };
        for key in ["dependencies", "extra-dependencies"] {
            let lines = strings(key);
            needs
                .requirements
                .extend(lines.into_iter().filter(|line| !line.contains('{')));
        }
        needs.extras.extend(strings("features"));
        if !needs.requirements.is_empty() || !needs.extras.is_empty() {
            needs.file = project.at("pyproject.toml");
            return;
        }
    }
}
