//! Source files as syntax trees, and the few questions that patches ask of them.

use std::ops::ControlFlow;

use tree_sitter::{InputEdit, Node, ParseOptions, ParseState, Parser, Point, Tree};

use crate::patches::Edit;

/// Longest file that is looked into, in bytes: what is longer was written by a program.
const MAX_TEXT: usize = 512 << 10;
/// Deepest nesting of brackets: at the end of a text with many open brackets the parser copies them
/// all over and over.
const MAX_BRACKETS: usize = 250;

/// Why a file is left aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// No grammar for it, or no text.
    #[error("it is no source text that patches can be written for")]
    Foreign,
    /// Too long.
    #[error("it is longer than {} KiB", MAX_TEXT >> 10)]
    TooLong,
    /// The parser would take too long.
    #[error("it nests too deep, or takes too long to parse")]
    TooHard,
}

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

    /// Parses a text; none where that would take more work than any ordinary text does.
    pub(crate) fn parse(self, text: &str) -> Option<Tree> {
        self.parse_from(text, None)
    }

    /// The same, starting from the tree of a text that differs where that tree was edited.
    fn parse_from(self, text: &str, old: Option<&Tree>) -> Option<Tree> {
        let mut parser = Parser::new();
        parser.set_language(&self.grammar()).ok()?;
        // Counted and not timed, so that the same file always gives the same answer: the parser
        // reports every hundred operations, of which text that people write needs a fraction.
        let mut reports = 200 + text.len() * 6 / 100;
        let mut watch = |_: &ParseState| {
            reports = reports.saturating_sub(1);
            if reports == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let mut rest = |from: usize, _: Point| text.as_bytes().get(from..).unwrap_or_default();
        parser.parse_with_options(&mut rest, old, Some(options))
    }
}

/// Deepest nesting of brackets in a text, wherever they stand.
fn brackets(text: &str) -> usize {
    let (mut deepest, mut depth) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
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
    /// Parses a file, or says why it is left aside. The bytes are somebody else's: what would take
    /// the parser too long is refused before it starts, or given up.
    pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Self, Unfit> {
        let language = Language::of(path).ok_or(Unfit::Foreign)?;
        if bytes.len() > MAX_TEXT {
            return Err(Unfit::TooLong);
        }
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| Unfit::Foreign)?;
        if brackets(&text) > MAX_BRACKETS {
            return Err(Unfit::TooHard);
        }
        let tree = language.parse(&text).ok_or(Unfit::TooHard)?;
        Ok(Self {
            path: path.to_owned(),
            language,
            text,
            tree,
        })
    }

    /// The tree of this text with edits, which gave the new one.
    pub(crate) fn reparse(&self, edits: &[Edit], text: &str) -> Option<Tree> {
        let mut tree = self.tree.clone();
        let mut order: Vec<&Edit> = edits.iter().collect();
        order.sort();
        // From the last to the first, so that the places of the others stay true.
        for edit in order.into_iter().rev() {
            let start = self.point(edit.start);
            let lines = edit.text.matches('\n').count();
            let tail = edit.text.rsplit('\n').next().unwrap_or_default().len();
            let end = if lines == 0 {
                Point::new(start.row, start.column + edit.text.len())
            } else {
                Point::new(start.row + lines, tail)
            };
            tree.edit(&InputEdit {
                start_byte: edit.start,
                old_end_byte: edit.end,
                new_end_byte: edit.start + edit.text.len(),
                start_position: start,
                old_end_position: self.point(edit.end),
                new_end_position: end,
            });
        }
        self.language.parse_from(text, Some(&tree))
    }

    fn point(&self, byte: usize) -> Point {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let row = before.matches('\n').count();
        Point::new(row, byte - before.rfind('\n').map_or(0, |at| at + 1))
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
pub(crate) fn walk(root: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    let mut cursor = root.walk();
    loop {
        found.push(cursor.node());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
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
pub(crate) fn named(node: Node<'_>) -> Vec<Node<'_>> {
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

/// Whether the node is what an assignment, declaration, loop or key is given.
pub(crate) fn is_given(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| match parent.kind() {
        "assignment"
        | "assignment_expression"
        | "augmented_assignment"
        | "augmented_assignment_expression"
        | "compound_assignment_expr"
        | "for_statement"
        | "for_in_clause"
        | "for_in_statement" => parent.child_by_field_name("right") == Some(node),
        "variable_declarator"
        | "let_declaration"
        | "keyword_argument"
        | "pair"
        | "for_expression" => parent.child_by_field_name("value") == Some(node),
        _ => false,
    })
}

/// Whether the node is the value of its Rust block.
pub(crate) fn is_block_value(language: Language, node: Node<'_>) -> bool {
    language == Language::Rust
        && node
            .parent()
            .is_some_and(|parent| parent.kind() == "block" && named(parent).last() == Some(&node))
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
    fn a_text_that_is_hard_to_parse_is_refused_by_name() {
        let deep = format!("x = {}1{}", "(".repeat(400), ")".repeat(400));
        let long = "x = 1\n".repeat(100_000);
        for (path, text, why) in [
            ("a.py", deep.as_str(), Unfit::TooHard),
            ("a.js", long.as_str(), Unfit::TooLong),
            ("a.txt", "x", Unfit::Foreign),
        ] {
            let refused = Source::parse(path, text.as_bytes());
            assert_eq!(refused.err(), Some(why), "{path}");
        }
        // Nothing but mistakes: answered or refused, and soon.
        let noise = "{%$)(".repeat(8_000);
        assert!(Source::parse("a.js", noise.as_bytes()).is_err());
        let plain = "def f(a):\n    return [a, {1: (2, 3)}]\n".repeat(2_000);
        assert!(Source::parse("a.py", plain.as_bytes()).is_ok());
    }

    #[test]
    fn an_edited_text_has_the_tree_that_it_would_have_anew() {
        let text = "def f(a):\n    b = a\n    return b\n";
        let source = Source::parse("a.py", text.as_bytes()).unwrap();
        let at = text.find("    return").unwrap();
        let edits = [
            Edit {
                start: at,
                end: at,
                text: "    if b:\n        b = 2\n".to_owned(),
            },
            Edit {
                start: text.find("b = a").unwrap() + 4,
                end: text.find("b = a").unwrap() + 5,
                text: "a + 1".to_owned(),
            },
        ];
        let new = "def f(a):\n    b = a + 1\n    if b:\n        b = 2\n    return b\n";
        let tree = source.reparse(&edits, new).unwrap();
        let anew = Language::Python.parse(new).unwrap();
        assert_eq!(tree.root_node().to_sexp(), anew.root_node().to_sexp());
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
