//! Commits and undos of a workspace, which reach the user's tree, wherever their runners end.

use lula_audit::AuditEnding;
use lula_protocol::{ToolOutcome, WorkspaceId};

use crate::service::RunnerService;
use crate::service::effect::GatedAct;
use crate::service::effect::kills::ending_at;
use crate::service::effect::steps::EffectStep;
use crate::service::in_process::{InProcessSite, effect, person, run, write};
use lula_runner_api::{CommitWorkspace, UndoCommit};

const STEPS: [EffectStep; 8] = [
    EffectStep::Known,
    EffectStep::Prepared,
    EffectStep::Judged,
    EffectStep::Intended,
    EffectStep::Performed,
    EffectStep::Stored,
    EffectStep::Audited,
    EffectStep::Closed,
];

/// A commit of everything that a workspace changed.
fn commit_of(service: &RunnerService, id: &WorkspaceId, number: u8) -> CommitWorkspace {
    CommitWorkspace {
        effect: effect(number),
        epoch: 1,
        run: run(),
        digest: service.diff(id).unwrap().digest,
        paths: Vec::new(),
        include_git: false,
    }
}

fn done<T>(gated: GatedAct<T>) -> T {
    gated.free().unwrap()
}

/// The next service, after the one before ended; in a recovery that ends at `step` too.
fn next(site: &InProcessSite, step: EffectStep) -> RunnerService {
    let began = ending_at(Some(step), || site.service());
    began.unwrap_or_else(|_| site.service())
}

fn entries_of_acts(site: &InProcessSite, number: u8) -> usize {
    let entries = site.audit(&effect(number)).into_iter();
    entries
        .filter(|entry| entry.outcome != AuditEnding::NotDone)
        .count()
}

#[test]
fn a_commit_that_people_agreed_to_reaches_the_tree_once() {
    let mut kills = 0;
    for step in STEPS {
        let site = InProcessSite::new();
        let service = site.service();
        let id = site.open(&service);
        // Rules ask about this one.
        write(&service.room(&id).unwrap(), ".envrc", "export A=1\n");
        let asked = commit_of(&service, &id, 1);
        let held = match service.commit(&person(), &id, &asked).unwrap() {
            GatedAct::Held(held) => held.outcome,
            GatedAct::Done(done) => panic!("{done:?}"),
        };
        let ToolOutcome::NeedsApproval { challenge } = held else {
            panic!("{held:?}");
        };
        assert!(!site.tree().join(".envrc").exists());
        site.approve(&service, &challenge);
        let came = ending_at(Some(step), || service.commit(&person(), &id, &asked));
        assert_eq!(came.unwrap_err(), step);
        kills += 1;
        drop(service);
        let service = next(&site, step);
        let first = done(service.commit(&person(), &id, &asked).unwrap());
        let text = std::fs::read_to_string(site.tree().join(".envrc")).unwrap();
        assert_eq!(text, "export A=1\n");
        assert_eq!(first.paths, [".envrc"]);
        assert_eq!(done(service.commit(&person(), &id, &asked).unwrap()), first);
        assert_eq!(service.approval(&challenge.id).unwrap().standing, "used");
        assert!(entries_of_acts(&site, 1) >= 1, "{step:?}");
        drop(service);
    }
    assert_eq!(kills, STEPS.len());
}

#[test]
fn an_undo_takes_back_one_commit() {
    let mut kills = 0;
    for step in STEPS {
        let site = InProcessSite::new();
        let service = site.service();
        let id = site.open(&service);
        for (number, name) in [(1, "one"), (2, "two")] {
            write(&service.room(&id).unwrap(), name, "text\n");
            let asked = commit_of(&service, &id, number);
            done(service.commit(&person(), &id, &asked).unwrap());
        }
        let asked = UndoCommit {
            effect: effect(3),
            epoch: 1,
            run: run(),
        };
        let came = ending_at(Some(step), || service.undo_commit(&person(), &id, &asked));
        assert_eq!(came.unwrap_err(), step);
        kills += 1;
        drop(service);
        let service = next(&site, step);
        let first = service.undo_commit(&person(), &id, &asked).unwrap();
        assert!(site.tree().join("one").exists(), "{step:?}");
        assert!(!site.tree().join("two").exists(), "{step:?}");
        assert_eq!(service.undo_commit(&person(), &id, &asked).unwrap(), first);
        assert!(site.tree().join("one").exists(), "{step:?}");
        assert!(entries_of_acts(&site, 3) >= 1, "{step:?}");
    }
    assert_eq!(kills, STEPS.len());
}
