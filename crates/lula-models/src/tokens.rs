//! How many tokens a text has, before it is sent. What the provider counts afterwards is the
//! truth; the estimate learns from it.

use std::collections::BTreeMap;

/// Bytes a token where no tokenizer is known.
const BYTES: u64 = 3;
/// How fast the correction follows.
const WEIGHT: f64 = 0.2;
/// No correction goes beyond these.
const LEAST: f64 = 0.25;
const MOST: f64 = 4.0;

/// Estimates, corrected by what each model really counted.
#[derive(Debug, Clone, Default)]
pub struct TokenEstimates {
    corrections: BTreeMap<String, f64>,
}

impl TokenEstimates {
    /// The tokens a model will count, as far as is known, rounded up.
    pub fn estimate(&self, model: &str, text: &str) -> u64 {
        let correction = self.corrections.get(model).copied().unwrap_or(1.0);
        scale(raw(model, text), correction)
    }

    /// Learns from what the provider counted for a text that was estimated.
    pub fn learn(&mut self, model: &str, text: &str, counted: u64) {
        let raw = raw(model, text).max(1);
        #[allow(clippy::cast_precision_loss)] // Prompts are far below 2^52 tokens.
        let seen = (counted as f64 / raw as f64).clamp(LEAST, MOST);
        let correction = self.corrections.entry(model.to_owned()).or_insert(1.0);
        *correction = *correction * (1.0 - WEIGHT) + seen * WEIGHT;
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // Positive, and far below 2^52.
fn scale(tokens: u64, by: f64) -> u64 {
    (tokens as f64 * by).ceil() as u64
}

fn raw(model: &str, text: &str) -> u64 {
    match exact(model, text) {
        Some(count) => count,
        None => (text.len() as u64).div_ceil(BYTES),
    }
}

/// The exact count, where the model's vocabulary is built in: OpenAI's, without the network.
pub fn exact(model: &str, text: &str) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let newer = ["gpt-5", "gpt-4o", "gpt-4.1", "o1", "o3", "o4"];
    let older = ["gpt-4", "gpt-3.5", "text-embedding-3", "text-embedding-ada"];
    let of_openai = !model.contains('/') || model.starts_with("openai");
    if !of_openai {
        return None;
    }
    let vocabulary = if newer.iter().any(|start| name.starts_with(start)) {
        tiktoken_rs::o200k_base_singleton()
    } else if older.iter().any(|start| name.starts_with(start)) {
        tiktoken_rs::cl100k_base_singleton()
    } else {
        return None;
    };
    Some(vocabulary.encode_ordinary(text).len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openais_vocabularies_are_built_in() {
        assert_eq!(exact("openai/gpt-4o", "hello world"), Some(2));
        assert_eq!(exact("openai/gpt-4", "tiktoken is great!"), Some(6));
        assert_eq!(exact("ollama/qwen", "hello world"), None);
    }

    #[test]
    fn an_estimate_learns_what_a_model_really_counts() {
        let mut estimates = TokenEstimates::default();
        let text = "x".repeat(300);
        assert_eq!(estimates.estimate("m", &text), 100);
        for _ in 0..40 {
            estimates.learn("m", &text, 150);
        }
        let learned = estimates.estimate("m", &text);
        assert!((149..=151).contains(&learned), "{learned}");
        assert_eq!(estimates.estimate("other", &text), 100);
    }

    #[test]
    fn one_nonsense_count_cannot_bend_it_without_bound() {
        let mut estimates = TokenEstimates::default();
        for _ in 0..100 {
            estimates.learn("m", "xxx", u64::MAX);
        }
        assert!(estimates.estimate("m", "xxx") <= 4);
    }
}
