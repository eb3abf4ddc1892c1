//! Wrong ends of slices and ranges.

use tree_sitter::Node;

use super::{PatchFamily, PatchGenerator};
use crate::syntax::{call, named};

pub(super) fn propose(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    match node.kind() {
        "slice" => slice(forge, node),
        "range_expression" => {
            let text = forge.of(node);
            if text.contains("..=") {
                let open = text.replacen("..=", "..", 1);
                forge.replace(node, PatchFamily::Bounds, 0.9, open);
            } else if !text.ends_with("..") {
                forge.replace(
                    node,
                    PatchFamily::Bounds,
                    0.9,
                    text.replacen("..", "..=", 1),
                );
            }
            if text.starts_with("0..") {
                forge.replace(
                    node,
                    PatchFamily::Bounds,
                    0.4,
                    text.replacen("0..", "1..", 1),
                );
            } else if text.starts_with("1..") {
                forge.replace(
                    node,
                    PatchFamily::Bounds,
                    0.4,
                    text.replacen("1..", "0..", 1),
                );
            }
            forge.replace(node, PatchFamily::Bounds, 0.25, format!("({text}).rev()"));
        }
        _ => {}
    }
    if let Some((callee, arguments)) = call(node)
        && forge.of(callee) == "range"
    {
        range(forge, arguments);
    }
    if let Some((callee, arguments)) = call(node)
        && matches!(
            forge.of(callee).rsplit('.').next(),
            Some("slice" | "substring")
        )
        && forge.script()
    {
        let items: Vec<_> = named(arguments)
            .into_iter()
            .map(|item| forge.of(item))
            .collect();
        match items.as_slice() {
            [only] => {
                forge.replace(arguments, PatchFamily::Bounds, 0.4, format!("(0, {only})"));
                forge.replace(arguments, PatchFamily::Bounds, 0.2, format!("(-{only})"));
            }
            [start, end] => {
                forge.replace(arguments, PatchFamily::Bounds, 0.4, format!("({start})"));
                forge.replace(arguments, PatchFamily::Bounds, 0.2, format!("({end})"));
                forge.replace(
                    arguments,
                    PatchFamily::Bounds,
                    0.4,
                    format!("({start}, {start} + {end})"),
                );
            }
            _ => {}
        }
    }
    if matches!(
        node.kind(),
        "subscript" | "subscript_expression" | "index_expression"
    ) {
        let items = named(node);
        if let [value, index] = items.as_slice()
            && index.kind() != "slice"
        {
            let (own, at) = (forge.of(*value), forge.of(*index));
            if forge.python() {
                forge.replace(*index, PatchFamily::Bounds, 0.3, "-1");
                forge.replace(*index, PatchFamily::Bounds, 0.2, format!("-{at}"));
                forge.replace(node, PatchFamily::Default, 0.25, format!("{own}.get({at})"));
                forge.replace(
                    node,
                    PatchFamily::Default,
                    0.25,
                    format!("{own}.get({at}, 0)"),
                );
                forge.replace(
                    node,
                    PatchFamily::Default,
                    0.12,
                    format!("{own}.get({at}, [])"),
                );
                forge.replace(
                    node,
                    PatchFamily::Default,
                    0.1,
                    format!("{own}.get({at}, {{}})"),
                );
                forge.replace(
                    node,
                    PatchFamily::Default,
                    0.08,
                    format!("{own}.get({at}, \"\")"),
                );
            } else if forge.script() {
                forge.replace(
                    *index,
                    PatchFamily::Bounds,
                    0.3,
                    format!("{own}.length - 1"),
                );
            } else {
                forge.replace(*index, PatchFamily::Bounds, 0.3, format!("{own}.len() - 1"));
            }
        }
    }
}

fn slice(forge: &mut PatchGenerator<'_>, node: Node<'_>) {
    let text = forge.of(node).to_owned();
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let [start, end, ..] = parts.as_slice() else {
        return;
    };
    let step = parts
        .get(2)
        .map_or(String::new(), |step| format!(":{step}"));
    let mut forms: Vec<(String, f64)> = vec![
        (format!("{start}:{step}"), 0.35),
        (format!(":{end}{step}"), 0.35),
    ];
    if start.is_empty() {
        forms.push((format!("1:{end}{step}"), 0.3));
        forms.push((format!("{end}:{step}"), 0.5));
        forms.push((format!("-{end}:{step}"), 0.3));
    } else {
        forms.push((format!("{start} + 1:{end}{step}"), 0.5));
        forms.push((format!("{start} - 1:{end}{step}"), 0.4));
    }
    if end.is_empty() {
        forms.push((format!("{start}:-1{step}"), 0.3));
        forms.push((format!(":{start}{step}"), 0.5));
    } else {
        forms.push((format!("{start}:{end} + 1{step}"), 0.5));
        forms.push((format!("{start}:{end} - 1{step}"), 0.45));
        if !start.is_empty() {
            forms.push((format!("{start}:{start} + {end}{step}"), 0.4));
        }
    }
    if step == ":-1" {
        forms.push((format!("{start}:{end}"), 0.3));
    }
    for (form, prior) in forms {
        forge.replace(node, PatchFamily::Bounds, prior, form);
    }
}

fn range(forge: &mut PatchGenerator<'_>, arguments: Node<'_>) {
    let items: Vec<_> = named(arguments)
        .into_iter()
        .map(|item| forge.of(item))
        .collect();
    let forms: Vec<(String, f64)> = match items.as_slice() {
        [end] => vec![
            (format!("({end} + 1)"), 0.8),
            (format!("(1, {end})"), 0.6),
            (format!("(1, {end} + 1)"), 0.6),
            (format!("({end} - 1)"), 0.6),
            (format!("({end} - 1, -1, -1)"), 0.25),
        ],
        [start, end] => vec![
            (format!("({start}, {end} + 1)"), 0.8),
            (format!("({start}, {end} - 1)"), 0.5),
            (format!("({start} + 1, {end})"), 0.5),
            (format!("({start} - 1, {end})"), 0.3),
            (format!("({start} + 1, {end} + 1)"), 0.3),
            (format!("({end})"), 0.3),
            (format!("({start}, {end}, -1)"), 0.2),
            (format!("({end} - 1, {start} - 1, -1)"), 0.1),
        ],
        [start, end, step] => vec![
            (format!("({start}, {end} + 1, {step})"), 0.7),
            (format!("({start}, {end} - 1, {step})"), 0.7),
            (format!("({start} - 1, {end}, {step})"), 0.5),
            (format!("({start} + 1, {end}, {step})"), 0.4),
            (format!("({start}, {end})"), 0.3),
            (format!("({start}, {end}, -{step})"), 0.3),
        ],
        _ => Vec::new(),
    };
    for (form, prior) in forms {
        forge.replace(arguments, PatchFamily::Bounds, prior, form);
    }
}
