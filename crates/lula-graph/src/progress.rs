//! What the engine knows of a run: a pure fold over its events.
//!
//! Nothing here knows the graph's own state. `apply` takes events as they are in the log; an event
//! that cannot follow is a broken history, never something to work around.

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::event::{EffectResult, ParentRun};
use lula_protocol::{
    ApprovalId, BudgetAmounts, Digest, EffectClass, EffectId, EventBody, InterruptAnswer,
    Principal, RunId, RunInterrupt,
};
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalBallot;
pub use crate::journal::{
    JournalEffect, JournalEntry, OperatorNote, PendingWait, RequestedApproval, RunEnd,
};
use crate::ledger::BudgetLedger;

/// Why a log cannot have been written by this engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({kind}) cannot follow here: {why}")]
pub struct InvalidRunHistory {
    /// Position in the log.
    pub seq: u64,
    /// The kind of the event that does not fit.
    pub kind: &'static str,
    pub why: String,
}

/// What the engine knows of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProgress {
    pub run: RunId,
    /// The version of the graph it keeps to.
    pub graph_version: u32,
    /// What random numbers are derived from.
    pub seed: String,
    /// After how many visits it is stopped.
    pub max_visits: u64,
    /// Where it was forked from.
    pub parent: Option<ParentRun>,
    /// Sequence number of the next event.
    pub next_seq: u64,
    /// How often each node was left.
    pub visits: BTreeMap<String, u32>,
    /// How often any node was left.
    pub total_visits: u64,
    /// The last way out: node and outcome.
    pub last: Option<(String, String)>,
    /// Whether the entry into the current visit is in the log.
    pub entered: bool,
    /// The journal of the current visit.
    pub journal: BTreeMap<u32, JournalEntry>,
    /// What the run waits for.
    pub pending: Option<PendingWait>,
    /// Calls of the visit for which a person refused more budget.
    pub refused: BTreeSet<u32>,
    /// Every approval that the run asked for.
    pub approvals: BTreeMap<ApprovalId, RequestedApproval>,
    pub ledger: BudgetLedger,
    /// How often each kind of visit was seen.
    pub repeats: BTreeMap<Digest, u32>,
    /// The last visit's fingerprint.
    pub last_visit: Option<Digest>,
    /// How often the run was found stuck.
    pub strikes: u32,
    /// What people said that no node has heard yet.
    #[serde(default)]
    pub unheard: Vec<OperatorNote>,
    /// Who asked the run to stop, and why.
    pub cancel: Option<(Principal, String)>,
    /// How the run ended; none while it goes on.
    pub ended: Option<RunEnd>,
}

impl RunProgress {
    /// What is known after the first event.
    pub fn begin(run: RunId, body: &EventBody) -> Result<Self, InvalidRunHistory> {
        let EventBody::RunStarted {
            graph_version,
            seed,
            limits,
            max_visits,
            parent,
            ..
        } = body
        else {
            return Err(InvalidRunHistory {
                seq: 0,
                kind: body.kind(),
                why: "a log begins with run_started".to_owned(),
            });
        };
        Ok(Self {
            run,
            graph_version: *graph_version,
            seed: seed.clone(),
            max_visits: *max_visits,
            parent: parent.clone(),
            next_seq: 1,
            visits: BTreeMap::new(),
            total_visits: 0,
            last: None,
            entered: false,
            journal: BTreeMap::new(),
            pending: None,
            refused: BTreeSet::new(),
            approvals: BTreeMap::new(),
            ledger: BudgetLedger::new(limits),
            repeats: BTreeMap::new(),
            last_visit: None,
            strikes: 0,
            unheard: Vec::new(),
            cancel: None,
            ended: None,
        })
    }

    /// How often a node was left.
    pub fn visits_to(&self, node: &str) -> u32 {
        self.visits.get(node).copied().unwrap_or(0)
    }

    /// The effect of the current visit with this identity.
    pub fn effect(&self, effect: &EffectId) -> Option<&JournalEffect> {
        self.journal.values().find_map(|entry| match entry {
            JournalEntry::Effect(entry) if entry.effect == *effect => Some(&**entry),
            _ => None,
        })
    }

    fn effect_mut(&mut self, effect: &EffectId) -> Result<&mut JournalEffect, String> {
        let found = self.journal.values_mut().find_map(|entry| match entry {
            JournalEntry::Effect(entry) if entry.effect == *effect => Some(&mut **entry),
            _ => None,
        });
        found.ok_or_else(|| format!("{effect} was not announced in this visit"))
    }

    /// Takes the next event into account.
    pub fn apply(&mut self, body: &EventBody) -> Result<(), InvalidRunHistory> {
        let seq = self.next_seq;
        self.try_apply(seq, body).map_err(|why| InvalidRunHistory {
            seq,
            kind: body.kind(),
            why,
        })?;
        self.next_seq = seq + 1;
        Ok(())
    }

    fn try_apply(&mut self, seq: u64, body: &EventBody) -> Result<(), String> {
        if self.ended.is_some() && !matches!(body, EventBody::Sealed { .. }) {
            return Err("the run had ended".to_owned());
        }
        match body {
            EventBody::RunStarted { .. } => Err("the run had started".to_owned()),
            EventBody::RunTaken { .. }
            | EventBody::SignalIgnored { .. }
            | EventBody::Overridden { .. }
            | EventBody::Sealed { .. } => Ok(()),
            EventBody::NodeEntered { .. } => {
                self.entered = true;
                Ok(())
            }
            EventBody::ClockRead { ordinal, now_ms } => {
                self.note(*ordinal, JournalEntry::Clock(*now_ms))
            }
            EventBody::HeadRead { ordinal, head } => self.note(*ordinal, JournalEntry::Head(*head)),
            EventBody::Heard { ordinal, count } => self.heard(*ordinal, *count),
            EventBody::Steered { by, text } => {
                let (by, text) = (by.clone(), text.clone());
                self.unheard.push(OperatorNote { by, text });
                Ok(())
            }
            EventBody::ReadDone {
                ordinal,
                name,
                request,
                result,
                ..
            } => {
                let entry = JournalEntry::Read {
                    name: name.clone(),
                    request: *request,
                    result: result.clone(),
                };
                self.note(*ordinal, entry)
            }
            EventBody::EffectIntended { .. } => self.intended(seq, body),
            EventBody::EffectRetried {
                effect,
                attempt,
                reserve,
            } => self.retried(effect, *attempt, reserve),
            EventBody::EffectSettled {
                effect,
                spent,
                result,
                ..
            } => self.settled(effect, spent, result),
            EventBody::EffectRefused {
                ordinal,
                name,
                request,
                dimension,
                asked,
                free,
            } => {
                let entry = JournalEntry::Refused {
                    name: name.clone(),
                    request: *request,
                    over: (*dimension, *asked, *free),
                };
                self.note(*ordinal, entry)
            }
            EventBody::Suspended { ordinal, interrupt } => self.suspend(seq, *ordinal, interrupt),
            EventBody::Resolved { interrupt, answer } => self.resolve(*interrupt, answer),
            EventBody::Voted {
                approval,
                by,
                role,
                decision,
            } => {
                let (role, decision) = (role.clone(), *decision);
                self.voted(approval, by, ApprovalBallot { role, decision })
            }
            EventBody::LimitRaised { dimension, to, .. } => {
                self.ledger.raise(*dimension, *to);
                Ok(())
            }
            EventBody::CancelRequested { by, reason } => {
                self.cancel = Some((by.clone(), reason.clone()));
                Ok(())
            }
            EventBody::NodeLeft {
                node,
                visit,
                outcome,
                ..
            } => self.left(node, *visit, outcome, body),
            EventBody::StuckDetected { strikes, .. } => {
                self.strikes = *strikes;
                if let Some(visit) = self.last_visit {
                    self.repeats.remove(&visit);
                }
                Ok(())
            }
            EventBody::Migrated { from, to } => {
                if *from != self.graph_version {
                    return Err(format!("the run keeps to version {}", self.graph_version));
                }
                self.graph_version = *to;
                Ok(())
            }
            EventBody::RunEnded {
                ending,
                exit,
                summary,
            } => {
                self.pending = None;
                self.ended = Some(RunEnd {
                    ending: *ending,
                    exit: *exit,
                    summary: summary.clone(),
                });
                Ok(())
            }
        }
    }

    fn voted(
        &mut self,
        approval: &ApprovalId,
        by: &Principal,
        ballot: ApprovalBallot,
    ) -> Result<(), String> {
        let asked = self.approvals.get_mut(approval);
        let asked = asked.ok_or_else(|| format!("{approval} was not asked"))?;
        asked.votes.insert(by.clone(), ballot);
        Ok(())
    }

    fn heard(&mut self, ordinal: u32, count: u32) -> Result<(), String> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > self.unheard.len() {
            return Err(format!("only {} notes were there", self.unheard.len()));
        }
        let heard = self.unheard.drain(..count).collect();
        self.note(ordinal, JournalEntry::Heard(heard))
    }

    fn note(&mut self, ordinal: u32, entry: JournalEntry) -> Result<(), String> {
        if self.journal.insert(ordinal, entry).is_some() {
            return Err(format!("call {ordinal} of the visit was journaled before"));
        }
        Ok(())
    }

    fn intended(&mut self, seq: u64, body: &EventBody) -> Result<(), String> {
        let EventBody::EffectIntended {
            ordinal,
            effect,
            class,
            name,
            request,
            pre_tree,
            reserve,
            approval,
        } = body
        else {
            return Ok(());
        };
        let held = self.ledger.reserve(effect.as_str(), reserve);
        held.map_err(|over| format!("{} is not left", over.dimension))?;
        if let Some(approval) = approval {
            match self.approvals.get_mut(approval) {
                Some(asked) if asked.answer == Some(InterruptAnswer::Approved) && !asked.used => {
                    asked.used = true;
                }
                _ => return Err(format!("{approval} cannot be used")),
            }
        }
        let entry = JournalEffect {
            effect: effect.clone(),
            intent_seq: seq,
            class: *class,
            name: name.clone(),
            request: *request,
            pre_tree: *pre_tree,
            reserve: reserve.clone(),
            approval: approval.clone(),
            attempt: 0,
            result: None,
            verdict: None,
        };
        self.note(*ordinal, JournalEntry::Effect(Box::new(entry)))
    }

    fn retried(
        &mut self,
        effect: &EffectId,
        attempt: u32,
        reserve: &BudgetAmounts,
    ) -> Result<(), String> {
        let entry = self.effect_mut(effect)?;
        entry.attempt = attempt;
        entry.verdict = None;
        if entry.class == EffectClass::Model {
            self.ledger.lose(effect.as_str());
        } else {
            self.ledger.release(effect.as_str());
        }
        let held = self.ledger.reserve(effect.as_str(), reserve);
        held.map_err(|over| format!("{} is not left", over.dimension))
    }

    fn settled(
        &mut self,
        effect: &EffectId,
        spent: &BudgetAmounts,
        result: &EffectResult,
    ) -> Result<(), String> {
        self.ledger.settle(effect.as_str(), spent);
        let entry = self.effect_mut(effect)?;
        if entry.result.is_some() {
            return Err(format!("{effect} had ended"));
        }
        entry.result = Some(result.clone());
        Ok(())
    }

    fn suspend(&mut self, seq: u64, ordinal: u32, interrupt: &RunInterrupt) -> Result<(), String> {
        if self.pending.is_some() {
            return Err("the run waited already".to_owned());
        }
        match interrupt {
            RunInterrupt::Approval {
                approval,
                digest,
                rule,
                ..
            } => {
                let asked = RequestedApproval {
                    digest: *digest,
                    rule: rule.clone(),
                    votes: BTreeMap::new(),
                    answer: None,
                    used: false,
                };
                self.approvals.insert(approval.clone(), asked);
                self.wait(ordinal, interrupt)?;
            }
            RunInterrupt::Operator { .. } | RunInterrupt::Timer { .. } => {
                self.wait(ordinal, interrupt)?;
            }
            RunInterrupt::UnknownEffect { effect, .. } => {
                self.effect_mut(effect)?;
            }
            RunInterrupt::Budget { .. }
            | RunInterrupt::Held { .. }
            | RunInterrupt::NonDeterminism { .. } => {}
        }
        self.pending = Some(PendingWait {
            seq,
            ordinal,
            interrupt: interrupt.clone(),
        });
        Ok(())
    }

    fn wait(&mut self, ordinal: u32, interrupt: &RunInterrupt) -> Result<(), String> {
        let entry = JournalEntry::Wait {
            interrupt: interrupt.clone(),
            answer: None,
        };
        self.note(ordinal, entry)
    }

    fn resolve(&mut self, interrupt: u64, answer: &InterruptAnswer) -> Result<(), String> {
        let pending = match self.pending.take() {
            Some(pending) if pending.seq == interrupt => pending,
            _ => return Err(format!("the run did not wait for {interrupt}")),
        };
        match &pending.interrupt {
            RunInterrupt::Approval { .. }
            | RunInterrupt::Operator { .. }
            | RunInterrupt::Timer { .. } => {
                if let RunInterrupt::Approval { approval, .. } = &pending.interrupt
                    && let Some(asked) = self.approvals.get_mut(approval)
                {
                    asked.answer = Some(answer.clone());
                }
                let entry = JournalEntry::Wait {
                    interrupt: pending.interrupt,
                    answer: Some(answer.clone()),
                };
                self.journal.insert(pending.ordinal, entry);
            }
            RunInterrupt::UnknownEffect { effect, .. } => {
                if let InterruptAnswer::Chose { choice, .. } = answer {
                    self.effect_mut(effect)?.verdict = Some(choice.clone());
                }
            }
            RunInterrupt::Budget { .. } => {
                if matches!(answer, InterruptAnswer::Chose { .. }) {
                    self.refused.insert(pending.ordinal);
                }
            }
            // What was held is ordered again, and the world, which would do it, knows the answer.
            RunInterrupt::Held { .. } | RunInterrupt::NonDeterminism { .. } => {}
        }
        Ok(())
    }

    fn left(
        &mut self,
        node: &str,
        visit: u32,
        outcome: &str,
        body: &EventBody,
    ) -> Result<(), String> {
        if self.pending.is_some() {
            return Err("the run waited".to_owned());
        }
        if visit != self.visits_to(node) {
            return Err(format!("{node} was left {} times", self.visits_to(node)));
        }
        let fingerprint = self.fingerprint(node, body)?;
        *self.repeats.entry(fingerprint).or_default() += 1;
        self.last_visit = Some(fingerprint);
        *self.visits.entry(node.to_owned()).or_default() += 1;
        self.total_visits += 1;
        self.last = Some((node.to_owned(), outcome.to_owned()));
        self.entered = false;
        self.journal.clear();
        self.refused.clear();
        Ok(())
    }

    /// What a visit did and saw, whenever it was.
    fn fingerprint(&self, node: &str, body: &EventBody) -> Result<Digest, String> {
        let mut seen: Vec<(Digest, Option<&EffectResult>)> = Vec::new();
        for entry in self.journal.values() {
            match entry {
                JournalEntry::Read {
                    request, result, ..
                } => seen.push((*request, Some(result))),
                JournalEntry::Effect(effect) => seen.push((effect.request, effect.result.as_ref())),
                JournalEntry::Refused { request, .. } => seen.push((*request, None)),
                JournalEntry::Clock(_)
                | JournalEntry::Head(_)
                | JournalEntry::Heard(_)
                | JournalEntry::Wait { .. } => {}
            }
        }
        let EventBody::NodeLeft {
            outcome, events, ..
        } = body
        else {
            return Err("not the end of a visit".to_owned());
        };
        let mut bytes = Vec::with_capacity(256);
        serde_json::to_writer(&mut bytes, &(node, seen, outcome, events))
            .map_err(|error| error.to_string())?;
        Ok(Digest::of_bytes(&bytes))
    }

    /// How often the last visit was seen since the run was last found stuck.
    pub fn repeats_of_last(&self) -> u32 {
        let seen = self.last_visit.and_then(|visit| self.repeats.get(&visit));
        seen.copied().unwrap_or(0)
    }
}
