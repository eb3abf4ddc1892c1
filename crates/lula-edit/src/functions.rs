//! The functions of a file, by number: a weak model chooses from a list better than it quotes.

use tree_sitter::Node;

use crate::syntax;

/// One function or method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionSpan {
    pub name: String,
    /// Its first line, from 1, decorators included.
    pub first: usize,
    /// Its last line, from 1.
    pub last: usize,
}

const KINDS: [&str; 8] = [
    "function_item",
    "function_definition",
    "function_declaration",
    "method_definition",
    "method_declaration",
    "constructor_declaration",
    "generator_function_declaration",
    "decorated_definition",
];

/// Every function, in the order of the file; empty where the language is unknown. Functions that
/// share a line with other code are left out: replacing their lines would replace more than them.
pub fn list(path: &str, text: &str) -> Vec<FunctionSpan> {
    let Some(tree) = syntax::parse(path, text) else {
        return Vec::new();
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut open = vec![tree.root_node()];
    while let Some(node) = open.pop() {
        let mut inner = node;
        if KINDS.contains(&node.kind()) {
            if let Some(function) = function(node, text, &lines) {
                found.push(function);
            }
            // The definition below its decorators is not a second function.
            if let Some(definition) = node.child_by_field_name("definition") {
                inner = definition;
            }
        }
        let mut cursor = inner.walk();
        open.extend(inner.children(&mut cursor));
    }
    found.sort_by_key(|function| (function.first, function.last));
    found
}

fn function(node: Node<'_>, text: &str, lines: &[&str]) -> Option<FunctionSpan> {
    let definition = node.child_by_field_name("definition").unwrap_or(node);
    if definition.kind() == "class_definition" {
        return None;
    }
    let (start, end) = (node.start_position(), node.end_position());
    let before = lines.get(start.row)?.get(..start.column)?;
    let after = lines
        .get(end.row)
        .and_then(|line| line.get(end.column..))
        .unwrap_or_default();
    if !before.trim().is_empty() || !after.trim().is_empty() {
        return None;
    }
    Some(FunctionSpan {
        name: name(definition, text).unwrap_or_else(|| "?".to_owned()),
        first: start.row + 1,
        last: end.row + 1,
    })
}

/// C hides the name in declarators.
fn name(node: Node<'_>, text: &str) -> Option<String> {
    let mut at = node;
    loop {
        if let Some(name) = at.child_by_field_name("name") {
            return name.utf8_text(text.as_bytes()).ok().map(str::to_owned);
        }
        match at.child_by_field_name("declarator") {
            Some(inner) if inner.kind() == "identifier" => {
                return inner.utf8_text(text.as_bytes()).ok().map(str::to_owned);
            }
            Some(inner) => at = inner,
            None => return None,
        }
    }
}

/// The list as a model is shown it.
pub fn show(path: &str, text: &str) -> String {
    list(path, text)
        .iter()
        .enumerate()
        .map(|(index, function)| {
            format!(
                "{}. {} (lines {}-{})\n",
                index + 1,
                function.name,
                function.first,
                function.last
            )
        })
        .collect::<Vec<_>>()
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_listed_in_every_language() {
        for (path, text, expected) in [
            (
                "a.py",
                "@cache\ndef f():\n    pass\n\nclass A:\n    def g(self):\n        pass\n",
                vec![("f", 1, 3), ("g", 6, 7)],
            ),
            (
                "a.rs",
                "impl A {\n    fn f(&self) {\n    }\n}\nfn g() {}\n",
                vec![("f", 2, 3), ("g", 5, 5)],
            ),
            (
                "a.go",
                "package a\n\nfunc (s S) F() {\n}\nfunc G() {\n}\n",
                vec![("F", 3, 4), ("G", 5, 6)],
            ),
            (
                "a.c",
                "int *f(void)\n{\n  return 0;\n}\n",
                vec![("f", 1, 4)],
            ),
            (
                "a.js",
                "class A {\n  f() {\n  }\n}\nfunction g() {\n}\n",
                vec![("f", 2, 3), ("g", 5, 6)],
            ),
            (
                "a.java",
                "class A {\n  A() {\n  }\n  void f() {\n  }\n}\n",
                vec![("A", 2, 3), ("f", 4, 5)],
            ),
        ] {
            let found = list(path, text);
            let found: Vec<_> = found
                .iter()
                .map(|f| (f.name.as_str(), f.first, f.last))
                .collect();
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_function_that_shares_its_line_is_not_offered() {
        assert!(list("a.js", "x = 1; function f() { }\n").is_empty());
    }
}
