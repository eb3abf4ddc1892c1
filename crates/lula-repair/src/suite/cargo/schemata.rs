//! Many candidates in one build.
//!
//! Compiling is what makes Rust slow to search. Each candidate's body of a function becomes an arm
//! of a `match` on a number that the process reads from its environment, so that one build holds
//! them all and running one costs a process. The same trick marks statements to see which ones a
//! test executes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tree_sitter::Node;

use super::super::{CandidateTrial, SuiteFileChange};
use crate::syntax::{ParsedSource, RepairLanguage, in_test_code, is_block, named, walk};

/// The variable that says which candidate to be.
pub(super) const VARIANT: &str = "LULA_VARIANT";
/// Starts the line that names an executed statement.
pub(super) const HIT: &str = "lula-hit ";

/// A file made of many, and where each candidate's code lies in it.
#[derive(Debug, Default)]
pub(super) struct CombinedSource {
    pub(super) text: String,
    pub(super) arms: Vec<(usize, usize, usize)>,
}

/// The function whose body holds a range and can take arms.
fn host(root: Node<'_>, text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let found = walk(root).into_iter().find(|node| {
        node.kind() == "function_item"
            && node
                .child_by_field_name("body")
                .is_some_and(|body| body.start_byte() < start && end < body.end_byte())
    })?;
    let body = found.child_by_field_name("body")?;
    let head = text.get(found.start_byte()..body.start_byte())?;
    let fixed = head.contains("const fn")
        || head
            .split("->")
            .nth(1)
            .is_some_and(|returned| returned.contains("impl "));
    (!fixed).then_some((body.start_byte(), body.end_byte()))
}

/// Weaves candidates into one text per file; gives back those that do not fit.
pub(super) fn weave(trials: &[&CandidateTrial]) -> (BTreeMap<String, CombinedSource>, Vec<usize>) {
    let mut bodies: BTreeMap<(String, usize, usize), Vec<(usize, String)>> = BTreeMap::new();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut misfits = Vec::new();
    for trial in trials {
        let placed: Option<Vec<_>> = trial.files.iter().map(place).collect();
        match placed {
            Some(placed) => {
                for (change, parts) in trial.files.iter().zip(placed) {
                    texts
                        .entry(change.path.clone())
                        .or_insert_with(|| change.old.clone());
                    for (start, end, body) in parts {
                        bodies
                            .entry((change.path.clone(), start, end))
                            .or_default()
                            .push((trial.index, body));
                    }
                }
            }
            None => misfits.push(trial.index),
        }
    }
    let mut woven: BTreeMap<String, CombinedSource> = BTreeMap::new();
    for (path, text) in texts {
        let mut out = CombinedSource::default();
        let mut at = 0;
        for ((_, start, end), arms) in bodies.iter().filter(|((of, _, _), _)| *of == path) {
            out.text.push_str(&text[at..*start]);
            out.text.push_str("{ match crate::__lula::variant() {");
            for (index, body) in arms {
                // Writing to a string cannot fail.
                let _ = write!(out.text, "\n{} => ", index + 1);
                let from = out.text.len();
                out.text.push_str(body);
                out.arms.push((from, out.text.len(), *index));
                out.text.push(',');
            }
            out.text.push_str("\n_ => ");
            out.text.push_str(&text[*start..*end]);
            out.text.push_str(",\n} }");
            at = *end;
        }
        out.text.push_str(&text[at..]);
        woven.insert(path, out);
    }
    (woven, misfits)
}

/// The bodies that a change rewrites, each with its new text.
fn place(change: &SuiteFileChange) -> Option<Vec<(usize, usize, String)>> {
    let tree = RepairLanguage::Rust.parse(&change.old)?;
    let mut parts: Vec<(usize, usize, String)> = Vec::new();
    let mut edits = change.edits.clone();
    edits.sort();
    edits.reverse();
    for edit in &edits {
        let (start, end) = host(tree.root_node(), &change.old, edit.start, edit.end)?;
        let index = if let Some(index) = parts.iter().position(|part| part.0 == start) {
            index
        } else {
            parts.push((start, end, change.old.get(start..end)?.to_owned()));
            parts.len() - 1
        };
        // From the last edit to the first, so that earlier offsets stay true.
        parts[index]
            .2
            .replace_range(edit.start - start..edit.end - start, &edit.text);
    }
    Some(parts)
}

/// What the root of each crate needs for arms and marks to work.
pub(super) fn support(marks: usize) -> String {
    format!(
        "\n#[doc(hidden)]\n#[allow(warnings)]\nmod __lula {{
    pub(crate) fn variant() -> usize {{
        static VARIANT: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        *VARIANT.get_or_init(|| std::env::var(\"{VARIANT}\").ok().and_then(|text| text.parse().ok()).unwrap_or(0))
    }}
    pub(crate) fn hit(mark: usize) {{
        use std::io::Write;
        use std::sync::atomic::{{AtomicBool, Ordering}};
        static SEEN: [AtomicBool; {marks} + 1] = [const {{ AtomicBool::new(false) }}; {marks} + 1];
        if !SEEN[mark].swap(true, Ordering::Relaxed) {{
            let _ = std::io::stderr().write_all(format!(\"\\n{HIT}{{mark}}\\n\").as_bytes());
        }}
    }}
}}\n"
    )
}

/// A text with a mark before every statement; `marks` gets the file and line of each.
pub(super) fn mark(source: &ParsedSource, marks: &mut Vec<(String, usize)>) -> String {
    let mut inserts: Vec<(usize, String)> = Vec::new();
    let mut frozen: BTreeSet<usize> = BTreeSet::new();
    for node in walk(source.root()) {
        if node
            .parent()
            .is_some_and(|parent| frozen.contains(&parent.id()))
        {
            frozen.insert(node.id());
            continue;
        }
        if node.kind() == "function_item" {
            let head = source.of(node).split('{').next().unwrap_or_default();
            if head.contains("const fn") || in_test_code(source, node) {
                frozen.insert(node.id());
            }
        }
        if matches!(
            node.kind(),
            "const_item" | "static_item" | "macro_definition" | "const_block"
        ) {
            frozen.insert(node.id());
        }
        let in_function =
            crate::syntax::nearest(node, |above| above.kind() == "function_item").is_some();
        if in_function && node.kind() == "block" && is_block(node) {
            for statement in named(node) {
                if matches!(
                    statement.kind(),
                    "inner_attribute_item" | "attribute_item" | "use_declaration" | "label"
                ) || statement.kind().ends_with("_item")
                {
                    continue;
                }
                if statement
                    .prev_named_sibling()
                    .is_some_and(|before| before.kind() == "attribute_item")
                {
                    continue;
                }
                marks.push((source.path.clone(), statement.start_position().row + 1));
                inserts.push((
                    statement.start_byte(),
                    format!("crate::__lula::hit({}); ", marks.len()),
                ));
            }
        }
        if in_function
            && node.kind() == "match_arm"
            && let Some(value) = node
                .child_by_field_name("value")
                .filter(|value| value.kind() != "block")
        {
            marks.push((source.path.clone(), value.start_position().row + 1));
            inserts.push((
                value.start_byte(),
                format!("{{ crate::__lula::hit({}); ", marks.len()),
            ));
            inserts.push((value.end_byte(), " }".to_owned()));
        }
    }
    inserts.sort_by_key(|(at, _)| *at);
    let mut out = String::with_capacity(source.text.len() * 2);
    let mut at = 0;
    for (byte, text) in inserts {
        out.push_str(&source.text[at..byte]);
        out.push_str(&text);
        at = byte;
    }
    out.push_str(&source.text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patches::ByteRangeEdit;

    #[test]
    fn candidates_become_arms_of_their_function() {
        let old = "fn f(x: i32) -> i32 { x + 1 }\nconst C: i32 = 2;\n";
        let at = old.find('+').unwrap();
        let change = |start: usize, text: &str| SuiteFileChange {
            path: "src/lib.rs".to_owned(),
            old: old.to_owned(),
            new: String::new(),
            edits: vec![ByteRangeEdit {
                start,
                end: start + 1,
                text: text.to_owned(),
            }],
        };
        let fits = CandidateTrial {
            index: 4,
            files: vec![change(at, "-")],
        };
        let not = CandidateTrial {
            index: 5,
            files: vec![change(old.find("2;").unwrap(), "3")],
        };
        let (woven, misfits) = weave(&[&fits, &not]);
        assert_eq!(misfits, [5]);
        let file = &woven["src/lib.rs"];
        assert!(file.text.contains("5 => { x - 1 },"), "{}", file.text);
        assert!(file.text.contains("_ => { x + 1 },"));
        assert_eq!(&file.text[file.arms[0].0..file.arms[0].1], "{ x - 1 }");
    }

    #[test]
    fn statements_are_marked_with_their_lines() {
        let source = ParsedSource::parse("src/lib.rs", b"fn f(x: i32) -> i32 {\n    let y = x;\n    match y {\n        0 => 1,\n        _ => y,\n    }\n}\n").unwrap();
        let mut marks = Vec::new();
        let text = mark(&source, &mut marks);
        assert_eq!(
            marks.iter().map(|(_, line)| *line).collect::<BTreeSet<_>>(),
            [2, 3, 4, 5].into()
        );
        assert!(
            !RepairLanguage::Rust
                .parse(&text)
                .unwrap()
                .root_node()
                .has_error(),
            "{text}"
        );
    }
}
