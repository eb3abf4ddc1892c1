//! Statements in the wrong place: inside of a block or outside.

use tree_sitter::Node;

use super::scope::is_simple_statement;
use super::statements::lines_of;
use super::{ByteRangeEdit, PatchFamily, PatchGenerator};
use crate::syntax::{is_block, is_function, named, nearest};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if is_block(node) && nearest(node, is_function).is_some() {
        for statement in named(node) {
            out_of_block(forge, node, statement);
        }
        into_loop(forge, node);
    }
}

/// Moves the last or first statement of an inner block out of it.
fn out_of_block(forge: &mut PatchGenerator<'_>, block: Node<'_>, statement: Node<'_>) {
    let Some(around) = block.parent().filter(|around| !is_function(*around)) else {
        return;
    };
    let Some(outer) = nearest(around, |node| node.parent().is_some_and(is_block)) else {
        return;
    };
    if statement.start_position().row == outer.start_position().row
        || outer.start_position().row == outer.end_position().row
    {
        return;
    }
    let items = named(block);
    let (start, end) = lines_of(forge, statement);
    let outer_indent = forge.source.indent(outer).to_owned();
    let inner_indent = forge.source.indent(statement).to_owned();
    let text = reindent(forge.of(statement), &inner_indent, &outer_indent);
    if items.len() < 2 && forge.python() {
        return;
    }
    if items.last() == Some(&statement) {
        let after = forge.source.line_end(outer.end_byte().saturating_sub(1));
        let line = format!("{outer_indent}{text}\n");
        forge.edit(
            statement,
            PatchFamily::MovedStatement,
            0.35,
            vec![
                ByteRangeEdit {
                    start,
                    end,
                    text: String::new(),
                },
                ByteRangeEdit {
                    start: after,
                    end: after,
                    text: line,
                },
            ],
        );
    }
    if items.first() == Some(&statement) {
        let before = forge.source.line_start(outer.start_byte());
        let line = format!("{outer_indent}{text}\n");
        forge.edit(
            statement,
            PatchFamily::MovedStatement,
            0.25,
            vec![
                ByteRangeEdit {
                    start: before,
                    end: before,
                    text: line,
                },
                ByteRangeEdit {
                    start,
                    end,
                    text: String::new(),
                },
            ],
        );
    }
}

fn body_of(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("body")
        .or_else(|| node.child_by_field_name("consequence"))
        .filter(|body| is_block(*body))
}

/// Moves the statement before or after a loop or branch into it.
fn into_loop(forge: &mut PatchGenerator<'_>, block: Node<'_>) {
    let items = named(block);
    for pair in items.windows(2) {
        let [first, second] = pair else { continue };
        if let Some(body) = body_of(*first)
            && is_simple_statement(*second)
            && let Some(inside) = named(body).last().copied()
        {
            move_into(forge, *second, inside, false);
        }
        if let Some(body) = body_of(*second)
            && is_simple_statement(*first)
            && let Some(inside) = named(body).first().copied()
        {
            move_into(forge, *first, inside, true);
        }
    }
}

fn move_into(forge: &mut PatchGenerator<'_>, statement: Node<'_>, inside: Node<'_>, before: bool) {
    let (start, end) = lines_of(forge, statement);
    let indent = forge.source.indent(inside).to_owned();
    let line = format!("{indent}{}\n", forge.of(statement));
    let at = if before {
        forge.source.line_start(inside.start_byte())
    } else {
        forge.source.line_end(inside.end_byte())
    };
    if (start..end).contains(&at) && at != end && at != start {
        return;
    }
    forge.edit(
        statement,
        PatchFamily::MovedStatement,
        0.25,
        vec![
            ByteRangeEdit {
                start,
                end,
                text: String::new(),
            },
            ByteRangeEdit {
                start: at,
                end: at,
                text: line,
            },
        ],
    );
}

pub(super) fn reindent(text: &str, from: &str, to: &str) -> String {
    text.lines()
        .enumerate()
        .map(|(index, line)| {
            if index == 0 {
                line.to_owned()
            } else {
                format!("{to}{}", line.strip_prefix(from).unwrap_or(line))
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}
