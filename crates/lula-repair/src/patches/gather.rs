//! What is gathered step by step: sums, extremes, lists and sets of what was seen, and walkers that
//! must move on.

use tree_sitter::Node;

use super::habits::{InitialValue, filling};
use super::scope::FunctionVocabulary;
use super::statements::lines_of;
use super::{PatchFamily, PatchGenerator};
use crate::locate::ValueSort;
use crate::syntax::{call, is_block, is_expression, is_function, member, named, nearest};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if is_block(node) && nearest(node, is_function).is_some() {
        missing_steps(forge, node);
    }
    best_so_far(forge, node);
    counted(forge, node);
    extremes(forge, node);
}

/// `best = x` for `best = max(best, x)` and the like.
fn best_so_far(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if !matches!(node.kind(), "assignment" | "assignment_expression") {
        return;
    }
    let (Some(left), Some(right)) = (
        node.child_by_field_name("left"),
        node.child_by_field_name("right"),
    ) else {
        return;
    };
    let (target, value) = (forge.of(left), forge.of(right));
    if target == value || value.len() > 60 || value.contains(target) {
        return;
    }
    let (most, least) = largest(forge, target, value);
    forge.replace(right, PatchFamily::Expression, 0.16, most);
    forge.replace(right, PatchFamily::Expression, 0.16, least);
    let (and, or) = if forge.python() {
        ("and", "or")
    } else {
        ("&&", "||")
    };
    if matches!(
        right.kind(),
        "comparison_operator"
            | "call"
            | "call_expression"
            | "boolean_operator"
            | "binary_expression"
    ) {
        forge.replace(
            right,
            PatchFamily::Logic,
            0.06,
            format!("{target} {and} {value}"),
        );
        forge.replace(
            right,
            PatchFamily::Logic,
            0.06,
            format!("{target} {or} {value}"),
        );
    }
}

/// The larger and the smaller of two.
fn largest(forge: &PatchGenerator<'_>, a: &str, b: &str) -> (String, String) {
    if forge.python() {
        (format!("max({a}, {b})"), format!("min({a}, {b})"))
    } else if forge.script() {
        (format!("Math.max({a}, {b})"), format!("Math.min({a}, {b})"))
    } else {
        (format!("{a}.max({b})"), format!("{a}.min({b})"))
    }
}

/// `x` for `max(x, y)`, where values of the same kind are about.
fn extremes(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(parent) = node.parent() else {
        return;
    };
    let place = matches!(
        parent.kind(),
        "tuple"
            | "expression_list"
            | "argument_list"
            | "arguments"
            | "array"
            | "return_statement"
            | "assignment"
            | "variable_declarator"
    );
    let value = matches!(
        node.kind(),
        "identifier"
            | "subscript"
            | "attribute"
            | "member_expression"
            | "subscript_expression"
            | "binary_operator"
            | "binary_expression"
            | "call"
            | "call_expression"
    );
    if !place || !value || forge.of(node).len() > 40 || forge.rust() {
        return;
    }
    if parent.child_by_field_name("left") == Some(node)
        || parent.child_by_field_name("name") == Some(node)
    {
        return;
    }
    let scope = forge.scope(node);
    let own = forge.of(node);
    let elements = scope
        .expressions
        .iter()
        .filter(|text| text.ends_with(']') && !text.starts_with('[') && text.len() <= 24)
        .take(4);
    let others: Vec<&String> = scope.names.iter().take(6).chain(elements).collect();
    for other in others.into_iter().filter(|other| *other != own) {
        if other.starts_with(&format!("{own}[")) || own.contains(other.as_str()) {
            continue;
        }
        let (most, least) = largest(forge, other, own);
        forge.replace(node, PatchFamily::Expression, 0.035, most);
        forge.replace(node, PatchFamily::Expression, 0.035, least);
    }
}

/// Statements that are missing, at every place of a block.
fn missing_steps(forge: &mut PatchGenerator<'_>, block: Node<'_>) {
    let Some(first) = named(block).first().copied() else {
        return;
    };
    let scope = forge.scope(first);
    let steps = steps(forge, &scope);
    for statement in named(block) {
        let indent = forge.source.indent(statement).to_owned();
        let (_, end) = lines_of(forge, statement);
        let closes_line = forge.source.text[..end].ends_with('\n');
        let own = forge.of(statement);
        let jumps = ["return", "raise", "throw", "break", "continue"]
            .iter()
            .any(|word| own.starts_with(word));
        let value =
            forge.rust() && named(block).last() == Some(&statement) && is_expression(statement);
        for (text, prior) in &steps {
            forge.insert(
                statement,
                statement.start_byte(),
                PatchFamily::MissingStatement,
                *prior,
                format!("{text}\n{indent}"),
            );
            if closes_line && !jumps && !value {
                forge.insert(
                    statement,
                    end,
                    PatchFamily::MissingStatement,
                    *prior,
                    format!("{indent}{text}\n"),
                );
            }
        }
    }
}

/// What could be done with what the function has.
fn steps(forge: &PatchGenerator<'_>, scope: &FunctionVocabulary) -> Vec<(String, f64)> {
    let habits = &scope.habits;
    let language = forge.source.language;
    let semi = if forge.python() { "" } else { ";" };
    let mut found: Vec<(String, f64)> = Vec::new();
    for (name, holds) in &habits.containers {
        let idle: f64 = if habits.never_filled.contains(name) {
            4.0
        } else {
            1.0
        };
        let sought = habits
            .memberships
            .iter()
            .filter(|(_, place)| place == name)
            .map(|(item, _)| (item.as_str(), 0.25));
        let near = habits
            .loop_names
            .iter()
            .filter(|item| *item != name)
            .take(4)
            .map(|item| (item.as_str(), 0.08));
        let others = scope
            .names
            .iter()
            .filter(|item| *item != name)
            .take(8)
            .map(|item| (item.as_str(), 0.05));
        let tuples = habits.tuples.iter().map(|item| (item.as_str(), 0.08));
        let gathers = match holds {
            InitialValue::List => scope.variables.may_be(name, ValueSort::List),
            InitialValue::Text => scope.variables.may_be(name, ValueSort::Text),
            InitialValue::Queue | InitialValue::Set => true,
            InitialValue::Map | InitialValue::Number => false,
        };
        if gathers {
            for (item, prior) in sought.chain(near).chain(others).chain(tuples) {
                if let Some(text) = filling(language, *holds, name, item) {
                    found.push((text, f64::min(prior * idle, 0.6)));
                }
            }
        }
        if matches!(holds, InitialValue::List | InitialValue::Queue) {
            found.push((format!("{name}.pop(){semi}"), 0.05));
        }
        if *holds == InitialValue::Map && !forge.rust() {
            for key in habits.loop_names.iter().chain(&scope.params).take(4) {
                for value in scope.names.iter().filter(|value| *value != name).take(6) {
                    found.push((format!("{name}[{key}] = {value}{semi}"), 0.02 * idle));
                }
            }
        }
    }
    for element in &habits.asked_elements {
        let changes = [" -= ", " += ", " = "].iter().any(|sign| {
            let change = format!("{element}{sign}");
            scope.statements.iter().any(|text| text.contains(&change))
        });
        let owner = element.split('[').next().unwrap_or(element);
        let borrowed = !changes && scope.params.iter().any(|param| param == owner);
        let prior = match () {
            () if changes => 0.06,
            // Who only reads what was handed over does not mean to change it.
            () if borrowed => 0.03,
            () => 0.18,
        };
        found.push((format!("{element} -= 1{semi}"), prior));
        found.push((format!("{element} += 1{semi}"), prior));
        if forge.python() {
            found.push((format!("{element} = True"), 0.05));
        } else {
            found.push((format!("{element} = true;"), 0.05));
        }
    }
    walkers(forge, scope, &mut found);
    for text in scope.statements.iter().take(16) {
        if let Some(twin) = scope.twin(text) {
            found.push((twin, 0.1));
        }
    }
    found
}

/// `counts[key] = 1` for one more than there was, and a place that must be made before it is used.
fn counted(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some((callee, arguments)) = call(node)
        && let Some((place, method)) = member(callee)
        && forge.of(method) == "set"
        && let [key, value] = named(arguments).as_slice()
    {
        let (place, key) = (forge.of(place), forge.of(*key));
        let more = format!("({place}.get({key}) ?? 0) + {}", forge.of(*value));
        forge.replace(*value, PatchFamily::Expression, 0.15, more);
    }
    if matches!(node.kind(), "assignment" | "assignment_expression")
        && let (Some(left), Some(right)) = (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        )
        && let Some((place, key)) = super::shapes::subscript(left)
    {
        let (place, key, value) = (forge.of(place), forge.of(key), forge.of(right));
        let more = if forge.python() {
            format!("{place}.get({key}, 0) + {value}")
        } else {
            format!("({place}[{key}] ?? 0) + {value}")
        };
        if !forge.rust() {
            forge.replace(right, PatchFamily::Expression, 0.08, more);
        }
    }
    // `groups[key].append(x)` where there is no such group yet.
    if let Some((callee, _)) = call(node)
        && let Some((element, method)) = member(callee)
        && let Some((place, key)) = super::shapes::subscript(element)
        && let Some(statement) = crate::syntax::statement(node)
    {
        let empty = match forge.of(method) {
            "append" | "extend" | "push" => "[]",
            "add" | "update" => "set()",
            _ => return,
        };
        let (place, key) = (forge.of(place).to_owned(), forge.of(key).to_owned());
        if forge.python() {
            let made = format!("{place}.setdefault({key}, {empty})");
            forge.replace(element, PatchFamily::Default, 0.4, made);
        } else if forge.script() {
            let indent = forge.source.indent(statement).to_owned();
            for test in [format!("!({key} in {place})"), format!("!{place}[{key}]")] {
                let text = format!("if ({test}) {place}[{key}] = [];\n{indent}");
                forge.insert(
                    statement,
                    statement.start_byte(),
                    PatchFamily::Default,
                    0.3,
                    text,
                );
            }
        }
    }
}

/// Variables that decide when something ends must move towards it.
fn walkers(forge: &PatchGenerator<'_>, scope: &FunctionVocabulary, found: &mut Vec<(String, f64)>) {
    let habits = &scope.habits;
    let semi = if forge.python() { "" } else { ";" };
    for name in scope.names.iter().take(8) {
        let lack = habits.lacks_change(name);
        let number = habits.holds(name) == Some(InitialValue::Number);
        let held = &scope.variables;
        for field in scope.fields.iter().take(6) {
            if held.may_be(name, ValueSort::Object) {
                // Who writes to a part of a thing walks along such things.
                let part = format!("{name}.{field}");
                let walks = scope
                    .statements
                    .iter()
                    .any(|text| text.starts_with(&format!("{part} = ")));
                let prior = if walks { 0.1 } else { 0.02 };
                found.push((format!("{name} = {part}{semi}"), prior * lack));
            }
        }
        for key in habits.loop_names.iter().filter(|key| *key != name).take(3) {
            if !forge.rust() && held.may_be(name, ValueSort::Indexed) {
                found.push((format!("{name} = {name}[{key}]{semi}"), 0.03 * lack));
            }
        }
        let numeric = held.may_be(name, ValueSort::Number);
        for other in scope
            .names
            .iter()
            .filter(|other| *other != name && held.alike(name, other))
            .take(8)
        {
            if numeric {
                found.push((format!("{name} -= {other}{semi}"), 0.03 * lack));
                found.push((format!("{name} += {other}{semi}"), 0.03 * lack));
            }
            found.push((format!("{name} = {other}{semi}"), 0.03 * lack));
            if !forge.rust() && numeric {
                let (most, least) = largest(forge, name, other);
                found.push((format!("{name} = {most}{semi}"), 0.02 * lack));
                found.push((format!("{name} = {least}{semi}"), 0.02 * lack));
            }
            let count = match () {
                () if forge.python() => format!("len({other})"),
                () if forge.script() => format!("{other}.length"),
                () => format!("{other}.len()"),
            };
            if scope.params.contains(name) && numeric && !forge.python() {
                found.push((format!("{name} %= {count}{semi}"), 0.012));
            }
            if forge.python() && scope.params.contains(name) && numeric {
                found.push((format!("{name} //= {other}"), 0.01 * lack));
            }
        }
        if forge.python() && scope.params.contains(name) && numeric {
            for other in scope.names.iter().filter(|other| *other != name).take(8) {
                if held.may_be(other, ValueSort::Sized) {
                    found.push((format!("{name} %= len({other})"), 0.012));
                }
            }
        }
        if (number || lack > 1.0) && numeric {
            found.push((format!("{name} += 1{semi}"), 0.06 * lack));
            found.push((format!("{name} -= 1{semi}"), 0.05 * lack));
        }
    }
}
