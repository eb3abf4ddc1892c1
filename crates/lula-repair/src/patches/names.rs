//! The wrong variable, attribute or expression, where the right one is in reach.

use tree_sitter::Node;

use super::constants::likeness;
use super::scope::is_variable;
use super::{PatchFamily, PatchGenerator};
use crate::syntax::{call, function, is_block_value, is_expression, is_given, member};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if is_variable(forge.source, node) {
        variable(forge, node);
    }
    if let Some((object, name)) = member(node)
        && node
            .parent()
            .and_then(call)
            .is_none_or(|(callee, _)| callee != node)
    {
        field(forge, object, name);
    }
    if let Some((callee, _)) = call(node)
        && callee.kind() == "identifier"
    {
        let scope = forge.scope(node);
        let own = forge.of(callee);
        for other in scope.functions.iter().take(20) {
            forge.replace(
                callee,
                PatchFamily::Call,
                0.1 + 0.35 * likeness(own, other),
                other.as_str(),
            );
        }
    }
    reuse(forge, node);
}

fn variable(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let scope = forge.scope(node);
    let own = forge.of(node);
    let bound = is_binding(node);
    if bound && forge.python() && scope.fields.iter().any(|field| field == own) {
        forge.replace(node, PatchFamily::Variable, 0.25, format!("self.{own}"));
    }
    if bound && (forge.rust() || forge.script()) {
        return;
    }
    #[allow(clippy::cast_precision_loss)]
    let crowd = 1.0 / (1.0 + 0.06 * scope.names.len() as f64);
    for other in scope.names.iter().take(24) {
        let alike = likeness(own, other);
        let param = if scope.params.contains(other) {
            0.1
        } else {
            0.0
        };
        let idle = if scope.unused.contains(other) {
            0.3
        } else {
            0.0
        };
        let fits = if scope.variables.alike(own, other) {
            1.0
        } else {
            0.1
        };
        let prior =
            (0.3 + 0.4 * alike + param + idle) * crowd * fits * if bound { 0.3 } else { 1.0 };
        forge.replace(node, PatchFamily::Variable, prior, other.as_str());
    }
    if bound {
        return;
    }
    for other in scope
        .outer
        .iter()
        .filter(|name| !scope.names.contains(name))
        .take(16)
    {
        let prior = 0.08 + 0.3 * likeness(own, other);
        forge.replace(node, PatchFamily::Variable, prior, other.as_str());
    }
    part(forge, node);
    if forge.python() {
        for field in scope.fields.iter().take(10) {
            if field == own {
                forge.replace(node, PatchFamily::Variable, 0.3, format!("self.{field}"));
            }
        }
    }
}

/// A part of a thing where the whole thing stands.
fn part(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let own = forge.of(node);
    let held = node.parent().is_some_and(|parent| {
        member(parent).is_some() || call(parent).is_some_and(|(callee, _)| callee == node)
    });
    let Some(around) = function(node).filter(|_| !held && own != "self") else {
        return;
    };
    let text = forge.of(around);
    if !text.contains(&format!("{own}.")) {
        return;
    }
    let scope = forge.scope(node);
    for field in scope.fields.iter().take(12) {
        let part = format!("{own}.{field}");
        let prior = if text.contains(&part) { 0.22 } else { 0.15 };
        forge.replace(node, PatchFamily::Variable, prior, part);
    }
}

/// Whether the identifier is where a variable gets its name or value.
fn is_binding(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        ["left", "name", "pattern"]
            .iter()
            .any(|field| parent.child_by_field_name(field) == Some(node))
            && !matches!(
                parent.kind(),
                "binary_operator" | "binary_expression" | "boolean_operator" | "keyword_argument"
            )
            || matches!(
                parent.kind(),
                "parameters"
                    | "formal_parameters"
                    | "pattern_list"
                    | "lambda_parameters"
                    | "closure_parameters"
                    | "object_pattern"
                    | "array_pattern"
                    | "tuple_pattern"
            )
    })
}

fn field(forge: &mut PatchGenerator<'_>, object: Node<'_>, name: Node<'_>) {
    let scope = forge.scope(name);
    let own = forge.of(name);
    #[allow(clippy::cast_precision_loss)]
    let crowd = 1.0 / (1.0 + 0.05 * scope.fields.len() as f64);
    for other in scope.fields.iter().take(24) {
        let prior = (0.25 + 0.4 * likeness(own, other)) * crowd * scope.idleness(other).min(1.6);
        forge.replace(name, PatchFamily::Variable, prior, other.as_str());
    }
    if object.kind() == "identifier"
        && let Some(whole) = name.parent()
    {
        forge.replace(whole, PatchFamily::Variable, 0.1, forge.of(object));
    }
    if matches!(forge.of(object), "self" | "this")
        && let Some(whole) = name.parent()
        && scope.names.iter().any(|known| known == own)
    {
        forge.replace(whole, PatchFamily::Variable, 0.25, own);
    }
}

/// Another expression of the same function in place of this one.
fn reuse(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(parent) = node.parent() else {
        return;
    };
    if !is_expression(node) || forge.of(node).len() > 60 {
        return;
    }
    let value = is_given(node)
        || is_block_value(forge.source.language, node)
        || matches!(
            parent.kind(),
            "return_statement"
                | "return_expression"
                | "argument_list"
                | "arguments"
                | "binary_operator"
                | "comparison_operator"
                | "binary_expression"
        );
    if !value {
        return;
    }
    let scope = forge.scope(node);
    let own = forge.of(node);
    let operand = matches!(
        parent.kind(),
        "binary_operator" | "comparison_operator" | "binary_expression"
    );
    let returned = parent.kind().starts_with("return");
    for other in scope.expressions.iter().take(40) {
        // A value that holds itself would only nest.
        if other.len() <= 60 && other != own && !other.starts_with('(') {
            let prior = if operand {
                0.03
            } else if returned {
                0.08
            } else {
                0.07
            };
            forge.replace(
                node,
                PatchFamily::Expression,
                prior * (0.6 + likeness(own, other)),
                other.as_str(),
            );
        }
    }
    for idle in &scope.unused {
        for (text, prior) in [
            (format!("{idle} - {own}"), 0.3),
            (format!("{own} - {idle}"), 0.3),
            (format!("{own} + {idle}"), 0.3),
            (format!("{own} * {idle}"), 0.2),
            (format!("{own} / {idle}"), 0.1),
        ] {
            forge.replace(node, PatchFamily::Expression, prior, text);
        }
    }
    if !operand && node.kind() != "identifier" {
        for name in scope.names.iter().take(12) {
            let prior = if returned { 0.12 } else { 0.08 };
            forge.replace(node, PatchFamily::Expression, prior, name.as_str());
        }
    }
    if returned {
        for other in scope.returns.iter().take(6) {
            forge.replace(node, PatchFamily::Expression, 0.15, other.as_str());
        }
    }
}
