//! `lula policy`

use std::io::Read;
use std::path::{Path, PathBuf};

use lula_gate::findings::{self, MAX_TEXT};
use lula_gate::rules::{self as gate, GateAct, RulesFileSource, RulesFileTrust, Ruling};
use lula_host::rules;
use lula_protocol::{Code, RunExit};
use serde_json::json;

use crate::cli::PolicyCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain};

pub(super) fn run(command: PolicyCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        PolicyCommand::Check {
            shell,
            write,
            command,
        } => {
            let act = match (shell, command.is_empty()) {
                (Some(text), _) => GateAct::shell(&text),
                (None, false) => GateAct::command(&command),
                (None, true) => GateAct::default(),
            };
            check(&act.writing(write), session)
        }
        PolicyCommand::Test { file } => test(file.as_deref(), session),
        PolicyCommand::Show { built_in: true } => {
            session.screen.line(gate::built_in_text().trim_end())?;
            Ok(RunExit::Verified)
        }
        PolicyCommand::Show { built_in: false } => show(session),
        PolicyCommand::Scan { file } => scan(file, session),
    }
}

pub(super) fn coloured(ruling: Ruling) -> String {
    let style = match ruling {
        Ruling::Allow => GOOD,
        Ruling::Ask => WARN,
        Ruling::Deny => BAD,
    };
    paint(style, ruling)
}

pub(super) fn check(act: &GateAct, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let policy = rules::load(&session.host)?;
    let verdict = policy.judge(act);
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&json!({
            "decision": verdict.ruling,
            "rule": verdict.rule(),
            "reason": verdict.reason(),
            "because": verdict.because,
            "terms": verdict.terms,
            "beforehand": verdict.beforehand,
            "policy": policy.version().ok(),
        }))?;
    } else {
        screen.line(coloured(verdict.ruling))?;
        let mut table = TextTable::default();
        for because in &verdict.because {
            table.row([
                coloured(because.ruling),
                paint(STRONG, &because.rule),
                plain(&because.matched, 80),
                because.reason.clone(),
            ]);
        }
        if verdict.because.is_empty() {
            screen.note(&paint(DIM, "no rule is about it: it runs in the sandbox"));
        } else {
            screen.line(table.render(2).trim_end())?;
        }
        if verdict.ruling == Ruling::Ask && verdict.beforehand {
            let text = "in a workspace, `--approve auto` agrees to it beforehand";
            screen.note(&paint(DIM, text));
        }
    }
    Ok(match verdict.ruling {
        Ruling::Allow => RunExit::Verified,
        Ruling::Ask => RunExit::WaitingForApproval,
        Ruling::Deny => RunExit::Failed,
    })
}

fn test(file: Option<&Path>, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let files = match file {
        Some(path) => {
            let read = rules::read(path, RulesFileTrust::Operator)?;
            vec![read.ok_or_else(|| {
                let message = format!("the rules file {} does not exist", path.display());
                CommandFailure::new(Code::BadRules, RunExit::Usage, message)
                    .remedy("name a rules file")
            })?]
        }
        None => rules::files(&session.host)?,
    };
    let built_in = RulesFileSource {
        file: gate::BUILT_IN_FILE,
        text: gate::built_in_text(),
        trust: RulesFileTrust::Operator,
    };
    let mut sources = Vec::new();
    if file.is_none() {
        sources.push(built_in);
    }
    sources.extend(files.iter().map(rules::LoadedRulesFile::source));
    let mut failures = Vec::new();
    for source in &sources {
        failures.extend(gate::test(source)?);
    }
    let screen = &session.screen;
    if screen.is_json() {
        let failures: Vec<_> = failures
            .iter()
            .map(
                |failure| json!({"file": failure.file, "line": failure.line, "what": failure.what}),
            )
            .collect();
        let files: Vec<_> = sources.iter().map(|source| source.file).collect();
        screen.document(&json!({"files": files, "failures": failures}))?;
    } else {
        for failure in &failures {
            screen.line(format!("{} {failure}", paint(BAD, "failed:")))?;
        }
        if failures.is_empty() {
            let names: Vec<_> = sources.iter().map(|source| source.file).collect();
            screen.line(format!(
                "{} every example of {} holds",
                paint(GOOD, "ok:"),
                names.join(", ")
            ))?;
        }
    }
    Ok(if failures.is_empty() {
        RunExit::Verified
    } else {
        RunExit::Failed
    })
}

fn show(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let policy = rules::load(&session.host)?;
    let version = policy
        .version()
        .map_err(|error| CommandFailure::new(Code::Internal, RunExit::Failed, error.to_string()))?;
    let screen = &session.screen;
    if screen.is_json() {
        let rules: Vec<_> = policy
            .rules()
            .map(|rule| {
                json!({
                    "id": rule.id, "decision": rule.ruling, "about": rule.about(),
                    "reason": rule.reason, "place": rule.place,
                    "examples": rule.example_count(),
                })
            })
            .collect();
        screen.document(&json!({
            "version": version, "default": policy.default_ruling(), "terms": policy.terms(),
            "beforehand": policy.agreed_beforehand(),
            "rules": rules,
        }))?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for rule in policy.rules() {
        table.row([
            coloured(rule.ruling),
            paint(STRONG, &rule.id),
            format!("{}: {}", rule.reason, paint(DIM, rule.about())),
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    screen.note(&format!(
        "where no rule matches: {}; version {version}",
        policy.default_ruling()
    ));
    Ok(RunExit::Verified)
}

fn scan(file: Option<PathBuf>, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let unreadable = |error: std::io::Error| {
        CommandFailure::new(
            Code::FileAccess,
            RunExit::Usage,
            format!("the text cannot be read: {error}"),
        )
        .remedy("name a file that you can read")
    };
    let mut bytes = Vec::new();
    // One byte more than is looked at, to tell that there is more.
    let most = MAX_TEXT as u64 + 1;
    match file {
        Some(path) => std::fs::File::open(path)
            .and_then(|file| file.take(most).read_to_end(&mut bytes))
            .map_err(unreadable)?,
        None => std::io::stdin()
            .lock()
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?,
    };
    let text = String::from_utf8_lossy(&bytes);
    let found = findings::scan(&text);
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let screen = &session.screen;
    if screen.is_json() {
        let findings: Vec<_> = found
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "label": finding.label, "what": finding.what, "line": line_of(finding.span.start),
                    "span": [finding.span.start, finding.span.end], "confidence": finding.confidence,
                })
            })
            .collect();
        screen.document(&json!({"findings": findings, "truncated": found.truncated}))?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for finding in &found.findings {
        table.row([
            format!("line {}", line_of(finding.span.start)),
            paint(STRONG, finding.label.name()),
            finding.what.to_owned(),
        ]);
    }
    if found.findings.is_empty() {
        screen.note("nothing found");
    } else {
        screen.line(table.render(0).trim_end())?;
    }
    if found.truncated {
        screen.warn("only the first MiB was read");
    }
    Ok(RunExit::Verified)
}
