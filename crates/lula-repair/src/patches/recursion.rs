//! Functions that call themselves: ends that are missing, results that are dropped, and calls that
//! were forgotten.

use tree_sitter::Node;

use super::guards::first_statement;
use super::{PatchFamily, PatchGenerator};
use crate::syntax::{call, is_expression, is_function, member, named, nearest, walk};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if is_function(node) && calls_itself(forge, node) {
        ends(forge, node);
    }
    if let Some((callee, arguments)) = call(node)
        && let Some(around) = nearest(node, is_function)
        && around.child_by_field_name("name").is_some_and(|name| {
            let called = member(callee).map_or(callee, |(_, name)| name);
            forge.of(name) == forge.of(called)
        })
    {
        joined(forge, node, callee, arguments);
    }
    more_factors(forge, node);
    recalled(forge, node);
}

fn calls_itself(forge: &PatchGenerator<'_>, node: Node<'_>) -> bool {
    let Some(name) = node.child_by_field_name("name").map(|name| forge.of(name)) else {
        return false;
    };
    walk(node).into_iter().filter_map(call).any(|(callee, _)| {
        let called = member(callee).map_or(callee, |(_, name)| name);
        forge.of(called) == name
    })
}

/// Where a recursion ends: small numbers, nothing left, equal arguments.
fn ends(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(at) = first_statement(node) else {
        return;
    };
    let scope = forge.scope(at);
    let params: Vec<String> = node
        .child_by_field_name("parameters")
        .map(|params| {
            named(params)
                .into_iter()
                .map(|param| param.child_by_field_name("pattern").unwrap_or(param))
                .map(|param| {
                    forge
                        .of(param)
                        .split([':', '='])
                        .next()
                        .unwrap_or_default()
                        .trim()
                        .to_owned()
                })
                .filter(|param| !matches!(param.as_str(), "self" | "cls" | "&self" | "&mut self"))
                .take(4)
                .collect()
        })
        .unwrap_or_default();
    let equals = if forge.script() { "===" } else { "==" };
    let mut tests: Vec<(String, f64)> = Vec::new();
    for param in &params {
        tests.push((format!("{param} {equals} 0"), 0.25));
        tests.push((format!("{param} <= 0"), 0.12));
        tests.push((format!("{param} <= 1"), 0.15));
        tests.push((format!("{param} {equals} 1"), 0.12));
        if forge.python() {
            tests.push((format!("not {param}"), 0.3));
            tests.push((format!("{param} is None"), 0.25));
            tests.push((format!("len({param}) <= 1"), 0.2));
        } else if forge.script() {
            tests.push((format!("{param} === null"), 0.25));
            tests.push((format!("!{param}"), 0.25));
            tests.push((format!("{param}.length === 0"), 0.25));
            tests.push((format!("{param}.length <= 1"), 0.15));
        } else {
            tests.push((format!("{param}.is_empty()"), 0.25));
            tests.push((format!("{param}.len() <= 1"), 0.15));
        }
        for field in scope.fields.iter().take(5) {
            let part = format!("{param}.{field}");
            if forge.of(node).contains(&part) {
                if forge.rust() {
                    tests.push((format!("{part}.is_empty()"), 0.2));
                    tests.push((format!("{part}.is_none()"), 0.1));
                } else {
                    tests.push((forge.negated(&part), 0.2));
                }
            }
        }
    }
    for (index, first) in params.iter().enumerate() {
        for second in &params[index + 1..] {
            tests.push((format!("{first} {equals} {second}"), 0.12));
            tests.push((format!("{first} > {second}"), 0.08));
            tests.push((format!("{first} < {second}"), 0.05));
        }
    }
    let usual: &[(&str, f64)] = match () {
        () if forge.python() => &[
            ("0", 0.7),
            ("1", 0.7),
            ("[]", 0.6),
            ("None", 0.4),
            ("False", 0.4),
            ("True", 0.4),
            ("\"\"", 0.4),
            ("[[]]", 0.3),
        ],
        () if forge.script() => &[
            ("0", 0.7),
            ("1", 0.7),
            ("[]", 0.6),
            ("null", 0.4),
            ("false", 0.4),
            ("true", 0.4),
            ("''", 0.4),
            ("[[]]", 0.3),
        ],
        () => &[
            ("0", 0.7),
            ("1", 0.7),
            ("Vec::new()", 0.5),
            ("None", 0.4),
            ("false", 0.4),
            ("true", 0.4),
        ],
    };
    let mut values: Vec<(String, f64)> = usual
        .iter()
        .map(|(value, share)| ((*value).to_owned(), *share))
        .collect();
    values.extend(params.iter().map(|param| (param.clone(), 0.5)));
    for (test, prior) in tests {
        for (value, share) in &values {
            let text = forge.guard(at, &test, &format!("return {value}"));
            forge.insert(at, at.start_byte(), PatchFamily::Guard, prior * share, text);
        }
    }
}

/// One call where several make up the answer.
fn joined(forge: &mut PatchGenerator<'_>, node: Node<'_>, callee: Node<'_>, arguments: Node<'_>) {
    let own = forge.of(node);
    let items: Vec<&str> = named(arguments)
        .into_iter()
        .map(|item| forge.of(item))
        .collect();
    if own.len() > 60 || items.len() > 4 {
        return;
    }
    let name = forge.of(callee);
    let scope = forge.scope(node);
    let returned = node
        .parent()
        .is_some_and(|parent| parent.kind() == "return_statement");
    // The same call with one argument as it came, or one changed as the others are.
    let mut others: Vec<String> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let bare = item.split([' ', '[', '.']).next().unwrap_or(item);
        if bare != *item {
            let mut changed = items.clone();
            changed[index] = bare;
            others.push(format!("{name}({})", changed.join(", ")));
        }
    }
    if returned {
        for other in &others {
            for operator in ["+", "*"] {
                forge.replace(
                    node,
                    PatchFamily::Expression,
                    0.06,
                    format!("{own} {operator} {other}"),
                );
            }
        }
        for value in scope.names.iter().take(6) {
            for operator in ["+", "*"] {
                forge.replace(
                    node,
                    PatchFamily::Expression,
                    0.06,
                    format!("{value} {operator} {own}"),
                );
            }
        }
        forge.replace(node, PatchFamily::Expression, 0.3, format!("1 + {own}"));
        for list in scope.names.iter().take(6) {
            forge.replace(
                node,
                PatchFamily::Expression,
                0.04,
                format!("[{list}] + {own}"),
            );
        }
    }
    // A call whose result is not taken.
    if node
        .parent()
        .is_some_and(|parent| parent.kind() == "expression_statement")
    {
        forge.insert(
            node,
            node.start_byte(),
            PatchFamily::MissingStatement,
            0.4,
            "return ",
        );
        for name in scope.names.iter().take(6) {
            for operator in ["=", "+="] {
                let text = format!("{name} {operator} ");
                forge.insert(
                    node,
                    node.start_byte(),
                    PatchFamily::MissingStatement,
                    0.06,
                    text,
                );
            }
        }
        if forge.python() {
            forge.insert(
                node,
                node.start_byte(),
                PatchFamily::MissingStatement,
                0.3,
                "yield from ",
            );
        }
    }
}

/// A value that the function itself should have made, as it does elsewhere or of another part.
fn recalled(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let place = node.parent().is_some_and(|parent| {
        matches!(
            parent.kind(),
            "return_statement"
                | "tuple"
                | "list"
                | "array"
                | "argument_list"
                | "arguments"
                | "expression_list"
        )
    });
    if !place || !is_expression(node) || forge.rust() {
        return;
    }
    let Some(around) = nearest(node, is_function) else {
        return;
    };
    let Some(name) = around.child_by_field_name("name") else {
        return;
    };
    let mut calls: Vec<Vec<&str>> = Vec::new();
    for (callee, arguments) in walk(around).into_iter().filter_map(call) {
        let items: Vec<&str> = named(arguments)
            .into_iter()
            .map(|item| forge.of(item))
            .collect();
        let short = items.iter().map(|item| item.len()).sum::<usize>() <= 40;
        if forge.of(callee) == forge.of(name) && short && !calls.contains(&items) {
            calls.push(items);
        }
    }
    let scope = forge.scope(node);
    let name = forge.of(name);
    for items in calls.iter().take(3) {
        let text = format!("{name}({})", items.join(", "));
        forge.replace(node, PatchFamily::Call, 0.05, text);
        for (index, item) in items.iter().enumerate() {
            for other in scope.names.iter().filter(|other| other != item).take(6) {
                let mut changed = items.clone();
                changed[index] = other;
                let text = format!("{name}({})", changed.join(", "));
                forge.replace(node, PatchFamily::Call, 0.02, text);
            }
        }
    }
}

/// A part of a sum or product that was left out, and a call of this function on a part.
fn more_factors(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(parent) = node.parent() else {
        return;
    };
    let value = parent.kind() == "return_statement"
        || crate::syntax::is_given(node) && parent.kind() != "for_statement"
        || matches!(parent.kind(), "argument_list" | "arguments") && node.kind() != "identifier"
        || matches!(parent.kind(), "yield" | "tuple" | "array" | "list");
    let computed = matches!(
        node.kind(),
        "binary_operator"
            | "binary_expression"
            | "call"
            | "call_expression"
            | "identifier"
            | "subscript"
            | "subscript_expression"
            | "member_expression"
            | "attribute"
    );
    let own = forge.of(node);
    if !value || !computed || own.len() > 60 || forge.rust() && parent.kind() != "return_statement"
    {
        return;
    }
    let scope = forge.scope(node);
    let held = if crate::syntax::binary(node).is_some() && !own.contains(" * ") {
        format!("({own})")
    } else {
        own.to_owned()
    };
    for name in scope.names.iter().filter(|name| *name != own).take(7) {
        let param = if scope.params.contains(name) {
            1.4
        } else {
            1.0
        };
        for (text, prior) in [
            (format!("{own} + {name}"), 0.04),
            (format!("{own} - {name}"), 0.035),
            (format!("{held} * {name}"), 0.035),
            (format!("{name} - {held}"), 0.025),
        ] {
            forge.replace(node, PatchFamily::Expression, prior * param, text);
        }
        if forge.python() {
            forge.replace(
                node,
                PatchFamily::Expression,
                0.015,
                format!("{held} % {name}"),
            );
        }
    }
    if let Some(twin) = scope.twin(own).filter(|_| node.kind() != "identifier") {
        forge.replace(
            node,
            PatchFamily::Expression,
            0.08,
            format!("{own} + {twin}"),
        );
        forge.replace(node, PatchFamily::Expression, 0.05, twin.clone());
        if matches!(parent.kind(), "argument_list" | "arguments") {
            let text = format!(", {twin}");
            forge.insert(node, node.end_byte(), PatchFamily::Arguments, 0.08, text);
        }
    }
    // In a loop over parts, the function itself does for a part what it does for the whole.
    let Some(around) = nearest(node, is_function) else {
        return;
    };
    let name = around
        .child_by_field_name("name")
        .map(|name| forge.of(name));
    if let Some(name) = name
        && scope.params.len() == 1
        && call(node).is_none()
    {
        for part in scope.habits.loop_names.iter().take(3) {
            forge.replace(node, PatchFamily::Call, 0.06, format!("{name}({part})"));
            if parent.kind() == "yield" && forge.python() {
                forge.replace(
                    parent,
                    PatchFamily::Call,
                    0.08,
                    format!("yield from {name}({part})"),
                );
            }
        }
    }
}
