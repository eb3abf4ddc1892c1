//! pytest, unittest, and test files of bare functions.

use super::{DetectedTests, DetectionProject, TestFramework, found};
use crate::syntax::is_test_path;

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    let files: Vec<String> = project
        .files
        .iter()
        .filter(|path| is_test_file(path))
        .cloned()
        .collect();
    if files.is_empty() {
        return;
    }
    let texts: Vec<String> = files
        .iter()
        .take(200)
        .map(|path| project.text(path))
        .collect();
    let configured = [
        ("pytest.ini", ""),
        ("conftest.py", ""),
        ("tests/conftest.py", ""),
        ("pyproject.toml", "[tool.pytest"),
        ("setup.cfg", "[tool:pytest]"),
        ("tox.ini", "pytest"),
    ]
    .into_iter()
    .find(|(path, needle)| project.has(path) && project.text(path).contains(needle));
    let imports = texts
        .iter()
        .any(|text| text.contains("import pytest") || text.contains("from pytest"));
    let bare = texts.iter().any(|text| {
        text.lines()
            .any(|line| line.starts_with("def test") || line.starts_with("async def test"))
    });
    let cases = texts.iter().any(|text| text.contains("unittest"));
    let count = files.len();
    let pytest = |reason: String| {
        found(
            TestFramework::Pytest,
            &["python3", "-m", "pytest"],
            files.clone(),
            reason,
        )
    };
    if let Some((path, _)) = configured {
        out.push(pytest(format!(
            "{path} configures pytest; {count} test files"
        )));
    } else if imports {
        out.push(pytest(format!("tests import pytest; {count} test files")));
    } else if bare {
        out.push(pytest(format!(
            "tests are bare functions; {count} test files"
        )));
    }
    if cases {
        out.push(found(
            TestFramework::Unittest,
            &["python3", "-m", "unittest"],
            files.clone(),
            format!("tests use unittest; {count} test files"),
        ));
    }
    if bare && !imports && configured.is_none() {
        out.push(found(
            TestFramework::PlainPython,
            &["python3"],
            files,
            format!("bare test functions need no framework; {count} test files"),
        ));
    }
}

fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.strip_suffix(".py").is_some_and(|_| {
        name.starts_with("test_")
            || name.ends_with("_test.py")
            || matches!(name, "test.py" | "tests.py") && is_test_path(path)
            || name.starts_with("test")
                && path
                    .split('/')
                    .any(|folder| matches!(folder, "test" | "tests"))
    })
}
