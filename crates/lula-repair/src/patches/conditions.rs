//! Conditions that are the wrong way round, lack a part or have one too many.

use tree_sitter::Node;

use super::scope::FunctionVocabulary;
use super::{PatchFamily, PatchGenerator};
use crate::locate::ValueSort;
use crate::syntax::{binary, condition, is_expression, named};

impl PatchGenerator<'_> {
    /// The opposite of a condition.
    pub(super) fn negated(&self, text: &str) -> String {
        match (self.python(), is_atom(text)) {
            (true, true) => format!("not {text}"),
            (true, false) => format!("not ({text})"),
            (false, true) => format!("!{text}"),
            (false, false) => format!("!({text})"),
        }
    }

    fn both(&self) -> (&'static str, &'static str) {
        if self.python() {
            ("and", "or")
        } else {
            ("&&", "||")
        }
    }
}

fn is_atom(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'))
}

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some(found) = condition(node) {
        decide(forge, found);
        strengthen(forge, found);
    }
    if let Some((left, operator, right)) = binary(node)
        && matches!(forge.of(operator), "and" | "or" | "&&" | "||")
    {
        for side in [left, right] {
            forge.replace(
                side,
                PatchFamily::Negation,
                0.35,
                forge.negated(forge.of(side)),
            );
        }
    }
    if node.kind() == "match_pattern" && node.child_by_field_name("condition").is_none() {
        let scope = forge.scope(node);
        let tests = scope
            .conditions
            .iter()
            .take(6)
            .map(|test| (test.clone(), 0.15))
            .chain(scope.fields.iter().take(8).flat_map(|field| {
                [
                    (format!("!self.{field}.is_empty()"), 0.1),
                    (format!("self.{field}.is_empty()"), 0.06),
                    (format!("self.{field}"), 0.06),
                ]
            }));
        for (test, prior) in tests.collect::<Vec<_>>() {
            forge.insert(
                node,
                node.end_byte(),
                PatchFamily::MissingCondition,
                prior,
                format!(" if {test}"),
            );
        }
    }
    if node.kind() == "not_operator"
        && let Some(argument) = node.child_by_field_name("argument")
    {
        forge.replace(node, PatchFamily::Negation, 0.6, forge.of(argument));
    }
    if matches!(
        node.kind(),
        "return_statement"
            | "return_expression"
            | "assignment"
            | "variable_declarator"
            | "let_declaration"
    ) && let Some(value) = node
        .child_by_field_name("right")
        .or_else(|| node.child_by_field_name("value"))
        .or_else(|| {
            named(node)
                .first()
                .copied()
                .filter(|_| node.kind().starts_with("return"))
        })
        && is_expression(value)
        && matches!(
            value.kind(),
            "comparison_operator"
                | "boolean_operator"
                | "call"
                | "call_expression"
                | "identifier"
                | "attribute"
                | "member_expression"
                | "field_expression"
                | "binary_expression"
        )
    {
        let logical = binary(value).is_none_or(|(_, operator, _)| {
            !matches!(forge.of(operator), "+" | "-" | "*" | "/" | "%")
        });
        if logical {
            forge.replace(
                value,
                PatchFamily::Negation,
                0.2,
                forge.negated(forge.of(value)),
            );
        }
        if matches!(
            value.kind(),
            "comparison_operator" | "boolean_operator" | "binary_expression"
        ) && logical
        {
            strengthen(forge, value);
        }
    }
}

fn decide(forge: &mut PatchGenerator<'_>, found: Node<'_>) {
    let text = forge.of(found);
    forge.replace(found, PatchFamily::Negation, 0.6, forge.negated(text));
    let (yes, no) = if forge.python() {
        ("True", "False")
    } else {
        ("true", "false")
    };
    forge.replace(found, PatchFamily::Branch, 0.1, yes);
    forge.replace(found, PatchFamily::Branch, 0.12, no);
    if forge.python() && is_atom(text) {
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.35,
            format!("{text} is not None"),
        );
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.2,
            format!("{text} is None"),
        );
    }
    if forge.python()
        && let Some(rest) = text.strip_prefix("not ")
        && is_atom(rest)
    {
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.35,
            format!("{rest} is None"),
        );
    }
    if forge.script() && is_atom(text) {
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.3,
            format!("{text} !== undefined"),
        );
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.3,
            format!("{text} != null"),
        );
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.2,
            format!("{text}.length > 0"),
        );
    }
    if forge.script()
        && let Some(rest) = text.strip_prefix('!')
        && is_atom(rest)
    {
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.3,
            format!("{rest} === undefined"),
        );
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.3,
            format!("{rest} == null"),
        );
        forge.replace(
            found,
            PatchFamily::MissingCondition,
            0.2,
            format!("{rest}.length === 0"),
        );
    }
}

/// Joins a condition with what else the function asks, or could ask of its variables.
fn strengthen(forge: &mut PatchGenerator<'_>, found: Node<'_>) {
    let scope = forge.scope(found);
    let own = forge.of(found);
    let (and, or) = forge.both();
    let mixed = |other: &str| own.contains(&format!(" {other} "));
    let all = if mixed(or) {
        format!("({own})")
    } else {
        own.to_owned()
    };
    let any = if mixed(and) {
        format!("({own})")
    } else {
        own.to_owned()
    };
    let mut parts: Vec<(String, f64)> = Vec::new();
    for other in scope.conditions.iter().take(8) {
        if other != own && !own.contains(other.as_str()) {
            let part = if other.contains(&format!(" {or} ")) || other.contains(&format!(" {and} "))
            {
                format!("({other})")
            } else {
                other.clone()
            };
            parts.push((forge.negated(other), 0.08));
            parts.push((part, 0.14));
        }
    }
    for name in scope.names.iter().filter(|name| name.len() < 24).take(10) {
        if forge.python() {
            parts.push((name.clone(), 0.09));
            parts.push((format!("not {name}"), 0.08));
            parts.push((format!("{name} is not None"), 0.08));
            parts.push((format!("{name} is None"), 0.06));
            let numeric = scope.variables.may_be(name, ValueSort::Number);
            for zero in ["> 0", "< 0", "== 0", ">= 0"]
                .into_iter()
                .filter(|_| numeric)
            {
                parts.push((format!("{name} {zero}"), 0.03));
            }
        } else if forge.script() {
            parts.push((name.clone(), 0.08));
            parts.push((format!("!{name}"), 0.08));
            parts.push((format!("{name} > 0"), 0.03));
            parts.push((format!("{name} < 0"), 0.03));
            parts.push((format!("{name} === 0"), 0.03));
            parts.push((format!("{name}.length > 0"), 0.03));
        } else {
            parts.push((format!("{name} > 0"), 0.03));
            parts.push((format!("{name} == 0"), 0.03));
            parts.push((format!("{name} < 0"), 0.03));
            parts.push((format!("!{name}.is_empty()"), 0.03));
        }
    }
    let equals = if forge.script() { "===" } else { "==" };
    for (index, first) in scope.names.iter().enumerate().take(6) {
        for second in scope.names[index + 1..].iter().take(4) {
            if scope.variables.alike(first, second) {
                parts.push((format!("{first} {equals} {second}"), 0.05));
            }
        }
    }
    for field in scope.fields.iter().take(10) {
        let own_field = if forge.python() {
            format!("self.{field}")
        } else if forge.script() {
            format!("this.{field}")
        } else {
            format!("self.{field}")
        };
        if forge.rust() {
            parts.push((format!("{own_field}.is_empty()"), 0.07));
            parts.push((format!("!{own_field}.is_empty()"), 0.05));
        }
        if forge.source.text.contains(&own_field) {
            let idle = scope.idleness(field);
            parts.push((forge.negated(&own_field), 0.06 * idle));
            parts.push((own_field, 0.09 * idle));
        }
    }
    let words: Vec<&str> = own
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let asked = scope
        .names
        .iter()
        .filter(|name| words.contains(&name.as_str()));
    for name in asked.take(3) {
        for field in scope
            .fields
            .iter()
            .filter(|field| *field != "length")
            .take(10)
        {
            let whole = format!("{name}.{field}");
            let idle = scope.idleness(field);
            if !own.contains(&whole) {
                parts.push((forge.negated(&whole), 0.07 * idle));
                parts.push((whole, 0.1 * idle));
            }
        }
    }
    parts.extend(other_ends(forge, &scope, found));
    for (part, prior) in parts {
        if part != own {
            forge.replace(
                found,
                PatchFamily::MissingCondition,
                prior,
                format!("{all} {and} {part}"),
            );
            forge.replace(
                found,
                PatchFamily::MissingCondition,
                prior,
                format!("{any} {or} {part}"),
            );
        }
    }
}

/// Bounds in pairs: where one end is checked, the other may be missing.
fn other_ends(
    forge: &PatchGenerator<'_>,
    scope: &FunctionVocabulary,
    found: Node<'_>,
) -> Vec<(String, f64)> {
    let mut parts = Vec::new();
    if let Some((left, operator, right)) = binary(found)
        && matches!(forge.of(operator), "<" | "<=" | ">" | ">=")
    {
        let (a, b) = (forge.of(left), forge.of(right));
        for other in scope.names.iter().take(10) {
            for (subject, not) in [(a, b), (b, a)] {
                if other != subject && other != not {
                    for comparison in ["<", "<=", ">", ">="] {
                        parts.push((format!("{subject} {comparison} {other}"), 0.04));
                    }
                }
            }
        }
    }
    parts
}
