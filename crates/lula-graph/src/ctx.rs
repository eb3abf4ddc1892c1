//! What a node's body may use: the only door to the world, the clock, randomness and people.
//!
//! Every call has a place in the visit's journal. What the journal holds is answered from it; what
//! it does not hold is done and journaled.

use lula_protocol::digest::DigestDomain;
use lula_protocol::interrupt::ApprovalRule;
use lula_protocol::{ApprovalId, Digest, EventBody, InterruptAnswer, Principal, RunInterrupt};
use lula_store::LeaseAfterAppend;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde::de::DeserializeOwned;

use crate::desk::EngineDesk;
use crate::ledger::BudgetLedger;
use crate::progress::{JournalEntry, OperatorNote};
use crate::stop::{EffectError, VisitStop};
use crate::world::EffectRequest;

/// A question to people whether exactly this may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAsk {
    /// Digest of everything the approver sees and the executor will use.
    pub digest: Digest,
    /// Who has to agree, and until when.
    pub rule: ApprovalRule,
    /// Why they are asked, in one sentence.
    pub reason: String,
}

/// The answer of the approvers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Enough agreed. Good for one effect with the same digest.
    Approved(ApprovalId),
    /// An approver said no, or too few said yes in time: the reason.
    Rejected(String),
}

/// What a person chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonChoice {
    /// One of the options.
    pub choice: String,
    pub by: Principal,
    /// What else they said.
    pub note: String,
}

/// The door of a node's body.
pub struct NodeContext<'a> {
    pub(crate) desk: &'a mut EngineDesk,
    node: &'static str,
    visit: u32,
    pub(crate) ordinal: u32,
}

impl<'a> NodeContext<'a> {
    pub(crate) const fn new(desk: &'a mut EngineDesk, node: &'static str, visit: u32) -> Self {
        Self {
            desk,
            node,
            visit,
            ordinal: 0,
        }
    }

    /// The run that this visit belongs to.
    pub fn run(&self) -> &lula_protocol::RunId {
        &self.desk.progress.run
    }

    /// How often this node was left before.
    pub const fn visit(&self) -> u32 {
        self.visit
    }

    /// How often the run was found stuck. A body that sees this rise should try something else.
    pub fn strikes(&self) -> u32 {
        self.desk.progress.strikes
    }

    /// The budget as it stands.
    pub fn budget(&self) -> &BudgetLedger {
        &self.desk.progress.ledger
    }

    /// Unix time in milliseconds, journaled.
    pub async fn now(&mut self) -> Result<u64, VisitStop> {
        let ordinal = self.take_ordinal();
        let found = kind_digest("clock");
        match self.desk.progress.journal.get(&ordinal) {
            Some(JournalEntry::Clock(now_ms)) => Ok(*now_ms),
            Some(other) => {
                let recorded = entry_digest(other);
                Err(self.stray(ordinal, recorded, found).await)
            }
            None => {
                self.enter()?;
                let now_ms = self.desk.now();
                self.desk.note(EventBody::ClockRead { ordinal, now_ms })?;
                Ok(now_ms)
            }
        }
    }

    /// The digest of the log's last entry, after everything before this was committed; journaled.
    pub async fn head(&mut self) -> Result<Digest, VisitStop> {
        let ordinal = self.take_ordinal();
        match self.desk.progress.journal.get(&ordinal) {
            Some(JournalEntry::Head(head)) => Ok(*head),
            Some(other) => {
                let recorded = entry_digest(other);
                Err(self.stray(ordinal, recorded, kind_digest("head")).await)
            }
            None => {
                self.enter()?;
                self.desk.commit(LeaseAfterAppend::Keep, None).await?;
                let head = self.desk.scribe.sheet().head.hash;
                self.desk.note(EventBody::HeadRead { ordinal, head })?;
                Ok(head)
            }
        }
    }

    /// What people said to the agent that works on the run, as far as it has not heard it. Where there is
    /// nothing, nothing is journaled: a visit that is run again hears it at the same places.
    pub async fn hear(&mut self) -> Result<Vec<OperatorNote>, VisitStop> {
        match self.desk.progress.journal.get(&self.ordinal) {
            Some(JournalEntry::Heard(notes)) => {
                let notes = notes.clone();
                self.ordinal += 1;
                Ok(notes)
            }
            Some(_) => Ok(Vec::new()),
            None if self.desk.replay => Ok(Vec::new()),
            None => {
                self.desk.take_signals().await?;
                if self.desk.progress.cancel.is_some() {
                    return Err(VisitStop::Cancelled);
                }
                let notes = self.desk.progress.unheard.clone();
                if !notes.is_empty() {
                    self.enter()?;
                    let ordinal = self.take_ordinal();
                    let count = u32::try_from(notes.len()).unwrap_or(u32::MAX);
                    self.desk.note(EventBody::Heard { ordinal, count })?;
                }
                Ok(notes)
            }
        }
    }

    /// Everything that was heard in this visit.
    pub fn heard(&self) -> Vec<OperatorNote> {
        let entries = self.desk.progress.journal.values();
        let heard = entries.filter_map(|entry| match entry {
            JournalEntry::Heard(notes) => Some(notes.clone()),
            _ => None,
        });
        heard.flatten().collect()
    }

    /// Random numbers that are the same whenever this visit is run again.
    pub fn rng(&self) -> ChaCha20Rng {
        let seed = format!("{}/{}/{}", self.desk.progress.seed, self.node, self.visit);
        ChaCha20Rng::from_seed(*blake3::hash(seed.as_bytes()).as_bytes())
    }

    /// Has something done and reads the answer.
    pub async fn effect<T: DeserializeOwned>(
        &mut self,
        effect: EffectRequest,
    ) -> Result<T, VisitStop> {
        let name = effect.name.clone();
        let value = self.effect_value(effect).await?;
        serde_json::from_value(value).map_err(|error| {
            let message = error.to_string();
            EffectError::Shape { name, message }.into()
        })
    }

    /// Waits until people agreed to exactly this, or did not.
    pub async fn approval(&mut self, ask: ApprovalAsk) -> Result<ApprovalAnswer, VisitStop> {
        let ordinal = self.ordinal;
        let (ms, random) = self.name_of("approval", ordinal);
        let approval = ApprovalId::from_parts(ms, random);
        let nonce = Digest::of_bytes(format!("{}/{approval}", self.desk.progress.seed).as_bytes());
        let interrupt = RunInterrupt::Approval {
            approval: approval.clone(),
            digest: ask.digest,
            nonce: nonce.short(),
            rule: ask.rule,
            reason: ask.reason,
        };
        match self.wait(interrupt).await? {
            InterruptAnswer::Approved => Ok(ApprovalAnswer::Approved(approval)),
            InterruptAnswer::Rejected { reason } => Ok(ApprovalAnswer::Rejected(reason)),
            other => Ok(ApprovalAnswer::Rejected(format!("{other:?}"))),
        }
    }

    /// Waits until a person chose.
    pub async fn ask(
        &mut self,
        question: &str,
        options: &[&str],
    ) -> Result<PersonChoice, VisitStop> {
        let interrupt = RunInterrupt::Operator {
            question: question.to_owned(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
        };
        match self.wait(interrupt).await? {
            InterruptAnswer::Chose { choice, by, note } => Ok(PersonChoice { choice, by, note }),
            other => Err(VisitStop::Halt(format!(
                "a question was answered with {other:?}"
            ))),
        }
    }

    /// Waits until a time has come. The run takes no memory meanwhile.
    pub async fn sleep_until(&mut self, at_ms: u64) -> Result<(), VisitStop> {
        self.wait(RunInterrupt::Timer { at_ms }).await.map(drop)
    }

    pub(crate) fn take_ordinal(&mut self) -> u32 {
        let ordinal = self.ordinal;
        self.ordinal += 1;
        ordinal
    }

    /// Puts the entry into the visit before the first thing it journals.
    pub(crate) fn enter(&mut self) -> Result<(), VisitStop> {
        if self.desk.replay {
            return Err(VisitStop::EndOfJournal);
        }
        if self.desk.scribe.live.cancel.is_cancelled() {
            return Err(VisitStop::Cancelled);
        }
        if self.desk.scribe.live.pause.is_cancelled() {
            return Err(VisitStop::Paused);
        }
        if !self.desk.progress.entered {
            self.desk.note(EventBody::NodeEntered {
                node: self.node.to_owned(),
                visit: self.visit,
            })?;
        }
        Ok(())
    }

    /// Identity of a call: the run, the node, the visit and the place in its journal.
    pub(crate) fn name_of(&self, kind: &str, ordinal: u32) -> (u64, [u8; 10]) {
        let run = &self.desk.progress.run;
        let text = format!("lula/{kind}/{run}/{}/{}/{ordinal}", self.node, self.visit);
        let hash = blake3::hash(text.as_bytes());
        let mut ms = [0; 8];
        ms[2..].copy_from_slice(&hash.as_bytes()[..6]);
        let mut random = [0; 10];
        random.copy_from_slice(&hash.as_bytes()[6..16]);
        (u64::from_be_bytes(ms), random)
    }

    /// Called when the body has left: everything in the journal must have been asked for.
    pub(crate) async fn finish(&mut self) -> Result<(), VisitStop> {
        let journaled = u32::try_from(self.desk.progress.journal.len()).unwrap_or(u32::MAX);
        if self.ordinal == journaled {
            return Ok(());
        }
        let ordinal = self.ordinal;
        let recorded = self.desk.progress.journal.get(&ordinal).map(entry_digest);
        let recorded = recorded.unwrap_or_else(|| kind_digest("nothing"));
        Err(self.stray(ordinal, recorded, kind_digest("the end")).await)
    }

    /// The body does not ask for what the journal holds.
    pub(crate) async fn stray(
        &mut self,
        ordinal: u32,
        recorded: Digest,
        found: Digest,
    ) -> VisitStop {
        if self.desk.replay {
            return VisitStop::NonDeterminism {
                ordinal,
                recorded,
                found,
            };
        }
        let interrupt = RunInterrupt::NonDeterminism {
            ordinal,
            recorded,
            found,
        };
        self.desk.suspend(ordinal, interrupt).await
    }

    async fn wait(&mut self, interrupt: RunInterrupt) -> Result<InterruptAnswer, VisitStop> {
        let ordinal = self.take_ordinal();
        match self.desk.progress.journal.get(&ordinal).cloned() {
            Some(JournalEntry::Wait {
                interrupt: recorded,
                answer,
            }) => {
                if recorded != interrupt {
                    let recorded = Digest::of(DigestDomain::Effect, &recorded);
                    let found = Digest::of(DigestDomain::Effect, &interrupt);
                    let unknown = kind_digest("unreadable");
                    let (recorded, found) = (recorded.unwrap_or(unknown), found.unwrap_or(unknown));
                    return Err(self.stray(ordinal, recorded, found).await);
                }
                answer.ok_or(VisitStop::Suspended)
            }
            Some(other) => {
                let recorded = entry_digest(&other);
                Err(self.stray(ordinal, recorded, kind_digest("wait")).await)
            }
            None => {
                self.enter()?;
                Err(self.desk.suspend(ordinal, interrupt).await)
            }
        }
    }
}

pub(crate) fn kind_digest(kind: &str) -> Digest {
    Digest::of_bytes(kind.as_bytes())
}

/// What a journaled call was, for comparing.
pub(crate) fn entry_digest(entry: &JournalEntry) -> Digest {
    match entry {
        JournalEntry::Clock(_) => kind_digest("clock"),
        JournalEntry::Head(_) => kind_digest("head"),
        JournalEntry::Heard(_) => kind_digest("heard"),
        JournalEntry::Read { request, .. } | JournalEntry::Refused { request, .. } => *request,
        JournalEntry::Effect(effect) => effect.request,
        JournalEntry::Wait { interrupt, .. } => {
            Digest::of(DigestDomain::Effect, interrupt).unwrap_or_else(|_| kind_digest("wait"))
        }
    }
}
