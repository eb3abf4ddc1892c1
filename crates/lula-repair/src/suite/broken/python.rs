//! What a Python project's tests lack.

use super::{ProjectFolderFiles, SuiteCommandAttempt, listed, remedy};
use crate::environment::{BrokenEnvironment, CodeOrigin};
use crate::syntax::RepairLanguage;

/// Options and fixtures that only a plugin gives, with what the plugin is installed as.
const PLUGINS: &[(&str, &str)] = &[
    ("--cov", "pytest-cov"),
    ("--no-cov", "pytest-cov"),
    ("-n", "pytest-xdist"),
    ("--numprocesses", "pytest-xdist"),
    ("--dist", "pytest-xdist"),
    ("--timeout", "pytest-timeout"),
    ("--benchmark", "pytest-benchmark"),
    ("--asyncio-mode", "pytest-asyncio"),
    ("--reruns", "pytest-rerunfailures"),
    ("--randomly", "pytest-randomly"),
    ("--mypy", "pytest-mypy"),
    ("--flake8", "pytest-flake8"),
    ("--black", "pytest-black"),
    ("--ruff", "pytest-ruff"),
    ("--ds", "pytest-django"),
    ("--django", "pytest-django"),
    ("--doctest-plus", "pytest-doctestplus"),
    ("--snapshot", "syrupy"),
    ("--hypothesis", "hypothesis"),
    ("--disable-socket", "pytest-socket"),
    ("--enabler", "pytest-enabler"),
];
const FIXTURES: &[(&str, &str)] = &[
    ("mocker", "pytest-mock"),
    ("benchmark", "pytest-benchmark"),
    ("httpbin", "pytest-httpbin"),
    ("httpserver", "pytest-httpserver"),
    ("requests_mock", "requests-mock"),
    ("subtests", "pytest-subtests"),
    ("snapshot", "syrupy"),
    ("datadir", "pytest-datadir"),
    ("xprocess", "pytest-xprocess"),
    ("event_loop", "pytest-asyncio"),
    ("freezer", "pytest-freezer"),
    ("aiohttp_client", "pytest-aiohttp"),
    ("django_db_setup", "pytest-django"),
    ("settings", "pytest-django"),
];

/// Modules that are installed under another name.
const RENAMED: &[(&str, &str)] = &[
    ("yaml", "PyYAML"),
    ("PIL", "Pillow"),
    ("cv2", "opencv-python"),
    ("sklearn", "scikit-learn"),
    ("bs4", "beautifulsoup4"),
    ("dateutil", "python-dateutil"),
    ("attr", "attrs"),
    ("git", "GitPython"),
    ("OpenSSL", "pyOpenSSL"),
    ("dotenv", "python-dotenv"),
    ("jwt", "PyJWT"),
    ("pkg_resources", "setuptools"),
    ("pytest_cov", "pytest-cov"),
    ("pytest_asyncio", "pytest-asyncio"),
];

fn installed_as(module: &str) -> String {
    RENAMED
        .iter()
        .find(|(name, _)| *name == module)
        .map_or_else(|| module.to_owned(), |(_, name)| (*name).to_owned())
}

/// Where the project keeps a top-level module of its own, if it does.
fn own_place(project: &ProjectFolderFiles<'_>, module: &str) -> Option<&'static str> {
    ["", "src/", "lib/", "python/"].into_iter().find(|place| {
        let folder = format!("{place}{module}/");
        let file = format!("{place}{module}.py");
        let python = |path: &String| RepairLanguage::of(path) == Some(RepairLanguage::Python);
        let mut files = project.files().iter();
        files.any(|path| *path == file || path.starts_with(&folder) && python(path))
    })
}

/// What a text says is not there: names as they are installed, and whether one of them is the project.
pub(crate) fn missing(project: &ProjectFolderFiles<'_>, text: &str) -> (Vec<String>, bool) {
    let mut names: Vec<String> = Vec::new();
    let mut itself = false;
    let mut note = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for line in text.lines() {
        if let Some(rest) = line.split("No module named ").nth(1) {
            let module = rest.trim_matches(|c: char| c == '\'' || c == '"' || c.is_whitespace());
            let module = module.split(['\'', '"', ';', ' ']).next().unwrap_or(module);
            let top = module.split('.').next().unwrap_or(module);
            match own_place(project, top) {
                // A part of a package that is there is a matter of the code.
                _ if top.is_empty() => {}
                None => note(installed_as(top)),
                // What lies beside its tests is found without being installed.
                Some("") => {}
                Some(_) if top == module => itself = true,
                Some(_) => {}
            }
        }
        if let Some(rest) = line.split("unrecognized arguments: ").nth(1) {
            for word in rest.split_whitespace() {
                let known = PLUGINS
                    .iter()
                    .filter(|(option, _)| {
                        word == *option
                            || word.starts_with(&format!("{option}="))
                            || option.len() > 2 && word.starts_with(&format!("{option}-"))
                    })
                    .max_by_key(|(option, _)| option.len());
                if let Some((_, plugin)) = known {
                    note((*plugin).to_owned());
                }
            }
        }
        if let Some(rest) = line.split("fixture '").nth(1)
            && rest.contains("' not found")
        {
            let fixture = rest.split('\'').next().unwrap_or_default();
            if let Some((_, plugin)) = FIXTURES.iter().find(|(name, _)| *name == fixture) {
                note((*plugin).to_owned());
            }
        }
        if line.contains("async def functions are not natively supported") {
            note("pytest-asyncio".to_owned());
        }
        if let Some(rest) = line.split("Missing required plugins: ").nth(1) {
            for name in rest.split([',', ' ']).filter(|name| !name.is_empty()) {
                note(name.to_owned());
            }
        }
    }
    (names, itself)
}

/// What is broken about an environment in which a Python runner printed this, if that is what it says.
pub(crate) fn broken(
    project: &ProjectFolderFiles<'_>,
    attempt: &SuiteCommandAttempt<'_>,
) -> Option<BrokenEnvironment> {
    let (names, itself) = missing(project, attempt.output);
    if names.is_empty() && !itself {
        return None;
    }
    let what = match (names.is_empty(), itself) {
        (true, _) => {
            "the project itself is not installed, so its tests cannot import it".to_owned()
        }
        (false, true) => format!(
            "neither the project itself nor {} is installed",
            listed(&names)
        ),
        (false, false) => format!(
            "{} {} not installed",
            listed(&names),
            if names.len() == 1 { "is" } else { "are" }
        ),
    };
    let remedy = remedy::python(project, &names, attempt.python());
    Some(attempt.failed(what, names, Some(remedy)))
}

/// Code that tests import from elsewhere than the project.
pub(crate) fn shadowed(
    project: &ProjectFolderFiles<'_>,
    origins: &[CodeOrigin],
    root: &str,
    attempt: &SuiteCommandAttempt<'_>,
) -> Option<BrokenEnvironment> {
    let top = format!("{}/", root.trim_end_matches('/'));
    let elsewhere = |origin: &&CodeOrigin| {
        !origin.path.starts_with(&top)
            || ["/site-packages/", "/dist-packages/"]
                .iter()
                .any(|part| origin.path.contains(part))
    };
    let origin = origins.iter().find(elsewhere)?;
    let what = format!(
        "the tests import {} from {}, which is not the code of this project: a change of it would not be tested",
        origin.name, origin.path
    );
    Some(attempt.failed(
        what,
        Vec::new(),
        Some(remedy::python(project, &[], attempt.python())),
    ))
}
