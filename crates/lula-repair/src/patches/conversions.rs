//! Values that lack a conversion.

use tree_sitter::Node;

use super::{PatchFamily, PatchGenerator};
use crate::locate::ValueSort;
use crate::syntax::{is_block_value, is_expression, is_given};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if is_expression(node) {
        convert(forge, node);
    }
}

/// What a Python value is wrapped in, and how often.
const PYTHON_WRAPS: &[(&str, f64)] = &[
    ("int({})", 0.15),
    ("str({})", 0.15),
    ("float({})", 0.08),
    ("list({})", 0.18),
    ("sorted({})", 0.25),
    ("set({})", 0.12),
    ("len({})", 0.12),
    ("abs({})", 0.2),
    ("dict({})", 0.05),
    ("tuple({})", 0.06),
    ("bool({})", 0.08),
    ("reversed({})", 0.08),
    ("sum({})", 0.04),
    ("round({})", 0.06),
    ("round({}, 2)", 0.1),
    ("max({}, 0)", 0.12),
    ("min({}, 1)", 0.04),
    ("list(reversed({}))", 0.1),
    ("sorted({}, reverse=True)", 0.06),
    ("list(dict.fromkeys({}))", 0.04),
    ("[{}]", 0.05),
    ("*{}", 0.03),
];

/// What a JavaScript value is wrapped in.
const SCRIPT_WRAPS: &[(&str, f64)] = &[
    ("Number({})", 0.15),
    ("String({})", 0.15),
    ("Math.abs({})", 0.2),
    ("Math.floor({})", 0.2),
    ("Math.round({})", 0.12),
    ("Math.ceil({})", 0.1),
    ("Math.trunc({})", 0.08),
    ("Math.max({}, 0)", 0.1),
    ("Boolean({})", 0.08),
    ("[...{}]", 0.2),
    ("await {}", 0.15),
    ("Object.keys({})", 0.06),
    ("Object.values({})", 0.05),
    ("Object.entries({})", 0.05),
    ("parseInt({}, 10)", 0.08),
    ("parseFloat({})", 0.05),
    ("Array.from({})", 0.05),
    ("[{}]", 0.08),
    ("...{}", 0.2),
];

/// What is called on a Python value.
const PYTHON_ENDS: &[(&str, f64)] = &[
    (".copy()", 0.15),
    (".strip()", 0.2),
    (".lower()", 0.2),
    (".upper()", 0.08),
    (".split()", 0.05),
    (".items()", 0.12),
    (".values()", 0.08),
    (".keys()", 0.05),
    ("[::-1]", 0.15),
    ("[0]", 0.12),
    ("[1]", 0.08),
    ("[-1]", 0.1),
    ("[1:]", 0.08),
    ("[:-1]", 0.06),
    ("[:]", 0.1),
];

/// What is called on a JavaScript value.
const SCRIPT_ENDS: &[(&str, f64)] = &[
    (".trim()", 0.2),
    (".toLowerCase()", 0.2),
    (".toUpperCase()", 0.06),
    (".slice()", 0.15),
    (".length", 0.12),
    (".reverse()", 0.1),
    (".sort()", 0.12),
    ("[0]", 0.1),
    ("[1]", 0.06),
    (".flat()", 0.06),
    (".slice(1)", 0.06),
    (".toString()", 0.05),
    (".filter(Boolean)", 0.06),
    (".join('')", 0.05),
];

/// What is called on a Rust value.
const RUST_ENDS: &[(&str, f64)] = &[
    (".abs()", 0.15),
    (".clone()", 0.1),
    (".rev()", 0.15),
    (".trim()", 0.15),
    (".to_lowercase()", 0.12),
    (".to_string()", 0.08),
    (".max(0)", 0.1),
    (".len()", 0.06),
    (".to_ascii_lowercase()", 0.08),
    (".iter().rev()", 0.06),
    (" as f64", 0.05),
    (".min(1)", 0.02),
    (".unwrap_or(0)", 0.08),
    (".unwrap_or_default()", 0.1),
    (".round()", 0.08),
    (".max(1)", 0.05),
];

/// What a Python value must be for a conversion to make sense.
fn wanted(text: &str) -> Option<ValueSort> {
    let sort = match text {
        "abs({})" | "round({})" | "round({}, 2)" | "max({}, 0)" | "min({}, 1)" => ValueSort::Number,
        "list({})"
        | "sorted({})"
        | "set({})"
        | "len({})"
        | "tuple({})"
        | "reversed({})"
        | "sum({})"
        | "list(reversed({}))"
        | "sorted({}, reverse=True)"
        | "list(dict.fromkeys({}))"
        | ".items()"
        | ".values()"
        | ".keys()"
        | ".copy()" => ValueSort::Sized,
        ".strip()" | ".lower()" | ".upper()" | ".split()" => ValueSort::Text,
        "[::-1]" | "[0]" | "[1]" | "[-1]" | "[1:]" | "[:-1]" | "[:]" => ValueSort::Indexed,
        _ => return None,
    };
    Some(sort)
}

/// Wraps a value in the conversion that it may lack.
fn convert(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(parent) = node.parent() else {
        return;
    };
    let used = is_given(node)
        || is_block_value(forge.source.language, node)
        || matches!(
            parent.kind(),
            "argument_list"
                | "arguments"
                | "return_statement"
                | "return_expression"
                | "comparison_operator"
                | "binary_operator"
                | "binary_expression"
                | "subscript"
                | "generator_expression"
                | "list_comprehension"
                | "set_comprehension"
                | "arrow_function"
                | "tuple"
                | "pair"
                | "interpolation"
                | "template_substitution"
        ) && parent.child_by_field_name("parameters") != Some(node)
            && parent.child_by_field_name("parameter") != Some(node)
            && parent.child_by_field_name("key") != Some(node);
    if !used
        || matches!(
            node.kind(),
            "integer"
                | "float"
                | "number"
                | "string"
                | "true"
                | "false"
                | "none"
                | "null"
                | "string_literal"
                | "integer_literal"
                | "float_literal"
                | "boolean_literal"
                | "lambda"
                | "arrow_function"
        )
    {
        return;
    }
    let own = forge.of(node);
    if own.len() > 70 {
        return;
    }
    let value = matches!(
        parent.kind(),
        "return_statement"
            | "assignment"
            | "variable_declarator"
            | "let_declaration"
            | "for_statement"
            | "for_in_clause"
            | "for_in_statement"
            | "return_expression"
            | "block"
            | "for_expression"
            | "pair"
    );
    let share = if value { 1.0 } else { 0.6 };
    // How far apart two values are has no sign.
    let distance = crate::syntax::binary(node)
        .is_some_and(|(_, operator, _)| forge.of(operator) == "-" && !value);
    let binary_inside = matches!(
        node.kind(),
        "binary_operator"
            | "boolean_operator"
            | "comparison_operator"
            | "binary_expression"
            | "conditional_expression"
            | "unary_expression"
            | "ternary_expression"
            | "type_cast_expression"
    );
    let held = if binary_inside {
        format!("({own})")
    } else {
        own.to_owned()
    };
    let wraps = match () {
        () if forge.python() => PYTHON_WRAPS,
        () if forge.script() => SCRIPT_WRAPS,
        () => &[],
    };
    let scope = forge.scope(node);
    let fits = |text: &str| match wanted(text) {
        Some(sort) if node.kind() == "identifier" => scope.variables.may_be(own, sort),
        _ => true,
    };
    for (wrap, prior) in wraps.iter().filter(|(wrap, _)| fits(wrap)) {
        let share = if distance && wrap.contains("abs(") {
            1.75
        } else {
            share
        };
        forge.replace(
            node,
            PatchFamily::Conversion,
            prior * share,
            wrap.replace("{}", own),
        );
    }
    let ends = match () {
        () if forge.python() => PYTHON_ENDS,
        () if forge.script() => SCRIPT_ENDS,
        () => RUST_ENDS,
    };
    for (end, prior) in ends.iter().filter(|(end, _)| fits(end)) {
        forge.replace(
            node,
            PatchFamily::Conversion,
            prior * share,
            format!("{held}{end}"),
        );
    }
}
