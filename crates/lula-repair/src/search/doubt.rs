//! Reasons to doubt a patch that passes, and how it ranks for them.

use crate::locate::Clues;
use crate::outcome::Doubt;
use crate::patches::{Candidate, Family};

/// What speaks against a patch.
pub(crate) fn doubts(
    parts: &[Candidate],
    clues: &Clues,
    text_of: impl Fn(&str) -> Option<String>,
) -> Vec<Doubt> {
    let mut found = Vec::new();
    for part in parts {
        let text = text_of(&part.path).unwrap_or_default();
        let mut note = |doubt: Doubt| {
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
            if named && part.family != Family::Constant {
                note(Doubt::NamesTestValue);
            }
            if part.family == Family::Guard && edit.text.contains("return ") {
                note(Doubt::ReturnsEarly);
            }
            if matches!(edit.text.as_str(), "True" | "False" | "true" | "false")
                && part.family == Family::Branch
            {
                note(Doubt::FixesCondition);
            }
        }
        if part.family == Family::SurplusStatement {
            note(Doubt::DeletesBehaviour);
        }
    }
    found
}

/// What a doubt leaves of a patch's score.
pub(crate) fn share(doubt: Doubt) -> f64 {
    match doubt {
        Doubt::NamesTestValue | Doubt::FixesCondition => 0.3,
        Doubt::DeletesBehaviour => 0.6,
        Doubt::ReturnsEarly => 0.7,
        Doubt::NotReverted => 0.2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patches::Edit;

    #[test]
    fn a_patch_that_writes_down_what_the_test_wants_is_doubted() {
        let clues = Clues::read(["AssertionError: 41 != 42"].into_iter());
        let part = Candidate {
            path: "a.py".to_owned(),
            edits: vec![Edit {
                start: 0,
                end: 1,
                text: "42".to_owned(),
            }],
            family: Family::Expression,
            line: 1,
            suspicion: 1.0,
            prior: 1.0,
        };
        let text = |_: &str| Some("x".to_owned());
        assert_eq!(
            doubts(std::slice::from_ref(&part), &clues, text),
            [Doubt::NamesTestValue]
        );
        let calm = Candidate {
            edits: vec![Edit {
                start: 0,
                end: 1,
                text: "y".to_owned(),
            }],
            ..part
        };
        assert!(doubts(&[calm], &clues, text).is_empty());
    }
}
