//! Values of the wrong shape: methods and loops taken for their neighbours, text that was not
//! trimmed, indices the wrong way round, and starts that no value beats.

use tree_sitter::Node;

use super::{Edit, Family, Forge};
use crate::syntax::{call, child, children, member, named};

pub(super) fn propose(forge: &mut Forge<'_>, node: Node<'_>) {
    if let Some((callee, arguments)) = call(node) {
        in_place(forge, node, callee);
        parsed(forge, callee, arguments);
        unchecked(forge, node, callee);
    }
    if let Some((object, name)) = member(node) {
        tidied(forge, object, name);
        arranged(forge, object, name);
    }
    indices(forge, node);
    each(forge, node);
    start(forge, node);
    joined(forge, node);
}

/// A method that changes its object and hands nothing back, used for its value; or one that changes
/// what belongs to somebody else.
fn in_place(forge: &mut Forge<'_>, node: Node<'_>, callee: Node<'_>) {
    let Some((object, name)) = member(callee) else {
        return;
    };
    let (thing, method) = (forge.of(object), forge.of(name));
    let alone = node
        .parent()
        .is_some_and(|parent| parent.kind() == "expression_statement");
    if forge.python() && !alone {
        match method {
            "sort" => forge.replace(node, Family::Call, 0.8, format!("sorted({thing})")),
            "reverse" => {
                forge.replace(node, Family::Call, 0.8, format!("list(reversed({thing}))"));
            }
            _ => {}
        }
    }
    if forge.script() && matches!(method, "sort" | "reverse" | "splice") {
        forge.replace(object, Family::Call, 0.3, format!("{thing}.slice()"));
    }
}

/// Numbers read from text in one way or the other.
fn parsed(forge: &mut Forge<'_>, callee: Node<'_>, arguments: Node<'_>) {
    let Some(whole) = callee.parent().filter(|_| forge.script()) else {
        return;
    };
    let items = named(arguments);
    let Some(first) = items.first().copied() else {
        return;
    };
    let first = forge.of(first);
    match forge.of(callee) {
        "Number" => {
            forge.replace(
                whole,
                Family::Conversion,
                0.25,
                format!("parseInt({first}, 10)"),
            );
            forge.replace(
                whole,
                Family::Conversion,
                0.25,
                format!("parseFloat({first})"),
            );
        }
        "parseInt" => {
            forge.replace(whole, Family::Conversion, 0.25, format!("Number({first})"));
            if items.len() == 1 {
                forge.replace(
                    whole,
                    Family::Arguments,
                    0.4,
                    format!("parseInt({first}, 10)"),
                );
            }
        }
        _ => {}
    }
}

/// A value that is taken for granted.
fn unchecked(forge: &mut Forge<'_>, node: Node<'_>, callee: Node<'_>) {
    let Some((object, name)) = member(callee).filter(|_| forge.rust()) else {
        return;
    };
    if matches!(forge.of(name), "unwrap" | "expect") {
        let thing = forge.of(object);
        for (text, prior) in [
            (format!("{thing}.unwrap_or_default()"), 0.3),
            (format!("{thing}.unwrap_or(0)"), 0.2),
            (format!("{thing}.unwrap_or(1)"), 0.08),
        ] {
            forge.replace(node, Family::Default, prior, text);
        }
    }
}

/// Text is trimmed before anything else is made of it.
fn tidied(forge: &mut Forge<'_>, object: Node<'_>, name: Node<'_>) {
    let textual = match forge.of(name) {
        "lower" | "upper" | "split" | "startswith" | "endswith" | "isdigit" | "casefold"
        | "toLowerCase" | "toUpperCase" | "startsWith" | "endsWith" | "length" | "to_string"
        | "to_owned" | "to_lowercase" | "to_uppercase" | "is_empty" | "starts_with"
        | "ends_with" | "parse" => true,
        _ => return,
    };
    let own = forge.of(object);
    let lower = match () {
        () if forge.python() => "lower",
        () if forge.script() => "toLowerCase",
        () => "to_lowercase",
    };
    if !own.contains(lower) && forge.of(name) != lower {
        forge.replace(object, Family::Conversion, 0.09, format!("{own}.{lower}()"));
    }
    let method = if forge.python() { "strip" } else { "trim" };
    if textual && !own.ends_with(&format!("{method}()")) {
        forge.replace(
            object,
            Family::Conversion,
            0.07,
            format!("{own}.{method}()"),
        );
    }
}

/// A step of a chain that puts things in order before they are joined or taken from.
fn arranged(forge: &mut Forge<'_>, object: Node<'_>, name: Node<'_>) {
    if !forge.script() || !matches!(forge.of(name), "join" | "map" | "slice" | "length" | "at") {
        return;
    }
    let own = forge.of(object);
    for (step, prior) in [
        (".sort()", 0.08),
        (".reverse()", 0.08),
        (".filter(Boolean)", 0.05),
    ] {
        if !own.ends_with(step) {
            forge.replace(object, Family::Conversion, prior, format!("{own}{step}"));
        }
    }
}

/// `xs[i][j]` for `xs[j][i]`, and an index that should wrap around.
fn indices(forge: &mut Forge<'_>, node: Node<'_>) {
    let Some((thing, index)) = subscript(node) else {
        return;
    };
    if let Some((_, before)) = subscript(thing) {
        forge.swap(Family::Operands, 0.3, before, index);
    }
    if !matches!(
        index.kind(),
        "binary_operator" | "binary_expression" | "identifier"
    ) {
        return;
    }
    let (thing, text) = (forge.of(thing), forge.of(index));
    let count = if forge.python() {
        format!("len({thing})")
    } else if forge.rust() {
        format!("{thing}.len()")
    } else {
        format!("{thing}.length")
    };
    let text = if index.kind() == "identifier" {
        format!("{text} % {count}")
    } else {
        format!("({text}) % {count}")
    };
    let prior = if index.kind() == "identifier" {
        0.03
    } else {
        0.07
    };
    forge.replace(index, Family::Bounds, prior, text);
}

pub(super) fn subscript(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    match node.kind() {
        "subscript" => Some((
            node.child_by_field_name("value")?,
            node.child_by_field_name("subscript")?,
        )),
        "subscript_expression" => Some((
            node.child_by_field_name("object")?,
            node.child_by_field_name("index")?,
        )),
        "index_expression" => match named(node).as_slice() {
            [thing, index] => Some((*thing, *index)),
            _ => None,
        },
        _ => None,
    }
}

/// JavaScript's two loops over a thing: its keys or its values; and its two ways of comparing.
fn each(forge: &mut Forge<'_>, node: Node<'_>) {
    if !forge.script() {
        return;
    }
    let wanted: &[(&str, &str, &str, f64)] = &[
        ("for_in_statement", "in", "of", 0.7),
        ("for_in_statement", "of", "in", 0.1),
        ("binary_expression", "==", "===", 0.15),
        ("binary_expression", "!=", "!==", 0.15),
        ("binary_expression", "===", "==", 0.05),
        ("binary_expression", "!==", "!=", 0.05),
    ];
    for index in 0..children(node) {
        let Some(word) = child(node, index).filter(|word| !word.is_named()) else {
            continue;
        };
        for (kind, from, to, prior) in wanted {
            if node.kind() == *kind && word.kind() == *from {
                let edit = Edit {
                    start: word.start_byte(),
                    end: word.end_byte(),
                    text: (*to).to_owned(),
                };
                forge.edit(node, Family::Comparison, *prior, vec![edit]);
            }
        }
    }
}

/// The best so far starts where every value beats it.
fn start(forge: &mut Forge<'_>, node: Node<'_>) {
    let (name, value) = match node.kind() {
        "assignment" => ("left", "right"),
        "variable_declarator" => ("name", "value"),
        _ => return,
    };
    let (Some(name), Some(value)) = (
        node.child_by_field_name(name),
        node.child_by_field_name(value),
    ) else {
        return;
    };
    if !matches!(
        value.kind(),
        "integer" | "float" | "number" | "none" | "null" | "unary_operator"
    ) {
        return;
    }
    let scope = forge.scope(node);
    let own = forge.of(name);
    let compared = scope
        .conditions
        .iter()
        .any(|text| text.contains(own) && text.contains(['<', '>']));
    if compared {
        let ends: [&str; 2] = if forge.python() {
            ["float('-inf')", "float('inf')"]
        } else {
            ["-Infinity", "Infinity"]
        };
        for end in ends {
            forge.replace(value, Family::Constant, 0.15, end);
        }
    }
}

/// Pieces of text that were gathered and not put together.
fn joined(forge: &mut Forge<'_>, node: Node<'_>) {
    let returned = node
        .parent()
        .is_some_and(|parent| parent.kind() == "return_statement");
    if !returned || node.kind() != "identifier" {
        return;
    }
    let scope = forge.scope(node);
    let own = forge.of(node);
    let gathered = scope
        .starts
        .iter()
        .any(|(name, value)| name == own && value == "[]");
    if gathered {
        let texts: [String; 2] = if forge.python() {
            [format!("''.join({own})"), format!("' '.join({own})")]
        } else {
            [format!("{own}.join('')"), format!("{own}.join(' ')")]
        };
        for text in texts {
            forge.replace(node, Family::Conversion, 0.08, text);
        }
    }
}
