//! Cases that the programmer did not think of: nothing given, nothing found, out of bounds, not allowed.

use tree_sitter::Node;

use super::{PatchFamily, PatchGenerator};
use crate::syntax::{is_block, is_function, member, named};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if is_function(node) {
        early_return(forge, node);
        refuse(forge, node);
    }
    if let Some((object, name)) = member(node)
        && forge.script()
        && !forge.of(node).contains("?.")
        && !matches!(
            forge.of(object),
            "this" | "Math" | "Object" | "JSON" | "Array" | "Number"
        )
    {
        let text = format!("{}?.{}", forge.of(object), forge.of(name));
        forge.replace(node, PatchFamily::Guard, 0.15, text);
    }
    if node.parent().is_some_and(is_block)
        && crate::syntax::nearest(node, is_function).is_some()
        && !is_function(node)
    {
        before_statement(forge, node);
    }
}

/// The first statement of a body, after its documentation.
pub(super) fn first_statement(node: Node<'_>) -> Option<Node<'_>> {
    let body = node
        .child_by_field_name("body")
        .filter(|body| is_block(*body))?;
    let statements = named(body);
    let skip = statements.first().is_some_and(|first| {
        first.kind() == "expression_statement"
            && first
                .named_child(0)
                .is_some_and(|inner| inner.kind() == "string")
    });
    statements.get(usize::from(skip)).copied()
}

impl PatchGenerator<'_> {
    /// `if condition then action`, as the lines before a statement.
    pub(super) fn guard(&self, at: Node<'_>, condition: &str, action: &str) -> String {
        let indent = self.source.indent(at);
        if self.python() {
            let deeper = if indent.contains('\t') { "\t" } else { "    " };
            format!("if {condition}:\n{indent}{deeper}{action}\n{indent}")
        } else if self.script() {
            format!("if ({condition}) {action};\n{indent}")
        } else {
            format!("if {condition} {{\n{indent}    {action};\n{indent}}}\n{indent}")
        }
    }
}

fn early_return(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(at) = first_statement(node) else {
        return;
    };
    let scope = forge.scope(at);
    let mut values: Vec<(String, f64)> = scope
        .returns
        .iter()
        .filter(|value| value.len() < 24)
        .take(4)
        .map(|value| (value.clone(), 1.0))
        .collect();
    let usual: &[&str] = if forge.python() {
        &["None", "0", "[]", "\"\"", "False", "True", "{}", "1"]
    } else if forge.script() {
        &[
            "null",
            "0",
            "[]",
            "''",
            "false",
            "true",
            "undefined",
            "{}",
            "1",
        ]
    } else {
        &[
            "None",
            "0",
            "false",
            "true",
            "Vec::new()",
            "String::new()",
            "0.0",
            "1",
        ]
    };
    for value in usual {
        if !values.iter().any(|(known, _)| known == value) {
            values.push(((*value).to_owned(), 0.6));
        }
    }
    // A short answer that a test waited for.
    for value in forge
        .clues
        .values()
        .iter()
        .filter(|value| value.len() <= 4)
        .take(4)
    {
        let quoted = if value.parse::<f64>().is_ok() {
            value.clone()
        } else if forge.python() {
            format!("\"{value}\"")
        } else {
            format!("'{value}'")
        };
        for text in [quoted, format!("\"{value}\"")] {
            if !forge.rust() && !values.iter().any(|(known, _)| *known == text) {
                values.push((text, 0.4));
            }
        }
    }
    for param in scope.params.iter().take(4) {
        let conditions: Vec<(String, f64)> = if forge.python() {
            vec![
                (format!("not {param}"), 0.3),
                (format!("{param} == 0"), 0.1),
                (format!("{param} is None"), 0.2),
                (format!("{param} <= 0"), 0.1),
                (format!("{param} < 0"), 0.08),
                (format!("len({param}) < 2"), 0.06),
                (format!("{param} == 1"), 0.05),
            ]
        } else if forge.script() {
            vec![
                (format!("!{param}"), 0.2),
                (format!("{param}.length === 0"), 0.25),
                (format!("{param} == null"), 0.2),
                (format!("{param} <= 0"), 0.1),
                (format!("{param} < 0"), 0.08),
            ]
        } else {
            vec![
                (format!("{param}.is_empty()"), 0.3),
                (format!("{param} == 0"), 0.2),
                (format!("{param} < 0"), 0.08),
                (format!("{param}.len() < 2"), 0.06),
            ]
        };
        for (condition, prior) in conditions {
            for (value, share) in values.iter().chain(&[(param.clone(), 0.6)]) {
                let text = forge.guard(at, &condition, &format!("return {value}"));
                forge.insert(
                    at,
                    at.start_byte(),
                    PatchFamily::Guard,
                    prior * share * 0.5,
                    text,
                );
            }
        }
    }
    let pairs: Vec<_> = scope.params.iter().take(4).collect();
    for (index, a) in pairs.iter().enumerate() {
        for b in &pairs[index + 1..] {
            for comparison in ["==", ">", "<"] {
                let equals = if forge.script() && comparison == "==" {
                    "==="
                } else {
                    comparison
                };
                for (value, share) in &values {
                    let text =
                        forge.guard(at, &format!("{a} {equals} {b}"), &format!("return {value}"));
                    forge.insert(at, at.start_byte(), PatchFamily::Guard, 0.05 * share, text);
                }
            }
        }
    }
}

/// A way out right before a statement that cannot cope.
fn before_statement(forge: &mut PatchGenerator<'_>, at: Node<'_>) {
    let scope = forge.scope(at);
    let own = forge.of(at);
    let head = own.lines().next().unwrap_or(own);
    let words: Vec<&str> = head
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let used: Vec<&String> = scope
        .names
        .iter()
        .filter(|name| words.contains(&name.as_str()))
        .take(5)
        .collect();
    let mut ways: Vec<(String, f64)> = scope
        .returns
        .iter()
        .filter(|value| value.len() < 24)
        .take(3)
        .map(|value| (format!("return {value}"), 1.0))
        .collect();
    let usual: &[(&str, f64)] = if forge.python() {
        &[
            ("return None", 0.8),
            ("return 0", 0.6),
            ("return []", 0.6),
            ("return \"\"", 0.4),
            ("return False", 0.5),
            ("return {}", 0.3),
            ("continue", 0.6),
            ("return", 0.2),
        ]
    } else if forge.script() {
        &[
            ("return null", 0.7),
            ("return 0", 0.6),
            ("return []", 0.6),
            ("return ''", 0.4),
            ("return false", 0.5),
            ("return undefined", 0.4),
            ("continue", 0.6),
            ("return", 0.3),
        ]
    } else {
        &[
            ("return None", 0.7),
            ("return 0", 0.6),
            ("return false", 0.5),
            ("return Vec::new()", 0.4),
            ("return 0.0", 0.4),
            ("continue", 0.6),
            ("return", 0.3),
        ]
    };
    let in_loop = crate::syntax::nearest(at, |node| {
        matches!(
            node.kind(),
            "for_statement"
                | "while_statement"
                | "for_in_statement"
                | "for_expression"
                | "while_expression"
                | "loop_expression"
        ) || is_function(node)
    })
    .is_some_and(|node| !is_function(node));
    ways.extend(
        usual
            .iter()
            .filter(|(way, _)| in_loop || *way != "continue")
            .map(|(way, share)| ((*way).to_owned(), *share)),
    );
    for name in used {
        let tests: Vec<(String, f64)> = if forge.python() {
            vec![
                (format!("not {name}"), 0.2),
                (format!("{name} is None"), 0.15),
                (format!("{name} == 0"), 0.05),
                (format!("{name} < 0"), 0.04),
            ]
        } else if forge.script() {
            vec![
                (format!("!{name}"), 0.15),
                (format!("{name}.length === 0"), 0.15),
                (format!("{name} === 0"), 0.05),
                (format!("{name} < 0"), 0.04),
            ]
        } else {
            vec![
                (format!("{name}.is_empty()"), 0.2),
                (format!("{name} == 0"), 0.15),
                (format!("{name}.is_none()"), 0.05),
            ]
        };
        for (test, prior) in tests {
            for (way, share) in &ways {
                let text = forge.guard(at, &test, way);
                forge.insert(at, at.start_byte(), PatchFamily::Guard, prior * share, text);
            }
        }
    }
}

/// Raises what a test waited for in vain.
fn refuse(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let Some(at) = first_statement(node) else {
        return;
    };
    let scope = forge.scope(at);
    let mut errors: Vec<String> = forge
        .clues
        .not_raised()
        .map(|name| {
            if forge.python() {
                format!("raise {name}(\"invalid value\")")
            } else {
                format!("throw new {name}('invalid value')")
            }
        })
        .collect();
    if forge.script() && errors.is_empty() && forge.clues.waits_for_error() {
        errors.extend(
            ["RangeError", "TypeError", "Error"]
                .map(|name| format!("throw new {name}('invalid value')")),
        );
    }
    if errors.is_empty() || forge.rust() {
        return;
    }
    let known: Vec<String> = scope
        .statements
        .iter()
        .chain(&scope.file_statements)
        .filter(|text| text.starts_with("raise ") || text.starts_with("throw "))
        .take(3)
        .map(|text| text.trim_end_matches(';').to_owned())
        .collect();
    for action in known.iter().chain(&errors) {
        for param in scope.params.iter().take(4) {
            let tests = if forge.python() {
                vec![
                    format!("{param} < 0"),
                    format!("{param} <= 0"),
                    format!("not {param}"),
                    format!("{param} is None"),
                    format!("{param} == 0"),
                    format!("{param} > 1"),
                    format!("{param} > 100"),
                ]
            } else {
                vec![
                    format!("{param} < 0"),
                    format!("{param} <= 0"),
                    format!("!{param}"),
                    format!("{param} == null"),
                    format!("{param} === 0"),
                    format!("!Number.isInteger({param})"),
                    format!("Number.isNaN({param})"),
                    format!("{param}.length === 0"),
                ]
            };
            for (index, test) in tests.iter().enumerate() {
                #[allow(clippy::cast_precision_loss)]
                let prior = 0.6 - 0.05 * index as f64;
                let text = forge.guard(at, test, action);
                forge.insert(at, at.start_byte(), PatchFamily::Guard, prior, text);
            }
        }
    }
}
