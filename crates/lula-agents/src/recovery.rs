//! What follows a failure. Pure: the failures so far in, the next try out.

use serde::{Deserialize, Serialize};

/// How an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptFailureClass {
    /// Edits found no place.
    EditApply,
    /// The result does not parse.
    Syntax,
    /// Something named does not exist.
    MissingSymbol,
    /// A test fails with the change.
    TestFail,
    /// An acceptance command fails.
    Acceptance,
    /// A command that finishes the change fails, so the change is not taken.
    Finishing,
    /// Existing tests were changed so that they pass.
    TestTampering,
    /// The attempt ended and nothing was changed.
    NoChange,
    /// The answers of a model cannot be used.
    Malformed,
    /// A plan cannot be used.
    BadPlan,
    /// The built-in search found nothing.
    NotFound,
    /// A model cannot be asked.
    ModelUnavailable,
    /// A rule forbids what was tried.
    PolicyDenied,
    /// A person said no.
    ApprovalRejected,
    /// The project's tests cannot be run.
    EnvBroken,
    /// A budget is spent.
    Budget,
}

/// A failed attempt, and what shows that it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptFailure {
    pub class: AttemptFailureClass,
    /// What shows it, for the coder that tries next.
    pub evidence: String,
    /// The same for failures that are the same.
    pub fingerprint: String,
    /// Who tried: the name of a model, or `repairer`.
    pub by: String,
    /// Everything else that was seen: what failing tests said, with which command, over which files.
    /// For the next coder, too long for a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl AttemptFailure {
    /// A failure with its fingerprint, taken over its class and the things it names.
    pub fn new(
        class: AttemptFailureClass,
        evidence: impl Into<String>,
        named: &[String],
        by: impl Into<String>,
    ) -> Self {
        let mut named = named.to_vec();
        named.sort();
        let text = format!("{class:?}\n{}", named.join("\n"));
        Self {
            class,
            evidence: evidence.into(),
            fingerprint: blake3::hash(text.as_bytes()).to_hex()[..16].to_owned(),
            by: by.into(),
            detail: String::new(),
        }
    }

    /// With everything that was seen.
    #[must_use]
    pub fn with_detail(mut self, detail: String) -> Self {
        self.detail = detail;
        self
    }
}

/// Where another try begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryTarget {
    /// The plan is made anew.
    Planner,
    /// The context is collected anew.
    Context,
    /// The same context, with what went wrong.
    Coder,
}

/// What follows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptRecovery {
    /// Another attempt is made.
    Retry {
        target: RetryTarget,
        /// Whether another model should try.
        another_model: bool,
    },
    /// The run ends, for this reason.
    Halt(String),
}

/// What follows the last failure, given how many tries are left and whether the run goes in
/// circles.
pub fn recover(failures: &[AttemptFailure], max_loops: u32, strikes: u32) -> AttemptRecovery {
    let Some(last) = failures.last() else {
        return AttemptRecovery::Halt("there is nothing to recover from".to_owned());
    };
    let halt = |why: String| AttemptRecovery::Halt(why);
    match last.class {
        AttemptFailureClass::EnvBroken | AttemptFailureClass::Budget => {
            return halt(last.evidence.clone());
        }
        AttemptFailureClass::PolicyDenied | AttemptFailureClass::ApprovalRejected => {
            let refused = |failure: &&AttemptFailure| failure.class == last.class;
            if failures.iter().filter(refused).count() > 1 {
                return halt(format!("it was refused twice: {}", last.evidence));
            }
        }
        _ => {}
    }
    // What costs nothing and says nothing of the task takes no try.
    let counted = |failure: &&AttemptFailure| failure.class != AttemptFailureClass::NotFound;
    let tries = failures.iter().filter(counted).count();
    if tries > usize::try_from(max_loops).unwrap_or(usize::MAX) {
        return halt(format!(
            "{tries} attempts failed, the last one: {}",
            last.evidence
        ));
    }
    let same = failures
        .iter()
        .filter(|failure| failure.fingerprint == last.fingerprint)
        .count();
    let (target, another_model) = match last.class {
        AttemptFailureClass::EditApply
        | AttemptFailureClass::Syntax
        | AttemptFailureClass::TestTampering => (RetryTarget::Coder, same > 2),
        AttemptFailureClass::MissingSymbol => (RetryTarget::Context, same > 2),
        AttemptFailureClass::TestFail
        | AttemptFailureClass::Acceptance
        | AttemptFailureClass::Finishing => match same {
            1 => (RetryTarget::Coder, false),
            2 => (RetryTarget::Planner, false),
            _ => (RetryTarget::Planner, true),
        },
        AttemptFailureClass::NoChange => (RetryTarget::Coder, same > 1),
        AttemptFailureClass::Malformed
        | AttemptFailureClass::ModelUnavailable
        | AttemptFailureClass::NotFound => (RetryTarget::Coder, true),
        AttemptFailureClass::PolicyDenied | AttemptFailureClass::ApprovalRejected => {
            (RetryTarget::Planner, false)
        }
        AttemptFailureClass::BadPlan => (RetryTarget::Planner, true),
        AttemptFailureClass::EnvBroken | AttemptFailureClass::Budget => {
            return halt(last.evidence.clone());
        }
    };
    AttemptRecovery::Retry {
        target,
        another_model: another_model || strikes > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn failed(class: AttemptFailureClass, test: &str) -> AttemptFailure {
        AttemptFailure::new(class, "why", &[test.to_owned()], "a/model")
    }

    fn target(failures: &[AttemptFailure]) -> (RetryTarget, bool) {
        match recover(failures, 9, 0) {
            AttemptRecovery::Retry {
                target,
                another_model,
            } => (target, another_model),
            AttemptRecovery::Halt(why) => panic!("{why}"),
        }
    }

    #[test]
    fn the_same_failing_test_escalates_from_coder_to_planner_to_another_model() {
        let one = failed(AttemptFailureClass::TestFail, "test_a");
        assert_eq!(
            target(std::slice::from_ref(&one)),
            (RetryTarget::Coder, false)
        );
        assert_eq!(
            target(&[one.clone(), one.clone()]),
            (RetryTarget::Planner, false)
        );
        assert_eq!(
            target(&[one.clone(), one.clone(), one.clone()]),
            (RetryTarget::Planner, true)
        );
        let other = failed(AttemptFailureClass::TestFail, "test_b");
        assert_eq!(target(&[one, other]), (RetryTarget::Coder, false));
    }

    #[test]
    fn a_broken_environment_is_not_paid_for_twice() {
        let broken = failed(AttemptFailureClass::EnvBroken, "");
        assert!(matches!(recover(&[broken], 9, 0), AttemptRecovery::Halt(_)));
    }

    #[test]
    fn a_refusal_is_respected_the_second_time() {
        let denied = failed(AttemptFailureClass::PolicyDenied, "git push");
        assert_eq!(
            target(std::slice::from_ref(&denied)),
            (RetryTarget::Planner, false)
        );
        assert!(matches!(
            recover(&[denied.clone(), denied], 9, 0),
            AttemptRecovery::Halt(_)
        ));
    }

    #[test]
    fn being_stuck_asks_for_another_model() {
        let one = failed(AttemptFailureClass::TestFail, "test_a");
        let next = recover(&[one], 9, 1);
        assert!(
            matches!(
                next,
                AttemptRecovery::Retry {
                    another_model: true,
                    ..
                }
            ),
            "{next:?}"
        );
    }

    proptest! {
        #[test]
        fn recovery_ends(classes in proptest::collection::vec(0..14_u8, 1..40), max in 0..6_u32) {
            let all = [
                AttemptFailureClass::EditApply, AttemptFailureClass::Syntax, AttemptFailureClass::MissingSymbol,
                AttemptFailureClass::TestFail, AttemptFailureClass::Acceptance, AttemptFailureClass::TestTampering,
                AttemptFailureClass::NoChange, AttemptFailureClass::Malformed, AttemptFailureClass::BadPlan,
                AttemptFailureClass::ModelUnavailable, AttemptFailureClass::PolicyDenied,
                AttemptFailureClass::ApprovalRejected, AttemptFailureClass::EnvBroken,
                AttemptFailureClass::Finishing,
            ];
            let failures: Vec<_> =
                classes.iter().map(|&class| failed(all[usize::from(class)], "t")).collect();
            if failures.len() > max as usize {
                prop_assert!(matches!(recover(&failures, max, 0), AttemptRecovery::Halt(_)));
            }
        }
    }
}
