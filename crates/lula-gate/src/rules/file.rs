//! Rules files: TOML, read strictly, with the line of every mistake.

use std::num::NonZeroU32;
use std::time::Duration;

use lula_protocol::units::parse_duration;
use serde::Deserialize;
use toml::Spanned;

use super::pattern::Pattern;
use super::rule::{Example, GateRule, RulePosition};
use super::ruling::Ruling;
use crate::approvals::{AdvanceApproval, ApprovalExpiryPolicy, ApprovalTerms};
use crate::findings::FindingLabel;
use crate::globs::PathGlobs;

/// Longer files are not taken for rules.
const MAX_BYTES: usize = 256 * 1024;
const APPROVAL_NEEDED: &str = "an approver has to agree here";
const TOOLS: [&str; 12] = [
    "read_file",
    "list_files",
    "search",
    "outline",
    "write_file",
    "apply_patch",
    "exec",
    "job",
    "git",
    "snapshot",
    "undo",
    // Changes that leave a workspace for the user's tree.
    "commit",
];

/// A mistake in a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct RulesFileError {
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    pub what: String,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesFileTrust {
    /// Written by the operator: may switch built-in rules off and say what silence means.
    Operator,
    /// Written by the authors of the repository: can only tighten.
    Repository,
}

/// One rules file, as it was read.
#[derive(Debug, Clone, Copy)]
pub struct RulesFileSource<'a> {
    /// What to call it in messages.
    pub file: &'a str,
    pub text: &'a str,
    pub trust: RulesFileTrust,
}

/// What a file says.
#[derive(Debug, Clone)]
pub(super) struct ParsedRulesFile {
    pub(super) rules: Vec<GateRule>,
    pub(super) off: Vec<(String, usize)>,
    pub(super) default: Option<Ruling>,
    pub(super) terms: Option<TermsText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    default: Option<Spanned<Ruling>>,
    #[serde(default)]
    off: Vec<Spanned<String>>,
    #[serde(default)]
    approval: Option<Spanned<TermsText>>,
    #[serde(default)]
    rule: Vec<Spanned<RuleText>>,
}

/// Terms as they are written; what is left out stays as it is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TermsText {
    quorum: Option<NonZeroU32>,
    role: Option<String>,
    four_eyes: Option<bool>,
    expires: Option<String>,
    on_expiry: Option<ApprovalExpiryPolicy>,
    pub(super) beforehand: Option<AdvanceApproval>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    id: Option<String>,
    decision: Ruling,
    reason: Option<String>,
    #[serde(rename = "match", default)]
    words: Vec<OneOrMany>,
    #[serde(default)]
    with: Vec<String>,
    tool: Option<OneOrMany>,
    #[serde(default)]
    paths: Vec<String>,
    finding: Option<OneOrMany>,
    #[serde(default)]
    outside_scope: bool,
    approval: Option<TermsText>,
    #[serde(default)]
    examples: ExamplesText,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExamplesText {
    #[serde(rename = "match", default)]
    matching: Vec<Spanned<String>>,
    #[serde(default)]
    not: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

impl TermsText {
    /// These terms over others.
    pub(super) fn over(&self, base: &ApprovalTerms) -> Result<ApprovalTerms, String> {
        let open_ms = match &self.expires {
            None => base.open_ms,
            Some(text) => duration_ms(text)
                .ok_or_else(|| format!("expires = {text:?} is not a duration such as 30m"))?,
        };
        let terms = ApprovalTerms {
            quorum: self.quorum.unwrap_or(base.quorum),
            role: self.role.clone().or_else(|| base.role.clone()),
            four_eyes: self.four_eyes.unwrap_or(base.four_eyes),
            open_ms,
            on_expiry: self.on_expiry.unwrap_or(base.on_expiry),
        };
        if terms.on_expiry == ApprovalExpiryPolicy::ApproveTree && !terms.anyone_will_do() {
            return Err(
                "on_expiry = \"approve_tree\" goes with no quorum, role or four_eyes: silence is nobody"
                    .to_owned(),
            );
        }
        if self.beforehand == Some(AdvanceApproval::Tree) && !terms.anyone_will_do() {
            return Err(
                "beforehand = \"tree\" goes with no quorum, role or four_eyes: it is one person's word"
                    .to_owned(),
            );
        }
        Ok(terms)
    }

    /// Whether silence or a word beforehand is enough, which only the operator may say.
    fn loosens(&self) -> bool {
        self.on_expiry == Some(ApprovalExpiryPolicy::ApproveTree)
            || self.beforehand == Some(AdvanceApproval::Tree)
    }
}

/// Longest that an approval can stay open.
const MAX_OPEN: Duration = Duration::from_hours(30 * 24);

fn duration_ms(text: &str) -> Option<u64> {
    let open =
        parse_duration(text).filter(|open| (Duration::from_millis(1)..=MAX_OPEN).contains(open));
    open.and_then(|open| open.as_millis().try_into().ok())
}

/// Reads a file without running its examples.
pub(super) fn parse(source: &RulesFileSource<'_>) -> Result<ParsedRulesFile, RulesFileError> {
    let text = source.text;
    let line_of = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let wrong = |at: usize, what: String| RulesFileError {
        file: source.file.to_owned(),
        line: line_of(at),
        what,
    };
    if text.len() > MAX_BYTES {
        return Err(wrong(0, format!("it is larger than {MAX_BYTES} bytes")));
    }
    let file: FileText = toml::from_str(text).map_err(|error| {
        wrong(
            error.span().map_or(0, |span| span.start),
            error.message().to_owned(),
        )
    })?;
    let only_operator =
        |at: usize, what: &str| wrong(at, format!("{what}: a repository can only tighten"));
    let from_repository = source.trust == RulesFileTrust::Repository;
    if from_repository && let Some(off) = file.off.first() {
        return Err(only_operator(
            off.span().start,
            "rules cannot be switched off here",
        ));
    }
    if let Some(terms) = &file.approval {
        let at = terms.span().start;
        terms
            .get_ref()
            .over(&ApprovalTerms::default())
            .map_err(|what| wrong(at, what))?;
        if from_repository && terms.get_ref().loosens() {
            return Err(only_operator(at, APPROVAL_NEEDED));
        }
    }
    let mut rules: Vec<GateRule> = Vec::with_capacity(file.rule.len());
    for spanned in file.rule {
        let at = spanned.span().start;
        let line = line_of(at);
        let place = RulePosition {
            file: source.file.to_owned(),
            line,
        };
        let text = spanned.into_inner();
        if from_repository && text.approval.as_ref().is_some_and(TermsText::loosens) {
            return Err(only_operator(at, APPROVAL_NEEDED));
        }
        let rule = rule(text, place, &line_of).map_err(|what| wrong(at, what))?;
        if rules.iter().any(|other| other.id == rule.id) {
            return Err(wrong(at, format!("there are two rules {:?}", rule.id)));
        }
        rules.push(rule);
    }
    Ok(ParsedRulesFile {
        rules,
        off: file
            .off
            .into_iter()
            .map(|off| {
                let line = line_of(off.span().start);
                (off.into_inner(), line)
            })
            .collect(),
        default: file.default.map(Spanned::into_inner),
        terms: file.approval.map(Spanned::into_inner),
    })
}

fn rule(
    text: RuleText,
    place: RulePosition,
    line_of: &dyn Fn(usize) -> usize,
) -> Result<GateRule, String> {
    let id = text
        .id
        .unwrap_or_else(|| format!("{}:{}", place.file, place.line));
    let plain = |c: char| !c.is_control() && !c.is_whitespace();
    if id.is_empty() || id.len() > 200 || !id.chars().all(plain) {
        return Err(format!("{id:?} is not a name for a rule"));
    }
    let words: Vec<Vec<String>> = text.words.into_iter().map(OneOrMany::into_vec).collect();
    if words
        .iter()
        .any(|alternatives| alternatives.is_empty() || alternatives.iter().any(String::is_empty))
    {
        return Err("an empty word matches nothing: leave it out".to_owned());
    }
    if words.is_empty() && !text.with.is_empty() {
        return Err("`with` needs `match`, the command it speaks about".to_owned());
    }
    let tools = text.tool.map(OneOrMany::into_vec).unwrap_or_default();
    if let Some(unknown) = tools.iter().find(|tool| !TOOLS.contains(&tool.as_str())) {
        return Err(format!(
            "there is no tool {unknown:?}: tools are {}",
            TOOLS.join(", ")
        ));
    }
    let names = text.finding.map(OneOrMany::into_vec).unwrap_or_default();
    let mut findings = Vec::with_capacity(names.len());
    for name in names {
        findings.push(FindingLabel::from_name(&name).ok_or_else(|| {
            let known: Vec<_> = FindingLabel::ALL.iter().map(|label| label.name()).collect();
            format!(
                "there is no finding {name:?}: findings are {}",
                known.join(", ")
            )
        })?);
    }
    let paths = if text.paths.is_empty() {
        None
    } else {
        Some(PathGlobs::new(&text.paths).map_err(|error| error.to_string())?)
    };
    if words.is_empty()
        && tools.is_empty()
        && findings.is_empty()
        && paths.is_none()
        && !text.outside_scope
    {
        return Err(
            "the rule is about nothing: say match, tool, paths, finding or outside_scope"
                .to_owned(),
        );
    }
    let beforehand = text.approval.as_ref().and_then(|terms| terms.beforehand);
    let terms = text
        .approval
        .map(|terms| terms.over(&ApprovalTerms::default()))
        .transpose()?;
    let of = |examples: Vec<Spanned<String>>, matches: bool| {
        examples.into_iter().map(move |example| Example {
            matches,
            line: line_of(example.span().start),
            text: example.into_inner(),
        })
    };
    let mut examples: Vec<_> = of(text.examples.matching, true).collect();
    examples.extend(of(text.examples.not, false));
    Ok(GateRule {
        reason: text.reason.unwrap_or_else(|| "a rule says so".to_owned()),
        ruling: text.decision,
        command: (!words.is_empty()).then_some(Pattern {
            words,
            with: text.with,
        }),
        tools,
        paths,
        findings,
        outside_scope: text.outside_scope,
        terms,
        beforehand,
        examples,
        place,
        id,
    })
}
