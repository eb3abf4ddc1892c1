//! Several runners over one state directory, of which one ends: what it left is settled by one that
//! lives just as by one that starts.

use lula_protocol::WorkspaceId;

use super::probe::{ProbeEffect, ProbeGateAnswer, ProbeResult, ProbeRollback, ProbeWorld};
use crate::service::RunnerService;
use crate::service::effect::GatedAct;
use crate::service::effect::kills::ending_at;
use crate::service::effect::steps::EffectStep;
use crate::service::in_process::{InProcessSite, effect, person, run, write};
use crate::service::refusal::RequestRefusal;
use lula_runner_api::{CommitWorkspace, CommittedWorkspace, UndoCommit};

/// Where an act was begun and its result is nowhere.
const CUT_OFF: [EffectStep; 2] = [EffectStep::Intended, EffectStep::Performed];

fn commit(service: &RunnerService, id: &WorkspaceId, number: u8) -> CommitWorkspace {
    CommitWorkspace {
        effect: effect(number),
        epoch: 1,
        run: run(),
        digest: service.diff(id).unwrap().digest,
        paths: Vec::new(),
        include_git: false,
    }
}

fn committed(
    service: &RunnerService,
    id: &WorkspaceId,
    asked: &CommitWorkspace,
) -> CommittedWorkspace {
    service
        .commit(&person(), id, asked)
        .unwrap()
        .free()
        .unwrap()
}

fn send(
    service: &RunnerService,
    (world, id): (&ProbeWorld, &WorkspaceId),
    way: ProbeRollback,
    kill: Option<EffectStep>,
) -> Result<Result<GatedAct<ProbeResult>, RequestRefusal>, EffectStep> {
    let room = service.room(id).unwrap();
    let mut probe = ProbeEffect::new(
        service,
        (world, &room),
        (way, ProbeGateAnswer::Free),
        (1, "this"),
    );
    let _turn = room.turn().unwrap();
    ending_at(kill, || service.run_effect(&mut probe))
}

#[test]
fn what_cannot_be_taken_back_is_not_done_again_by_a_runner_that_lives() {
    for step in CUT_OFF {
        let (site, world) = (InProcessSite::new(), ProbeWorld::default());
        let (first, second) = (site.service(), site.service());
        let id = site.open(&first);
        second.room(&id).unwrap();
        let came = send(&first, (&world, &id), ProbeRollback::Lost, Some(step));
        assert_eq!(came.unwrap_err(), step);
        let performed = world.performed();
        drop(first);
        for _ in 0..2 {
            let came = send(&second, (&world, &id), ProbeRollback::Lost, None).unwrap();
            assert!(matches!(came, Err(RequestRefusal::Unknown(_))), "{came:?}");
        }
        assert_eq!(world.performed(), performed, "{step:?}");
    }
}

#[test]
fn what_can_be_taken_back_is_and_then_done_again() {
    let (site, world) = (InProcessSite::new(), ProbeWorld::default());
    let (first, second) = (site.service(), site.service());
    let id = site.open(&first);
    // Open since before the copy was made that the act is taken back by.
    second.room(&id).unwrap();
    let came = send(
        &first,
        (&world, &id),
        ProbeRollback::Copied,
        Some(EffectStep::Performed),
    );
    assert_eq!(came.unwrap_err(), EffectStep::Performed);
    drop(first);
    let came = send(&second, (&world, &id), ProbeRollback::Copied, None).unwrap();
    assert!(
        matches!(came, Ok(GatedAct::Done(ProbeResult { act: 2 }))),
        "{came:?}"
    );
    let changes = second.diff(&id).unwrap().changes;
    let left: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert!(!left.contains(&"traces/1"), "{left:?}");
    assert!(left.contains(&"traces/2"), "{left:?}");
}

#[test]
fn an_undo_takes_back_one_commit_whichever_runner_is_asked_again() {
    for step in CUT_OFF {
        let site = InProcessSite::new();
        let (first, second) = (site.service(), site.service());
        let id = site.open(&first);
        for (number, name) in [(1, "one"), (2, "two")] {
            write(&first.room(&id).unwrap(), name, "text\n");
            committed(&first, &id, &commit(&first, &id, number));
        }
        second.room(&id).unwrap();
        let asked = UndoCommit {
            effect: effect(3),
            epoch: 1,
            run: run(),
        };
        let came = ending_at(Some(step), || first.undo_commit(&person(), &id, &asked));
        assert_eq!(came.unwrap_err(), step);
        drop(first);
        let told = second.undo_commit(&person(), &id, &asked).unwrap();
        assert!(site.tree().join("one").exists(), "{step:?}");
        assert!(!site.tree().join("two").exists(), "{step:?}");
        assert_eq!(second.undo_commit(&person(), &id, &asked).unwrap(), told);
        assert!(site.tree().join("one").exists(), "{step:?}");
    }
}

#[test]
fn a_commit_that_was_made_is_told_as_made() {
    for step in CUT_OFF {
        let site = InProcessSite::new();
        let (first, second) = (site.service(), site.service());
        let id = site.open(&first);
        write(&first.room(&id).unwrap(), "one", "text\n");
        second.room(&id).unwrap();
        let asked = commit(&first, &id, 1);
        let came = ending_at(Some(step), || first.commit(&person(), &id, &asked));
        assert_eq!(came.unwrap_err(), step);
        drop(first);
        let told = committed(&second, &id, &asked);
        assert_eq!(told.paths, ["one"], "{step:?}");
        assert_eq!(committed(&second, &id, &asked), told);
        assert!(site.tree().join("one").exists(), "{step:?}");
        assert_eq!(site.audit(&effect(1)).len(), 1, "{step:?}");
    }
}

#[test]
fn a_result_is_told_only_when_the_audit_has_it() {
    let site = InProcessSite::new();
    let (first, second) = (site.service(), site.service());
    let id = site.open(&first);
    write(&first.room(&id).unwrap(), "one", "text\n");
    second.room(&id).unwrap();
    let asked = commit(&first, &id, 1);
    let came = ending_at(Some(EffectStep::Stored), || {
        first.commit(&person(), &id, &asked)
    });
    assert_eq!(came.unwrap_err(), EffectStep::Stored);
    assert_eq!(site.audit(&effect(1)).len(), 0);
    drop(first);
    for _ in 0..2 {
        assert_eq!(committed(&second, &id, &asked).paths, ["one"]);
        assert_eq!(site.audit(&effect(1)).len(), 1);
    }
}

#[test]
fn of_several_runners_that_live_one_settles_what_another_left() {
    let (site, world) = (InProcessSite::new(), ProbeWorld::default());
    let (first, second, third) = (site.service(), site.service(), site.service());
    let id = site.open(&first);
    let name = first.runner.name().to_owned();
    let came = send(
        &first,
        (&world, &id),
        ProbeRollback::Lost,
        Some(EffectStep::Performed),
    );
    assert_eq!(came.unwrap_err(), EffectStep::Performed);
    drop(first);
    assert!(second.claim_intent(&effect(1), &name).unwrap());
    assert!(!third.claim_intent(&effect(1), &name).unwrap());
}
