//! Arguments, operands and statements in the wrong order.

use tree_sitter::Node;

use super::{PatchFamily, PatchGenerator};
use crate::syntax::{binary, call, is_block, named};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some((left, operator, right)) = binary(node) {
        let prior = match forge.of(operator) {
            "-" | "/" | "//" | "%" | "**" => 0.6,
            "<" | ">" | "<=" | ">=" | "in" | "<<" | ">>" => 0.2,
            "+" => 0.3,
            "and" | "or" | "&&" | "||" => 0.12,
            _ => 0.0,
        };
        if prior > 0.0 {
            forge.swap(PatchFamily::Operands, prior, left, right);
        }
    }
    if let Some((_, arguments)) = call(node) {
        swap_all(forge, &named(arguments), PatchFamily::Arguments, 0.5);
        if let (Some((object, _)), [only]) = (
            crate::syntax::call(node).and_then(|(callee, _)| crate::syntax::member(callee)),
            named(arguments).as_slice(),
        ) {
            // In Rust the argument is often borrowed where the receiver is not.
            let inner = if only.kind() == "reference_expression" {
                only.child_by_field_name("value").unwrap_or(*only)
            } else {
                *only
            };
            forge.swap(PatchFamily::Operands, 0.3, object, inner);
        }
    }
    match node.kind() {
        "tuple" | "expression_list" | "pattern_list" | "tuple_expression" | "list" | "array"
        | "array_expression" => {
            let items = named(node);
            if items.len() <= 4 {
                swap_all(forge, &items, PatchFamily::Operands, 0.3);
            }
        }
        "slice" => swap_all(forge, &named(node), PatchFamily::Bounds, 0.2),
        "parameters" | "formal_parameters" | "closure_parameters" | "lambda_parameters" => {
            let own: Vec<_> = named(node)
                .into_iter()
                .filter(|param| !matches!(forge.of(*param), "self" | "cls" | "&self" | "&mut self"))
                .collect();
            let prior = if matches!(node.kind(), "closure_parameters" | "lambda_parameters") {
                0.2
            } else {
                0.15
            };
            swap_all(forge, &own, PatchFamily::Arguments, prior);
        }
        _ => {}
    }
    if is_block(node)
        && node
            .parent()
            .is_some_and(|above| !above.kind().starts_with("class") && above.kind() != "impl_item")
        && node.parent().is_some()
    {
        for pair in named(node).windows(2) {
            if let [first, second] = pair
                && !matches!(
                    second.kind(),
                    "return_statement" | "break_statement" | "continue_statement"
                )
            {
                swap_statements(forge, *first, *second);
            }
        }
    }
}

fn swap_all(forge: &mut PatchGenerator<'_>, items: &[Node<'_>], family: PatchFamily, prior: f64) {
    for (index, first) in items.iter().enumerate() {
        for (step, second) in items[index + 1..].iter().enumerate() {
            let prior = if step == 0 { prior } else { prior * 0.5 };
            let keyword = |node: &Node<'_>| node.kind() == "keyword_argument";
            if keyword(first) && keyword(second) {
                if let (Some(a), Some(b)) = (
                    first.child_by_field_name("value"),
                    second.child_by_field_name("value"),
                ) {
                    forge.swap(family, prior * 0.6, a, b);
                }
            } else if !keyword(first) && !keyword(second) {
                forge.swap(family, prior, *first, *second);
            }
        }
    }
}

fn swap_statements(forge: &mut PatchGenerator<'_>, first: Node<'_>, second: Node<'_>) {
    let definition = |node: Node<'_>| {
        node.kind().contains("definition")
            || node.kind().contains("declaration")
                && node.kind() != "let_declaration"
                && node.kind() != "lexical_declaration"
            || node.kind().ends_with("_item")
            || node.kind().starts_with("import")
    };
    if definition(first) || definition(second) {
        return;
    }
    let small = first.end_position().row - first.start_position().row <= 8;
    forge.swap(
        PatchFamily::MovedStatement,
        if small { 0.2 } else { 0.08 },
        first,
        second,
    );
}
