//! What stands in where there is nothing, and arithmetic that stops at its limits.

use tree_sitter::Node;

use super::guards::first_statement;
use super::{PatchFamily, PatchGenerator};
use crate::syntax::{is_expression, is_function, is_given};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    fallback(forge, node);
    mutable_default(forge, node);
    if forge.rust() {
        checked(forge, node);
    }
}

/// `x` for `x or default`.
fn fallback(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(parent) = node.parent() else {
        return;
    };
    let used = is_given(node)
        || matches!(
            parent.kind(),
            "return_statement"
                | "argument_list"
                | "arguments"
                | "binary_expression"
                | "binary_operator"
        );
    if !used
        || !is_expression(node)
        || forge.of(node).len() > 50
        || !matches!(
            node.kind(),
            "identifier"
                | "attribute"
                | "call"
                | "subscript"
                | "member_expression"
                | "call_expression"
                | "subscript_expression"
                | "parenthesized_expression"
        )
    {
        return;
    }
    let own = forge.of(node);
    let held = matches!(parent.kind(), "binary_operator" | "binary_expression");
    let wrap = |text: String| if held { format!("({text})") } else { text };
    if forge.python() {
        for (value, prior) in [
            ("[]", 0.12),
            ("0", 0.12),
            ("\"\"", 0.12),
            ("{}", 0.08),
            ("1", 0.05),
        ] {
            forge.replace(
                node,
                PatchFamily::Default,
                prior,
                wrap(format!("{own} or {value}")),
            );
        }
        forge.replace(
            node,
            PatchFamily::Guard,
            0.06,
            wrap(format!("{own} if {own} else None")),
        );
        forge.replace(
            node,
            PatchFamily::Guard,
            0.06,
            wrap(format!("{own} if {own} else 0")),
        );
    } else if forge.script() {
        for (value, prior) in [
            ("[]", 0.12),
            ("0", 0.14),
            ("''", 0.12),
            ("{}", 0.08),
            ("null", 0.25),
            ("1", 0.04),
        ] {
            forge.replace(
                node,
                PatchFamily::Default,
                prior,
                wrap(format!("{own} ?? {value}")),
            );
            forge.replace(
                node,
                PatchFamily::Default,
                prior * 0.7,
                wrap(format!("{own} || {value}")),
            );
        }
    }
}

/// `def f(x=[])`: one list for all calls.
fn mutable_default(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if !matches!(node.kind(), "default_parameter" | "typed_default_parameter") {
        return;
    }
    let (Some(name), Some(value)) = (
        node.child_by_field_name("name"),
        node.child_by_field_name("value"),
    ) else {
        return;
    };
    let Some(at) = crate::syntax::nearest(node, is_function).and_then(first_statement) else {
        return;
    };
    let own = forge.of(name).to_owned();
    let old = forge.of(value).to_owned();
    if matches!(old.as_str(), "[]" | "{}" | "set()" | "dict()" | "list()") {
        let text = forge.guard(at, &format!("{own} is None"), &format!("{own} = {old}"));
        let edits = vec![
            super::ByteRangeEdit {
                start: value.start_byte(),
                end: value.end_byte(),
                text: "None".to_owned(),
            },
            super::ByteRangeEdit {
                start: at.start_byte(),
                end: at.start_byte(),
                text,
            },
        ];
        forge.edit(at, PatchFamily::Default, 0.9, edits);
    }
    for (other, prior) in [
        ("None", 0.2),
        ("True", 0.15),
        ("False", 0.15),
        ("0", 0.15),
        ("1", 0.15),
        ("\"\"", 0.1),
        ("()", 0.05),
    ] {
        forge.replace(value, PatchFamily::Default, prior, other);
    }
}

/// Arithmetic that stops at its limits instead of passing them.
fn checked(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some((left, operator, right)) = crate::syntax::binary(node) {
        let method = match forge.of(operator) {
            "-" => "saturating_sub",
            "+" => "saturating_add",
            "*" => "saturating_mul",
            "%" => "rem_euclid",
            "/" => "div_euclid",
            _ => return,
        };
        let held = if left.named_child_count() > 1 && crate::syntax::binary(left).is_some() {
            format!("({})", forge.of(left))
        } else {
            forge.of(left).to_owned()
        };
        let prior = if method == "saturating_sub" || method == "rem_euclid" {
            0.3
        } else {
            0.08
        };
        forge.replace(
            node,
            PatchFamily::Guard,
            prior,
            format!("{held}.{method}({})", forge.of(right)),
        );
        if method == "div_euclid" {
            let (a, b) = (forge.of(left), forge.of(right));
            forge.replace(
                node,
                PatchFamily::Operator,
                0.2,
                format!("{held}.div_ceil({b})"),
            );
            forge.replace(
                node,
                PatchFamily::Conversion,
                0.1,
                format!("{a} as f64 / {b} as f64"),
            );
        }
    }
}
