//! What candidates think of each other: the new tests of each, run with the code of each other.

use serde::{Deserialize, Serialize};

use crate::plan::StepId;

/// All of something, in thousandths.
const ALL: u32 = 1000;

/// How many of the tests that others brought along pass with the code of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OthersTests {
    pub passed: u32,
    /// How many were run.
    pub of: u32,
    /// Those that do not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
}

impl OthersTests {
    /// Takes the tests of one other candidate in, given which tests pass here.
    pub fn add(&mut self, theirs: &[String], passes: &dyn Fn(&str) -> bool) {
        for test in theirs {
            self.of += 1;
            if passes(test) {
                self.passed += 1;
            } else {
                self.failing.push(test.clone());
            }
        }
    }

    /// The part that passes, in thousandths; all where there are none: nothing speaks against it.
    pub(super) fn permille(&self) -> u32 {
        (self.passed * ALL).checked_div(self.of).unwrap_or(ALL)
    }

    /// As a person reads it.
    pub fn told(&self) -> String {
        match self.of {
            0 => String::new(),
            of => format!("{} of {of}", self.passed),
        }
    }
}

/// A candidate whose code the tests of another are to be run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContestTrial {
    /// The candidate whose code is tried.
    pub code: StepId,
    /// The candidate whose new tests are run.
    pub tests: StepId,
}
