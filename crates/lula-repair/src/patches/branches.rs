//! The wrong branch, the wrong jump, the wrong kind of branch.

use tree_sitter::Node;

use super::moves::reindent;
use super::{ByteRangeEdit, PatchFamily, PatchGenerator};
use crate::syntax::{child, named};

/// `x` for `x if c else y`, with what the function knows of.
fn conditional(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(value) = node
        .child_by_field_name("right")
        .or_else(|| node.child_by_field_name("value"))
        .or_else(|| {
            named(node)
                .first()
                .copied()
                .filter(|_| node.kind() == "return_statement")
        })
    else {
        return;
    };
    if forge.of(value).len() > 50 || forge.rust() {
        return;
    }
    let own = forge.of(value);
    let scope = forge.scope(node);
    let mut others = vec![(format!("-{own}"), 0.1)];
    let nothing: &[&str] = if forge.python() {
        &["None", "0", "1", "\"\"", "[]"]
    } else {
        &["null", "0", "1", "''", "[]"]
    };
    others.extend(nothing.iter().map(|text| ((*text).to_owned(), 0.05)));
    others.extend(scope.names.iter().take(4).map(|name| (name.clone(), 0.04)));
    for test in scope.conditions.iter().take(5) {
        for (other, prior) in &others {
            let (yes, no) = if forge.python() {
                (
                    format!("{own} if {test} else {other}"),
                    format!("{other} if {test} else {own}"),
                )
            } else {
                (
                    format!("{test} ? {own} : {other}"),
                    format!("{test} ? {other} : {own}"),
                )
            };
            forge.replace(value, PatchFamily::Branch, *prior, yes);
            forge.replace(value, PatchFamily::Branch, *prior, no);
        }
    }
}

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if matches!(
        node.kind(),
        "return_statement" | "assignment" | "variable_declarator"
    ) {
        conditional(forge, node);
    }
    match node.kind() {
        "if_statement" | "if_expression" => {
            swap_arms(forge, node);
            other_keyword(forge, node);
        }
        "ternary_expression" => {
            if let (Some(a), Some(b)) = (
                node.child_by_field_name("consequence"),
                node.child_by_field_name("alternative"),
            ) {
                forge.swap(PatchFamily::Branch, 0.4, a, b);
                forge.replace(node, PatchFamily::Branch, 0.1, forge.of(a));
                forge.replace(node, PatchFamily::Branch, 0.1, forge.of(b));
            }
        }
        "conditional_expression" => {
            if let [a, _, b] = named(node).as_slice() {
                forge.swap(PatchFamily::Branch, 0.4, *a, *b);
                forge.replace(node, PatchFamily::Branch, 0.1, forge.of(*a));
                forge.replace(node, PatchFamily::Branch, 0.1, forge.of(*b));
            }
        }
        "elif_clause" => {
            if let Some(word) = child(node, 0) {
                forge.replace(word, PatchFamily::Branch, 0.3, "if");
            }
        }
        "while_statement" if forge.python() => {
            if let Some(word) = child(node, 0) {
                forge.replace(word, PatchFamily::Branch, 0.15, "if");
            }
        }
        "break_statement" | "continue_statement" | "break_expression" | "continue_expression" => {
            let text = forge.of(node);
            let other = if text.starts_with("break") {
                text.replacen("break", "continue", 1)
            } else {
                text.replacen("continue", "break", 1)
            };
            forge.replace(node, PatchFamily::Branch, 0.6, other);
            let indent_return = if forge.python() { "return" } else { "return;" };
            forge.replace(node, PatchFamily::Branch, 0.1, indent_return);
        }
        "return_statement" => {
            let semicolon = if forge.python() { "" } else { ";" };
            if crate::syntax::nearest(node, |above| {
                matches!(
                    above.kind(),
                    "for_statement" | "while_statement" | "for_in_statement"
                )
            })
            .is_some()
            {
                forge.replace(
                    node,
                    PatchFamily::Branch,
                    0.2,
                    format!("continue{semicolon}"),
                );
                forge.replace(node, PatchFamily::Branch, 0.15, format!("break{semicolon}"));
            }
        }
        "match_arm" => {
            if let (Some(next), Some(own)) = (
                node.next_named_sibling()
                    .and_then(|next| next.child_by_field_name("value")),
                node.child_by_field_name("value"),
            ) {
                forge.swap(PatchFamily::Branch, 0.3, own, next);
            }
        }
        "try_statement" => unguarded(forge, node),
        _ => {}
    }
}

fn swap_arms(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let (Some(yes), Some(other)) = (
        node.child_by_field_name("consequence"),
        node.child_by_field_name("alternative"),
    ) else {
        return;
    };
    let no = other
        .child_by_field_name("body")
        .or_else(|| named(other).first().copied());
    if let Some(no) = no.filter(|no| no.kind() == yes.kind()) {
        forge.swap(PatchFamily::Branch, 0.35, yes, no);
    }
}

/// `if` where the condition must hold again and again, and `elif` where only one may run.
fn other_keyword(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(word) = child(node, 0) else {
        return;
    };
    if node.child_by_field_name("alternative").is_none() && !forge.rust() {
        forge.replace(word, PatchFamily::Branch, 0.2, "while");
    }
    let before = node
        .prev_named_sibling()
        .filter(|before| before.kind() == "if_statement");
    if before.is_some_and(|before| before.child_by_field_name("alternative").is_none()) {
        if forge.python() {
            forge.replace(word, PatchFamily::Branch, 0.3, "elif");
        } else if forge.script() {
            forge.insert(node, node.start_byte(), PatchFamily::Branch, 0.3, "else ");
        }
    }
}

/// The body of a `try` without it.
fn unguarded(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(body) = node.child_by_field_name("body") else {
        return;
    };
    let items = named(body);
    if !forge.python() || items.is_empty() || items.len() > 3 {
        return;
    }
    let indent = forge.source.indent(node).to_owned();
    let inner = forge.source.indent(items[0]).to_owned();
    let text: Vec<_> = items
        .iter()
        .map(|item| reindent(forge.of(*item), &inner, &indent))
        .collect();
    let edit = ByteRangeEdit {
        start: node.start_byte(),
        end: node.end_byte(),
        text: text.join(&format!("\n{indent}")),
    };
    forge.edit(node, PatchFamily::SurplusStatement, 0.1, vec![edit]);
}
