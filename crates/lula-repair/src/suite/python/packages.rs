//! The packages that a Python project consists of, by which its tests import it.

/// Folders whose packages only the project's own developers import.
const ASIDE: &[&str] = &[
    "test",
    "tests",
    "testing",
    "docs",
    "doc",
    "examples",
    "example",
    "scripts",
    "tools",
    "benchmarks",
    "bench",
    "build",
    "dist",
    "ci",
    "tasks",
];

/// Names that can be imported, from the files of the project's folder.
pub(super) fn names(files: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for file in files {
        let inside = file.strip_prefix("src/").unwrap_or(file);
        if let Some(name) = inside.strip_suffix("/__init__.py")
            && !name.contains(['/', '.', '-'])
            && !ASIDE.contains(&name)
            && !found.iter().any(|known| known == name)
        {
            found.push(name.to_owned());
        }
    }
    found.truncate(20);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_lie_at_the_top_or_in_src() {
        let files = [
            "src/flask/__init__.py",
            "src/flask/json/__init__.py",
            "attr/__init__.py",
            "tests/__init__.py",
            "a.py",
        ]
        .map(str::to_owned);
        assert_eq!(names(&files), ["flask", "attr"]);
    }
}
