//! Runners end anywhere, callers ask again, and these things hold all the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use lula_audit::AuditEnding;
use lula_protocol::{ApprovalChallenge, ToolOutcome, WorkspaceId};
use proptest::prelude::ProptestConfig;
use proptest::test_runner::TestRunner;
use rusqlite::OptionalExtension;

use super::cases::{EffectTestAttempt, EffectTestCase, EffectTestWorker, STEPS, cases};
use super::probe::{ProbeEffect, ProbeGateAnswer, ProbeResult, ProbeRollback, ProbeWorld};
use crate::service::effect::GatedAct;
use crate::service::effect::kills::ending_at;
use crate::service::effect::steps::EffectStep;
use crate::service::in_process::{InProcessSite, effect};
use crate::service::refusal::RequestRefusal;
use crate::service::{RunnerService, room::RunnerWorkspace};

/// A row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    state: String,
    result: Option<Vec<u8>>,
    /// Whether the audit may still miss its entry.
    unaudited: bool,
}

/// One case on its way.
struct Trial<'a> {
    case: &'a EffectTestCase,
    site: InProcessSite,
    world: ProbeWorld,
    workspace: WorkspaceId,
    service: Option<RunnerService>,
    /// The newest that came; 0 before any did.
    epoch: u64,
    question: Option<ApprovalChallenge>,
    /// How often a caller was told no, or to wait for people.
    held: usize,
    kills: Vec<EffectStep>,
}

type Answer = Result<GatedAct<ProbeResult>, RequestRefusal>;

impl<'a> Trial<'a> {
    fn of(case: &'a EffectTestCase) -> Self {
        let site = InProcessSite::new();
        let service = site.service();
        Self {
            case,
            workspace: site.open(&service),
            service: Some(service),
            site,
            world: ProbeWorld::default(),
            epoch: 0,
            question: None,
            held: 0,
            kills: Vec::new(),
        }
    }

    fn service(&self) -> &RunnerService {
        self.service.as_ref().unwrap()
    }

    fn room(&self) -> Arc<RunnerWorkspace> {
        self.service().room(&self.workspace).unwrap()
    }

    fn row(&self) -> Option<Row> {
        let query = "SELECT state, result, audit IS NOT NULL FROM effects WHERE effect = ?";
        let row = |row: &rusqlite::Row<'_>| {
            Ok(Row {
                state: row.get(0)?,
                result: row.get(1)?,
                unaudited: row.get(2)?,
            })
        };
        let database = self.site.database();
        database
            .query_row(query, [effect(1).as_str()], row)
            .optional()
            .unwrap()
    }

    /// Sends a request; `None` where its runner ended before it answered.
    fn send(&mut self, attempt: &EffectTestAttempt, epoch: u64, asks: &str) -> Option<Answer> {
        let (service, room) = (self.service(), self.room());
        let said = (self.case.way, self.case.saying);
        let mut probe = ProbeEffect::new(service, (&self.world, &room), said, (epoch, asks));
        probe.breaks = attempt.breaks;
        let turn = room.turn().unwrap();
        let came = ending_at(attempt.kill, || service.run_effect(&mut probe));
        drop(turn);
        drop(probe);
        match came {
            Ok(answer) => Some(answer),
            Err(step) => {
                self.kills.push(step);
                drop(room);
                self.service = None;
                self.service = Some(self.site.service());
                None
            }
        }
    }

    fn attempt(&mut self, attempt: &EffectTestAttempt) {
        if let Some(question) = self.question.take_if(|_| attempt.agree) {
            self.site.approve(self.service(), &question);
        }
        let (row, performed) = (self.row(), self.world.performed());
        let epoch = match attempt.worker {
            EffectTestWorker::Replaced if self.epoch > 0 => self.epoch - 1,
            // Before any came, none was replaced.
            EffectTestWorker::Same | EffectTestWorker::Replaced => self.epoch.max(1),
            EffectTestWorker::Next => self.epoch + 1,
        };
        // An id of which nothing is known is free for any request.
        let other = attempt.other && row.is_some();
        let asks = if other { "another" } else { "this" };
        let answer = self.send(attempt, epoch, asks);
        if epoch < self.epoch {
            assert!(
                matches!(answer, Some(Err(RequestRefusal::Fenced { .. }))),
                "an older epoch is fenced off: {answer:?}"
            );
            assert_eq!((self.row(), self.world.performed()), (row, performed));
            return self.check();
        }
        self.epoch = epoch;
        if other {
            assert!(
                matches!(answer, Some(Err(RequestRefusal::Reused(_)))),
                "one id is one request: {answer:?}"
            );
            assert_eq!((self.row(), self.world.performed()), (row, performed));
            return self.check();
        }
        let state = row.as_ref().map(|row| row.state.as_str());
        match state {
            Some("done") => {
                let stored = row.as_ref().and_then(|row| row.result.clone());
                assert_eq!(
                    Some(told(answer)),
                    stored,
                    "what was recorded is what is answered"
                );
            }
            Some("unknown") => assert!(matches!(answer, Some(Err(RequestRefusal::Unknown(_))))),
            _ => self.first_answer(attempt, answer),
        }
        if matches!(state, Some("done" | "unknown")) {
            assert_eq!(self.row(), row, "what is settled stays");
            assert_eq!(self.world.performed(), performed, "and is not done again");
        }
        self.check();
    }

    /// Of an effect that was not settled when the request came.
    fn first_answer(&mut self, attempt: &EffectTestAttempt, answer: Option<Answer>) {
        match answer {
            None => {}
            Some(Ok(GatedAct::Done(told))) => {
                let row = self.row().unwrap();
                let stored = serde_json::from_slice::<ProbeResult>(&row.result.unwrap()).unwrap();
                assert_eq!(stored, told, "it is recorded before it is answered");
                assert!(!self.case.saying.is_no());
            }
            Some(Ok(GatedAct::Held(result))) => {
                self.held += 1;
                match result.outcome {
                    ToolOutcome::NeedsApproval { challenge } => {
                        assert_eq!(self.case.saying, ProbeGateAnswer::Asked);
                        self.question = Some(challenge);
                    }
                    ToolOutcome::Denied { .. } => assert!(self.case.saying.is_no()),
                    outcome => panic!("{outcome:?}"),
                }
            }
            Some(Err(RequestRefusal::Busy(_))) => assert!(attempt.breaks),
            Some(Err(refusal)) => panic!("{refusal:?}"),
        }
    }

    /// What holds between any two requests.
    fn check(&self) {
        let row = self.row();
        let state = row.as_ref().map(|row| row.state.as_str());
        assert_ne!(state, Some("intent"), "what was cut off is closed");
        let killed = |at: EffectStep| self.kills.iter().filter(|step| **step == at).count();

        let entries = self.site.audit(&effect(1));
        let no = |ended: &AuditEnding| *ended == AuditEnding::NotDone;
        let refused = entries.iter().filter(|entry| no(&entry.outcome)).count();
        let done = entries.len() - refused;
        assert_eq!(
            refused,
            self.held + killed(EffectStep::RefusalRecorded),
            "every no has one entry"
        );
        if state == Some("done") {
            assert!(done >= 1, "every result has an entry");
            assert!(done <= 1 + killed(EffectStep::Audited));
            assert!(row.as_ref().is_some_and(|row| !row.unaudited));
        } else {
            assert_eq!(done, 0, "no entry tells of what is not recorded");
        }

        if self.case.way == ProbeRollback::Lost {
            assert!(self.world.performed() <= 1, "nothing is guessed");
        }
        if self.case.saying.is_no() {
            assert_eq!((self.world.performed(), state), (0, None));
        }
        if state != Some("unknown") {
            let room = self.room();
            let traces = room.workspace().diff().unwrap().changes;
            let files = traces.iter().filter(|change| {
                let path = change.path.to_string();
                path.starts_with("traces/") && path.len() > "traces/".len()
            });
            let acted = self.case.way == ProbeRollback::Copied
                && self.case.saying != ProbeGateAnswer::Settled;
            let expected = usize::from(acted && state == Some("done"));
            assert_eq!(files.count(), expected, "one act leaves the traces of one");
        }
        self.check_approvals(state.is_some());
    }

    /// An approval is spent in the transaction that has the intent, and once.
    fn check_approvals(&self, known: bool) {
        let database = self.site.database();
        let mut query = database.prepare("SELECT id FROM approvals").unwrap();
        let ids = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let standings: Vec<String> = ids
            .map(|id| {
                let id = id.unwrap().parse().unwrap();
                self.service().approval(&id).unwrap().standing
            })
            .collect();
        if self.case.saying != ProbeGateAnswer::Asked {
            assert!(standings.is_empty());
            return;
        }
        assert!(standings.len() <= 1, "people are asked once: {standings:?}");
        let spent = standings.iter().any(|standing| standing == "used");
        assert_eq!(spent, known, "spent with the intent or not at all");
    }

    /// Sends it until it comes to an end, and once more.
    fn settle(&mut self) {
        let plain = EffectTestAttempt {
            kill: None,
            worker: EffectTestWorker::Same,
            other: false,
            breaks: false,
            agree: true,
        };
        for _ in 0..3 {
            self.attempt(&plain);
        }
        let state = self.row().map(|row| row.state);
        if self.case.saying.is_no() {
            assert_eq!(state, None);
        } else {
            let ended = matches!(state.as_deref(), Some("done" | "unknown"));
            assert!(ended, "it comes to an end: {state:?}");
        }
        let cut_off = self.case.way != ProbeRollback::Repeatable;
        assert!(state.as_deref() != Some("unknown") || cut_off);
    }
}

/// What a caller was told, as the ledger keeps it.
fn told(answer: Option<Answer>) -> Vec<u8> {
    match answer {
        Some(Ok(GatedAct::Done(told))) => serde_json::to_vec(&told).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn tried(case: &EffectTestCase) -> Vec<EffectStep> {
    let mut trial = Trial::of(case);
    for attempt in &case.attempts {
        trial.attempt(attempt);
    }
    trial.settle();
    trial.kills
}

#[test]
fn an_effect_holds_its_promises_wherever_its_runners_end() {
    let config = ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let kills = RefCell::new(BTreeMap::<EffectStep, usize>::new());
    let run = TestRunner::new(config).run(&cases(), |case| {
        for step in tried(&case) {
            *kills.borrow_mut().entry(step).or_default() += 1;
        }
        Ok(())
    });
    run.unwrap();
    let kills = kills.into_inner();
    assert!(kills.values().sum::<usize>() > 0, "no runner was ended");
}

/// Every place is one where a runner really ends.
#[test]
fn a_runner_ends_at_every_step_of_an_effect() {
    let sayings = [
        ProbeGateAnswer::Allowed,
        ProbeGateAnswer::Asked,
        ProbeGateAnswer::Forbidden,
    ];
    for step in STEPS {
        let mut kills = 0;
        for (saying, way) in sayings.into_iter().flat_map(|saying| {
            [
                (saying, ProbeRollback::Copied),
                (saying, ProbeRollback::Lost),
            ]
        }) {
            let attempt = |kill| EffectTestAttempt {
                kill,
                worker: EffectTestWorker::Next,
                other: false,
                breaks: step == EffectStep::TakenBack,
                agree: true,
            };
            let attempts = match saying {
                // The first asks people, unless it ends before.
                ProbeGateAnswer::Asked => {
                    vec![attempt(None), attempt(Some(step)), attempt(Some(step))]
                }
                _ => vec![attempt(Some(step)), attempt(Some(step))],
            };
            let case = EffectTestCase {
                way,
                saying,
                attempts,
            };
            kills += tried(&case).len();
        }
        assert!(kills > 0, "no runner was ended at {step:?}");
    }
}
