//! Django's own runner, by `manage.py` or by the script that a reusable application has for it.

use super::{DetectedTests, DetectionProject, TestFramework, found};

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    let has = |path: &str, needle: &str| project.text(path).contains(needle);
    // One that is configured for pytest is tested by it.
    let pytest = has("pytest.ini", "DJANGO_SETTINGS_MODULE")
        || has("pyproject.toml", "[tool.pytest")
        || has("setup.cfg", "[tool:pytest]")
        || has("tox.ini", "DJANGO_SETTINGS_MODULE");
    if pytest {
        return;
    }
    let script = ["runtests.py", "tests/runtests.py"]
        .into_iter()
        .find(|path| has(path, "django"));
    if let Some(script) = script {
        let reason = format!("{script} runs Django's tests");
        let argv = ["python3", script];
        out.push(found(TestFramework::Django, &argv, Vec::new(), reason));
    } else if has("manage.py", "django") {
        let argv = ["python3", "manage.py", "test"];
        let reason = "manage.py is Django's";
        out.push(found(TestFramework::Django, &argv, Vec::new(), reason));
    }
}
