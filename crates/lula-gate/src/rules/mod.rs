//! Policy rules: when to ask, and what never to do.
//!
//! Rules come from the built-in file, the operator's files and the repository's file. The strictest
//! one that matches wins. Each rule carries examples, which run when its file is loaded: a rule that
//! does not do what it says never decides anything. Rules decide when to ask; they are not the
//! boundary.

mod act;
mod file;
#[cfg(test)]
mod force_push;
mod pattern;
mod rule;
mod ruling;
#[cfg(test)]
mod tests;

use lula_protocol::Digest;
use lula_protocol::canonical::CanonicalError;
use lula_protocol::digest::DigestDomain;

use crate::approvals::{AdvanceApproval, ApprovalTerms};
use crate::shell::{ShellReading, SimpleCommand};

pub use act::{GateAct, added_lines, paths_of_diff, paths_of_patch};
pub use file::{RulesFileError, RulesFileSource, RulesFileTrust};
pub use rule::{GateRule, RulePosition};
pub use ruling::{GateVerdict, Ruling, RulingReason};

/// Name of the built-in file in messages.
pub const BUILT_IN_FILE: &str = "built-in";
/// Name of a repository's rules file, at its top.
pub const REPOSITORY_FILE: &str = ".lula-rules.toml";
const BUILT_IN: &str = include_str!("default.toml");

/// The text of the built-in file.
pub const fn built_in_text() -> &'static str {
    BUILT_IN
}

/// Every rule in force.
#[derive(Debug, Clone)]
pub struct RuleSet {
    layers: Vec<Layer>,
    default: Ruling,
    terms: ApprovalTerms,
    beforehand: AdvanceApproval,
}

#[derive(Debug, Clone)]
struct Layer {
    trust: RulesFileTrust,
    rules: Vec<GateRule>,
}

impl RuleSet {
    /// The built-in rules alone.
    pub fn built_in() -> Result<Self, RulesFileError> {
        Self::load(&[])
    }

    /// The built-in rules and these files, in order. A mistake or a failing example anywhere
    /// refuses them all.
    pub fn load(sources: &[RulesFileSource<'_>]) -> Result<Self, RulesFileError> {
        let built_in = RulesFileSource {
            file: BUILT_IN_FILE,
            text: BUILT_IN,
            trust: RulesFileTrust::Operator,
        };
        let mut policy = Self {
            layers: Vec::new(),
            default: Ruling::Allow,
            terms: ApprovalTerms::default(),
            beforehand: AdvanceApproval::default(),
        };
        // Its examples cannot change after the build that ran them as tests.
        policy.add(&built_in)?;
        for source in sources {
            if let Some(failure) = test(source)?.into_iter().next() {
                return Err(failure);
            }
            policy.add(source)?;
        }
        Ok(policy)
    }

    fn add(&mut self, source: &RulesFileSource<'_>) -> Result<(), RulesFileError> {
        let parsed = file::parse(source)?;
        let wrong = |line: usize, what: String| RulesFileError {
            file: source.file.to_owned(),
            line,
            what,
        };
        for (id, line) in &parsed.off {
            let mut known = false;
            for layer in &mut self.layers {
                let before = layer.rules.len();
                layer.rules.retain(|rule| rule.id != *id);
                known |= layer.rules.len() != before;
            }
            if !known {
                return Err(wrong(
                    *line,
                    format!("there is no rule {id:?} to switch off"),
                ));
            }
        }
        self.default = self.default.max(parsed.default.unwrap_or_default());
        if let Some(text) = parsed.terms {
            // A repository that loosens is refused when its file is read.
            self.beforehand = text.beforehand.unwrap_or(self.beforehand);
            let terms = text.over(&self.terms).map_err(|what| wrong(1, what))?;
            self.terms = match source.trust {
                RulesFileTrust::Operator => terms,
                RulesFileTrust::Repository => self.terms.strictest(&terms),
            };
        }
        self.layers.push(Layer {
            trust: source.trust,
            rules: parsed.rules,
        });
        Ok(())
    }

    /// What all rules say about an act.
    pub fn judge(&self, act: &GateAct) -> GateVerdict {
        let mut because = Vec::new();
        let mut ruling = self.judge_beside_commands(act, &mut because);
        if let Some(reading) = &act.reading {
            ruling = ruling.max(self.judge_commands(act, reading, &mut because));
        }
        because.sort_by_key(|one: &RulingReason| std::cmp::Reverse(one.ruling));
        let mut terms = self.terms.clone();
        for one in &because {
            let rule = self.rules().find(|rule| rule.id == one.rule);
            if let Some(asked) = rule.and_then(|rule| rule.terms.as_ref()) {
                terms = terms.strictest(asked);
            }
        }
        let asks = |one: &&RulingReason| one.ruling == Ruling::Ask;
        let agreed = |one: &RulingReason| self.beforehand(&one.rule) == AdvanceApproval::Tree;
        GateVerdict {
            beforehand: terms.anyone_will_do() && because.iter().filter(asks).all(agreed),
            ruling,
            because,
            terms,
        }
    }

    /// What may be agreed to beforehand where a rule asks: as it says, or as all do.
    fn beforehand(&self, rule: &str) -> AdvanceApproval {
        let named = self.rules().filter(|known| known.id == rule);
        let own = named
            .filter_map(|known| known.beforehand)
            .collect::<Vec<_>>();
        match own.as_slice() {
            [] => self.beforehand,
            own if own.contains(&AdvanceApproval::Never) => AdvanceApproval::Never,
            _ => AdvanceApproval::Tree,
        }
    }

    fn judge_beside_commands(&self, act: &GateAct, because: &mut Vec<RulingReason>) -> Ruling {
        let mut matched = Vec::new();
        let mut allowed = false;
        for (trust, rule) in self.ranked() {
            if let Some((ruling, part)) = rule.on_act(act) {
                allowed |= ruling == Ruling::Allow && trust == RulesFileTrust::Operator;
                matched.push(one(rule, ruling, part));
            }
        }
        let strictest = matched.iter().map(|one| one.ruling).max();
        because.extend(matched);
        let by_default = if act.mutates && act.reading.is_none() && !allowed {
            self.by_default(&act.tool, because)
        } else {
            Ruling::Allow
        };
        strictest.unwrap_or_default().max(by_default)
    }

    fn judge_commands(
        &self,
        act: &GateAct,
        reading: &ShellReading,
        because: &mut Vec<RulingReason>,
    ) -> Ruling {
        let mut strictest = Ruling::Allow;
        for doubt in &reading.doubts {
            strictest = strictest.max(Ruling::Ask);
            because.push(RulingReason {
                rule: "doubt".to_owned(),
                ruling: Ruling::Ask,
                reason: doubt.why.to_owned(),
                matched: doubt.part.clone(),
            });
        }
        for command in &reading.commands {
            strictest = strictest.max(self.judge_command(act, command, because));
        }
        strictest
    }

    fn judge_command(
        &self,
        act: &GateAct,
        command: &SimpleCommand,
        because: &mut Vec<RulingReason>,
    ) -> Ruling {
        let mut strictest = Ruling::Allow;
        let mut allowed = false;
        for (trust, rule) in self.ranked() {
            if let Some((ruling, part)) = rule.on_command(act, command) {
                allowed |= ruling == Ruling::Allow && trust == RulesFileTrust::Operator;
                strictest = strictest.max(ruling);
                because.push(one(rule, ruling, part));
            }
        }
        if !allowed {
            strictest = strictest.max(self.by_default(&command.text(), because));
        }
        strictest
    }

    fn by_default(&self, matched: &str, because: &mut Vec<RulingReason>) -> Ruling {
        if self.default > Ruling::Allow {
            because.push(RulingReason {
                rule: "default".to_owned(),
                ruling: self.default,
                reason: "no rule allows it".to_owned(),
                matched: matched.to_owned(),
            });
        }
        self.default
    }

    fn ranked(&self) -> impl Iterator<Item = (RulesFileTrust, &GateRule)> {
        self.layers
            .iter()
            .flat_map(|layer| layer.rules.iter().map(|rule| (layer.trust, rule)))
    }

    /// Every rule in force.
    pub fn rules(&self) -> impl Iterator<Item = &GateRule> {
        self.ranked().map(|(_, rule)| rule)
    }

    /// What happens where no rule matches.
    pub const fn default_ruling(&self) -> Ruling {
        self.default
    }

    /// What has to be true of answers, where no rule asks for more.
    pub const fn terms(&self) -> &ApprovalTerms {
        &self.terms
    }

    /// What the operator who starts the work may agree to before it is known, where no rule says otherwise.
    pub const fn agreed_beforehand(&self) -> AdvanceApproval {
        self.beforehand
    }

    /// The version: a digest of everything that decides. Approvals are bound to it.
    pub fn version(&self) -> Result<Digest, CanonicalError> {
        let rules: Vec<_> = self
            .ranked()
            .map(|(trust, rule)| {
                let mut value = rule.as_value();
                value["tightens_only"] = (trust == RulesFileTrust::Repository).into();
                value
            })
            .collect();
        let whole = serde_json::json!({
            "rules": rules,
            "default": self.default,
            "terms": self.terms,
            "beforehand": self.beforehand,
        });
        Digest::of(DigestDomain::Policy, &whole)
    }
}

fn one(rule: &GateRule, ruling: Ruling, matched: String) -> RulingReason {
    RulingReason {
        rule: rule.id.clone(),
        ruling,
        reason: rule.reason.clone(),
        matched,
    }
}

/// Runs the examples of a file. Returns those that do not come out as they say.
pub fn test(source: &RulesFileSource<'_>) -> Result<Vec<RulesFileError>, RulesFileError> {
    let parsed = file::parse(source)?;
    let mut failures = Vec::new();
    for rule in &parsed.rules {
        for example in rule.failing_examples() {
            let (should, does) = if example.matches {
                ("match", "does not")
            } else {
                ("not match", "does")
            };
            failures.push(RulesFileError {
                file: source.file.to_owned(),
                line: example.line,
                what: format!(
                    "{:?} should {should} the rule {} and {does}",
                    example.text, rule.id
                ),
            });
        }
    }
    Ok(failures)
}
