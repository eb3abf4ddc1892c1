//! Statements that should run only sometimes, and conditions that must be asked in the right order.

use tree_sitter::Node;

use super::habits::InitialValue;
use super::moves::reindent;
use super::scope::FunctionVocabulary;
use super::{ByteRangeEdit, PatchFamily, PatchGenerator};
use crate::syntax::{condition, is_block, is_expression, is_function, named, nearest};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some(test) = condition(node) {
        ask_first(forge, test);
    }
    if is_block(node) && nearest(node, is_function).is_some() {
        for (index, statement) in named(node).into_iter().enumerate() {
            wrap(forge, node, index, statement);
            skip(forge, statement);
            again(forge, node, statement);
        }
    }
    answer(forge, node);
}

/// `xs and xs[0] > 1` for `xs[0] > 1`: what has to hold before the rest can be asked.
fn ask_first(forge: &mut PatchGenerator<'_>, test: Node<'_>) {
    let scope = forge.scope(test);
    let own = forge.of(test);
    if own.len() > 80 {
        return;
    }
    let words: Vec<&str> = own
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let (and, or) = if forge.python() {
        (" and ", " or ")
    } else {
        (" && ", " || ")
    };
    let for_and = if own.contains(or) {
        format!("({own})")
    } else {
        own.to_owned()
    };
    let for_or = if own.contains(and) {
        format!("({own})")
    } else {
        own.to_owned()
    };
    for name in scope.names.iter().take(10) {
        let near = words.contains(&name.as_str());
        let share = if near { 1.0 } else { 0.35 };
        let (there, gone): (&[String], &[String]) = if forge.python() {
            (
                &[name.clone(), format!("{name} is not None")],
                &[format!("not {name}"), format!("{name} is None")],
            )
        } else if forge.script() {
            (
                &[
                    name.clone(),
                    format!("{name}.length > 0"),
                    format!("{name} !== null"),
                ],
                &[
                    format!("!{name}"),
                    format!("{name}.length === 0"),
                    format!("{name} === null"),
                    format!("{name} === undefined"),
                ],
            )
        } else {
            (
                &[format!("!{name}.is_empty()")],
                &[format!("{name}.is_empty()")],
            )
        };
        for part in there {
            let joined = format!("{part}{and}{for_and}");
            forge.replace(test, PatchFamily::MissingCondition, 0.14 * share, joined);
        }
        for part in gone {
            let joined = format!("{part}{or}{for_or}");
            forge.replace(test, PatchFamily::MissingCondition, 0.14 * share, joined);
        }
    }
    // What was seen before is not looked at again.
    for (item, place) in memberships(forge, &scope) {
        let (inside, outside) = asked(forge, &scope, &item, &place);
        for (part, word, held) in [(&inside, or, &for_or), (&outside, and, &for_and)] {
            if own != part {
                forge.replace(
                    test,
                    PatchFamily::MissingCondition,
                    0.1,
                    format!("{held}{word}{part}"),
                );
            }
        }
    }
}

/// What is looked for anywhere, and what could be looked for in each set.
fn memberships(forge: &PatchGenerator<'_>, scope: &FunctionVocabulary) -> Vec<(String, String)> {
    let habits = &scope.habits;
    let mut found = habits.memberships.clone();
    for (place, holds) in &habits.containers {
        if !matches!(
            holds,
            InitialValue::Set | InitialValue::Map | InitialValue::List
        ) {
            continue;
        }
        let items = habits.loop_names.iter().chain(&scope.names).take(14);
        for item in items.chain(habits.tuples.iter().take(2)) {
            let pair = (item.clone(), place.clone());
            let container = habits.holds(item).is_some();
            if item != place && !container && !found.contains(&pair) && found.len() < 28 {
                found.push(pair);
            }
        }
    }
    if forge.rust() {
        found.truncate(6);
    }
    found
}

/// Whether an item is in a place, and whether it is not.
fn asked(
    forge: &PatchGenerator<'_>,
    scope: &FunctionVocabulary,
    item: &str,
    place: &str,
) -> (String, String) {
    if forge.python() {
        (
            format!("{item} in {place}"),
            format!("{item} not in {place}"),
        )
    } else if forge.rust() {
        (
            format!("{place}.contains(&{item})"),
            format!("!{place}.contains(&{item})"),
        )
    } else {
        let lists = matches!(
            scope.habits.holds(place),
            Some(InitialValue::List | InitialValue::Text)
        );
        let text = &forge.source.text;
        let maps = scope.habits.holds(place) == Some(InitialValue::Map)
            && !text.contains(&format!("{place} = new Map"));
        if lists {
            (
                format!("{place}.includes({item})"),
                format!("!{place}.includes({item})"),
            )
        } else if maps {
            (
                format!("{item} in {place}"),
                format!("!({item} in {place})"),
            )
        } else {
            (
                format!("{place}.has({item})"),
                format!("!{place}.has({item})"),
            )
        }
    }
}

/// What a statement could hang on.
fn tests(forge: &PatchGenerator<'_>, scope: &FunctionVocabulary, own: &str) -> Vec<(String, f64)> {
    let mut found: Vec<(String, f64)> = Vec::new();
    for (item, place) in memberships(forge, scope) {
        let (inside, outside) = asked(forge, scope, &item, &place);
        // What is put somewhere is what must not be there yet.
        let prior = if own.contains(&place) { 0.16 } else { 0.06 };
        found.push((outside, prior));
        found.push((inside, 0.04));
    }
    for test in scope
        .conditions
        .iter()
        .filter(|test| test.len() <= 50)
        .take(6)
    {
        found.push((test.clone(), 0.08));
        found.push((forge.negated(test), 0.05));
    }
    let words: Vec<&str> = own
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for name in scope
        .names
        .iter()
        .filter(|name| words.contains(&name.as_str()))
        .take(5)
    {
        if forge.python() {
            found.push((name.clone(), 0.07));
            found.push((format!("{name} is not None"), 0.06));
            found.push((format!("{name} > 0"), 0.03));
            found.push((format!("{name} > 1"), 0.03));
        } else if forge.script() {
            found.push((name.clone(), 0.06));
            found.push((format!("{name} > 0"), 0.03));
            found.push((format!("{name} > 1"), 0.03));
            found.push((format!("{name} !== null"), 0.04));
        } else {
            found.push((format!("{name} > 0"), 0.03));
            found.push((format!("!{name}.is_empty()"), 0.04));
        }
    }
    found
}

/// A statement, alone or with all that follow it, inside of a condition.
fn wrap(forge: &mut PatchGenerator<'_>, block: Node<'_>, index: usize, statement: Node<'_>) {
    let items = named(block);
    let declares = |node: &Node<'_>| {
        matches!(node.kind(), "lexical_declaration" | "let_declaration")
            || node.kind().contains("definition")
            || node.kind().contains("function_declaration")
    };
    let value = forge.rust() && items.last().copied().is_some_and(is_expression);
    // A block on the line of its head is a short form, written on purpose.
    let head = block.parent().map(|around| around.start_position().row);
    if declares(&statement) || value || head == Some(statement.start_position().row) {
        return;
    }
    let scope = forge.scope(statement);
    let mut ends = vec![index];
    if index + 1 < items.len()
        && items.len() - index <= 4
        && !items[index..].iter().any(declares)
        && !block.parent().is_some_and(is_function)
    {
        ends.push(items.len() - 1);
    }
    if index + 2 < items.len() && !declares(&items[index + 1]) {
        ends.push(index + 1);
    }
    for end in ends {
        let last = items[end];
        let Some(text) = forge
            .source
            .text
            .get(statement.start_byte()..last.end_byte())
            .filter(|text| text.len() <= 300)
        else {
            continue;
        };
        let indent = forge.source.indent(statement).to_owned();
        let deeper = if indent.contains('\t') {
            "\t"
        } else if forge.script() {
            "  "
        } else {
            "    "
        };
        let inner = format!("{indent}{deeper}");
        let body = reindent(text, &indent, &inner);
        let share = if end == index { 1.0 } else { 0.8 };
        for (test, prior) in tests(forge, &scope, text) {
            let wrapped = if forge.python() {
                format!("if {test}:\n{inner}{body}")
            } else if forge.script() {
                format!("if ({test}) {{\n{inner}{body}\n{indent}}}")
            } else {
                format!("if {test} {{\n{inner}{body}\n{indent}}}")
            };
            let edit = ByteRangeEdit {
                start: statement.start_byte(),
                end: last.end_byte(),
                text: wrapped,
            };
            forge.edit(
                statement,
                PatchFamily::MissingCondition,
                prior * share,
                vec![edit],
            );
        }
    }
}

/// A round of a loop, or the rest of a function, that some values should not get to.
fn skip(forge: &mut PatchGenerator<'_>, statement: Node<'_>) {
    let scope = forge.scope(statement);
    let around = nearest(statement, |node| {
        is_function(node)
            || matches!(
                node.kind(),
                "for_statement"
                    | "while_statement"
                    | "for_in_statement"
                    | "for_expression"
                    | "while_expression"
            )
    });
    let in_loop = around.is_some_and(|around| !is_function(around));
    if !in_loop || is_function(statement) {
        return;
    }
    let own = forge.of(statement).to_owned();
    for (test, prior) in tests(forge, &scope, &own) {
        for (way, share) in [("continue", 0.7), ("break", 0.35)] {
            let text = forge.guard(statement, &test, way);
            forge.insert(
                statement,
                statement.start_byte(),
                PatchFamily::Guard,
                prior * share,
                text,
            );
        }
    }
}

/// A branch of this function once more, at another place.
fn again(forge: &mut PatchGenerator<'_>, block: Node<'_>, statement: Node<'_>) {
    if forge.rust() {
        return;
    }
    let scope = forge.scope(statement);
    let indent = forge.source.indent(statement).to_owned();
    let own = forge.of(statement);
    let deep = block.parent().is_some_and(is_function);
    for (text, from) in &scope.habits.branches {
        if own == text {
            continue;
        }
        let moved = reindent(text, from, &indent);
        let prior = if deep { 0.1 } else { 0.05 };
        forge.insert(
            statement,
            statement.start_byte(),
            PatchFamily::MissingStatement,
            prior,
            format!("{moved}\n{indent}"),
        );
    }
    // What loops do for each round must often be done once more at the end.
    if deep && matches!(statement.kind(), "return_statement") {
        leftover(forge, statement, &scope);
        for text in scope
            .statements
            .iter()
            .filter(|text| text.contains('('))
            .take(8)
        {
            for name in scope
                .names
                .iter()
                .filter(|name| text.contains(name.as_str()))
                .take(4)
            {
                let tests = if forge.python() {
                    [name.clone(), format!("{name} is not None")]
                } else {
                    [name.clone(), format!("{name} !== null")]
                };
                for test in tests {
                    let text = forge.guard(statement, &test, text.trim_end_matches(';'));
                    forge.insert(
                        statement,
                        statement.start_byte(),
                        PatchFamily::MissingStatement,
                        0.05,
                        text,
                    );
                }
            }
        }
    }
}

/// What is left over when a loop ends belongs to the answer too.
fn leftover(forge: &mut PatchGenerator<'_>, statement: Node<'_>, scope: &FunctionVocabulary) {
    for (place, holds) in &scope.habits.containers {
        if !forge.of(statement).contains(place.as_str()) {
            continue;
        }
        for name in scope.names.iter().filter(|name| *name != place).take(6) {
            let language = forge.source.language;
            let Some(fill) = super::habits::filling(language, *holds, place, name) else {
                continue;
            };
            for (test, prior) in [
                (name.clone(), 0.05),
                (format!("{name} > 1"), 0.04),
                (format!("{name} > 0"), 0.03),
            ] {
                let text = forge.guard(statement, &test, fill.trim_end_matches(';'));
                forge.insert(
                    statement,
                    statement.start_byte(),
                    PatchFamily::MissingStatement,
                    prior,
                    text,
                );
            }
        }
    }
}

/// A fixed answer where the variables know it.
fn answer(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let returned = node
        .parent()
        .is_some_and(|parent| parent.kind() == "return_statement");
    let last = crate::syntax::is_block_value(forge.source.language, node);
    if !matches!(node.kind(), "true" | "false" | "boolean_literal") || !(returned || last) {
        return;
    }
    let scope = forge.scope(node);
    for name in scope.names.iter().take(8) {
        let texts: Vec<String> = if forge.python() {
            vec![
                format!("not {name}"),
                format!("bool({name})"),
                format!("{name} == 0"),
            ]
        } else if forge.script() {
            vec![
                format!("{name}.length === 0"),
                format!("!{name}"),
                format!("{name} === 0"),
                name.clone(),
            ]
        } else {
            vec![
                format!("{name}.is_empty()"),
                format!("{name} == 0"),
                name.clone(),
            ]
        };
        for text in texts {
            forge.replace(node, PatchFamily::Expression, 0.12, text);
        }
    }
    for (item, place) in memberships(forge, &scope).into_iter().take(6) {
        let (inside, outside) = asked(forge, &scope, &item, &place);
        forge.replace(node, PatchFamily::Expression, 0.06, inside);
        forge.replace(node, PatchFamily::Expression, 0.06, outside);
    }
    for (first, second) in scope.names.iter().zip(scope.names.iter().skip(1)).take(6) {
        let equals = if forge.script() { "===" } else { "==" };
        forge.replace(
            node,
            PatchFamily::Expression,
            0.04,
            format!("{first} {equals} {second}"),
        );
    }
}
