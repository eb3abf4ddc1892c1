//! Test code, which is never edited.

use tree_sitter::Node;

use super::{ParsedSource, RepairLanguage};

/// Whether a file belongs to the tests and is therefore never edited.
pub fn is_test_path(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let stem = name.split('.').next().unwrap_or(name);
    folders.split('/').any(|folder| {
        matches!(
            folder,
            "test"
                | "tests"
                | "__tests__"
                | "spec"
                | "specs"
                | "benches"
                | "e2e"
                | "__mocks__"
                | "fixtures"
        )
    }) || name.contains(".test.")
        || name.contains(".spec.")
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || stem == "conftest"
        // A library may have a module of that name for those who test with it.
        || matches!(stem, "test" | "tests")
            && !(name.rsplit('.').next() == Some("py")
                && matches!(folders.split('/').next(), Some("src" | "lib")))
}

/// Whether a node lies in test code inside a source file, as Rust keeps it.
pub(crate) fn in_test_code(source: &ParsedSource, node: Node<'_>) -> bool {
    if source.language != RepairLanguage::Rust {
        return false;
    }
    let mut current = Some(node);
    while let Some(node) = current {
        if matches!(node.kind(), "mod_item" | "function_item" | "impl_item") {
            let mut before = node.prev_sibling();
            while let Some(attribute) = before.filter(|sibling| {
                matches!(
                    sibling.kind(),
                    "attribute_item" | "line_comment" | "block_comment"
                )
            }) {
                let text = source.of(attribute);
                if text.contains("cfg(test)") || text.contains("test]") {
                    return true;
                }
                before = attribute.prev_sibling();
            }
        }
        current = node.parent();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::walk;
    use super::*;

    #[test]
    fn tests_are_told_from_the_code_they_test() {
        for path in [
            "tests/a.py",
            "pkg/test_a.py",
            "a_test.go",
            "src/a.test.ts",
            "src/__tests__/a.js",
            "conftest.py",
            "shop/tests.py",
            "test.py",
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in [
            "src/contest.py",
            "latest.js",
            "pkg/testament.py",
            "src/attest/mod.rs",
            "src/jinja2/tests.py",
            "src/werkzeug/test.py",
            "src/click/testing.py",
            "pandas/testing/core.py",
        ] {
            assert!(!is_test_path(path), "{path}");
        }
    }

    #[test]
    fn a_test_module_inside_a_rust_file_is_test_code() {
        let text = "fn a() { 1; }\n#[cfg(test)]\nmod tests { fn b() { 2; } }\n";
        let source = ParsedSource::parse("src/lib.rs", text.as_bytes()).unwrap();
        let inside: Vec<_> = walk(source.root())
            .into_iter()
            .filter(|node| node.kind() == "integer_literal")
            .map(|node| in_test_code(&source, node))
            .collect();
        assert_eq!(inside, [false, true]);
    }
}
