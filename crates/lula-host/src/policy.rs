//! The policy in force, as data: its rules, what it says to an act, and what is found in a text.

use std::io::Read;
use std::path::Path;

use lula_gate::findings::{self, Finding, FindingConfidence, FindingLabel, MAX_TEXT};
use lula_gate::rules::{GateRule, GateVerdict, RuleSet};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::HostError;

/// A rule, in a few words.
pub fn brief(rule: &GateRule) -> Value {
    json!({
        "id": rule.id, "decision": rule.ruling, "about": rule.about(), "reason": rule.reason,
    })
}

/// All rules of a policy as one JSON document.
pub fn document(policy: &RuleSet) -> Result<Value, HostError> {
    let rules = policy.rules().map(|rule| {
        let mut value = brief(rule);
        value["place"] = json!(rule.place);
        value["examples"] = json!(rule.example_count());
        value
    });
    let version = policy.version();
    Ok(json!({
        "version": version.map_err(|error| HostError::Internal(error.to_string()))?,
        "default": policy.default_ruling(), "terms": policy.terms(),
        "beforehand": policy.agreed_beforehand(), "rules": rules.collect::<Vec<_>>(),
    }))
}

/// What the policy says to an act.
pub fn decision(policy: &RuleSet, verdict: &GateVerdict) -> Value {
    json!({
        "decision": verdict.ruling,
        "rule": verdict.rule(),
        "reason": verdict.reason(),
        "because": verdict.because,
        "terms": verdict.terms,
        "beforehand": verdict.beforehand,
        "policy": policy.version().ok(),
    })
}

/// What was found in a text.
#[derive(Debug, Serialize)]
pub struct TextScanReport {
    pub findings: Vec<LocatedFinding>,
    /// Whether there was more than is read.
    pub truncated: bool,
}

/// Something found in a text.
#[derive(Debug, Serialize)]
pub struct LocatedFinding {
    pub label: FindingLabel,
    pub what: &'static str,
    /// Number of the line, from 1.
    pub line: usize,
    span: [usize; 2],
    confidence: FindingConfidence,
}

impl LocatedFinding {
    fn of(finding: &Finding, text: &str) -> Self {
        let span = &finding.span;
        Self {
            label: finding.label,
            what: finding.what,
            line: text[..span.start].matches('\n').count() + 1,
            span: [span.start, span.end],
            confidence: finding.confidence,
        }
    }
}

/// Looks through a file, or through what else is read.
pub fn scan(file: Option<&Path>, otherwise: impl Read) -> Result<TextScanReport, HostError> {
    let mut bytes = Vec::new();
    // One byte more than is looked at, to tell that there is more.
    let most = MAX_TEXT as u64 + 1;
    let read = match file {
        Some(path) => {
            std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
        }
        None => otherwise.take(most).read_to_end(&mut bytes),
    };
    read.map_err(HostError::TextUnreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let found = findings::scan(&text);
    let findings = found.findings.iter();
    Ok(TextScanReport {
        findings: findings
            .map(|finding| LocatedFinding::of(finding, &text))
            .collect(),
        truncated: found.truncated,
    })
}
