//! `lula doctor --attack`

use std::collections::BTreeMap;

use lula_protocol::{Code, IsolationTier, RunExit};
use lula_sandbox::probes::{AttackOutcome, AttackReport, TierAttack};
use lula_sandbox::{SandboxEngine, tiers};

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, GOOD, STRONG, TextTable, WARN, paint};

pub(super) fn run(
    tier: Option<IsolationTier>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let engine = SandboxEngine::start()?;
    let tier = match tier {
        Some(tier) => tier,
        None => strongest(&engine)?,
    };
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("this program cannot find its own file: {error}");
        CommandFailure::new(Code::EnvironmentUnfit, RunExit::Environment, message)
    })?;
    let step = session.screen.step(&format!("attacking the {tier} tier"));
    let report = TierAttack::new(&engine, program, tier).run()?;
    let total = report.probes.len();
    if report.held() {
        step.done(&format!("{total} probes, all held"));
    } else {
        step.failed(&format!(
            "{} of {total} probes not held",
            total - count(&report, AttackOutcome::Held)
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

fn strongest(engine: &SandboxEngine) -> Result<IsolationTier, CommandFailure> {
    let working = |(tier, verdict): (IsolationTier, Result<(), _>)| verdict.is_ok().then_some(tier);
    let found = tiers::survey(engine).into_iter().filter_map(working).max();
    found
        .filter(|tier| *tier > IsolationTier::Process)
        .ok_or_else(|| {
            let message = "no tier that is a boundary works here, so there is nothing to attack";
            CommandFailure::new(Code::SandboxRefused, RunExit::Environment, message)
                .remedy("`lula doctor` shows why not")
        })
}

fn count(report: &AttackReport, outcome: AttackOutcome) -> usize {
    report
        .probes
        .iter()
        .filter(|probe| probe.outcome == outcome)
        .count()
}

fn print(report: &AttackReport, session: &CliSession) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    let mut families = BTreeMap::<_, (usize, usize)>::new();
    for probe in &report.probes {
        let (held, all) = families.entry(probe.family).or_default();
        *held += usize::from(probe.outcome == AttackOutcome::Held);
        *all += 1;
    }
    let mut table = TextTable::default();
    for (family, (held, all)) in families {
        let mark = if held == all {
            paint(GOOD, "✓")
        } else {
            paint(BAD, "✗")
        };
        let name = serde_json::to_value(family)?;
        table.row([
            mark,
            name.as_str().unwrap_or_default().to_owned(),
            format!("{held} of {all} attacks held off"),
        ]);
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
