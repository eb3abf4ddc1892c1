//! Statements that are missing or surplus.

use tree_sitter::Node;

use super::scope::{FunctionVocabulary, is_simple_statement};
use super::{ByteRangeEdit, PatchFamily, PatchGenerator};
use crate::syntax::{is_block, is_expression, is_function, named, nearest};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if is_block(node) && nearest(node, is_function).is_some() {
        for statement in named(node) {
            surplus(forge, node, statement);
            insertions(forge, node, statement);
        }
    }
    if is_function(node) {
        missing_return(forge, node);
    }
}

fn is_loop(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "for_statement"
            | "while_statement"
            | "for_in_statement"
            | "for_expression"
            | "while_expression"
            | "loop_expression"
            | "do_statement"
    )
}

/// The bytes of a statement with the white space before it, or its whole lines.
pub(super) fn lines_of(forge: &PatchGenerator<'_>, statement: Node<'_>) -> (usize, usize) {
    let start = forge.source.line_start(statement.start_byte());
    let end = forge.source.line_end(statement.end_byte());
    let alone = forge.source.text[start..statement.start_byte()]
        .trim()
        .is_empty();
    if alone {
        (start, end)
    } else {
        (statement.start_byte(), statement.end_byte())
    }
}

fn surplus(forge: &mut PatchGenerator<'_>, block: Node<'_>, statement: Node<'_>) {
    let prior = match statement.kind() {
        "expression_statement" | "break_statement" | "continue_statement" => 0.3,
        "if_statement" => 0.15,
        "return_statement" | "raise_statement" | "throw_statement" => 0.12,
        "lexical_declaration"
        | "let_declaration"
        | "function_definition"
        | "function_declaration" => return,
        _ => 0.08,
    };
    let (start, end) = lines_of(forge, statement);
    let only = named(block).len() == 1;
    let text = if only && forge.python() {
        format!("{}pass\n", forge.source.indent(statement))
    } else {
        String::new()
    };
    forge.edit(
        statement,
        PatchFamily::SurplusStatement,
        prior,
        vec![ByteRangeEdit { start, end, text }],
    );
    // `if c: body` to `body`.
    if let (Some(body), None) = (
        statement.child_by_field_name("consequence"),
        statement.child_by_field_name("alternative"),
    ) {
        let inner: Vec<_> = named(body)
            .into_iter()
            .map(|inner| forge.of(inner).to_owned())
            .collect();
        if inner.len() <= 3 && !inner.iter().any(|text| text.contains('\n')) {
            let indent = forge.source.indent(statement).to_owned();
            forge.replace(
                statement,
                PatchFamily::MissingCondition,
                0.15,
                inner.join(&format!("\n{indent}")),
            );
        }
    }
}

fn ends_with_jump(text: &str) -> bool {
    ["return", "raise", "throw", "break", "continue"]
        .iter()
        .any(|word| text.starts_with(word))
}

/// What is done with one thing may have to be done with another.
fn for_another(scope: &FunctionVocabulary, wanted: &mut Vec<(String, f64)>) {
    for text in scope.statements.iter().take(12) {
        if let Some((head, rest)) = text.split_once('(')
            && let Some((argument, tail)) = rest.rsplit_once(')')
            && head.contains('.')
            && !head.contains(' ')
            && !argument.contains(',')
        {
            for name in scope.names.iter().take(8) {
                if name != argument && !head.starts_with(&format!("{name}.")) {
                    wanted.push((format!("{head}({name}){tail}"), 0.05));
                }
            }
        }
    }
}

fn insertions(forge: &mut PatchGenerator<'_>, block: Node<'_>, statement: Node<'_>) {
    let scope = forge.scope(statement);
    let indent = forge.source.indent(statement).to_owned();
    let (_, end) = lines_of(forge, statement);
    let own = forge.of(statement).to_owned();
    let closes_line = forge.source.text[..end].ends_with('\n');
    let last = named(block).last() == Some(&statement);
    let in_loop =
        nearest(statement, |node| is_loop(node) || is_function(node)).is_some_and(is_loop);
    let mut wanted: Vec<(String, f64)> = Vec::new();
    for text in scope.statements.iter().take(30) {
        wanted.push((text.clone(), 0.07));
    }
    for text in scope.file_statements.iter().take(40) {
        wanted.push((text.clone(), 0.015));
    }
    for_another(&scope, &mut wanted);
    if in_loop {
        let semicolon = if forge.python() { "" } else { ";" };
        wanted.push((format!("break{semicolon}"), 0.12));
        wanted.push((format!("continue{semicolon}"), 0.12));
    }
    let semi = if forge.python() { "" } else { ";" };
    if last && !block.parent().is_some_and(is_function) {
        for value in scope
            .names
            .iter()
            .take(10)
            .chain(scope.returns.iter().take(4))
        {
            wanted.push((format!("return {value}{semi}"), 0.12));
        }
        wanted.push((format!("return{semi}"), 0.06));
    }
    // What a condition asks for again and again should change between.
    let asked: Vec<&String> = scope
        .names
        .iter()
        .filter(|name| {
            scope
                .conditions
                .iter()
                .any(|text| text.contains(name.as_str()))
                || scope.returns.contains(name)
        })
        .take(6)
        .collect();
    let local: Vec<&String> = scope
        .names
        .iter()
        .filter(|name| own.contains(name.as_str()))
        .take(5)
        .collect();
    for target in asked {
        for amount in local.iter().filter(|amount| **amount != target) {
            wanted.push((format!("{target} -= {amount}{semi}"), 0.12));
            wanted.push((format!("{target} += {amount}{semi}"), 0.12));
            wanted.push((format!("{target} = {amount}{semi}"), 0.05));
        }
    }
    for (name, value) in &scope.starts {
        wanted.push((format!("{name} = {value}{semi}"), 0.09));
    }
    // The same again for another field: what is taken here is given there.
    if is_simple_statement(statement) {
        for field in scope.fields.iter().take(12) {
            for other in scope.fields.iter().filter(|other| *other != field).take(12) {
                let from = format!(".{field} ");
                if own.contains(&from) && own.contains('=') {
                    let twin = own.replacen(&from, &format!(".{other} "), 1);
                    wanted.push((twin.replace("+=", "-="), 0.06));
                    wanted.push((twin, 0.12));
                }
            }
        }
    }
    for name in scope.names.iter().take(8) {
        let step = if forge.python() {
            format!("{name} += 1")
        } else {
            format!("{name} += 1;")
        };
        wanted.push((step, 0.05));
    }
    for (text, prior) in wanted {
        if text == own || text.starts_with("let ") || text.starts_with("const ") {
            continue;
        }
        let text = if !forge.python() && !text.ends_with(';') && !text.ends_with('}') {
            format!("{text};")
        } else {
            text
        };
        if !ends_with_jump(&text) {
            forge.insert(
                statement,
                statement.start_byte(),
                PatchFamily::MissingStatement,
                prior,
                format!("{text}\n{indent}"),
            );
        }
        // Rust's last expression is the value of its block: nothing may follow it.
        let value = forge.rust() && last && is_expression(statement);
        if closes_line && !ends_with_jump(&own) && !value {
            forge.insert(
                statement,
                end,
                PatchFamily::MissingStatement,
                prior,
                format!("{indent}{text}\n"),
            );
        }
    }
}

/// A function that forgets to hand back what it made.
fn missing_return(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(body) = node
        .child_by_field_name("body")
        .filter(|body| is_block(*body))
    else {
        return;
    };
    let items = named(body);
    let Some(last) = items.last().copied() else {
        return;
    };
    if forge.rust()
        || matches!(
            last.kind(),
            "return_statement" | "raise_statement" | "throw_statement"
        )
    {
        return;
    }
    let scope = forge.scope(last);
    let indent = forge.source.indent(items[0]).to_owned();
    let end = forge.source.line_end(last.end_byte().saturating_sub(1));
    let semicolon = if forge.python() { "" } else { ";" };
    let usual: &[&str] = if forge.python() {
        &["None", "True", "False", "0", "self"]
    } else {
        &["null", "true", "false", "0", "this"]
    };
    let names = scope.names.iter().take(12).map(|name| (name.as_str(), 0.3));
    for (value, prior) in names
        .chain(usual.iter().map(|value| (*value, 0.2)))
        .chain(scope.returns.iter().map(|value| (value.as_str(), 0.25)))
        .collect::<Vec<_>>()
    {
        forge.insert(
            last,
            end,
            PatchFamily::MissingStatement,
            prior,
            format!("{indent}return {value}{semicolon}\n"),
        );
    }
    if last.kind() == "expression_statement" {
        let text = forge.of(last);
        if !text.contains(" = ") {
            forge.insert(
                last,
                last.start_byte(),
                PatchFamily::MissingStatement,
                0.4,
                "return ",
            );
        }
    }
}
