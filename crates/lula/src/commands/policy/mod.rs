//! `lula policy`

pub(crate) mod flags;

use std::path::Path;

use lula_gate::rules::{self as gate, GateAct, Ruling};
use lula_host::examples::{self, ExampleReport};
use lula_host::{policy, rules};
use lula_protocol::RunExit;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain};
use flags::PolicyCommand;

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
        PolicyCommand::Scan { file } => scan(file.as_deref(), session),
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
    let rules = rules::load(&session.host)?;
    let verdict = rules.judge(act);
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&policy::decision(&rules, &verdict))?;
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
    tell_examples(&examples::of_rules(file, &session.host)?, session)
}

/// Which examples of rules or guidelines do not hold.
pub(super) fn tell_examples(
    report: &ExampleReport,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let holds = report.failures.is_empty();
    if screen.is_json() {
        screen.document(report)?;
    } else if holds {
        let (mark, names) = (paint(GOOD, "ok:"), report.files.join(", "));
        screen.line(format!("{mark} every example of {names} holds"))?;
    } else {
        for failure in &report.failures {
            screen.line(format!("{} {failure}", paint(BAD, "failed:")))?;
        }
    }
    Ok(if holds {
        RunExit::Verified
    } else {
        RunExit::Failed
    })
}

fn show(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let rules = rules::load(&session.host)?;
    let document = policy::document(&rules)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&document)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for rule in rules.rules() {
        table.row([
            coloured(rule.ruling),
            paint(STRONG, &rule.id),
            format!("{}: {}", rule.reason, paint(DIM, rule.about())),
        ]);
    }
    screen.line(table.render(0).trim_end())?;
    screen.note(&format!(
        "where no rule matches: {}; version {}",
        rules.default_ruling(),
        document["version"].as_str().unwrap_or_default()
    ));
    Ok(RunExit::Verified)
}

fn scan(file: Option<&Path>, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let found = policy::scan(file, std::io::stdin().lock())?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&found)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for finding in &found.findings {
        table.row([
            format!("line {}", finding.line),
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
