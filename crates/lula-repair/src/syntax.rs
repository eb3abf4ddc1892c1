//! Source files as syntax trees, and the few questions that patches ask of them.

use tree_sitter::{Node, Parser, Tree};

/// A language that patches can be written in.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Python 3.
    Python,
    /// JavaScript, with JSX.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    /// Rust.
    Rust,
}

impl Language {
    /// By the ending of a path.
    pub fn of(path: &str) -> Option<Self> {
        match path.rsplit_once('.')?.1 {
            "py" => Some(Self::Python),
            "js" | "mjs" | "cjs" | "jsx" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" => Some(Self::Tsx),
            "rs" => Some(Self::Rust),
            _ => None,
        }
    }

    /// Whether it is one of the JavaScript family.
    pub fn is_script(self) -> bool {
        matches!(self, Self::JavaScript | Self::TypeScript | Self::Tsx)
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
        }
    }

    /// Parses a text; none where the grammar and the library do not fit each other.
    pub(crate) fn parse(self, text: &str) -> Option<Tree> {
        let mut parser = Parser::new();
        parser.set_language(&self.grammar()).ok()?;
        parser.parse(text, None)
    }
}

/// One file of the project, parsed.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) language: Language,
    pub(crate) text: String,
    pub(crate) tree: Tree,
}

impl Source {
    /// Parses a file; none for a language that we have no grammar for or for bytes that are no text.
    pub(crate) fn parse(path: &str, bytes: &[u8]) -> Option<Self> {
        let language = Language::of(path)?;
        let text = String::from_utf8(bytes.to_vec()).ok()?;
        let tree = language.parse(&text)?;
        Some(Self {
            path: path.to_owned(),
            language,
            text,
            tree,
        })
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    pub(crate) fn of<'a>(&'a self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The line of a node, from one.
    pub(crate) fn line(node: Node<'_>) -> usize {
        node.start_position().row + 1
    }

    /// White space before the first character of the node's line.
    pub(crate) fn indent(&self, node: Node<'_>) -> &str {
        let start = self.line_start(node.start_byte());
        let line = &self.text[start..];
        let width = line.len() - line.trim_start_matches([' ', '\t']).len();
        &line[..width]
    }

    pub(crate) fn line_start(&self, byte: usize) -> usize {
        self.text[..byte].rfind('\n').map_or(0, |at| at + 1)
    }

    /// First byte after the line that holds this one.
    pub(crate) fn line_end(&self, byte: usize) -> usize {
        self.text[byte..]
            .find('\n')
            .map_or(self.text.len(), |at| byte + at + 1)
    }
}

/// Every node of a tree, parents before children.
pub(crate) fn walk<'t>(root: Node<'t>) -> Vec<Node<'t>> {
    let mut stack = vec![root];
    let mut found = Vec::new();
    while let Some(node) = stack.pop() {
        found.push(node);
        let mut index = children(node);
        while index > 0 {
            index -= 1;
            if let Some(child) = child(node, index) {
                stack.push(child);
            }
        }
    }
    found
}

/// The child at an index.
pub(crate) fn child(node: Node<'_>, index: usize) -> Option<Node<'_>> {
    node.child(u32::try_from(index).ok()?)
}

/// How many children there are.
pub(crate) fn children(node: Node<'_>) -> usize {
    node.child_count() as usize
}

/// The named children, comments left out.
pub(crate) fn named<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| !child.kind().contains("comment"))
        .collect()
}

/// The nearest ancestor, the node itself included, that satisfies a condition.
pub(crate) fn nearest<'t>(node: Node<'t>, wanted: impl Fn(Node<'t>) -> bool) -> Option<Node<'t>> {
    let mut current = Some(node);
    while let Some(node) = current {
        if wanted(node) {
            return Some(node);
        }
        current = node.parent();
    }
    None
}

/// Whether the node is a function with a body.
pub(crate) fn is_function(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "function_definition"
            | "function_declaration"
            | "generator_function_declaration"
            | "function_expression"
            | "arrow_function"
            | "method_definition"
            | "function_item"
    )
}

/// Whether the node is a block of statements.
pub(crate) fn is_block(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "block"
            | "statement_block"
            | "module"
            | "program"
            | "source_file"
            | "class_body"
            | "declaration_list"
    )
}

/// The statement around a node: the child of a block.
pub(crate) fn statement(node: Node<'_>) -> Option<Node<'_>> {
    nearest(node, |node| node.parent().is_some_and(is_block))
}

/// The outermost function around a node, so that closures see their surroundings.
pub(crate) fn function(node: Node<'_>) -> Option<Node<'_>> {
    let mut found = None;
    let mut current = Some(node);
    while let Some(node) = current {
        if is_function(node) {
            found = Some(node);
        }
        if matches!(
            node.kind(),
            "class_definition" | "class_declaration" | "impl_item"
        ) && found.is_some()
        {
            break;
        }
        current = node.parent();
    }
    found
}

/// Operator and operands of a binary expression, whatever the language calls it.
pub(crate) fn binary(node: Node<'_>) -> Option<(Node<'_>, Node<'_>, Node<'_>)> {
    match node.kind() {
        "binary_operator" | "boolean_operator" | "binary_expression" => Some((
            node.child_by_field_name("left")?,
            node.child_by_field_name("operator")?,
            node.child_by_field_name("right")?,
        )),
        "comparison_operator" if node.child_count() == 3 => {
            Some((child(node, 0)?, child(node, 1)?, child(node, 2)?))
        }
        _ => None,
    }
}

/// The condition that decides a branch or loop, without its brackets.
pub(crate) fn condition(node: Node<'_>) -> Option<Node<'_>> {
    let found = match node.kind() {
        "if_statement" | "elif_clause" | "while_statement" | "if_expression"
        | "while_expression" | "ternary_expression" | "do_statement" | "for_statement" => {
            node.child_by_field_name("condition")?
        }
        "conditional_expression" => *named(node).get(1)?,
        "if_clause" => *named(node).first()?,
        _ => return None,
    };
    if found.kind() == "parenthesized_expression" && node.kind() != "conditional_expression" {
        return named(found).first().copied().or(Some(found));
    }
    (found.kind() != "let_condition" && found.kind() != "let_chain").then_some(found)
}

/// Callee and arguments of a call.
pub(crate) fn call(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    match node.kind() {
        "call" | "call_expression" => Some((
            node.child_by_field_name("function")?,
            node.child_by_field_name("arguments")?,
        )),
        "new_expression" => Some((
            node.child_by_field_name("constructor")?,
            node.child_by_field_name("arguments")?,
        )),
        _ => None,
    }
}

/// Receiver and name of `receiver.name`.
pub(crate) fn member(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    match node.kind() {
        "attribute" => Some((
            node.child_by_field_name("object")?,
            node.child_by_field_name("attribute")?,
        )),
        "member_expression" => Some((
            node.child_by_field_name("object")?,
            node.child_by_field_name("property")?,
        )),
        "field_expression" => Some((
            node.child_by_field_name("value")?,
            node.child_by_field_name("field")?,
        )),
        _ => None,
    }
}

/// Whether the node stands where a value is used.
pub(crate) fn is_expression(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "identifier"
            | "attribute"
            | "subscript"
            | "call"
            | "integer"
            | "float"
            | "string"
            | "true"
            | "false"
            | "none"
            | "binary_operator"
            | "boolean_operator"
            | "comparison_operator"
            | "not_operator"
            | "unary_operator"
            | "parenthesized_expression"
            | "conditional_expression"
            | "list"
            | "tuple"
            | "dictionary"
            | "set"
            | "list_comprehension"
            | "generator_expression"
            | "dictionary_comprehension"
            | "set_comprehension"
            | "lambda"
            | "call_expression"
            | "member_expression"
            | "subscript_expression"
            | "binary_expression"
            | "unary_expression"
            | "ternary_expression"
            | "number"
            | "template_string"
            | "null"
            | "undefined"
            | "array"
            | "object"
            | "arrow_function"
            | "new_expression"
            | "this"
            | "self"
            | "field_expression"
            | "index_expression"
            | "integer_literal"
            | "float_literal"
            | "string_literal"
            | "boolean_literal"
            | "char_literal"
            | "reference_expression"
            | "try_expression"
            | "type_cast_expression"
            | "range_expression"
            | "if_expression"
            | "match_expression"
            | "tuple_expression"
            | "array_expression"
            | "macro_invocation"
            | "await"
            | "await_expression"
            | "regex"
            | "scoped_identifier"
            | "struct_expression"
    )
}

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
                | "testing"
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
        || matches!(stem, "conftest" | "test" | "tests")
}

/// Whether a node lies in test code inside a source file, as Rust keeps it.
pub(crate) fn in_test_code(source: &Source, node: Node<'_>) -> bool {
    if source.language != Language::Rust {
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
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in [
            "src/contest.py",
            "latest.js",
            "pkg/testament.py",
            "src/attest/mod.rs",
        ] {
            assert!(!is_test_path(path), "{path}");
        }
    }

    #[test]
    fn a_test_module_inside_a_rust_file_is_test_code() {
        let text = "fn a() { 1; }\n#[cfg(test)]\nmod tests { fn b() { 2; } }\n";
        let source = Source::parse("src/lib.rs", text.as_bytes()).unwrap();
        let inside: Vec<_> = walk(source.root())
            .into_iter()
            .filter(|node| node.kind() == "integer_literal")
            .map(|node| in_test_code(&source, node))
            .collect();
        assert_eq!(inside, [false, true]);
    }
}
