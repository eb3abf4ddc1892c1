//! The wrong function or method, conversions that are surplus, and missing arguments.

use tree_sitter::Node;

use super::{ByteRangeEdit, PatchFamily, PatchGenerator};
use crate::syntax::{call, member, named};

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

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    if let Some((callee, arguments)) = call(node) {
        confuse(forge, callee);
        unwrap(forge, node, callee, arguments);
        missing_arguments(forge, callee, arguments);
    }
    if matches!(node.kind(), "await_expression" | "await")
        && let Some(inner) = named(node).first()
    {
        forge.replace(node, PatchFamily::Conversion, 0.1, forge.of(*inner));
    }
    if node.kind() == "yield" && forge.python() {
        let text = forge.of(node);
        if let Some(rest) = text.strip_prefix("yield from ") {
            forge.replace(node, PatchFamily::Conversion, 0.4, format!("yield {rest}"));
        } else if let Some(rest) = text.strip_prefix("yield ") {
            forge.replace(
                node,
                PatchFamily::Conversion,
                0.4,
                format!("yield from {rest}"),
            );
        }
    }
}

fn confuse(forge: &mut PatchGenerator<'_>, callee: Node<'_>) {
    let name = member(callee).map_or(callee, |(_, name)| name);
    let own = forge.of(name);
    for group in CONFUSED.iter().filter(|group| group.contains(&own)) {
        for other in group.iter().filter(|other| **other != own) {
            let prior = if group.len() == 2 { 0.8 } else { 0.4 };
            forge.replace(name, PatchFamily::Call, prior, *other);
        }
    }
}

/// `f(x)` to `x`, and `x.f()` to `x`.
fn unwrap(forge: &mut PatchGenerator<'_>, node: Node<'_>, callee: Node<'_>, arguments: Node<'_>) {
    let items = named(arguments);
    if let Some(first) = items
        .first()
        .filter(|first| first.kind() != "keyword_argument")
    {
        let prior = if items.len() == 1 { 0.25 } else { 0.08 };
        forge.replace(node, PatchFamily::Conversion, prior, forge.of(*first));
        if items.len() == 2 {
            forge.replace(node, PatchFamily::Conversion, 0.08, forge.of(items[1]));
        }
    }
    if let Some((object, _)) = member(callee) {
        let prior = if items.is_empty() { 0.25 } else { 0.1 };
        forge.replace(node, PatchFamily::Conversion, prior, forge.of(object));
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
        let edit = ByteRangeEdit {
            start,
            end,
            text: String::new(),
        };
        let prior = if item.kind() == "keyword_argument" {
            0.2
        } else {
            0.08
        };
        forge.edit(*item, PatchFamily::Arguments, prior, vec![edit]);
    }
}

fn missing_arguments(forge: &mut PatchGenerator<'_>, callee: Node<'_>, arguments: Node<'_>) {
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
            PatchFamily::Arguments,
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
                PatchFamily::Arguments,
                prior,
                format!("{lead}{param}"),
            );
        }
    }
}
