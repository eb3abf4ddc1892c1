//! Wrong numbers, strings and truth values.

use tree_sitter::Node;

use super::{PatchFamily, PatchGenerator};
use crate::syntax::{binary, call, is_expression, named};

/// Numbers that units, dates and percentages are made of.
const USUAL: &[&str] = &[
    "0", "1", "2", "7", "10", "12", "24", "30", "60", "100", "365", "1000", "1024", "3600", "86400",
];

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    match node.kind() {
        "integer" | "number" | "integer_literal" => integer(forge, node),
        "float" | "float_literal" => float(forge, node),
        "true" | "false" | "boolean_literal" => {
            let other = match forge.of(node) {
                "True" => "False",
                "False" => "True",
                "true" => "false",
                _ => "true",
            };
            forge.replace(node, PatchFamily::Constant, 0.6, other);
        }
        "string_content" | "string_fragment" => text(forge, node),
        "format_specifier" => format_spec(forge, node),
        "string" | "string_literal" => whole_string(forge, node),
        _ => {}
    }
    one_more_or_less(forge, node);
}

fn integer(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let text = forge.of(node);
    let Ok(value) = text.replace('_', "").parse::<i128>() else {
        // With a type suffix or a radix there is nothing to guess, but a fraction may be a number too.
        if text.contains('.') {
            float(forge, node);
        }
        return;
    };
    let place = node
        .parent()
        .is_some_and(|parent| parent.kind() == "field_expression");
    let near = if place {
        0.25
    } else if value.abs() <= 100 {
        0.8
    } else {
        0.35
    };
    forge.replace(node, PatchFamily::OffByOne, near, (value + 1).to_string());
    if value > 0 {
        forge.replace(node, PatchFamily::OffByOne, near, (value - 1).to_string());
    } else {
        forge.replace(node, PatchFamily::OffByOne, near * 0.7, "-1");
    }
    if value != 0 {
        forge.replace(node, PatchFamily::Constant, 0.2, format!("-{text}"));
        // A share of ten, a hundred or a thousand is a slip of one zero.
        let round = matches!(value, 10 | 100 | 1000 | 10_000);
        let tenfold = if round { 0.4 } else { 0.12 };
        forge.replace(
            node,
            PatchFamily::Constant,
            tenfold,
            (value * 10).to_string(),
        );
        forge.replace(node, PatchFamily::Constant, 0.1, (value * 2).to_string());
        if value % 10 == 0 {
            forge.replace(
                node,
                PatchFamily::Constant,
                tenfold,
                (value / 10).to_string(),
            );
        }
        if value % 2 == 0 {
            forge.replace(node, PatchFamily::Constant, 0.1, (value / 2).to_string());
        }
    }
    let scope = forge.scope(node);
    for other in scope.numbers.iter().take(12) {
        forge.replace(node, PatchFamily::Constant, 0.2, other.as_str());
    }
    let nothing = if forge.python() { "None" } else { "null" };
    let started = node
        .parent()
        .and_then(|parent| {
            parent
                .child_by_field_name("left")
                .or_else(|| parent.child_by_field_name("name"))
        })
        .map(|name| forge.of(name));
    // A condition asks whether there is a value yet.
    let awaited = started.is_some_and(|name| {
        scope.conditions.iter().any(|test| {
            test.contains(&format!("{name} is None")) || test.contains(&format!("{name} === null"))
        })
    });
    if awaited && !forge.rust() {
        forge.replace(node, PatchFamily::Constant, 0.5, nothing);
    }
    for usual in USUAL {
        forge.replace(node, PatchFamily::Constant, 0.1, *usual);
    }
    for name in scope.params.iter().take(4) {
        forge.replace(node, PatchFamily::Variable, 0.12, name.as_str());
    }
}

fn float(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Ok(value) = forge.of(node).parse::<f64>() else {
        return;
    };
    let show = |value: f64| {
        let text = format!("{value}");
        if text.contains('.') {
            text
        } else {
            format!("{text}.0")
        }
    };
    for (other, prior) in [
        (value + 1.0, 0.3),
        (value - 1.0, 0.3),
        (1.0 - value, 0.3),
        (1.0 + value, 0.2),
        (value * 10.0, 0.3),
        (value / 10.0, 0.3),
        (value * 100.0, 0.15),
        (value / 100.0, 0.15),
        (value * 2.0, 0.12),
        (value / 2.0, 0.12),
        (-value, 0.1),
        (0.0, 0.1),
        (1.0, 0.1),
    ] {
        forge.replace(node, PatchFamily::Constant, prior, show(other));
    }
    let scope = forge.scope(node);
    for other in scope.numbers.iter().take(12) {
        forge.replace(node, PatchFamily::Constant, 0.15, other.as_str());
    }
}

/// How a value is laid out in an f-string: zeros, width, sides, digits.
fn format_spec(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let own = forge.of(node);
    let Some(spec) = own.strip_prefix(':') else {
        return;
    };
    let mut forms = vec![
        (format!(":0{spec}"), 0.6),
        (format!(":,{spec}"), 0.3),
        (format!(":.2{spec}"), 0.2),
        (format!(":.2f{spec}"), 0.1),
    ];
    for (from, to) in [
        ("0", ""),
        ("<", ">"),
        (">", "<"),
        (">", "^"),
        ("<", "^"),
        ("^", "<"),
        ("^", ">"),
        (",", ""),
        ("f", "d"),
        ("d", "f"),
        ("x", "X"),
        ("X", "x"),
        (".2", ".1"),
        (".1", ".2"),
        (".2", ".3"),
        (".0", ".1"),
        ("f", "g"),
    ] {
        if spec.contains(from) {
            forms.push((format!(":{}", spec.replacen(from, to, 1)), 0.4));
        }
    }
    for width in ["2", "3", "4"] {
        forms.push((
            format!(
                ":{}",
                spec.replace(|c: char| c.is_ascii_digit() && c != '0', width)
            ),
            0.15,
        ));
    }
    for (form, prior) in forms {
        forge.replace(node, PatchFamily::Constant, prior, form);
    }
}

/// What turns the text that a test saw into the text that it wanted.
fn text(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let own = forge.of(node);
    for (from, to) in forge.clues.rewrites() {
        if !from.is_empty()
            && own.contains(from.as_str())
            && !to.contains(['\n', '"', '\'', '\\', '`'])
        {
            forge.replace(
                node,
                PatchFamily::Constant,
                0.8,
                own.replacen(from.as_str(), to, 1),
            );
        }
    }
    for (other, prior) in [
        (own.trim().to_owned(), 0.15),
        (format!("{own} "), 0.08),
        (format!(" {own}"), 0.05),
        (own.to_lowercase(), 0.15),
        (own.to_uppercase(), 0.12),
    ] {
        forge.replace(node, PatchFamily::Constant, prior, other);
    }
}

fn whole_string(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if node
        .parent()
        .is_some_and(|parent| parent.kind() == "expression_statement")
    {
        return;
    }
    let quote = if forge.of(node).ends_with('\'') {
        "'"
    } else {
        "\""
    };
    let scope = forge.scope(node);
    let own = forge.of(node);
    for other in scope.strings.iter().take(24) {
        let likeness = likeness(own, other);
        forge.replace(
            node,
            PatchFamily::Constant,
            0.08 + 0.2 * likeness,
            other.as_str(),
        );
    }
    for (other, prior) in [
        ("", 0.15),
        (" ", 0.1),
        (",", 0.06),
        (", ", 0.06),
        ("\\n", 0.06),
        ("-", 0.03),
        ("_", 0.03),
        (".", 0.03),
        ("/", 0.03),
    ] {
        forge.replace(
            node,
            PatchFamily::Constant,
            prior,
            format!("{quote}{other}{quote}"),
        );
    }
}

/// How alike two words are, from zero to one: shared characters at both ends.
pub(super) fn likeness(a: &str, b: &str) -> f64 {
    let ahead = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let behind = a
        .chars()
        .rev()
        .zip(b.chars().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let longest = a.chars().count().max(b.chars().count()).max(1);
    #[allow(clippy::cast_precision_loss)]
    {
        (ahead.max(behind) as f64 / longest as f64).min(1.0)
    }
}

/// `x` for `x + 1` or `x - 1`, where x decides how far something goes.
fn one_more_or_less(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if !is_expression(node)
        || matches!(
            node.kind(),
            "string"
                | "string_literal"
                | "list"
                | "dictionary"
                | "object"
                | "array"
                | "template_string"
                | "true"
                | "false"
                | "none"
                | "null"
                | "lambda"
                | "arrow_function"
                | "boolean_literal"
                | "macro_invocation"
                | "comparison_operator"
                | "boolean_operator"
                | "not_operator"
        )
    {
        return;
    }
    if let Some((left, operator, right)) = binary(node)
        && matches!(forge.of(operator), "+" | "-")
        && forge.of(right) == "1"
    {
        forge.replace(node, PatchFamily::OffByOne, 0.7, forge.of(left));
    }
    let Some(parent) = node.parent() else {
        return;
    };
    if matches!(
        node.kind(),
        "integer" | "number" | "integer_literal" | "float" | "float_literal"
    ) {
        return;
    }
    let compared = binary(parent).is_some_and(|(_, operator, _)| {
        matches!(
            forge.of(operator),
            "<" | "<=" | ">" | ">=" | "==" | "===" | "!=" | "!=="
        )
    });
    let argument = parent.kind() == "argument_list" || parent.kind() == "arguments";
    let range = argument
        && parent
            .parent()
            .and_then(call)
            .is_some_and(|(callee, _)| matches!(forge.of(callee), "range" | "islice"));
    let prior = if range || parent.kind() == "slice" || parent.kind() == "range_expression" {
        0.6
    } else if matches!(
        parent.kind(),
        "subscript" | "subscript_expression" | "index_expression"
    ) && named(parent).first() != Some(&node)
    {
        0.5
    } else if compared {
        0.4
    } else if argument {
        0.18
    } else if matches!(
        parent.kind(),
        "return_statement"
            | "assignment"
            | "variable_declarator"
            | "let_declaration"
            | "assignment_expression"
            | "return_expression"
            | "augmented_assignment"
            | "binary_operator"
            | "binary_expression"
            | "parenthesized_expression"
            | "tuple"
            | "tuple_expression"
            | "array"
            | "list"
            | "pair"
            | "expression_list"
            | "yield"
    ) {
        0.25
    } else {
        return;
    };
    if matches!(
        parent.kind(),
        "assignment" | "assignment_expression" | "augmented_assignment"
    ) && parent.child_by_field_name("left") == Some(node)
        || parent.kind() == "variable_declarator"
            && parent.child_by_field_name("name") == Some(node)
        || parent.kind() == "let_declaration" && parent.child_by_field_name("value") != Some(node)
    {
        return;
    }
    let own = forge.of(node);
    let tight = matches!(parent.kind(), "binary_operator" | "binary_expression") && !compared;
    let (more, less) = if tight {
        (format!("({own} + 1)"), format!("({own} - 1)"))
    } else {
        (format!("{own} + 1"), format!("{own} - 1"))
    };
    if compared {
        by_known_numbers(forge, node);
    }
    if range || is_bound(forge, parent) {
        further(forge, node);
    }
    forge.replace(node, PatchFamily::OffByOne, prior, more);
    forge.replace(node, PatchFamily::OffByOne, prior, less);
}

/// Whether a node holds the ends of a slice.
fn is_bound(forge: &PatchGenerator<'_>, node: Node<'_>) -> bool {
    let called = node.parent().and_then(call).map(|(callee, _)| callee);
    node.kind() == "slice"
        || called.is_some_and(|callee| {
            let name = forge.of(callee).rsplit('.').next();
            matches!(name, Some("slice" | "substring"))
        })
}

/// An end that is a few off, as where room is kept for something.
fn further(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let own = forge.of(node);
    for by in ["2", "3"] {
        forge.replace(node, PatchFamily::OffByOne, 0.04, format!("{own} - {by}"));
        forge.replace(node, PatchFamily::OffByOne, 0.03, format!("{own} + {by}"));
    }
}

/// What is compared may be off by a number that the file knows.
fn by_known_numbers(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let scope = forge.scope(node);
    let own = forge.of(node);
    for number in scope
        .numbers
        .iter()
        .filter(|number| !matches!(number.as_str(), "0" | "1"))
        .take(6)
    {
        forge.replace(
            node,
            PatchFamily::Expression,
            0.06,
            format!("{own} + {number}"),
        );
        forge.replace(
            node,
            PatchFamily::Expression,
            0.04,
            format!("{own} - {number}"),
        );
    }
}
