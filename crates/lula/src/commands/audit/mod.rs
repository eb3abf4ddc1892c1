//! `lula audit`

pub(crate) mod flags;

use std::path::Path;

use lula_audit::{
    AuditCheckReport, AuditEnding, AuditFilter, AuditHead, AuditPublicKey, AuditVerdict,
};
use lula_host::record;
use lula_protocol::{Code, RunExit};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, paint};
use flags::AuditCommand;

pub(super) fn run(command: AuditCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    match command {
        AuditCommand::Verify { bundle, key, head } => {
            let key = key.map(|key| key.parse::<AuditPublicKey>()).transpose()?;
            let head = head.as_deref().map(parse_head).transpose()?;
            let report = record::verify(bundle.as_deref(), key.as_ref(), head, &session.host)?;
            verified(&report, session)
        }
        AuditCommand::Show { tool, run, last } => {
            let run = run
                .map(|run| run.parse())
                .transpose()
                .map_err(|error| bad_argument(&format!("{error}")))?;
            let filter = AuditFilter {
                tool,
                run,
                last,
                ..AuditFilter::default()
            };
            show(&filter, session)
        }
        AuditCommand::Export { output } => export(output.as_deref(), session),
    }
}

fn bad_argument(message: &str) -> CommandFailure {
    CommandFailure::new(Code::BadCommandLine, RunExit::Usage, message)
        .remedy("run `lula audit --help`")
}

fn parse_head(text: &str) -> Result<AuditHead, CommandFailure> {
    let parsed = text.split_once(':').and_then(|(seq, hash)| {
        Some(AuditHead {
            seq: seq.parse().ok()?,
            hash: hash.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| bad_argument(&format!("{text:?} is not SEQ:HASH, such as 12:b3:…")))
}

fn verified(report: &AuditCheckReport, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let exit = if report.is_intact() {
        RunExit::Verified
    } else {
        RunExit::Failed
    };
    if screen.is_json() {
        let mut document = serde_json::to_value(report)?;
        document["intact"] = report.is_intact().into();
        screen.document(&document)?;
        return Ok(exit);
    }
    for problem in &report.problems {
        let seq = problem
            .seq
            .map_or_else(String::new, |seq| format!(", entry {seq}"));
        screen.line(format!(
            "{} {}:{}{seq}: {}",
            paint(BAD, "changed:"),
            problem.file,
            problem.line,
            problem.trouble.spoken()
        ))?;
    }
    let counts = format!(
        "{} entries, {} seals, {} entries behind the last seal",
        report.entries, report.seals, report.unsealed
    );
    if report.is_intact() {
        screen.line(format!("{} {counts}", paint(GOOD, "intact:")))?;
    } else {
        let through = report.sealed_through.map_or_else(
            || "no signature vouches for what stands before the first change".to_owned(),
            |seq| format!("everything through entry {seq} is as it was signed"),
        );
        screen.note(&format!(
            "{counts}; {through}; `lula explain L0505` tells more"
        ));
    }
    if let Some(head) = report.head {
        screen.note(&paint(DIM, format!("head {}:{}", head.seq, head.hash)));
    }
    if let Some(key) = &report.key {
        screen.note(&paint(DIM, format!("key {key}")));
    }
    Ok(exit)
}

fn show(filter: &AuditFilter, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let shown = lula_audit::show(&record::directory(&session.host)?, filter)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&shown)?;
        return Ok(RunExit::Verified);
    }
    let mut table = TextTable::default();
    for one in &shown {
        let entry = &one.entry;
        let decision = match entry.decision.verdict {
            AuditVerdict::Direct => "direct",
            AuditVerdict::Allowed => "allowed",
            AuditVerdict::Approved => "approved",
            AuditVerdict::Beforehand => "agreed beforehand",
            AuditVerdict::Asked => "asked",
            AuditVerdict::Rejected => "rejected",
            AuditVerdict::Denied => "denied",
        };
        let outcome = match &entry.outcome {
            AuditEnding::Done { status: None } => paint(GOOD, "done"),
            AuditEnding::Done { status: Some(0) } => paint(GOOD, "exit 0"),
            AuditEnding::Done {
                status: Some(status),
            } => paint(BAD, format!("exit {status}")),
            AuditEnding::Failed { code } => paint(BAD, code.escape_debug()),
            AuditEnding::NotDone => paint(DIM, "not done"),
        };
        table.row([
            paint(DIM, one.seq),
            lula_protocol::calendar::utc_text(entry.time_ms),
            entry.principal.to_string(),
            paint(STRONG, entry.tool.escape_debug()),
            decision.to_owned(),
            outcome,
            entry.about.escape_debug().to_string(),
        ]);
    }
    if shown.is_empty() {
        screen.note("nothing is recorded");
    } else {
        screen.line(table.render(0).trim_end())?;
    }
    Ok(RunExit::Verified)
}

fn export(output: Option<&Path>, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let exported = record::export(output, std::io::stdout().lock(), &session.host)?;
    if session.screen.is_json() && output.is_some() {
        session.screen.document(&exported)?;
    } else {
        session.screen.note(&format!(
            "exported to {}: check it with `lula audit verify --bundle FILE --key {}`",
            exported.file.display(),
            exported.key
        ));
    }
    Ok(RunExit::Verified)
}
