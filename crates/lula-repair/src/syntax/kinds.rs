//! What the grammars of all languages have in common, whatever each calls it.

use tree_sitter::Node;

use super::{RepairLanguage, child, named, nearest};

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
pub(crate) fn is_block_value(language: RepairLanguage, node: Node<'_>) -> bool {
    language == RepairLanguage::Rust
        && node
            .parent()
            .is_some_and(|parent| parent.kind() == "block" && named(parent).last() == Some(&node))
}
