//! The wrong function or method, conversions that are missing or surplus, and missing arguments.

use tree_sitter::Node;

use super::{Edit, Family, Forge};
use crate::syntax::{call, is_expression, member, named};

/// Names that are written for one another. Each group is tried both ways.
const CONFUSED: &[&[&str]] = &[
    &["min", "max"],
    &["any", "all"],
    &["some", "every"],
    &["append", "extend", "add", "insert"],
    &["update", "add"],
    &["pop", "popleft", "remove", "discard"],
    &["appendleft", "append"],
    &["shift", "pop"],
    &["unshift", "push"],
    &["push", "concat"],
    &["slice", "splice", "substring"],
    &["lower", "upper", "title", "capitalize", "casefold"],
    &["toLowerCase", "toUpperCase"],
    &["to_lowercase", "to_uppercase"],
    &["to_ascii_lowercase", "to_ascii_uppercase"],
    &["strip", "lstrip", "rstrip"],
    &["trim", "trimStart", "trimEnd"],
    &["trim", "trim_start", "trim_end"],
    &["startswith", "endswith"],
    &["startsWith", "endsWith", "includes"],
    &["starts_with", "ends_with", "contains"],
    &["find", "rfind", "index", "rindex"],
    &["find", "findLast", "filter"],
    &["indexOf", "lastIndexOf"],
    &["findIndex", "findLastIndex"],
    &["split", "rsplit", "splitlines"],
    &["partition", "rpartition"],
    &["splitn", "rsplitn"],
    &["split_once", "rsplit_once"],
    &["ljust", "rjust", "center"],
    &["padStart", "padEnd"],
    &["keys", "values", "items"],
    &["keys", "values", "entries"],
    &["keys", "values", "iter"],
    &["floor", "ceil", "round", "trunc"],
    &["sorted", "reversed", "list"],
    &[
        "isdigit",
        "isalpha",
        "isalnum",
        "isnumeric",
        "isdecimal",
        "isspace",
    ],
    &["islower", "isupper"],
    &[
        "is_alphabetic",
        "is_alphanumeric",
        "is_numeric",
        "is_whitespace",
    ],
    &[
        "is_ascii_digit",
        "is_ascii_alphabetic",
        "is_ascii_alphanumeric",
    ],
    &["is_some", "is_none"],
    &["is_ok", "is_err"],
    &["first", "last"],
    &["take", "skip"],
    &["take_while", "skip_while", "filter"],
    &["push_back", "push_front"],
    &["pop_back", "pop_front"],
    &["push", "push_str"],
    &["front", "back"],
    &["and", "or"],
    &["and_then", "or_else"],
    &["map", "filter", "flatMap", "forEach"],
    &["map", "flat_map", "filter_map"],
    &[
        "union",
        "intersection",
        "difference",
        "symmetric_difference",
    ],
    &["issubset", "issuperset"],
    &["saturating_sub", "wrapping_sub", "abs_diff"],
    &["saturating_add", "wrapping_add"],
    &["rem_euclid", "div_euclid"],
    &["min_by_key", "max_by_key"],
    &["min_by", "max_by"],
    &["position", "rposition"],
    &["sum", "product", "count", "len"],
    &["isinstance", "issubclass"],
    &["get", "setdefault", "pop"],
    &["match", "search", "fullmatch"],
    &["has", "get", "delete", "add", "set"],
    &["replace", "replaceAll"],
    &["replace", "replacen"],
    &["heappush", "heappop", "heappushpop", "heapreplace"],
    &["bisect_left", "bisect_right", "bisect"],
    &["insort_left", "insort_right"],
    &["nlargest", "nsmallest"],
    &["parseInt", "parseFloat", "Number"],
    &["reduce", "reduceRight"],
    &["copy", "deepcopy"],
    &["total_seconds", "seconds"],
    &["getDay", "getDate"],
    &["getUTCDay", "getUTCDate"],
    &["year", "month", "day"],
    &["weekday", "isoweekday"],
    &["unwrap_or", "max", "min"],
    &["chars", "bytes"],
    &["insert", "remove"],
    &["entry", "get"],
    &["cmp", "partial_cmp"],
    &["le", "lt"],
    &["ge", "gt"],
];

pub(super) fn propose(forge: &mut Forge<'_>, node: Node<'_>) {
    if let Some((callee, arguments)) = call(node) {
        confuse(forge, callee);
        unwrap(forge, node, callee, arguments);
        missing_arguments(forge, callee, arguments);
    }
    if is_expression(node) {
        convert(forge, node);
    }
    if node.kind() == "await_expression" || node.kind() == "await" {
        if let Some(inner) = named(node).first() {
            forge.replace(node, Family::Conversion, 0.1, forge.of(*inner));
        }
    }
    if node.kind() == "yield" && forge.python() {
        let text = forge.of(node);
        if let Some(rest) = text.strip_prefix("yield from ") {
            forge.replace(node, Family::Conversion, 0.4, format!("yield {rest}"));
        } else if let Some(rest) = text.strip_prefix("yield ") {
            forge.replace(node, Family::Conversion, 0.4, format!("yield from {rest}"));
        }
    }
}

fn confuse(forge: &mut Forge<'_>, callee: Node<'_>) {
    let name = member(callee).map_or(callee, |(_, name)| name);
    let own = forge.of(name);
    for group in CONFUSED.iter().filter(|group| group.contains(&own)) {
        for other in group.iter().filter(|other| **other != own) {
            let prior = if group.len() == 2 { 0.8 } else { 0.4 };
            forge.replace(name, Family::Call, prior, *other);
        }
    }
}

/// `f(x)` to `x`, and `x.f()` to `x`.
fn unwrap(forge: &mut Forge<'_>, node: Node<'_>, callee: Node<'_>, arguments: Node<'_>) {
    let items = named(arguments);
    if let Some(first) = items
        .first()
        .filter(|first| first.kind() != "keyword_argument")
    {
        let prior = if items.len() == 1 { 0.25 } else { 0.08 };
        forge.replace(node, Family::Conversion, prior, forge.of(*first));
        if items.len() == 2 {
            forge.replace(node, Family::Conversion, 0.08, forge.of(items[1]));
        }
    }
    if let Some((object, _)) = member(callee) {
        let prior = if items.is_empty() { 0.25 } else { 0.1 };
        forge.replace(node, Family::Conversion, prior, forge.of(object));
    }
    for (index, item) in items.iter().enumerate() {
        let (start, end) = match (
            items.get(index + 1),
            index.checked_sub(1).and_then(|i| items.get(i)),
        ) {
            (Some(next), _) => (item.start_byte(), next.start_byte()),
            (None, Some(before)) => (before.end_byte(), item.end_byte()),
            (None, None) => (item.start_byte(), item.end_byte()),
        };
        let edit = Edit {
            start,
            end,
            text: String::new(),
        };
        let prior = if item.kind() == "keyword_argument" {
            0.2
        } else {
            0.08
        };
        forge.edit(*item, Family::Arguments, prior, vec![edit]);
    }
}

fn missing_arguments(forge: &mut Forge<'_>, callee: Node<'_>, arguments: Node<'_>) {
    let name = member(callee).map_or(callee, |(_, name)| name);
    let own = forge.of(name);
    let items = named(arguments);
    let Some(close) = crate::syntax::children(arguments)
        .checked_sub(1)
        .and_then(|last| crate::syntax::child(arguments, last))
    else {
        return;
    };
    let lead = if items.is_empty() { "" } else { ", " };
    let mut add = |text: &str, prior: f64| {
        forge.insert(
            arguments,
            close.start_byte(),
            Family::Arguments,
            prior,
            format!("{lead}{text}"),
        );
    };
    let extra: &[(&str, f64)] = match own {
        "sorted" | "sort" if callee.kind() != "member_expression" => &[
            ("reverse=True", 0.6),
            ("key=len", 0.15),
            ("key=str.lower", 0.2),
            ("key=lambda item: item[1]", 0.25),
            ("key=lambda item: item[0]", 0.15),
            ("key=lambda item: (-item[1], item[0])", 0.15),
        ],
        "sort" | "toSorted" => &[
            ("(a, b) => a - b", 0.7),
            ("(a, b) => b - a", 0.35),
            ("(a, b) => a.localeCompare(b)", 0.15),
        ],
        "get" | "pop" if items.len() == 1 && callee.kind() == "attribute" => &[
            ("0", 0.4),
            ("[]", 0.3),
            ("{}", 0.2),
            ("\"\"", 0.25),
            ("None", 0.2),
            ("False", 0.15),
            ("1", 0.1),
            ("()", 0.05),
        ],
        "max" | "min" if items.len() == 1 => &[
            ("default=0", 0.4),
            ("default=None", 0.3),
            ("key=len", 0.2),
            ("key=lambda item: item[1]", 0.2),
        ],
        "next" if items.len() == 1 => &[("None", 0.4)],
        "round" => &[("2", 0.3), ("1", 0.1)],
        "split" if items.len() == 1 && callee.kind() == "attribute" => {
            &[("1", 0.4), ("maxsplit=1", 0.1)]
        }
        "enumerate" => &[("1", 0.4), ("start=1", 0.2)],
        "sum" => &[("1", 0.05)],
        "int" | "parseInt" => &[("10", 0.2), ("2", 0.1), ("16", 0.1)],
        "reduce" if items.len() == 1 => &[
            ("0", 0.5),
            ("1", 0.2),
            ("{}", 0.15),
            ("[]", 0.15),
            ("''", 0.1),
        ],
        "pop" if items.is_empty() && callee.kind() == "attribute" => &[("0", 0.5)],
        "getattr" if items.len() == 2 => &[("None", 0.4)],
        "strip" | "lstrip" | "rstrip" if items.is_empty() => {
            &[("\"/\"", 0.05), ("\".\"", 0.05), ("\",\"", 0.05)]
        }
        "replace" if items.len() == 2 && callee.kind() == "attribute" => &[("1", 0.2)],
        "join" if items.is_empty() => &[("''", 0.4), ("' '", 0.2), ("', '", 0.2), ("','", 0.1)],
        "flat" => &[("Infinity", 0.3)],
        "zip" => &[("strict=True", 0.05)],
        _ => &[],
    };
    let keyed = items.iter().any(|item| item.kind() == "keyword_argument");
    for (text, prior) in extra {
        add(text, if keyed { prior * 0.4 } else { *prior });
    }
    let scope = forge.scope(arguments);
    let defined = scope.functions.iter().any(|known| known == own);
    let prior = if defined { 0.14 } else { 0.03 };
    for param in scope.names.iter().take(10) {
        if !items.iter().any(|item| forge.of(*item) == param) {
            forge.insert(
                arguments,
                close.start_byte(),
                Family::Arguments,
                prior,
                format!("{lead}{param}"),
            );
        }
    }
}

/// Wraps a value in the conversion that it may lack.
fn convert(forge: &mut Forge<'_>, node: Node<'_>) {
    let Some(parent) = node.parent() else {
        return;
    };
    let used = match parent.kind() {
        "argument_list"
        | "arguments"
        | "return_statement"
        | "return_expression"
        | "comparison_operator"
        | "binary_operator"
        | "binary_expression"
        | "subscript" => true,
        "assignment" | "assignment_expression" | "augmented_assignment" => {
            parent.child_by_field_name("right") == Some(node)
        }
        "variable_declarator" | "let_declaration" | "keyword_argument" | "pair" => {
            parent.child_by_field_name("value") == Some(node)
        }
        "for_statement" | "for_in_clause" | "for_in_statement" => {
            parent.child_by_field_name("right") == Some(node)
        }
        "for_expression" => parent.child_by_field_name("value") == Some(node),
        "block" => forge.rust() && named(parent).last() == Some(&node),
        _ => false,
    };
    if !used
        || matches!(
            node.kind(),
            "integer"
                | "float"
                | "number"
                | "string"
                | "true"
                | "false"
                | "none"
                | "null"
                | "string_literal"
                | "integer_literal"
                | "float_literal"
                | "boolean_literal"
                | "lambda"
                | "arrow_function"
        )
    {
        return;
    }
    let own = forge.of(node);
    if own.len() > 70 {
        return;
    }
    let value = matches!(
        parent.kind(),
        "return_statement"
            | "assignment"
            | "variable_declarator"
            | "let_declaration"
            | "for_statement"
            | "for_in_clause"
            | "for_in_statement"
            | "return_expression"
            | "block"
            | "for_expression"
            | "pair"
    );
    let share = if value { 1.0 } else { 0.6 };
    let binary_inside = matches!(
        node.kind(),
        "binary_operator"
            | "boolean_operator"
            | "comparison_operator"
            | "binary_expression"
            | "conditional_expression"
            | "unary_expression"
            | "ternary_expression"
            | "type_cast_expression"
    );
    let held = if binary_inside {
        format!("({own})")
    } else {
        own.to_owned()
    };
    let wraps: &[(&str, f64)] = if forge.python() {
        &[
            ("int({})", 0.15),
            ("str({})", 0.15),
            ("float({})", 0.08),
            ("list({})", 0.18),
            ("sorted({})", 0.25),
            ("set({})", 0.12),
            ("len({})", 0.12),
            ("abs({})", 0.2),
            ("dict({})", 0.05),
            ("tuple({})", 0.06),
            ("bool({})", 0.08),
            ("reversed({})", 0.08),
            ("sum({})", 0.04),
            ("round({})", 0.06),
            ("round({}, 2)", 0.1),
            ("max({}, 0)", 0.12),
            ("min({}, 1)", 0.04),
            ("list(reversed({}))", 0.1),
            ("sorted({}, reverse=True)", 0.06),
            ("list(dict.fromkeys({}))", 0.04),
        ]
    } else if forge.script() {
        &[
            ("Number({})", 0.15),
            ("String({})", 0.15),
            ("Math.abs({})", 0.2),
            ("Math.floor({})", 0.2),
            ("Math.round({})", 0.12),
            ("Math.ceil({})", 0.1),
            ("Math.trunc({})", 0.08),
            ("Math.max({}, 0)", 0.1),
            ("Boolean({})", 0.08),
            ("[...{}]", 0.2),
            ("await {}", 0.15),
            ("Object.keys({})", 0.06),
            ("Object.values({})", 0.05),
            ("Object.entries({})", 0.05),
            ("parseInt({}, 10)", 0.08),
            ("parseFloat({})", 0.05),
            ("Array.from({})", 0.05),
        ]
    } else {
        &[]
    };
    for (wrap, prior) in wraps {
        forge.replace(
            node,
            Family::Conversion,
            prior * share,
            wrap.replace("{}", own),
        );
    }
    let ends: &[(&str, f64)] = if forge.python() {
        &[
            (".copy()", 0.15),
            (".strip()", 0.2),
            (".lower()", 0.2),
            (".upper()", 0.08),
            (".split()", 0.05),
            (".items()", 0.12),
            (".values()", 0.08),
            (".keys()", 0.05),
            ("[::-1]", 0.15),
            ("[0]", 0.12),
            ("[1]", 0.08),
            ("[-1]", 0.1),
            ("[1:]", 0.08),
            ("[:-1]", 0.06),
            ("[:]", 0.04),
        ]
    } else if forge.script() {
        &[
            (".trim()", 0.2),
            (".toLowerCase()", 0.2),
            (".toUpperCase()", 0.06),
            (".slice()", 0.15),
            (".length", 0.12),
            (".reverse()", 0.1),
            (".sort()", 0.12),
            ("[0]", 0.1),
            ("[1]", 0.06),
            (".flat()", 0.06),
            (".slice(1)", 0.06),
            (".toString()", 0.05),
            (".filter(Boolean)", 0.06),
            (".join('')", 0.05),
        ]
    } else {
        &[
            (".abs()", 0.15),
            (".clone()", 0.1),
            (".rev()", 0.15),
            (".trim()", 0.15),
            (".to_lowercase()", 0.12),
            (".to_string()", 0.08),
            (".max(0)", 0.1),
            (".len()", 0.06),
            (".to_ascii_lowercase()", 0.08),
            (".iter().rev()", 0.06),
            (" as f64", 0.05),
            (".min(1)", 0.02),
            (".unwrap_or(0)", 0.08),
            (".unwrap_or_default()", 0.1),
            (".round()", 0.08),
            (".max(1)", 0.05),
        ]
    };
    for (end, prior) in ends {
        forge.replace(
            node,
            Family::Conversion,
            prior * share,
            format!("{held}{end}"),
        );
    }
}
