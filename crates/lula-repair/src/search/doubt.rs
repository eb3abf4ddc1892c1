//! Reasons to doubt a patch that passes, and how it ranks for them.

use std::collections::BTreeSet;

use crate::locate::Clues;
use crate::outcome::PatchDoubt;
use crate::patches::{CandidatePatch, PatchFamily};
use crate::suite::SuiteFileChange;
use crate::syntax::{ParsedSource, RepairLanguage, binary, is_function, named, walk};

/// What speaks against a patch.
pub(crate) fn doubts(
    parts: &[CandidatePatch],
    clues: &Clues,
    text_of: impl Fn(&str) -> Option<String>,
) -> Vec<PatchDoubt> {
    let mut found = Vec::new();
    for part in parts {
        let text = text_of(&part.path).unwrap_or_default();
        let mut note = |doubt: PatchDoubt| {
            if !found.contains(&doubt) {
                found.push(doubt);
            }
        };
        for edit in &part.edits {
            let old = text.get(edit.start..edit.end).unwrap_or_default();
            let named = clues.values().iter().any(|value| {
                value.len() > 1
                    && edit.text.contains(value.as_str())
                    && !old.contains(value.as_str())
                    && !text.contains(value.as_str())
            });
            if named && part.family != PatchFamily::Constant {
                note(PatchDoubt::NamesTestValue);
            }
            if part.family == PatchFamily::Guard && edit.text.contains("return ") {
                note(PatchDoubt::ReturnsEarly);
            }
            if matches!(edit.text.as_str(), "True" | "False" | "true" | "false")
                && part.family == PatchFamily::Branch
            {
                note(PatchDoubt::FixesCondition);
            }
        }
        if part.family == PatchFamily::SurplusStatement {
            note(PatchDoubt::DeletesBehaviour);
        }
    }
    found
}

/// What speaks against the new text of a file, beside the old one.
pub(crate) fn doubts_of(change: &SuiteFileChange) -> Vec<PatchDoubt> {
    let (Some(old), Some(new)) = (
        Oddities::of(&change.path, &change.old),
        Oddities::of(&change.path, &change.new),
    ) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if new.repeated.difference(&old.repeated).next().is_some() {
        found.push(PatchDoubt::RepeatsOperand);
    }
    if new.unused.difference(&old.unused).next().is_some() {
        found.push(PatchDoubt::DropsInput);
    }
    found
}

/// Code that a developer does not mean to write.
#[derive(Default)]
struct Oddities {
    /// Operations on a value and itself.
    repeated: BTreeSet<String>,
    /// Functions with a parameter that they do not use.
    unused: BTreeSet<(String, String)>,
}

impl Oddities {
    fn of(path: &str, text: &str) -> Option<Self> {
        let source = ParsedSource::parse(path, text.as_bytes()).ok()?;
        let mut found = Self::default();
        for node in walk(source.root()) {
            if let Some((left, _, right)) = binary(node)
                && source.of(left) == source.of(right)
            {
                found.repeated.insert(source.of(node).to_owned());
            }
            if is_function(node)
                && let (Some(params), Some(body)) = (
                    node.child_by_field_name("parameters"),
                    node.child_by_field_name("body"),
                )
            {
                let words: BTreeSet<&str> = source
                    .of(body)
                    .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
                    .collect();
                let name = node
                    .child_by_field_name("name")
                    .map_or("", |name| source.of(name));
                for param in named(params) {
                    let text = source.of(param);
                    let param = text.split([':', '=']).next().unwrap_or(text).trim();
                    let word = param.trim_start_matches("mut ").trim_start_matches('*');
                    let receiver = matches!(word, "self" | "cls" | "&self" | "&mut self");
                    if !receiver && !words.contains(word) && source.language != RepairLanguage::Tsx
                    {
                        found.unused.insert((name.to_owned(), word.to_owned()));
                    }
                }
            }
        }
        Some(found)
    }
}

/// What a doubt leaves of a patch's score.
pub(crate) fn share(doubt: PatchDoubt) -> f64 {
    match doubt {
        PatchDoubt::NamesTestValue | PatchDoubt::FixesCondition | PatchDoubt::RepeatsOperand => 0.3,
        PatchDoubt::DropsInput => 0.45,
        PatchDoubt::DeletesBehaviour => 0.6,
        PatchDoubt::ReturnsEarly => 0.7,
        PatchDoubt::NotReverted => 0.2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patches::ByteRangeEdit;

    #[test]
    fn a_patch_that_no_developer_would_write_is_doubted() {
        let change = |new: &str| SuiteFileChange {
            path: "a.py".to_owned(),
            old: "def f(price, share):\n    return price * share / 10\n".to_owned(),
            new: new.to_owned(),
            edits: Vec::new(),
        };
        let odd = change("def f(price, share):\n    return share * share / 10\n");
        assert_eq!(
            doubts_of(&odd),
            [PatchDoubt::RepeatsOperand, PatchDoubt::DropsInput]
        );
        let plain = change("def f(price, share):\n    return price * share / 100\n");
        assert!(doubts_of(&plain).is_empty());
    }

    #[test]
    fn a_patch_that_writes_down_what_the_test_wants_is_doubted() {
        let clues = Clues::read(["AssertionError: 41 != 42"].into_iter());
        let part = CandidatePatch {
            path: "a.py".to_owned(),
            edits: vec![ByteRangeEdit {
                start: 0,
                end: 1,
                text: "42".to_owned(),
            }],
            family: PatchFamily::Expression,
            line: 1,
            suspicion: 1.0,
            prior: 1.0,
        };
        let text = |_: &str| Some("x".to_owned());
        assert_eq!(
            doubts(std::slice::from_ref(&part), &clues, text),
            [PatchDoubt::NamesTestValue]
        );
        let calm = CandidatePatch {
            edits: vec![ByteRangeEdit {
                start: 0,
                end: 1,
                text: "y".to_owned(),
            }],
            ..part
        };
        assert!(doubts(&[calm], &clues, text).is_empty());
    }
}
