//! Keys, tokens and passwords: by their form where the form is telling, by their disorder elsewhere.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::{Confidence, Finding, Label, pattern};

/// What kind of secret it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SecretKind(
    /// A short name, such as `github-token`.
    pub &'static str,
);

/// One secret: where it stands, and what it is. The span covers the secret alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    pub(crate) span: Range<usize>,
    pub(crate) kind: SecretKind,
    pub(crate) confidence: Confidence,
}

/// Forms that hardly anything else has. Group 1 is the secret.
static FORMS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        ("aws-access-key", r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})\b"),
        ("github-token", r"\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})\b"),
        ("gitlab-token", r"\b(gl(?:pat|dt|ptt|cbt|rt|ft|soat)-[A-Za-z0-9_-]{20,64})\b"),
        ("openai-key", r"\b(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,200}|sk-[A-Za-z0-9]{32,64})\b"),
        ("anthropic-key", r"\b(sk-ant-[A-Za-z0-9_-]{24,200})\b"),
        ("google-key", r"\b(AIza[A-Za-z0-9_-]{35})\b"),
        ("google-oauth", r"\b(ya29\.[A-Za-z0-9_-]{30,200}|GOCSPX-[A-Za-z0-9_-]{28})\b"),
        ("slack-token", r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,200}|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{40,80})\b"),
        ("slack-webhook", r"(https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{24,120})"),
        ("discord-webhook", r"(https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/\d{15,22}/[A-Za-z0-9_-]{50,90})"),
        ("stripe-key", r"\b((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{20,120}|whsec_[A-Za-z0-9]{28,64})\b"),
        ("twilio-key", r"\b(SK[a-f0-9]{32})\b"),
        ("sendgrid-key", r"\b(SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50})\b"),
        ("mailgun-key", r"\b(key-[a-f0-9]{32})\b"),
        ("npm-token", r"\b(npm_[A-Za-z0-9]{36})\b"),
        ("pypi-token", r"\b(pypi-[A-Za-z0-9_-]{50,250})"),
        ("crates-token", r"\b(cio[A-Za-z0-9]{32})\b"),
        ("rubygems-token", r"\b(rubygems_[a-f0-9]{48})\b"),
        ("docker-token", r"\b(dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,40})\b"),
        ("huggingface-token", r"\b(hf_[A-Za-z0-9]{34,40})\b"),
        ("digitalocean-token", r"\b(do[opr]_v1_[a-f0-9]{64})\b"),
        ("shopify-token", r"\b(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})\b"),
        ("square-token", r"\b(sq0[a-z]{3}-[A-Za-z0-9_-]{22,43})\b"),
        ("telegram-token", r"\b(\d{8,10}:AA[A-Za-z0-9_-]{33})\b"),
        ("databricks-token", r"\b(dapi[a-f0-9]{32})\b"),
        ("linear-key", r"\b(lin_api_[A-Za-z0-9]{40})\b"),
        ("vault-token", r"\b(hv[sbr]\.[A-Za-z0-9_-]{24,120})\b"),
        ("doppler-token", r"\b(dp\.(?:pt|st|sa|ct)\.[A-Za-z0-9_.-]{40,60})\b"),
        ("age-key", r"\b(AGE-SECRET-KEY-1[A-Z0-9]{58})\b"),
        ("groq-key", r"\b(gsk_[A-Za-z0-9]{48,60})\b"),
        ("jwt", r"\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,})"),
        ("private-key", r"(?s)(-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:.{0,8192}?-----END (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\n]{24,}))"),
        ("azure-storage-key", r"(?i)\bAccountKey=([A-Za-z0-9+/]{60,100}={0,2})"),
        ("url-password", r#"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s:/@"'<>]{0,80}:([^\s:/@"'<>$\{\}]{3,120})@[A-Za-z0-9\[]"#),
        ("authorization", r"(?i)\bauthorization\b['\x22]?\s*[:=]\s*['\x22]?(?:bearer|basic|token)\s+([A-Za-z0-9+/_.=~-]{16,})"),
    ]
    .into_iter()
    .map(|(kind, text)| (pattern(text), kind))
    .collect()
});

/// `something_secret = "…"`, in the ways code and configuration write it. Group 1 is the value.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)\b[a-z0-9_.-]{0,40}(?:secret|passw(?:or)?d|passwd|passphrase|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|auth[_-]?key|client[_-]?secret|credential|encryption[_-]?key|signing[_-]?key)[a-z0-9_-]{0,20}["']?\s*(?:=>|:=|=|:)\s*(?:["'`]([^"'`\n]{8,200})["'`]|([A-Za-z0-9+/_.=~!@#%^&*-]{12,200})\s*(?:$|\n|\r))"#,
    )
});

pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    findings.extend(secrets(text).into_iter().map(|secret| Finding {
        label: Label::Secret,
        span: secret.span,
        confidence: secret.confidence,
        what: secret.kind.0,
    }));
}

/// Every secret in a text, in order and without overlap.
pub(crate) fn secrets(text: &str) -> Vec<Secret> {
    let mut all = Vec::new();
    for (form, kind) in FORMS.iter() {
        for found in form.captures_iter(text) {
            if let Some(value) = found.get(1)
                && !is_placeholder(value.as_str())
            {
                all.push(Secret {
                    span: value.range(),
                    kind: SecretKind(kind),
                    confidence: Confidence::High,
                });
            }
        }
    }
    for found in ASSIGNMENT.captures_iter(text) {
        if let Some(value) = found.get(1).or_else(|| found.get(2))
            && looks_random(value.as_str())
        {
            all.push(Secret {
                span: value.range(),
                kind: SecretKind("assigned-secret"),
                confidence: Confidence::Medium,
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
