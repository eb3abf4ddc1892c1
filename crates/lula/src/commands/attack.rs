//! `lula doctor --attack`

use std::collections::BTreeMap;

use lula_protocol::{Code, Exit, Tier};
use lula_sandbox::probes::{Attack, Outcome, Report};
use lula_sandbox::{Engine, tiers};

use crate::failure::Failure;
use crate::session::Session;
use crate::term::{BAD, GOOD, STRONG, Table, WARN, paint};

pub(super) fn run(tier: Option<Tier>, session: &Session) -> Result<Exit, Failure> {
    let engine = Engine::start()?;
    let tier = match tier {
        Some(tier) => tier,
        None => strongest(&engine)?,
    };
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("this program cannot find its own file: {error}");
        Failure::new(Code::EnvironmentUnfit, Exit::Environment, message)
    })?;
    let step = session.screen.step(&format!("attacking the {tier} tier"));
    let report = Attack::new(&engine, program, tier).run()?;
    let total = report.probes.len();
    if report.held() {
        step.done(&format!("{total} probes, all held"));
    } else {
        step.failed(&format!(
            "{} of {total} probes not held",
            total - count(&report, Outcome::Held)
        ));
    }
    if session.screen.is_json() {
        session.screen.document(&report)?;
    } else {
        print(&report, session)?;
    }
    Ok(if report.held() {
        Exit::Verified
    } else {
        Exit::Failed
    })
}

fn strongest(engine: &Engine) -> Result<Tier, Failure> {
    let working = |(tier, verdict): (Tier, Result<(), _>)| verdict.is_ok().then_some(tier);
    let found = tiers::survey(engine).into_iter().filter_map(working).max();
    found.filter(|tier| *tier > Tier::Process).ok_or_else(|| {
        let message = "no tier that is a boundary works here, so there is nothing to attack";
        Failure::new(Code::SandboxRefused, Exit::Environment, message)
            .remedy("`lula doctor` shows why not")
    })
}

fn count(report: &Report, outcome: Outcome) -> usize {
    report
        .probes
        .iter()
        .filter(|probe| probe.outcome == outcome)
        .count()
}

fn print(report: &Report, session: &Session) -> Result<(), Failure> {
    let screen = &session.screen;
    let mut families = BTreeMap::<_, (usize, usize)>::new();
    for probe in &report.probes {
        let (held, all) = families.entry(probe.family).or_default();
        *held += usize::from(probe.outcome == Outcome::Held);
        *all += 1;
    }
    let mut table = Table::default();
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
        .filter(|probe| probe.outcome != Outcome::Held)
        .collect();
    if not_held.is_empty() {
        return Ok(());
    }
    screen.line(format!("\n{}", paint(STRONG, "Not held")))?;
    let mut table = Table::default();
    for probe in not_held {
        let outcome = match probe.outcome {
            Outcome::Broken => paint(BAD, "broken"),
            Outcome::Error | Outcome::Held => paint(WARN, "error"),
        };
        let text = format!("expected {}, saw {}", probe.expected, probe.observed);
        table.row([outcome, probe.name.clone(), text]);
    }
    screen.line(table.render(2).trim_end())
}
