//! The symbols of a file: what it defines, where, and how it is nested.

use tree_sitter::Node;

use crate::syntax;

/// Most symbols told of one file.
const MOST: usize = 2000;

/// A definition in a source file, with the lines it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionSpan {
    /// `function`, `class`, `method`, …
    pub kind: &'static str,
    pub name: String,
    /// First line, from 1.
    pub first: usize,
    /// Last line, from 1.
    pub last: usize,
    /// How many symbols enclose it.
    pub depth: usize,
}

/// What each kind of node defines.
const KINDS: [(&str, &str); 32] = [
    ("function_item", "function"),
    ("function_definition", "function"),
    ("function_declaration", "function"),
    ("function_signature_item", "function"),
    ("generator_function_declaration", "function"),
    ("method_definition", "method"),
    ("method_declaration", "method"),
    ("method_signature", "method"),
    ("constructor_declaration", "method"),
    ("class_definition", "class"),
    ("class_declaration", "class"),
    ("abstract_class_declaration", "class"),
    ("record_declaration", "class"),
    ("struct_item", "struct"),
    ("struct_specifier", "struct"),
    ("union_item", "struct"),
    ("enum_item", "enum"),
    ("enum_declaration", "enum"),
    ("enum_specifier", "enum"),
    ("trait_item", "trait"),
    ("impl_item", "impl"),
    ("interface_declaration", "interface"),
    ("type_alias_declaration", "type"),
    ("type_item", "type"),
    ("type_spec", "type"),
    ("type_definition", "type"),
    ("mod_item", "module"),
    ("internal_module", "module"),
    ("macro_definition", "macro"),
    ("const_item", "constant"),
    ("static_item", "constant"),
    ("variable_declarator", "variable"),
];

/// Every symbol in the order of the file, and whether there were more than are told; `None` where
/// the language is unknown or the file too large.
pub fn list(path: &str, text: &str) -> Option<(Vec<DefinitionSpan>, bool)> {
    let tree = syntax::parse(path, text)?;
    let mut found = Vec::new();
    // An own stack: a file can nest deeper than ours.
    let mut open = vec![(tree.root_node(), 0_usize)];
    while let Some((node, depth)) = open.pop() {
        let mut inner = depth;
        if let Some(symbol) = symbol(node, text, depth) {
            if found.len() == MOST {
                return Some((found, true));
            }
            found.push(symbol);
            inner += 1;
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        open.extend(children.into_iter().rev().map(|child| (child, inner)));
    }
    Some((found, false))
}

fn symbol(node: Node<'_>, text: &str, depth: usize) -> Option<DefinitionSpan> {
    let (_, kind) = KINDS.iter().find(|(name, _)| *name == node.kind())?;
    let kind = match *kind {
        // Variables are symbols where they hold functions or stand at the top.
        "variable" if holds_function(node) => "function",
        "variable" if depth > 0 => return None,
        "struct" | "enum" if node.child_by_field_name("body").is_none() && is_reference(node) => {
            return None;
        }
        "function" if depth > 0 && in_class(node) => "method",
        kind => kind,
    };
    Some(DefinitionSpan {
        kind,
        name: name(node, text)?,
        first: node.start_position().row + 1,
        last: node.end_position().row + 1,
        depth,
    })
}

/// `struct x *p` in C names a type that is defined elsewhere.
fn is_reference(node: Node<'_>) -> bool {
    node.kind().ends_with("_specifier")
}

fn holds_function(node: Node<'_>) -> bool {
    node.child_by_field_name("value").is_some_and(|value| {
        matches!(
            value.kind(),
            "arrow_function" | "function_expression" | "generator_function" | "class"
        )
    })
}

fn in_class(node: Node<'_>) -> bool {
    let mut at = node.parent();
    while let Some(parent) = at {
        match parent.kind() {
            "class_definition" | "class_declaration" | "impl_item" | "trait_item" => return true,
            "function_definition" | "function_item" | "function_declaration" => return false,
            _ => at = parent.parent(),
        }
    }
    false
}

fn name(node: Node<'_>, text: &str) -> Option<String> {
    let of = |node: Node<'_>| {
        let name: String = text.get(node.byte_range())?.chars().take(120).collect();
        Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    if node.kind() == "impl_item" {
        let subject = of(node.child_by_field_name("type")?)?;
        return Some(match node.child_by_field_name("trait").and_then(of) {
            Some(implemented) => format!("{implemented} for {subject}"),
            None => subject,
        });
    }
    if let Some(named) = node.child_by_field_name("name") {
        return of(named);
    }
    // C hides the name in declarators.
    let mut at = node.child_by_field_name("declarator")?;
    while let Some(deeper) = at.child_by_field_name("declarator") {
        at = deeper;
    }
    of(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(path: &str, text: &str) -> Vec<String> {
        let (symbols, _) = list(path, text).unwrap();
        symbols
            .iter()
            .map(|symbol| {
                format!(
                    "{}{} {} {}-{}",
                    "  ".repeat(symbol.depth),
                    symbol.kind,
                    symbol.name,
                    symbol.first,
                    symbol.last
                )
            })
            .collect()
    }

    #[test]
    fn python_shows_classes_with_their_methods() {
        let text = "import os\n\nclass Queue:\n    def push(self, x):\n        pass\n\ndef main():\n    def inner():\n        pass\n";
        assert_eq!(
            outline("queue.py", text),
            [
                "class Queue 3-5",
                "  method push 4-5",
                "function main 7-9",
                "  function inner 8-9"
            ]
        );
    }

    #[test]
    fn rust_shows_impls_traits_and_modules() {
        let text = "struct A;\ntrait T { fn t(&self); }\nimpl T for A {\n    fn t(&self) {}\n}\nmod m { const X: u8 = 1; }\n";
        assert_eq!(
            outline("a.rs", text),
            [
                "struct A 1-1",
                "trait T 2-2",
                "  method t 2-2",
                "impl T for A 3-5",
                "  method t 4-4",
                "module m 6-6",
                "  constant X 6-6"
            ]
        );
    }

    #[test]
    fn typescript_shows_interfaces_and_functions_in_variables() {
        let text = "export interface Shape { area(): number }\nexport const twice = (x: number) => 2 * x;\nclass Square implements Shape {\n  area() { const side = 1; return side; }\n}\n";
        assert_eq!(
            outline("shape.ts", text),
            [
                "interface Shape 1-1",
                "  method area 1-1",
                "function twice 2-2",
                "class Square 3-5",
                "  method area 4-4"
            ]
        );
    }

    #[test]
    fn an_unknown_language_has_no_outline() {
        assert_eq!(list("a.txt", "def f(): pass"), None);
    }

    #[test]
    fn a_file_nested_without_end_is_told_anyway() {
        let deep = format!("x = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000));
        assert!(list("deep.py", &deep).is_some());
    }
}
