//! One rule.

use serde::Serialize;

use super::act::GateAct;
use super::pattern::{Pattern, PatternFit};
use super::ruling::Ruling;
use crate::approvals::{AdvanceApproval, ApprovalTerms};
use crate::findings::{self, FindingLabel};
use crate::globs::PathGlobs;
use crate::shell::{ShellReading, SimpleCommand};

/// A rule as it was read from a file.
#[derive(Debug, Clone)]
pub struct GateRule {
    pub id: String,
    pub ruling: Ruling,
    /// Why it is there.
    pub reason: String,
    pub place: RulePosition,
    pub(super) command: Option<Pattern>,
    pub(super) tools: Vec<String>,
    pub(super) paths: Option<PathGlobs>,
    pub(super) findings: Vec<FindingLabel>,
    pub(super) outside_scope: bool,
    pub(super) terms: Option<ApprovalTerms>,
    pub(super) beforehand: Option<AdvanceApproval>,
    pub(super) examples: Vec<Example>,
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulePosition {
    pub file: String,
    pub line: usize,
}

/// Something a rule is about, or is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    pub(super) text: String,
    pub(super) matches: bool,
    pub(super) line: usize,
}

impl GateRule {
    /// What the rule matches of an act apart from its command: the matching part, or nothing.
    fn beside_command(&self, act: &GateAct) -> Option<Vec<String>> {
        let mut parts = Vec::new();
        if !self.tools.is_empty() {
            if !self.tools.contains(&act.tool) {
                return None;
            }
            parts.push(act.tool.clone());
        }
        if let Some(globs) = &self.paths {
            parts.push(act.writes.iter().find(|path| globs.matches(path))?.clone());
        }
        if !self.findings.is_empty() {
            let found = self
                .findings
                .iter()
                .find(|label| act.findings.contains(label))?;
            parts.push(found.name().to_owned());
        }
        if self.outside_scope {
            parts.push(act.outside_scope()?.to_owned());
        }
        Some(parts)
    }

    /// What the rule says about an act without a command, and about which part.
    pub(super) fn on_act(&self, act: &GateAct) -> Option<(Ruling, String)> {
        if self.command.is_some() {
            return None;
        }
        let parts = self.beside_command(act)?;
        Some((self.ruling, parts.join(", ")))
    }

    /// What the rule says about one command of an act.
    pub(super) fn on_command(
        &self,
        act: &GateAct,
        command: &SimpleCommand,
    ) -> Option<(Ruling, String)> {
        let pattern = self.command.as_ref()?;
        self.beside_command(act)?;
        let ruling = match self.ruling {
            Ruling::Allow => pattern.fits_exactly(command).then_some(Ruling::Allow)?,
            strict => match pattern.fits(command) {
                PatternFit::No => return None,
                PatternFit::Yes => strict,
                // Whether it is forbidden is known only when it runs: a person looks first.
                PatternFit::Maybe => Ruling::Ask,
            },
        };
        Some((ruling, command.text()))
    }

    /// The examples that do not come out as they say.
    pub(super) fn failing_examples(&self) -> Vec<&Example> {
        self.examples
            .iter()
            .filter(|example| self.is_about(&example.text) != example.matches)
            .collect()
    }

    /// An example is a command, a path, a text or a tool: what the rule is about first.
    fn is_about(&self, text: &str) -> bool {
        if let Some(pattern) = &self.command {
            let reading = ShellReading::of_shell(text);
            return reading.commands.iter().any(|command| match self.ruling {
                Ruling::Allow => pattern.fits_exactly(command),
                _ => pattern.fits(command) != PatternFit::No,
            });
        }
        if let Some(globs) = &self.paths {
            return globs.matches(text);
        }
        if !self.findings.is_empty() {
            let found = findings::scan(text).findings;
            return found.iter().any(|one| self.findings.contains(&one.label));
        }
        self.tools.iter().any(|tool| tool == text)
    }

    /// How many examples the rule has.
    pub fn example_count(&self) -> usize {
        self.examples.len()
    }

    /// Everything that decides, in a form with a digest.
    pub(super) fn as_value(&self) -> serde_json::Value {
        serde_json::json!({
            "id": self.id,
            "ruling": self.ruling,
            "reason": self.reason,
            "match": self.command.as_ref().map(|pattern| &pattern.words),
            "with": self.command.as_ref().map(|pattern| &pattern.with),
            "tools": self.tools,
            "paths": self.paths.as_ref().map(PathGlobs::patterns),
            "findings": self.findings.iter().map(|label| label.name()).collect::<Vec<_>>(),
            "outside_scope": self.outside_scope,
            "terms": self.terms,
            "beforehand": self.beforehand,
        })
    }

    /// What the rule is about, for people.
    pub fn about(&self) -> String {
        let mut parts = Vec::new();
        if let Some(pattern) = &self.command {
            let words: Vec<_> = pattern.words.iter().map(|words| words.join("|")).collect();
            parts.push(words.join(" "));
            if !pattern.with.is_empty() {
                parts.push(format!("with {}", pattern.with.join("|")));
            }
        }
        if !self.tools.is_empty() {
            parts.push(format!("tool {}", self.tools.join("|")));
        }
        if let Some(globs) = &self.paths {
            parts.push(format!("writes {}", globs.patterns().join("|")));
        }
        if !self.findings.is_empty() {
            let names: Vec<_> = self.findings.iter().map(|label| label.name()).collect();
            parts.push(format!("finding {}", names.join("|")));
        }
        if self.outside_scope {
            parts.push("writes outside the declared scope".to_owned());
        }
        parts.join(", ")
    }
}
