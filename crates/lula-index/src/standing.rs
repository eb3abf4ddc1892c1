//! What a file is for, told by its path alone: source, tests, prose, or nothing a reader is helped by.

use std::collections::{BTreeMap, BTreeSet};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileStanding {
    /// Code of the project.
    Source,
    /// Tests, examples and benchmarks: they use everything and are used by nothing.
    Test,
    /// Configuration, templates and data.
    Other,
    /// Code of others that is kept in the project.
    Vendored,
    /// What is written for people: change logs, licences, guides.
    Prose,
    /// Lock files, generated and minified files, lists of what to ignore.
    Noise,
}

impl FileStanding {
    /// The standing of a file.
    pub fn of(path: &str) -> Self {
        if is_noise(path) {
            Self::Noise
        } else if is_vendored(path) {
            Self::Vendored
        } else if is_prose(path) {
            Self::Prose
        } else if is_test(path) {
            Self::Test
        } else if is_declaration(path) {
            Self::Other
        } else if crate::language::IndexLanguage::of(path).is_some() || is_other_code(path) {
            Self::Source
        } else {
            Self::Other
        }
    }

    /// How much a place in such a file tells, from 0 to 1.
    pub(crate) const fn weight(self) -> f64 {
        match self {
            Self::Source => 1.0,
            Self::Test => 0.6,
            Self::Other => 0.5,
            Self::Vendored => 0.05,
            Self::Prose => 0.02,
            Self::Noise => 0.0,
        }
    }
}

/// Files that say again what others define.
pub(crate) fn is_declaration(path: &str) -> bool {
    [".d.ts", ".d.mts", ".d.cts", ".pyi"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

fn name_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.to_ascii_lowercase()
}

fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn is_noise(path: &str) -> bool {
    const NAMES: [&str; 16] = [
        "cargo.lock",
        "composer.lock",
        "gemfile.lock",
        "go.sum",
        "mix.lock",
        "npm-shrinkwrap.json",
        "package-lock.json",
        "pdm.lock",
        "pipfile.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "uv.lock",
        "yarn.lock",
        "bun.lock",
        "flake.lock",
        "deno.lock",
    ];
    let name = name_of(path);
    let ignores = name.starts_with('.') && name.ends_with("ignore");
    let listed = matches!(name.as_str(), ".gitattributes" | ".mailmap" | ".gitmodules");
    let made = [
        ".min.js",
        ".min.css",
        ".bundle.js",
        "_pb2.py",
        ".pb.go",
        ".g.dart",
    ];
    let ending = ending(&name);
    NAMES.contains(&name.as_str())
        || ignores
        || listed
        || made.iter().any(|mark| name.ends_with(mark))
        || matches!(ending, "map" | "snap" | "svg" | "po" | "pot" | "lock")
        || path
            .split('/')
            .any(|part| matches!(part, "node_modules" | "__pycache__" | ".git"))
}

fn is_prose(path: &str) -> bool {
    const NAMES: [&str; 14] = [
        "authors",
        "changelog",
        "changes",
        "code_of_conduct",
        "code-of-conduct",
        "contributing",
        "contributors",
        "copying",
        "history",
        "licence",
        "license",
        "news",
        "notice",
        "readme",
    ];
    let name = name_of(path);
    let stem = name.split('.').next().unwrap_or_default();
    let prose = matches!(
        ending(&name),
        "md" | "mdx" | "markdown" | "rst" | "adoc" | "txt" | "tex" | "1" | "pod"
    );
    // A list of requirements is text, and configuration.
    let listing = name.starts_with("requirements") || name == "cmakelists.txt";
    let source = crate::language::IndexLanguage::of(path).is_some();
    (prose && !listing) || (NAMES.contains(&stem) && !source)
}

/// Languages without a grammar here, in which functions are written all the same.
fn is_other_code(path: &str) -> bool {
    matches!(
        ending(&name_of(path)),
        "cs" | "php"
            | "swift"
            | "kt"
            | "kts"
            | "scala"
            | "lua"
            | "ex"
            | "exs"
            | "erl"
            | "hs"
            | "clj"
            | "sh"
            | "bash"
            | "pl"
            | "pm"
            | "r"
            | "jl"
            | "zig"
            | "vue"
            | "svelte"
            | "sql"
            | "m"
            | "mm"
            | "pyx"
            | "proto"
            | "dart"
            | "nim"
            | "ml"
            | "fs"
    )
}

/// Whether a file belongs to others.
pub(crate) fn is_vendored(path: &str) -> bool {
    let parts = [
        "vendor",
        "vendored",
        "_vendor",
        "third_party",
        "extern",
        "node_modules",
    ];
    path.split('/').any(|part| parts.contains(&part))
}

/// Whether a file holds tests.
pub(crate) fn is_test(path: &str) -> bool {
    path.split('/').any(|part| {
        matches!(
            part,
            "test"
                | "tests"
                | "testing"
                | "__tests__"
                | "spec"
                | "examples"
                | "benches"
                | "benchmarks"
        ) || part.starts_with("test_")
            || [".test.", ".spec.", "_test."]
                .iter()
                .any(|mark| part.contains(mark))
    })
}

/// Names that tell nothing in a project: its own, as its folder has it, and the folders that half of
/// its sources are in.
pub fn silent_names<'a>(project: &str, paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let own = project
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let sources: Vec<&str> = paths
        .filter(|path| FileStanding::of(path) == FileStanding::Source)
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in &sources {
        let folders: BTreeSet<&str> = path.split('/').rev().skip(1).collect();
        for folder in folders {
            *counts.entry(folder).or_default() += 1;
        }
    }
    let most = counts
        .into_iter()
        .filter(|(_, count)| sources.len() > 3 && count * 2 > sources.len());
    let most = most.map(|(folder, _)| folder.to_owned());
    most.chain((!own.is_empty()).then(|| own.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projects_own_name_tells_nothing() {
        let files = [
            "src/shop/a.py",
            "src/shop/b.py",
            "src/shop/tax/c.py",
            "src/shop/d.py",
        ];
        let silent =
            |most: usize| silent_names("/home/ada/my-shop/", files[..most].iter().copied());
        assert_eq!(silent(4), ["shop", "src", "my-shop"]);
        assert_eq!(silent(2), ["my-shop"]);
    }

    #[test]
    fn source_stands_before_tests_and_prose_before_nothing() {
        for (path, standing) in [
            ("src/requests/models.py", FileStanding::Source),
            ("lib/Template.php", FileStanding::Source),
            ("tests/test_models.py", FileStanding::Test),
            ("pkg/server_test.go", FileStanding::Test),
            ("pyproject.toml", FileStanding::Other),
            ("requirements-dev.txt", FileStanding::Other),
            ("templates/base.html", FileStanding::Other),
            ("third_party/x.c", FileStanding::Vendored),
            ("CHANGELOG.md", FileStanding::Prose),
            ("CODE_OF_CONDUCT.md", FileStanding::Prose),
            ("docs/guide.rst", FileStanding::Prose),
            ("LICENSE", FileStanding::Prose),
            ("history.py", FileStanding::Source),
            (".gitignore", FileStanding::Noise),
            ("package-lock.json", FileStanding::Noise),
            ("dist/app.min.js", FileStanding::Noise),
        ] {
            assert_eq!(FileStanding::of(path), standing, "{path}");
        }
    }
}
