//! Keys, tokens and passwords: by their form where the form is telling, by their disorder elsewhere.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;
use serde::Serialize;

use super::{Finding, FindingConfidence, FindingLabel, pattern};

/// What kind of secret it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SecretKind(
    /// A short name, such as `github-token`.
    pub &'static str,
);

/// One secret: where it stands, and what it is. The span covers the secret alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSecret {
    pub(crate) span: Range<usize>,
    pub(crate) kind: SecretKind,
    pub(crate) confidence: FindingConfidence,
}

/// A form that hardly anything else has.
struct Form {
    kind: &'static str,
    /// One of these stands in every secret of this form, whatever its case: without it, the pattern
    /// is not even made. Most texts hold none, and making all patterns takes longer than most
    /// commands run.
    hints: &'static [&'static str],
    /// Group 1 is the secret.
    text: &'static str,
    pattern: OnceLock<Regex>,
}

impl Form {
    const fn new(kind: &'static str, hints: &'static [&'static str], text: &'static str) -> Self {
        Self {
            kind,
            hints,
            text,
            pattern: OnceLock::new(),
        }
    }

    /// The pattern, where something in the text hints at it.
    fn for_text(&self, lower: &str) -> Option<&Regex> {
        let hinted = self.hints.iter().any(|hint| lower.contains(hint));
        hinted.then(|| self.pattern.get_or_init(|| pattern(self.text)))
    }
}

#[rustfmt::skip]
static FORMS: [Form; 35] = [
    Form::new("aws-access-key", &["akia", "asia", "abia", "acca"], r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})\b"),
    Form::new("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], r"\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})\b"),
    Form::new("gitlab-token", &["glpat-", "gldt-", "glptt-", "glcbt-", "glrt-", "glft-", "glsoat-"], r"\b(gl(?:pat|dt|ptt|cbt|rt|ft|soat)-[A-Za-z0-9_-]{20,64})\b"),
    Form::new("openai-key", &["sk-"], r"\b(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,200}|sk-[A-Za-z0-9]{32,64})\b"),
    Form::new("anthropic-key", &["sk-ant-"], r"\b(sk-ant-[A-Za-z0-9_-]{24,200})\b"),
    Form::new("google-key", &["aiza"], r"\b(AIza[A-Za-z0-9_-]{35})\b"),
    Form::new("google-oauth", &["ya29.", "gocspx-"], r"\b(ya29\.[A-Za-z0-9_-]{30,200}|GOCSPX-[A-Za-z0-9_-]{28})\b"),
    Form::new("slack-token", &["xox", "xapp-"], r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,200}|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{40,80})\b"),
    Form::new("slack-webhook", &["hooks.slack.com"], r"(https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{24,120})"),
    Form::new("discord-webhook", &["/api/webhooks/"], r"(https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/\d{15,22}/[A-Za-z0-9_-]{50,90})"),
    Form::new("stripe-key", &["_live_", "_test_", "whsec_"], r"\b((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{20,120}|whsec_[A-Za-z0-9]{28,64})\b"),
    Form::new("twilio-key", &["sk"], r"\b(SK[a-f0-9]{32})\b"),
    Form::new("sendgrid-key", &["sg."], r"\b(SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50})\b"),
    Form::new("mailgun-key", &["key-"], r"\b(key-[a-f0-9]{32})\b"),
    Form::new("npm-token", &["npm_"], r"\b(npm_[A-Za-z0-9]{36})\b"),
    Form::new("pypi-token", &["pypi-"], r"\b(pypi-[A-Za-z0-9_-]{50,250})"),
    Form::new("crates-token", &["cio"], r"\b(cio[A-Za-z0-9]{32})\b"),
    Form::new("rubygems-token", &["rubygems_"], r"\b(rubygems_[a-f0-9]{48})\b"),
    Form::new("docker-token", &["dckr_"], r"\b(dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,40})\b"),
    Form::new("huggingface-token", &["hf_"], r"\b(hf_[A-Za-z0-9]{34,40})\b"),
    Form::new("digitalocean-token", &["_v1_"], r"\b(do[opr]_v1_[a-f0-9]{64})\b"),
    Form::new("shopify-token", &["shp"], r"\b(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})\b"),
    Form::new("square-token", &["sq0"], r"\b(sq0[a-z]{3}-[A-Za-z0-9_-]{22,43})\b"),
    Form::new("telegram-token", &[":aa"], r"\b(\d{8,10}:AA[A-Za-z0-9_-]{33})\b"),
    Form::new("databricks-token", &["dapi"], r"\b(dapi[a-f0-9]{32})\b"),
    Form::new("linear-key", &["lin_api_"], r"\b(lin_api_[A-Za-z0-9]{40})\b"),
    Form::new("vault-token", &["hvs.", "hvb.", "hvr."], r"\b(hv[sbr]\.[A-Za-z0-9_-]{24,120})\b"),
    Form::new("doppler-token", &["dp."], r"\b(dp\.(?:pt|st|sa|ct)\.[A-Za-z0-9_.-]{40,60})\b"),
    Form::new("age-key", &["age-secret-key-1"], r"\b(AGE-SECRET-KEY-1[A-Z0-9]{58})\b"),
    Form::new("groq-key", &["gsk_"], r"\b(gsk_[A-Za-z0-9]{48,60})\b"),
    Form::new("jwt", &["eyj"], r"\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,})"),
    Form::new("private-key", &["private key"], r"(?s)(-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:.{0,8192}?-----END (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\n]{24,}))"),
    Form::new("azure-storage-key", &["accountkey="], r"(?i)\bAccountKey=([A-Za-z0-9+/]{60,100}={0,2})"),
    Form::new("url-password", &["://"], r#"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s:/@"'<>]{0,80}:([^\s:/@"'<>$\{\}]{3,120})@[A-Za-z0-9\[]"#),
    Form::new("authorization", &["authorization"], r"(?i)\bauthorization\b['\x22]?\s*[:=]\s*['\x22]?(?:bearer|basic|token)\s+([A-Za-z0-9+/_.=~-]{16,})"),
];

/// `something_secret = "…"`, in the ways code and configuration write it. The value is the group
/// that matched.
static ASSIGNMENT: Form = Form::new(
    "assigned-secret",
    &[
        "secret",
        "passw",
        "passphrase",
        "token",
        "key",
        "credential",
    ],
    r#"(?i)\b[a-z0-9_.-]{0,40}(?:secret|passw(?:or)?d|passwd|passphrase|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|auth[_-]?key|client[_-]?secret|credential|encryption[_-]?key|signing[_-]?key)[a-z0-9_-]{0,20}["']?\s*(?:=>|:=|=|:)\s*(?:["'`]([^"'`\n]{8,200})["'`]|([A-Za-z0-9+/_.=~!@#%^&*-]{12,200})\s*(?:$|\n|\r))"#,
);

pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    findings.extend(secrets(text).into_iter().map(|secret| Finding {
        label: FindingLabel::Secret,
        span: secret.span,
        confidence: secret.confidence,
        what: secret.kind.0,
    }));
}

/// Every secret in a text, in order and without overlap.
pub(crate) fn secrets(text: &str) -> Vec<FoundSecret> {
    let mut all = Vec::new();
    let lower = text.to_ascii_lowercase();
    for form in &FORMS {
        let Some(pattern) = form.for_text(&lower) else {
            continue;
        };
        for found in pattern.captures_iter(text) {
            if let Some(value) = found.get(1)
                && !is_placeholder(value.as_str())
            {
                all.push(FoundSecret {
                    span: value.range(),
                    kind: SecretKind(form.kind),
                    confidence: FindingConfidence::High,
                });
            }
        }
    }
    let assignments = ASSIGNMENT.for_text(&lower);
    for found in assignments
        .iter()
        .flat_map(|pattern| pattern.captures_iter(text))
    {
        if let Some(value) = found.get(1).or_else(|| found.get(2))
            && looks_random(value.as_str())
        {
            all.push(FoundSecret {
                span: value.range(),
                kind: SecretKind(ASSIGNMENT.kind),
                confidence: FindingConfidence::Medium,
            });
        }
    }
    // The longer one of two that overlap says more.
    all.sort_by_key(|secret| (secret.span.start, std::cmp::Reverse(secret.span.end)));
    let mut end = 0;
    all.retain(|secret| {
        let keep = secret.span.start >= end;
        if keep {
            end = secret.span.end;
        }
        keep
    });
    all
}

/// Values that documentation writes instead of a secret.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    let words = [
        "example",
        "xxxx",
        "your",
        "placeholder",
        "dummy",
        "changeme",
        "redacted",
        "<",
        "${",
        "{{",
        "...",
        "****",
        "sample",
        "insert",
        "replace",
        "todo",
        "fake",
        "mock",
        "password",
        "secret",
        "0123456789",
        "abcdefgh",
        "123456",
    ];
    let bytes = value.as_bytes();
    let same = bytes
        .iter()
        .filter(|byte| bytes.first() == Some(byte))
        .count();
    words.iter().any(|word| lower.contains(word)) || same * 2 > bytes.len()
}

/// Whether a value is disordered enough to be made by a machine or meant as a password.
fn looks_random(value: &str) -> bool {
    if value.len() < 12 || is_placeholder(value) || value.contains(' ') {
        return false;
    }
    // Names of variables, paths, calls and addresses are not the secret itself.
    if value.contains("()")
        || value.contains("://")
        || value.starts_with(['/', '.', '$', '%', '@'])
        || value.contains("env")
        || value.contains("${")
    {
        return false;
    }
    let count = |is: fn(&char) -> bool| value.chars().filter(is).count();
    let digits = count(char::is_ascii_digit);
    let upper = count(char::is_ascii_uppercase);
    let lower = count(char::is_ascii_lowercase);
    let other = value.chars().count() - digits - upper - lower;
    let kinds = [digits, upper, lower, other]
        .iter()
        .filter(|n| **n > 0)
        .count();
    // Words joined by punctuation are names; digits inside are what makes the difference.
    kinds >= 2 && digits >= 2 && entropy(value) >= 3.2
}

/// Shannon entropy in bits for each character.
fn entropy(text: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::<char, u32>::new();
    for character in text.chars() {
        *counts.entry(character).or_default() += 1;
    }
    let total = f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
    counts
        .values()
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_can_be_made_and_its_hints_can_be_met() {
        for form in FORMS.iter().chain([&ASSIGNMENT]) {
            assert!(!form.hints.is_empty(), "{}", form.kind);
            for hint in form.hints {
                assert_eq!(hint.to_ascii_lowercase(), *hint, "{}", form.kind);
                assert!(form.for_text(hint).is_some());
            }
        }
    }
}
