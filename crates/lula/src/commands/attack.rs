//! `lula doctor --attack`

use lula_host::doctor::attack::{PlannedAttack, families, held};
use lula_protocol::{IsolationTier, RunExit};
use lula_sandbox::probes::{AttackOutcome, AttackReport};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, GOOD, STRONG, TextTable, WARN, paint};

pub(super) fn run(
    tier: Option<IsolationTier>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let attack = PlannedAttack::new(tier)?;
    let step = session
        .screen
        .step(&format!("attacking the {} tier", attack.tier));
    let report = attack.run()?;
    let total = report.probes.len();
    if report.held() {
        step.done(&format!("{total} probes, all held"));
    } else {
        step.failed(&format!(
            "{} of {total} probes not held",
            total - held(&report)
        ));
    }
    if session.screen.is_json() {
        session.screen.document(&report)?;
    } else {
        print(&report, session)?;
    }
    Ok(if report.held() {
        RunExit::Verified
    } else {
        RunExit::Failed
    })
}

fn print(report: &AttackReport, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    let mut table = TextTable::default();
    for family in families(report) {
        let mark = if family.held == family.all {
            paint(GOOD, "✓")
        } else {
            paint(BAD, "✗")
        };
        let text = format!("{} of {} attacks held off", family.held, family.all);
        table.row([mark, family.name, text]);
    }
    screen.line(table.render(2).trim_end())?;

    let not_held: Vec<_> = report
        .probes
        .iter()
        .filter(|probe| probe.outcome != AttackOutcome::Held)
        .collect();
    if not_held.is_empty() {
        return Ok(());
    }
    screen.line(format!("\n{}", paint(STRONG, "Not held")))?;
    let mut table = TextTable::default();
    for probe in not_held {
        let outcome = match probe.outcome {
            AttackOutcome::Broken => paint(BAD, "broken"),
            AttackOutcome::Error | AttackOutcome::Held => paint(WARN, "error"),
        };
        let text = format!("expected {}, saw {}", probe.expected, probe.observed);
        table.row([outcome, probe.name.clone(), text]);
    }
    screen.line(table.render(2).trim_end())
}
