//! Values of the wrong shape: methods and loops taken for their neighbours, text that was not
//! trimmed, indices the wrong way round, and starts that no value beats.

use tree_sitter::Node;

use super::{ByteRangeEdit, PatchFamily, PatchGenerator};
use crate::locate::ValueSort;
use crate::syntax::{call, child, children, member, named};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
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
    measured(forge, node);
    each(forge, node);
    start(forge, node);
    joined(forge, node);
}

/// A method that changes its object and hands nothing back, used for its value; or one that changes
/// what belongs to other code.
fn in_place(forge: &mut PatchGenerator<'_>, node: Node<'_>, callee: Node<'_>) {
    let Some((object, name)) = member(callee) else {
        return;
    };
    let (thing, method) = (forge.of(object), forge.of(name));
    let alone = node
        .parent()
        .is_some_and(|parent| parent.kind() == "expression_statement");
    if forge.python() && !alone {
        match method {
            "sort" => forge.replace(node, PatchFamily::Call, 0.8, format!("sorted({thing})")),
            "reverse" => {
                forge.replace(
                    node,
                    PatchFamily::Call,
                    0.8,
                    format!("list(reversed({thing}))"),
                );
            }
            _ => {}
        }
    }
    if forge.script() && matches!(method, "sort" | "reverse" | "splice") {
        forge.replace(object, PatchFamily::Call, 0.3, format!("{thing}.slice()"));
    }
}

/// Numbers read from text in one way or the other.
fn parsed(forge: &mut PatchGenerator<'_>, callee: Node<'_>, arguments: Node<'_>) {
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
                PatchFamily::Conversion,
                0.25,
                format!("parseInt({first}, 10)"),
            );
            forge.replace(
                whole,
                PatchFamily::Conversion,
                0.25,
                format!("parseFloat({first})"),
            );
        }
        "parseInt" => {
            forge.replace(
                whole,
                PatchFamily::Conversion,
                0.25,
                format!("Number({first})"),
            );
            if items.len() == 1 {
                forge.replace(
                    whole,
                    PatchFamily::Arguments,
                    0.4,
                    format!("parseInt({first}, 10)"),
                );
            }
        }
        _ => {}
    }
}

/// A value that is taken for granted.
fn unchecked(forge: &mut PatchGenerator<'_>, node: Node<'_>, callee: Node<'_>) {
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
            forge.replace(node, PatchFamily::Default, prior, text);
        }
    }
}

/// Text is trimmed before anything else is made of it.
fn tidied(forge: &mut PatchGenerator<'_>, object: Node<'_>, name: Node<'_>) {
    let textual = match forge.of(name) {
        "lower" | "upper" | "split" | "replace" | "includes" | "indexOf" | "match" | "find"
        | "count" | "startswith" | "endswith" | "isdigit" | "casefold" | "toLowerCase"
        | "toUpperCase" | "startsWith" | "endsWith" | "length" | "to_string" | "to_owned"
        | "to_lowercase" | "to_uppercase" | "is_empty" | "starts_with" | "ends_with" | "parse" => {
            true
        }
        _ => return,
    };
    let own = forge.of(object);
    let lower = match () {
        () if forge.python() => "lower",
        () if forge.script() => "toLowerCase",
        () => "to_lowercase",
    };
    if !own.contains(lower) && forge.of(name) != lower {
        forge.replace(
            object,
            PatchFamily::Conversion,
            0.09,
            format!("{own}.{lower}()"),
        );
    }
    let method = if forge.python() { "strip" } else { "trim" };
    if textual && !own.ends_with(&format!("{method}()")) {
        forge.replace(
            object,
            PatchFamily::Conversion,
            0.07,
            format!("{own}.{method}()"),
        );
    }
}

/// A step of a chain that puts things in order before they are joined or taken from.
fn arranged(forge: &mut PatchGenerator<'_>, object: Node<'_>, name: Node<'_>) {
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
            forge.replace(
                object,
                PatchFamily::Conversion,
                prior,
                format!("{own}{step}"),
            );
        }
    }
}

/// `xs[i][j]` for `xs[j][i]`, and an index that should wrap around.
fn indices(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some((thing, index)) = subscript(node) else {
        return;
    };
    if let Some((_, before)) = subscript(thing) {
        forge.swap(PatchFamily::Operands, 0.3, before, index);
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
    forge.replace(index, PatchFamily::Bounds, prior, text);
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

/// The length of what is in a thing where the thing itself is asked, and patterns that stop at the
/// first match.
fn measured(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some((left, operator, right)) = crate::syntax::binary(node)
        && matches!(forge.of(operator), "<" | "<=" | ">" | ">=" | "==" | "===")
        && left.kind() == "identifier"
        && right.kind() == "identifier"
    {
        let (a, sign, b) = (forge.of(left), forge.of(operator), forge.of(right));
        let scope = forge.scope(node);
        let sized = |name| scope.variables.may_be(name, ValueSort::Sized);
        if sized(a) && sized(b) {
            let text = match () {
                () if forge.python() => format!("len({a}) {sign} len({b})"),
                () if forge.script() => format!("{a}.length {sign} {b}.length"),
                () => format!("{a}.len() {sign} {b}.len()"),
            };
            forge.replace(node, PatchFamily::Conversion, 0.1, text);
        }
    }
    if let Some((object, name)) = member(node)
        && forge.script()
        && forge.of(name) == "length"
    {
        let text = format!("{}[0].length", forge.of(object));
        forge.replace(node, PatchFamily::Variable, 0.1, text);
    }
    if node.kind() == "regex" {
        let own = forge.of(node);
        let flags = own.rsplit('/').next().unwrap_or_default();
        for (flag, prior) in [("g", 0.5), ("i", 0.3), ("m", 0.05)] {
            if !flags.contains(flag) {
                forge.replace(node, PatchFamily::Constant, prior, format!("{own}{flag}"));
            }
        }
        if flags.contains('g') {
            let bare = own.strip_suffix('g').unwrap_or(own);
            forge.replace(node, PatchFamily::Constant, 0.1, bare);
        }
    }
}

/// JavaScript's two loops over a thing: its keys or its values; and its two ways of comparing.
fn each(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
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
                let edit = ByteRangeEdit {
                    start: word.start_byte(),
                    end: word.end_byte(),
                    text: (*to).to_owned(),
                };
                forge.edit(node, PatchFamily::Comparison, *prior, vec![edit]);
            }
        }
    }
}

/// The best so far starts where every value beats it.
fn start(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
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
            forge.replace(value, PatchFamily::Constant, 0.15, end);
        }
    }
}

/// Pieces of text that were gathered and not put together.
fn joined(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
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
            forge.replace(node, PatchFamily::Conversion, 0.08, text);
        }
    }
}
