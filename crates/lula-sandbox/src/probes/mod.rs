//! Attacks on the sandbox, to be run on the user's own machine.
//!
//! A probe attempts one thing that a sandbox must prevent, and says exactly what must be seen
//! instead. The same act is first run outside, as the positive control: an attack that fails
//! everywhere proves nothing. The attempt itself is code of this program, started inside the
//! sandbox under a hidden first argument, so that it makes the very system call and reports the
//! very error.

mod act;
mod attack;
mod honesty;
mod namespaces;
mod network;
mod privilege;
mod probe;
mod reads;
mod resources;
mod scenarios;
mod scene;
mod secrets;
mod stage;
mod syscalls;
mod terminal;
mod writes;

pub use attack::{TierAttack, TierAttackError, catalogue};
pub use probe::{AttackFamily, AttackOutcome, AttackReport, AttackResult};

use probe::{AttackBodyResult, AttackObservation, AttackProbe};
use scene::AttackScene;

/// The hidden first argument under which this program is an attacker.
const ARGUMENT: &str = "lula-sandbox-probe";

/// Every probe whose attempt is one act.
fn probes() -> impl Iterator<Item = &'static AttackProbe> {
    [
        terminal::PROBES,
        reads::PROBES,
        writes::PROBES,
        privilege::PROBES,
        namespaces::PROBES,
        syscalls::PROBES,
        network::PROBES,
        secrets::PROBES,
        resources::PROBES,
        honesty::PROBES,
    ]
    .into_iter()
    .flatten()
}

/// Makes an attempt if this process was started for one, and then never returns.
pub(crate) fn run_body_if_asked() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ARGUMENT) {
        return;
    }
    let (side, name) = (arguments.next(), arguments.next().unwrap_or_default());
    let scene = AttackScene::from_arguments(arguments);
    let seen = match side.as_deref() {
        Some("inside") => find(&name).map(|probe| (probe.body)(&scene)),
        Some("outside") => find(&name).map(|probe| probe.control.unwrap_or(probe.body)(&scene)),
        Some("help") => scenarios::part(&name, &scene),
        _ => None,
    };
    report(seen.unwrap_or_else(|| Err(AttackObservation::Ended(format!("no probe {name}")))));
    std::process::exit(0)
}

fn find(name: &str) -> Option<&'static AttackProbe> {
    probes().find(|probe| probe.name == name)
}

/// One line that [`attack`] reads.
#[expect(
    clippy::print_stdout,
    reason = "standard output is how an attempt reports"
)]
fn report(seen: AttackBodyResult) {
    match seen {
        Ok(text) | Err(AttackObservation::Done(text)) => println!("done {text}"),
        Err(AttackObservation::Errno(errno)) => println!("errno {errno}"),
        Err(AttackObservation::Ended(how)) => println!("ended {how}"),
    }
}

/// Reads what [`report`] wrote.
fn parse(output: &str) -> Option<AttackObservation> {
    let line = output.lines().next()?;
    let (kind, rest) = line.split_once(' ')?;
    match kind {
        "done" => Some(AttackObservation::Done(rest.to_owned())),
        "errno" => rest.parse().ok().map(AttackObservation::Errno),
        "ended" => Some(AttackObservation::Ended(rest.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn probes_have_names_of_their_own_and_say_what_they_attempt() {
        let mut names = BTreeSet::new();
        for probe in probes() {
            assert!(names.insert(probe.name), "{} twice", probe.name);
            assert!(!probe.attempts.is_empty());
            assert!(
                probe.namespace.is_some() || probe.landlock.is_some(),
                "{}",
                probe.name
            );
        }
        assert!(names.len() >= 80, "{}", names.len());
    }

    #[test]
    fn no_probe_expects_inside_what_its_control_shows_outside() {
        for probe in probes() {
            // Unknown numbers answer the same everywhere; there the question is that nothing
            // is killed for asking.
            if matches!(probe.name, "unknown_number" | "number_beyond_range") {
                continue;
            }
            for inside in [probe.namespace, probe.landlock].into_iter().flatten() {
                assert_ne!(inside, probe.outside, "{}", probe.name);
            }
        }
    }

    #[test]
    fn reports_read_back() {
        assert_eq!(
            parse("done 0 1 2\n"),
            Some(AttackObservation::Done("0 1 2".to_owned()))
        );
        assert_eq!(
            parse("done \n"),
            Some(AttackObservation::Done(String::new()))
        );
        assert_eq!(parse("errno 13\n"), Some(AttackObservation::Errno(13)));
        assert_eq!(parse("garbage"), None);
        assert_eq!(parse(""), None);
    }
}
