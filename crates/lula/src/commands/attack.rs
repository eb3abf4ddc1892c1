//! `lula doctor --attack`

use lula_host::doctor::attack::{PlannedAttack, families, summary};
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
    if report.held() {
        step.done(&summary(&report));
    } else {
        step.failed(&summary(&report));
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

    let (mut not_held, mut unlimited) = (TextTable::default(), TextTable::default());
    let mut untried = TextTable::default();
    for probe in &report.probes {
        let outcome = match probe.outcome {
            AttackOutcome::Held => continue,
            AttackOutcome::Unlimited => {
                let mark = paint(WARN, "!");
                unlimited.row([mark, probe.name.clone(), probe.observed.clone()]);
                continue;
            }
            AttackOutcome::Untried => {
                let mark = paint(WARN, "!");
                untried.row([mark, probe.name.clone(), probe.observed.clone()]);
                continue;
            }
            AttackOutcome::Broken => paint(BAD, "broken"),
            AttackOutcome::Error => paint(WARN, "error"),
        };
        let text = format!("expected {}, saw {}", probe.expected, probe.observed);
        not_held.row([outcome, probe.name.clone(), text]);
    }
    for (title, table) in [
        ("Not held", not_held),
        ("Not limited here", unlimited),
        ("Not tried", untried),
    ] {
        let rows = table.render(2);
        if !rows.trim().is_empty() {
            screen.line(format!("\n{}", paint(STRONG, title)))?;
            screen.line(rows.trim_end())?;
        }
    }
    Ok(())
}
