//! What a race of coders is measured by.

use serde_json::{Value, json};

use super::server::AskedQuestion;

/// What one conversation cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ConversationCost {
    /// Seconds from each answer to the next question.
    pub(super) between: Vec<f64>,
    /// Seconds from the start of the program to the first question.
    pub(super) first: f64,
    /// Seconds from start to end.
    pub(super) whole: f64,
    /// Bytes of all questions.
    pub(super) bytes: usize,
    /// Bytes of tools and messages that stood in the question before, at its beginning.
    pub(super) repeated: usize,
    /// Bytes of all tools and messages.
    pub(super) said: usize,
}

impl ConversationCost {
    pub(super) fn of(asked: &[AskedQuestion], first: f64, whole: f64) -> Self {
        let between = asked.windows(2).map(|pair| {
            let waited = pair[1].came.saturating_duration_since(pair[0].answered);
            waited.as_secs_f64()
        });
        let prompts: Vec<Vec<u8>> = asked.iter().map(|one| prompt(&one.body)).collect();
        let repeated = prompts.windows(2).map(|pair| common(&pair[0], &pair[1]));
        Self {
            between: between.collect(),
            first,
            whole,
            bytes: asked.iter().map(|one| one.body.len()).sum(),
            repeated: repeated.sum(),
            said: prompts.iter().map(Vec::len).sum(),
        }
    }

    /// With what another one cost added to it.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.between.extend(&other.between);
        self.first += other.first;
        self.whole += other.whole;
        self.bytes += other.bytes;
        self.repeated += other.repeated;
        self.said += other.said;
        self
    }

    /// The part of what was said that a cache of prompts could have.
    #[expect(
        clippy::cast_precision_loss,
        reason = "conversations are far below 2^52 bytes"
    )]
    pub(super) fn cached(&self) -> f64 {
        self.repeated as f64 / self.said.max(1) as f64
    }

    /// As it is reported, of so many rounds.
    #[expect(clippy::cast_precision_loss, reason = "a handful of rounds")]
    pub(super) fn row(&self, coder: &str, conversation: &str, rounds: usize) -> Value {
        let each = rounds.max(1);
        json!({"coder": coder, "conversation": conversation,
            "questions": (self.between.len() / each) + 1,
            "between_p50_s": part(&self.between, 0.5), "between_p95_s": part(&self.between, 0.95),
            "first_s": self.first / each as f64, "whole_s": self.whole / each as f64,
            "bytes": self.bytes / each, "cached": self.cached()})
    }
}

/// What a provider's cache sees of a question, in its order: tools, then messages.
fn prompt(body: &[u8]) -> Vec<u8> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    format!("{}{}", body["tools"], body["messages"]).into_bytes()
}

/// How many bytes two begin with alike.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// The value below which that part of them is.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few hundred values"
)]
pub(super) fn part(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn time_counts_from_answer_to_question_and_bytes_as_far_as_they_are_new() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let asked = |messages: Value, came: u64, answered: u64| AskedQuestion {
            body: json!({"messages": messages, "tools": ["a"]})
                .to_string()
                .into_bytes(),
            came: at(came),
            answered: at(answered),
        };
        let (one, two) = (json!(["aaaa"]), json!(["aaaa", "bbbb"]));
        let cost = ConversationCost::of(&[asked(one, 0, 5), asked(two, 105, 110)], 1.0, 2.0);
        assert!((cost.between[0] - 0.1).abs() < 1e-9);
        // `["a"]["aaaa"` of `["a"]["aaaa"]` and `["a"]["aaaa","bbbb"]`.
        assert_eq!((cost.repeated, cost.said), (12, 13 + 20));
        assert!(cost.cached() > 0.36 && cost.cached() < 0.37);
    }

    #[test]
    fn a_part_is_one_of_the_values() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9);
        close(part(&[3.0, 1.0, 2.0], 0.5), 2.0);
        close(part(&[3.0, 1.0, 2.0], 0.95), 3.0);
        assert!(part(&[], 0.5).is_nan());
    }
}
