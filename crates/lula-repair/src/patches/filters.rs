//! Lists that are taken whole where only some of them should be.

use tree_sitter::Node;

use super::{PatchFamily, PatchGenerator};
use crate::syntax::{call, named};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if node.kind() == "for_in_clause" && forge.python() {
        filter(forge, node);
    }
    if let Some((callee, _)) = call(node)
        && !forge.python()
    {
        filter_before(forge, callee);
    }
    if forge.script()
        && node.kind() == "return_statement"
        && let Some(value) = named(node).first().copied()
        && matches!(
            value.kind(),
            "array" | "call_expression" | "identifier" | "member_expression"
        )
    {
        filter_value(forge, value);
    }
}

/// A comprehension that takes too much.
fn filter(forge: &mut PatchGenerator<'_>, clause: Node<'_>) {
    let Some(name) = clause.child_by_field_name("left") else {
        return;
    };
    if clause
        .next_named_sibling()
        .is_some_and(|next| next.kind() == "if_clause")
    {
        return;
    }
    let scope = forge.scope(clause);
    let own = forge.of(name).to_owned();
    let mut tests: Vec<(String, f64)> = vec![
        (own.clone(), 0.3),
        (format!("{own} is not None"), 0.25),
        (format!("not {own}"), 0.1),
        (format!("{own} > 0"), 0.1),
    ];
    for field in scope.fields.iter().take(16) {
        let idle = scope.idleness(field);
        tests.push((format!("{own}.{field}"), 0.2 * idle));
        tests.push((format!("not {own}.{field}"), 0.15 * idle));
    }
    for function in scope.functions.iter().take(12) {
        tests.push((format!("{own}.{function}()"), 0.08));
        tests.push((format!("{function}({own})"), 0.08));
        tests.push((format!("not {own}.{function}()"), 0.05));
    }
    for other in scope.conditions.iter().take(6) {
        tests.push((other.clone(), 0.12));
    }
    for other in scope.names.iter().filter(|other| **other != own).take(6) {
        tests.push((format!("{own} != {other}"), 0.1));
        tests.push((format!("{own} not in {other}"), 0.1));
        tests.push((format!("{own} in {other}"), 0.08));
    }
    for (test, prior) in tests {
        forge.insert(
            clause,
            clause.end_byte(),
            PatchFamily::MissingCondition,
            prior,
            format!(" if {test}"),
        );
    }
}

/// A list that is handed on whole where only some of it should be.
fn filter_value(forge: &mut PatchGenerator<'_>, value: Node<'_>) {
    let scope = forge.scope(value);
    let fields: Vec<String> = scope
        .fields
        .iter()
        .filter(|field| *field != "length")
        .take(12)
        .cloned()
        .collect();
    for field in fields {
        let idle = scope.idleness(&field);
        for (test, prior) in [
            (format!("!each.{field}"), 0.15),
            (format!("each.{field}"), 0.12),
        ] {
            let text = format!(".filter((each) => {test})");
            forge.insert(
                value,
                value.end_byte(),
                PatchFamily::MissingCondition,
                prior * idle,
                text,
            );
        }
    }
}

/// A chain that takes too much: `xs.map(f)` for `xs.filter(...).map(f)`.
fn filter_before(forge: &mut PatchGenerator<'_>, callee: Node<'_>) {
    let Some((object, method)) = crate::syntax::member(callee) else {
        return;
    };
    if !matches!(
        forge.of(method),
        "map"
            | "reduce"
            | "forEach"
            | "sort"
            | "flatMap"
            | "join"
            | "some"
            | "every"
            | "sum"
            | "count"
            | "any"
            | "all"
            | "collect"
            | "filter_map"
            | "flat_map"
    ) {
        return;
    }
    let scope = forge.scope(callee);
    let mut tests: Vec<(String, f64)> = vec![
        ("Boolean".to_owned(), 0.15),
        ("(each) => each != null".to_owned(), 0.1),
    ];
    for field in scope.fields.iter().take(16) {
        let idle = scope.idleness(field);
        tests.push((format!("(each) => each.{field}"), 0.15 * idle));
        tests.push((format!("(each) => !each.{field}"), 0.12 * idle));
    }
    for function in scope.functions.iter().take(16) {
        let idle = if scope.idle_functions.contains(function) {
            3.0
        } else {
            1.0
        };
        tests.push((format!("(each) => each.{function}()"), 0.06 * idle));
        tests.push((format!("(each) => {function}(each)"), 0.06 * idle));
    }
    if forge.rust() {
        for (test, _) in &mut tests {
            *test = test.replace("(each) => ", "|each| ");
        }
        tests.retain(|(test, _)| test.starts_with('|') && !test.contains("null"));
    }
    for (test, prior) in tests {
        forge.insert(
            callee,
            object.end_byte(),
            PatchFamily::MissingCondition,
            prior,
            format!(".filter({test})"),
        );
    }
}
