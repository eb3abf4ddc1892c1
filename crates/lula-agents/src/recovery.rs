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
    /// Nothing speaks against the change, and nothing shows that it does what it should.
    NoEvidence,
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
    /// The change that was tried, for a coder that does not know it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub change: String,
    /// What its coder said of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
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
            change: String::new(),
            summary: String::new(),
        }
    }

    /// Whether it takes a try: what costs nothing and says nothing of the task does not.
    fn is_counted(&self) -> bool {
        self.class != AttemptFailureClass::NotFound
    }

    /// With everything that was seen.
    #[must_use]
    pub fn with_detail(mut self, detail: String) -> Self {
        self.detail = detail;
        self
    }
}

impl AttemptFailureClass {
    /// What it is, for a person.
    pub const fn words(self) -> &'static str {
        match self {
            Self::EditApply => "an edit found no place",
            Self::Syntax => "the result does not parse",
            Self::MissingSymbol => "something named does not exist",
            Self::TestFail => "tests fail",
            Self::Acceptance => "an acceptance command fails",
            Self::Finishing => "a finishing command fails",
            Self::TestTampering => "existing tests were changed",
            Self::NoChange => "nothing was changed",
            Self::NoEvidence => "nothing shows it",
            Self::Malformed => "the model's answers cannot be used",
            Self::BadPlan => "the plan cannot be used",
            Self::NotFound => "the search found nothing",
            Self::ModelUnavailable => "the model cannot be asked",
            Self::PolicyDenied => "a rule forbids it",
            Self::ApprovalRejected => "a person said no",
            Self::EnvBroken => "the tests cannot be run",
            Self::Budget => "a budget is spent",
        }
    }

    /// Whether it says something of a change that a coder can go on from.
    const fn is_of_change(self) -> bool {
        matches!(
            self,
            Self::TestFail
                | Self::Acceptance
                | Self::Finishing
                | Self::TestTampering
                | Self::NoChange
                | Self::NoEvidence
        )
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
    /// The same conversation, with what went wrong; the change stays in place.
    Conversation,
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

/// So often a conversation goes on after its change was not accepted; then another begins.
const IN_CONVERSATION: usize = 2;

/// How many more tries there are.
pub(crate) fn tries_left(failures: &[AttemptFailure], max_loops: u32) -> u32 {
    let tries = failures
        .iter()
        .filter(|failure| failure.is_counted())
        .count();
    let tries = u32::try_from(tries).unwrap_or(u32::MAX);
    max_loops.saturating_add(1).saturating_sub(tries)
}

/// How many attempts at the end were made by one coder, and failed by what was said of their change.
fn in_a_row(failures: &[AttemptFailure]) -> usize {
    let Some(last) = failures.last() else {
        return 0;
    };
    let mut row = failures.iter().rev();
    let same = |failure: &&AttemptFailure| failure.by == last.by && failure.class.is_of_change();
    row.by_ref().take_while(same).count()
}

/// What follows the last failure, given how many tries are left, whether the run goes in circles, and
/// whether the last coder can be told.
pub fn recover(
    failures: &[AttemptFailure],
    max_loops: u32,
    strikes: u32,
    open: bool,
) -> AttemptRecovery {
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
    let tries = failures
        .iter()
        .filter(|failure| failure.is_counted())
        .count();
    if tries > usize::try_from(max_loops).unwrap_or(usize::MAX) {
        return halt(match tries {
            1 => format!("the only attempt failed: {}", last.evidence),
            _ => format!("{tries} attempts failed, the last one: {}", last.evidence),
        });
    }
    // A fresh start, too, goes on in its own conversation.
    let fresh = in_a_row(failures).is_multiple_of(IN_CONVERSATION + 1);
    if open && last.class.is_of_change() && !fresh && strikes == 0 {
        return AttemptRecovery::Retry {
            target: RetryTarget::Conversation,
            another_model: false,
        };
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
        AttemptFailureClass::NoChange | AttemptFailureClass::NoEvidence => {
            (RetryTarget::Coder, same > 1)
        }
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
        match recover(failures, 9, 0, false) {
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
    fn a_coder_is_told_what_came_of_its_change_and_begins_anew_after_the_third_time() {
        let one = failed(AttemptFailureClass::TestFail, "test_a");
        let next = |times: usize| match recover(&vec![one.clone(); times], 9, 0, true) {
            AttemptRecovery::Retry { target, .. } => target,
            AttemptRecovery::Halt(why) => panic!("{why}"),
        };
        let told = RetryTarget::Conversation;
        assert_eq!([next(1), next(2)], [told, told]);
        assert_eq!(next(3), RetryTarget::Planner);
        assert_eq!(
            [next(4), next(5)],
            [told, told],
            "the fresh start is told too"
        );
        let mut silent = failed(AttemptFailureClass::Malformed, "");
        silent.by = one.by.clone();
        let AttemptRecovery::Retry { target, .. } = recover(&[one, silent], 9, 0, true) else {
            panic!("no retry");
        };
        assert_eq!(
            target,
            RetryTarget::Coder,
            "a conversation that broke off is over"
        );
    }

    #[test]
    fn one_attempt_is_told_as_one() {
        let one = failed(AttemptFailureClass::TestFail, "test_a");
        let told = |times: usize| match recover(&vec![one.clone(); times], 0, 0, true) {
            AttemptRecovery::Halt(why) => why,
            retry @ AttemptRecovery::Retry { .. } => panic!("{retry:?}"),
        };
        assert_eq!(told(1), "the only attempt failed: why");
        assert_eq!(told(2), "2 attempts failed, the last one: why");
    }

    #[test]
    fn tries_are_counted_down() {
        let one = failed(AttemptFailureClass::TestFail, "test_a");
        let searched = failed(AttemptFailureClass::NotFound, "");
        assert_eq!(tries_left(&[searched, one], 3), 3);
    }

    #[test]
    fn a_broken_environment_is_not_paid_for_twice() {
        let broken = failed(AttemptFailureClass::EnvBroken, "");
        assert!(matches!(
            recover(&[broken], 9, 0, true),
            AttemptRecovery::Halt(_)
        ));
    }

    #[test]
    fn a_refusal_is_respected_the_second_time() {
        let denied = failed(AttemptFailureClass::PolicyDenied, "git push");
        assert_eq!(
            target(std::slice::from_ref(&denied)),
            (RetryTarget::Planner, false)
        );
        assert!(matches!(
            recover(&[denied.clone(), denied], 9, 0, true),
            AttemptRecovery::Halt(_)
        ));
    }

    #[test]
    fn being_stuck_asks_for_another_model() {
        let one = failed(AttemptFailureClass::TestFail, "test_a");
        let next = recover(&[one], 9, 1, true);
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
        fn recovery_ends(
            classes in proptest::collection::vec(0..15_u8, 1..40),
            max in 0..6_u32,
            open in any::<bool>(),
        ) {
            let all = [
                AttemptFailureClass::EditApply, AttemptFailureClass::Syntax, AttemptFailureClass::MissingSymbol,
                AttemptFailureClass::TestFail, AttemptFailureClass::Acceptance, AttemptFailureClass::TestTampering,
                AttemptFailureClass::NoChange, AttemptFailureClass::Malformed, AttemptFailureClass::BadPlan,
                AttemptFailureClass::ModelUnavailable, AttemptFailureClass::PolicyDenied,
                AttemptFailureClass::ApprovalRejected, AttemptFailureClass::EnvBroken,
                AttemptFailureClass::Finishing, AttemptFailureClass::NoEvidence,
            ];
            let failures: Vec<_> =
                classes.iter().map(|&class| failed(all[usize::from(class)], "t")).collect();
            if failures.len() > max as usize {
                let next = recover(&failures, max, 0, open);
                prop_assert!(matches!(next, AttemptRecovery::Halt(_)));
                prop_assert_eq!(tries_left(&failures, max), 0);
            }
        }
    }
}
