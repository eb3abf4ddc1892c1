//! The same slip in several places of one statement or one function, mended everywhere at once.

use tree_sitter::Node;

use super::scope::is_variable;
use super::{ByteRangeEdit, PatchFamily, PatchGenerator};
use crate::syntax::{binary, is_block, is_function, nearest, walk};

/// Longest statement whose names are exchanged together.
const LONGEST: usize = 200;

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let in_function = nearest(node, is_function).is_some_and(|around| around != node);
    let simple = node.parent().is_some_and(is_block)
        && node.end_byte() - node.start_byte() <= LONGEST
        && node.start_position().row == node.end_position().row;
    if in_function && simple {
        shift(forge, node);
        exchange(forge, node);
    }
}

/// Every use of a name in a statement.
fn uses<'t>(forge: &PatchGenerator<'_>, statement: Node<'t>, name: &str) -> Vec<Node<'t>> {
    walk(statement)
        .into_iter()
        .filter(|node| is_variable(forge.source, *node) && forge.of(*node) == name)
        .collect()
}

fn names_in(forge: &PatchGenerator<'_>, statement: Node<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for node in walk(statement) {
        if is_variable(forge.source, node) {
            let name = forge.of(node).to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// `f(i, i + 1)` for `f(i - 1, i)`: all places of an index at once.
fn shift(forge: &mut PatchGenerator<'_>, statement: Node<'_>) {
    for name in names_in(forge, statement) {
        let places: Vec<Node<'_>> = uses(forge, statement, &name)
            .into_iter()
            .filter(|node| {
                node.parent().is_some_and(|parent| {
                    is_index(parent)
                        || binary(parent).is_some() && parent.parent().is_some_and(is_index)
                })
            })
            .collect();
        if places.len() < 2 {
            continue;
        }
        for by in [-1_i64, 1] {
            let edits = places
                .iter()
                .map(|place| moved(forge, *place, by))
                .collect();
            forge.edit(statement, PatchFamily::OffByOne, 0.12, edits);
        }
    }
}

fn is_index(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "subscript" | "subscript_expression" | "index_expression" | "slice"
    )
}

/// A name, or a name and a number, one more or less.
fn moved(forge: &PatchGenerator<'_>, place: Node<'_>, by: i64) -> ByteRangeEdit {
    if let Some(sum) = place.parent()
        && let Some((left, operator, right)) = binary(sum)
        && left == place
        && let Ok(number) = forge.of(right).parse::<i64>()
        && matches!(forge.of(operator), "+" | "-")
    {
        let now = if forge.of(operator) == "+" {
            number + by
        } else {
            by - number
        };
        let name = forge.of(place);
        let text = match now {
            0 => name.to_owned(),
            now if now > 0 => format!("{name} + {now}"),
            now => format!("{name} - {}", -now),
        };
        return ByteRangeEdit {
            start: sum.start_byte(),
            end: sum.end_byte(),
            text,
        };
    }
    let name = forge.of(place);
    let sign = if by > 0 { "+" } else { "-" };
    ByteRangeEdit {
        start: place.start_byte(),
        end: place.end_byte(),
        text: format!("{name} {sign} 1"),
    }
}

/// One name for another in the whole statement, and two names for each other.
fn exchange(forge: &mut PatchGenerator<'_>, statement: Node<'_>) {
    let names = names_in(forge, statement);
    let scope = forge.scope(statement);
    for name in names.iter().take(6) {
        let places = uses(forge, statement, name);
        if places.len() >= 2 {
            for other in scope.names.iter().filter(|other| *other != name).take(8) {
                let edits = places.iter().map(|place| put(*place, other)).collect();
                forge.edit(statement, PatchFamily::Variable, 0.06, edits);
            }
        }
    }
    for (index, first) in names.iter().enumerate().take(5) {
        for second in names[index + 1..].iter().take(4) {
            let (here, there) = (
                uses(forge, statement, first),
                uses(forge, statement, second),
            );
            if here.len() + there.len() > 2 {
                let edits = here
                    .iter()
                    .map(|place| put(*place, second))
                    .chain(there.iter().map(|place| put(*place, first)))
                    .collect();
                forge.edit(statement, PatchFamily::Operands, 0.1, edits);
            }
        }
    }
}

fn put(place: Node<'_>, text: &str) -> ByteRangeEdit {
    ByteRangeEdit {
        start: place.start_byte(),
        end: place.end_byte(),
        text: text.to_owned(),
    }
}
