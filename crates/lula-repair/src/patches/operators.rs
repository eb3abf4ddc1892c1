//! Wrong comparisons, arithmetic, logic and assignment operators.

use tree_sitter::Node;

use super::{PatchFamily, PatchGenerator};
use crate::syntax::{binary, child, children};

/// What each operator is mistaken for, and how often relative to the family's most common slip.
const CONFUSED: &[(&str, &[(&str, f64)])] = &[
    (
        "<",
        &[
            ("<=", 1.0),
            (">", 0.6),
            (">=", 0.4),
            ("!=", 0.15),
            ("==", 0.1),
        ],
    ),
    (
        "<=",
        &[
            ("<", 1.0),
            (">=", 0.6),
            (">", 0.4),
            ("==", 0.15),
            ("!=", 0.1),
        ],
    ),
    (
        ">",
        &[
            (">=", 1.0),
            ("<", 0.6),
            ("<=", 0.4),
            ("!=", 0.15),
            ("==", 0.1),
        ],
    ),
    (
        ">=",
        &[
            (">", 1.0),
            ("<=", 0.6),
            ("<", 0.4),
            ("==", 0.15),
            ("!=", 0.1),
        ],
    ),
    (
        "==",
        &[
            ("!=", 0.8),
            (">=", 0.4),
            ("<=", 0.4),
            (">", 0.2),
            ("<", 0.2),
            ("in", 0.1),
        ],
    ),
    (
        "!=",
        &[
            ("==", 0.8),
            (">", 0.25),
            ("<", 0.25),
            ("not in", 0.1),
            ("is not", 0.05),
        ],
    ),
    (
        "===",
        &[
            ("!==", 0.8),
            (">=", 0.4),
            ("<=", 0.4),
            (">", 0.2),
            ("<", 0.2),
            ("==", 0.3),
        ],
    ),
    (
        "!==",
        &[("===", 0.8), (">", 0.25), ("<", 0.25), ("!=", 0.3)],
    ),
    ("in", &[("not in", 0.8), ("==", 0.1)]),
    ("not in", &[("in", 0.8), ("!=", 0.1)]),
    ("is", &[("is not", 0.8), ("==", 0.5)]),
    ("is not", &[("is", 0.8), ("!=", 0.5)]),
    ("+", &[("-", 0.8), ("*", 0.4), ("/", 0.1), ("%", 0.05)]),
    ("-", &[("+", 0.9), ("*", 0.15), ("/", 0.15), ("%", 0.05)]),
    (
        "*",
        &[("/", 0.5), ("+", 0.5), ("**", 0.3), ("//", 0.3), ("-", 0.1)],
    ),
    (
        "/",
        &[
            ("//", 0.7),
            ("*", 0.5),
            ("%", 0.25),
            ("-", 0.05),
            ("+", 0.05),
        ],
    ),
    ("//", &[("/", 0.6), ("%", 0.5), ("*", 0.2)]),
    ("%", &[("//", 0.6), ("/", 0.4), ("*", 0.1), ("-", 0.1)]),
    ("**", &[("*", 0.6)]),
    ("&", &[("|", 0.7), ("^", 0.4), ("&&", 0.2)]),
    ("|", &[("&", 0.7), ("^", 0.4), ("-", 0.2)]),
    ("^", &[("|", 0.5), ("&", 0.5), ("**", 0.2)]),
    ("<<", &[(">>", 0.8)]),
    (">>", &[("<<", 0.8), (">>>", 0.4)]),
    (">>>", &[(">>", 0.6)]),
    ("and", &[("or", 0.9)]),
    ("or", &[("and", 0.9)]),
    ("&&", &[("||", 0.9)]),
    ("||", &[("&&", 0.9), ("??", 0.7)]),
    ("??", &[("||", 0.5)]),
    ("+=", &[("-=", 0.8), ("=", 0.5), ("*=", 0.3), ("|=", 0.1)]),
    ("-=", &[("+=", 0.9), ("=", 0.4)]),
    ("*=", &[("+=", 0.5), ("/=", 0.5), ("=", 0.3), ("**=", 0.2)]),
    ("/=", &[("*=", 0.5), ("//=", 0.5), ("=", 0.2)]),
    ("//=", &[("/=", 0.4), ("%=", 0.4), ("-=", 0.2)]),
    ("%=", &[("//=", 0.4), ("/=", 0.3)]),
    ("|=", &[("&=", 0.7), ("^=", 0.4), ("=", 0.3)]),
    ("&=", &[("|=", 0.7), ("^=", 0.4), ("=", 0.3)]),
    ("^=", &[("|=", 0.4), ("&=", 0.4)]),
    ("<<=", &[(">>=", 0.8)]),
    (">>=", &[("<<=", 0.8)]),
];

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some((left, operator, right)) = binary(node) {
        let family = match forge.of(operator) {
            "<" | "<=" | ">" | ">=" | "==" | "!=" | "===" | "!==" | "in" | "not in" | "is"
            | "is not" => PatchFamily::Comparison,
            "and" | "or" | "&&" | "||" | "??" => PatchFamily::Logic,
            _ => PatchFamily::Operator,
        };
        confuse(forge, operator, family, 1.0);
        regroup(forge, node, left, operator, right);
        round_division(forge, node, left, operator, right);
    }
    minus(forge, node);
    if node.kind() == "comparison_operator" && children(node) > 3 {
        for index in (1..children(node)).step_by(2) {
            if let Some(operator) = child(node, index) {
                confuse(forge, operator, PatchFamily::Comparison, 0.9);
            }
        }
    }
    if let Some(operator) = node.child_by_field_name("operator")
        && matches!(
            node.kind(),
            "augmented_assignment" | "augmented_assignment_expression" | "compound_assignment_expr"
        )
    {
        confuse(forge, operator, PatchFamily::Operator, 0.9);
    }
    match node.kind() {
        "assignment" | "assignment_expression" => {
            if let Some(equals) = (0..children(node))
                .filter_map(|i| child(node, i))
                .find(|c| c.kind() == "=")
            {
                for (with, prior) in [
                    ("+=", 0.35),
                    ("-=", 0.2),
                    ("*=", 0.12),
                    ("|=", 0.06),
                    ("&=", 0.04),
                ] {
                    forge.replace(equals, PatchFamily::Operator, prior, with);
                }
            }
        }
        "update_expression" => {
            let text = forge.of(node);
            let other = if text.contains("++") {
                text.replace("++", "--")
            } else {
                text.replace("--", "++")
            };
            forge.replace(node, PatchFamily::Operator, 0.6, other);
        }
        "unary_operator" | "unary_expression" => {
            if let Some(argument) = node
                .child_by_field_name("argument")
                .or_else(|| child(node, 1))
            {
                let family = if forge.of(node).starts_with('-') {
                    PatchFamily::Operator
                } else {
                    PatchFamily::Negation
                };
                forge.replace(node, family, 0.5, forge.of(argument));
            }
        }
        _ => {}
    }
}

fn confuse(forge: &mut PatchGenerator<'_>, operator: Node<'_>, family: PatchFamily, prior: f64) {
    let text = forge.of(operator);
    let Some((_, others)) = CONFUSED.iter().find(|(known, _)| *known == text) else {
        return;
    };
    for (other, share) in *others {
        let python_only = matches!(*other, "in" | "not in" | "is" | "is not" | "//" | "//=");
        let script_only = matches!(*other, "??" | ">>>" | "&&");
        let known = match () {
            () if forge.python() => !script_only && *other != "===",
            () if forge.rust() => !python_only && !script_only && !other.starts_with("**"),
            () => !python_only,
        };
        // Where no loose comparison stands, none is meant.
        let other = match *other {
            "==" if forge.script() && !text.starts_with('=') => "===",
            "!=" if forge.script() && !text.starts_with('!') => "!==",
            other => other,
        };
        if known {
            forge.replace(operator, family, prior * share, other);
        }
    }
}

/// Division that cuts off where it should round, or round up.
fn round_division(
    forge: &mut PatchGenerator<'_>,
    node: Node<'_>,
    left: Node<'_>,
    operator: Node<'_>,
    right: Node<'_>,
) {
    let whole = match forge.of(operator) {
        "//" => true,
        "/" => forge.rust(),
        _ => false,
    };
    let (a, sign, b) = (forge.of(left), forge.of(operator), forge.of(right));
    if whole {
        let half = b
            .parse::<u64>()
            .map_or_else(|_| format!("{b} {sign} 2"), |value| (value / 2).to_string());
        forge.replace(
            node,
            PatchFamily::Operator,
            0.25,
            format!("({a} + {half}) {sign} {b}"),
        );
        forge.replace(
            node,
            PatchFamily::Operator,
            0.3,
            format!("({a} + {b} - 1) {sign} {b}"),
        );
    }
    if let Some((_, inner, modulus)) = [left, right]
        .into_iter()
        .filter_map(binary)
        .find(|(_, inner, _)| forge.of(*inner) == "%")
    {
        let text = format!(
            "({}) {} {}",
            forge.of(node),
            forge.of(inner),
            forge.of(modulus)
        );
        forge.replace(node, PatchFamily::Operator, 0.15, text);
    }
    if forge.python() && matches!(sign, "//" | "/") {
        forge.replace(
            node,
            PatchFamily::Conversion,
            0.1,
            format!("round({a} / {b})"),
        );
        forge.replace(
            node,
            PatchFamily::Conversion,
            0.1,
            format!("int({a} / {b})"),
        );
    }
}

/// `-x` where order or direction hangs on it.
fn minus(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(parent) = node.parent() else {
        return;
    };
    let place = matches!(
        parent.kind(),
        "tuple"
            | "lambda"
            | "return_statement"
            | "arguments"
            | "argument_list"
            | "tuple_expression"
            | "arrow_function"
            | "assignment"
            | "variable_declarator"
            | "template_substitution"
    );
    let value = matches!(
        node.kind(),
        "subscript"
            | "attribute"
            | "identifier"
            | "call"
            | "member_expression"
            | "call_expression"
            | "subscript_expression"
            | "field_expression"
            | "binary_operator"
    );
    let callee = crate::syntax::call(parent).is_some();
    let left = parent.child_by_field_name("left") == Some(node)
        || parent.child_by_field_name("name") == Some(node)
        || parent.child_by_field_name("parameters") == Some(node)
        || parent.child_by_field_name("parameter") == Some(node);
    if place && value && !callee && !left {
        let own = forge.of(node);
        let text = if binary(node).is_some() {
            format!("-({own})")
        } else {
            format!("-{own}")
        };
        let prior = if matches!(
            parent.kind(),
            "tuple" | "lambda" | "tuple_expression" | "template_substitution"
        ) {
            0.4
        } else {
            0.12
        };
        forge.replace(node, PatchFamily::Operator, prior, text);
    }
}

/// `a * b + c` for `a * (b + c)` and the other way, and one operand where two are too many.
fn regroup(
    forge: &mut PatchGenerator<'_>,
    node: Node<'_>,
    left: Node<'_>,
    operator: Node<'_>,
    right: Node<'_>,
) {
    let text = forge.of(operator);
    let (outer_left, outer_right) = (forge.of(left), forge.of(right));
    let arithmetic = matches!(text, "+" | "-" | "*" | "/" | "//" | "%" | "**");
    let logic = matches!(text, "and" | "or" | "&&" | "||");
    if arithmetic || logic {
        if let Some((a, inner, b)) = binary(left).filter(|_| left.kind() == node.kind()) {
            let grouped = format!(
                "{} {} ({} {text} {outer_right})",
                forge.of(a),
                forge.of(inner),
                forge.of(b)
            );
            forge.replace(node, PatchFamily::Operands, 0.3, grouped);
        }
        if right.kind() == "parenthesized_expression"
            && let Some(inside) = right.named_child(0)
            && binary(inside).is_some()
        {
            let flat = format!("{outer_left} {text} {}", forge.of(inside));
            forge.replace(node, PatchFamily::Operands, 0.25, flat);
        }
        if left.kind() == "parenthesized_expression"
            && let Some(inside) = left.named_child(0)
            && binary(inside).is_some()
        {
            let flat = format!("{} {text} {outer_right}", forge.of(inside));
            forge.replace(node, PatchFamily::Operands, 0.25, flat);
        }
        if let Some((a, inner, b)) = binary(right).filter(|_| right.kind() == node.kind()) {
            let grouped = format!(
                "({outer_left} {text} {}) {} {}",
                forge.of(a),
                forge.of(inner),
                forge.of(b)
            );
            forge.replace(node, PatchFamily::Operands, 0.3, grouped);
        }
        let family = if logic {
            PatchFamily::MissingCondition
        } else {
            PatchFamily::Expression
        };
        let drop = if logic { 0.4 } else { 0.16 };
        forge.replace(node, family, drop, outer_left);
        forge.replace(node, family, drop, outer_right);
    }
}
