//! What the tests of a Python project need beside the project: files of requirements, groups, plugins that its
//! configuration names, and packages that its tests import.

use toml::Value;

use super::python::PythonProject;
use super::tox::ini_section;

/// Names by which projects call what their tests need, and what their developers need.
const OF_TESTS: [&str; 6] = [
    "test",
    "tests",
    "testing",
    "pytest",
    "unittest",
    "unit-tests",
];
const OF_DEVELOPERS: [&str; 4] = ["dev", "develop", "development", "devel"];

fn chosen(names: &[String], known: &[&str]) -> Vec<String> {
    let plain = |name: &str| name.to_lowercase().replace(['_', '.'], "-");
    let fits = |name: &&String| known.contains(&plain(name).as_str());
    names.iter().filter(fits).cloned().collect()
}

/// Those of these names that are about tests.
pub(super) fn test_names(names: &[String]) -> Vec<String> {
    chosen(names, &OF_TESTS)
}

/// Those that are about development.
pub(super) fn dev_names(names: &[String]) -> Vec<String> {
    chosen(names, &OF_DEVELOPERS)
}

/// Files of requirements, in the order in which they are given to pip.
pub(super) fn requirement_files(project: &PythonProject<'_>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if project.has("requirements.txt") {
        found.push("requirements.txt".to_owned());
    }
    let places = |name: &str| {
        [
            format!("requirements-{name}.txt"),
            format!("requirements_{name}.txt"),
            format!("{name}-requirements.txt"),
            format!("{name}_requirements.txt"),
            format!("requirements/{name}.txt"),
            format!("requirements/requirements-{name}.txt"),
            format!("{name}/requirements.txt"),
        ]
    };
    let named = |names: &[&str]| -> Vec<String> {
        let all = names.iter().flat_map(|name| places(name));
        all.filter(|path| project.has(path)).collect()
    };
    let mut of_tests = named(&["test", "tests", "testing"]);
    if of_tests.is_empty() {
        of_tests = named(&OF_DEVELOPERS);
    }
    found.extend(of_tests);
    found
}

/// The requirements of groups (`[dependency-groups]`), with the groups that they include.
pub(super) fn group_requirements(project: &PythonProject<'_>, names: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<String> = names.to_vec();
    let mut seen: Vec<String> = Vec::new();
    let Some(groups) = project.table(&["dependency-groups"]) else {
        return found;
    };
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }
        let listed = groups.get(&name).and_then(Value::as_array);
        for one in listed.into_iter().flatten() {
            match one {
                Value::String(line) => found.push(line.clone()),
                Value::Table(table) => {
                    let included = table.get("include-group").and_then(Value::as_str);
                    open.extend(included.map(str::to_owned));
                }
                _ => {}
            }
        }
        seen.push(name);
    }
    found.sort();
    found.dedup();
    found
}

/// The options of pytest, and the file that has them.
fn pytest_options(project: &PythonProject<'_>) -> Option<(String, String)> {
    if let Some(table) = project.table(&["tool", "pytest", "ini_options"]) {
        let lines = table.iter().map(|(name, value)| {
            let value = serde_json::to_string(value).unwrap_or_default();
            format!("{name} = {value}\n")
        });
        return Some((lines.collect(), project.at("pyproject.toml")));
    }
    for (file, section) in [
        ("pytest.ini", "pytest"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ] {
        let options = ini_section(&project.text(file), section);
        if !options.is_empty() {
            let lines = options
                .iter()
                .map(|(name, value)| format!("{name} = {value}\n"));
            return Some((lines.collect(), project.at(file)));
        }
    }
    None
}

/// Options and words that only a plugin of pytest understands.
const PLUGINS: [(&str, &str); 14] = [
    ("--cov", "pytest-cov"),
    ("asyncio_mode", "pytest-asyncio"),
    ("asyncio_default_fixture_loop_scope", "pytest-asyncio"),
    ("-n auto", "pytest-xdist"),
    ("-nauto", "pytest-xdist"),
    ("--numprocesses", "pytest-xdist"),
    ("--dist", "pytest-xdist"),
    ("--timeout", "pytest-timeout"),
    ("timeout =", "pytest-timeout"),
    ("--benchmark", "pytest-benchmark"),
    ("--reruns", "pytest-rerunfailures"),
    ("--mypy", "pytest-mypy"),
    ("DJANGO_SETTINGS_MODULE", "pytest-django"),
    ("--randomly", "pytest-randomly"),
];

/// Plugins that the configuration of pytest cannot do without, each with the file that says so.
pub(super) fn plugins_of_pytest(project: &PythonProject<'_>) -> Vec<(&'static str, String)> {
    let Some((options, file)) = pytest_options(project) else {
        return Vec::new();
    };
    let mut found: Vec<(&str, String)> = Vec::new();
    for (sign, plugin) in PLUGINS {
        if options.contains(sign) && !found.iter().any(|(known, _)| *known == plugin) {
            found.push((plugin, file.clone()));
        }
    }
    found
}

/// Modules that tests import, and the packages that bring them. Only packages that are known: a name that
/// is made up in a test is not asked of a registry.
const MODULES: [(&str, &str); 44] = [
    ("pytest", "pytest"),
    ("hypothesis", "hypothesis"),
    ("freezegun", "freezegun"),
    ("mock", "mock"),
    ("trio", "trio"),
    ("anyio", "anyio"),
    ("asgiref", "asgiref"),
    ("dotenv", "python-dotenv"),
    ("pytest_asyncio", "pytest-asyncio"),
    ("pytest_mock", "pytest-mock"),
    ("pytest_benchmark", "pytest-benchmark"),
    ("time_machine", "time-machine"),
    ("responses", "responses"),
    ("requests", "requests"),
    ("requests_mock", "requests-mock"),
    ("httpx", "httpx"),
    ("aiohttp", "aiohttp"),
    ("numpy", "numpy"),
    ("pandas", "pandas"),
    ("attr", "attrs"),
    ("attrs", "attrs"),
    ("yaml", "pyyaml"),
    ("simplejson", "simplejson"),
    ("six", "six"),
    ("pytz", "pytz"),
    ("dateutil", "python-dateutil"),
    ("django", "django"),
    ("flask", "flask"),
    ("jinja2", "jinja2"),
    ("lxml", "lxml"),
    ("bs4", "beautifulsoup4"),
    ("psutil", "psutil"),
    ("pydantic", "pydantic"),
    ("toml", "toml"),
    ("tomli", "tomli"),
    ("typing_extensions", "typing-extensions"),
    ("parameterized", "parameterized"),
    ("testfixtures", "testfixtures"),
    ("pretend", "pretend"),
    ("nose", "nose"),
    ("zope.interface", "zope.interface"),
    ("cryptography", "cryptography"),
    ("setuptools", "setuptools"),
    ("pkg_resources", "setuptools"),
];

/// Most tests that are looked at.
const LOOKED_AT: usize = 400;

fn test_texts(project: &PythonProject<'_>) -> Vec<(String, String)> {
    let prefix = project.at("");
    let is_test = |path: &&str| {
        let Some(inside) = path.strip_prefix(&prefix) else {
            return false;
        };
        let name = inside.rsplit('/').next().unwrap_or(inside);
        let foreign = [
            "node_modules/",
            ".venv/",
            "venv/",
            "site-packages/",
            ".tox/",
        ];
        !foreign.iter().any(|place| inside.contains(place))
            && inside.strip_suffix(".py").is_some()
            && (name.starts_with("test") || name.ends_with("_test.py") || name == "conftest.py")
    };
    let found = project.files.all().filter(is_test).take(LOOKED_AT);
    found
        .filter_map(|path| Some((path.to_owned(), project.files.peek(path)?)))
        .collect()
}

/// Packages that the tests import, each with a file that shows it.
pub(super) fn imported(project: &PythonProject<'_>) -> Vec<(&'static str, String)> {
    let texts = test_texts(project);
    let prefix = project.at("");
    // A module of the project's own is no package of that name.
    let own = |module: &str| {
        ["", "src/", "lib/"].iter().any(|place| {
            let package = format!("{prefix}{place}{module}/__init__.py");
            let file = format!("{prefix}{place}{module}.py");
            project.files.names(&package) || project.files.names(&file)
        })
    };
    let mut found: Vec<(&str, String)> = Vec::new();
    for (module, package) in MODULES {
        if own(module) || found.iter().any(|(known, _)| *known == package) {
            continue;
        }
        let shows = |text: &str| {
            text.lines().any(|line| {
                // One that is indented may stand in a `try`: the tests do without it.
                let rest = line
                    .strip_prefix("import ")
                    .or_else(|| line.strip_prefix("from "));
                rest.and_then(|rest| rest.strip_prefix(module))
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '.', ',']))
            })
        };
        if let Some((path, _)) = texts.iter().find(|(_, text)| shows(text)) {
            found.push((package, path.clone()));
        }
    }
    let bare = |text: &str| {
        let mut lines = text.lines();
        lines.any(|line| line.starts_with("def test") || line.starts_with("async def test"))
    };
    if !found.iter().any(|(package, _)| *package == "pytest") && !own("pytest") {
        let by_options = pytest_options(project).map(|(_, file)| file);
        let by_form = || {
            let bare = texts.iter().find(|(_, text)| bare(text));
            bare.map(|(path, _)| path.clone())
        };
        if let Some(file) = by_options.or_else(by_form) {
            found.push(("pytest", file));
        }
    }
    found
}

/// Whether its tests want pytest.
pub(super) fn uses_pytest(project: &PythonProject<'_>) -> bool {
    imported(project)
        .iter()
        .any(|(package, _)| *package == "pytest")
}
