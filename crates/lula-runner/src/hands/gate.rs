//! Whether an act may happen: rules, people's answers, and the record of both.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use lula_audit::{Decided, Ended, Entry as Recorded, Log, Verdict as Decision};
use lula_gate::approvals::{self, ApprovalsError, Keyring, Question, Refused, Settled, Standing};
use lula_gate::rules::{self, Act, Policy, Ruling, Source, Trust, Verdict};
use lula_protocol::approval::ApprovalSubject;
use lula_protocol::denial::{Attempt, Denial};
use lula_protocol::digest::Domain;
use lula_protocol::{
    ApprovalChallenge, ApprovalId, ApprovalToken, Details, Digest, EffectClass, Outcome, Output,
    Principal, Receipt,
};
use rusqlite::Transaction;

use super::Hands;
use super::clock::now_ms;
use super::refusal::Refusal;
use crate::api::{ApprovalList, ApprovalView, EXPIRED, REJECTED, VoteView};

/// Largest rules file of a repository, in bytes.
const RULES: u64 = 256 << 10;

/// A rules file of whoever runs this.
#[derive(Debug, Clone)]
pub struct RulesFile {
    /// What to call it in messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Everything that decides and records.
#[derive(Debug)]
pub(super) struct Gate {
    files: Vec<RulesFile>,
    own: Policy,
    log: Mutex<Log>,
}

/// What is shown to people, and what it holds for.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) rendered: String,
    pub(super) base_tree: Digest,
}

/// Why an act may happen, for the record.
#[derive(Debug, Clone)]
pub(super) struct Leave {
    pub(super) decided: Decided,
    /// Digest of what people agreed to, where they did.
    pub(super) subject: Option<Digest>,
}

/// What the gate says about an act, inside the transaction that begins it.
pub(super) enum Said {
    /// It may happen; the approval, if there was one, is spent.
    Go(Leave),
    /// People are asked.
    Ask(ApprovalChallenge, Decided),
    /// It may not.
    No(Vec<Denial>, Decided),
}

impl Gate {
    pub(super) fn open(state: &Path, files: Vec<RulesFile>) -> Result<Self, Refusal> {
        let own = load(&files, None)?;
        let options =
            lula_audit::Options::redacting(|text| lula_gate::redact::redact(text).into_owned());
        let log = Log::open(&state.join("audit"), options)
            .map_err(|error| Refusal::Internal(error.to_string()))?;
        // A first key is made here, so that a person can answer the first question.
        Keyring::open(state).map_err(|error| Refusal::Internal(error.to_string()))?;
        Ok(Self {
            files,
            own,
            log: Mutex::new(log),
        })
    }

    /// The rules for a workspace: ours, and what its repository adds to them.
    pub(super) fn policy(&self, base: &Path) -> Result<Policy, Refusal> {
        match repository_rules(base)? {
            None => Ok(self.own.clone()),
            Some(text) => load(&self.files, Some(&text)),
        }
    }

    /// Digest of our own rules.
    pub(super) fn version(&self) -> Result<Digest, Refusal> {
        version(&self.own)
    }

    pub(super) fn record(&self, entry: &Recorded) -> Result<(), Refusal> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.append(std::slice::from_ref(entry))
            .map(|_| ())
            .map_err(|error| Refusal::Internal(error.to_string()))
    }

    /// Signs what stands in the audit's log.
    pub(super) fn seal(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // Without it the log ends unsigned, which whoever checks it is told.
        let _ = log.seal();
    }
}

pub(super) fn version(policy: &Policy) -> Result<Digest, Refusal> {
    let internal = |error| Refusal::Internal(format!("the rules have no digest: {error}"));
    policy.version().map_err(internal)
}

fn load(files: &[RulesFile], repository: Option<&str>) -> Result<Policy, Refusal> {
    let mut sources: Vec<Source<'_>> = files
        .iter()
        .map(|file| Source {
            file: &file.name,
            text: &file.text,
            trust: Trust::Operator,
        })
        .collect();
    sources.extend(repository.map(|text| Source {
        file: rules::REPOSITORY_FILE,
        text,
        trust: Trust::Repository,
    }));
    Policy::load(&sources).map_err(|error| Refusal::BadRules(error.to_string()))
}

/// The repository's rules as they are in the user's tree: nothing an agent writes changes them.
fn repository_rules(base: &Path) -> Result<Option<String>, Refusal> {
    use rustix::fs::{Mode, OFlags};
    use std::io::Read as _;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let path = base.join(rules::REPOSITORY_FILE);
    let bad = |why: String| Refusal::BadRules(format!("{}: {why}", path.display()));
    let file = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(file) => std::fs::File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(bad(error.to_string())),
    };
    let mut text = String::new();
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err(bad("it is not a file".to_owned()));
    }
    file.take(RULES)
        .read_to_string(&mut text)
        .map_err(|error| bad(error.to_string()))?;
    Ok(Some(text))
}

/// An act to be judged, as the ledger and the approvals name it.
pub(super) struct Asked<'a> {
    /// Digest of the rules that judged it.
    pub(super) rules: Digest,
    pub(super) verdict: &'a Verdict,
    pub(super) tool: &'a str,
    pub(super) call: Digest,
    pub(super) shown: &'a Shown,
    pub(super) who: &'a Principal,
    /// What people agreed to before a crash.
    pub(super) agreed: Option<Digest>,
    /// What it does to the world.
    pub(super) class: EffectClass,
    /// Whether whoever started these hands agreed to what rules leave to them.
    pub(super) beforehand: bool,
}

/// Judges an act inside the transaction that begins it: an approval is spent in the same commit in
/// which its act is written down.
pub(super) fn decide(tx: &Transaction<'_>, asked: &Asked<'_>) -> Result<Said, Refusal> {
    let rule = asked.verdict.rule().map(str::to_owned);
    let decided = |verdict, approval: Option<&ApprovalId>| Decided {
        verdict,
        rule: rule.clone(),
        approval: approval.cloned(),
    };
    match asked.verdict.ruling {
        Ruling::Allow => {
            return Ok(Said::Go(Leave {
                decided: decided(Decision::Allowed, None),
                subject: None,
            }));
        }
        Ruling::Deny => {
            let denials = asked.verdict.denials(asked.tool);
            return Ok(Said::No(denials, decided(Decision::Denied, None)));
        }
        Ruling::Ask if agreed_beforehand(asked) => {
            return Ok(Said::Go(Leave {
                decided: decided(Decision::Beforehand, None),
                subject: None,
            }));
        }
        Ruling::Ask => {}
    }
    let subject = ApprovalSubject {
        call: asked.call,
        diff: Digest::of_bytes(asked.shown.rendered.as_bytes()),
        base_tree: asked.shown.base_tree,
        policy: asked.rules,
    };
    let digest = subject
        .digest()
        .map_err(|error| Refusal::Internal(error.to_string()))?;
    let now = now_ms();
    let stored = approvals::for_call(tx, &asked.call)?;
    if let Some(stored) = &stored {
        let id = stored.id();
        if asked.agreed == Some(digest) {
            return Ok(Said::Go(Leave {
                decided: decided(Decision::Approved, Some(id)),
                subject: Some(digest),
            }));
        }
        let said_no = |why: &str| {
            let denial = Denial {
                attempt: Attempt::Call {
                    tool: asked.tool.to_owned(),
                },
                rule: why.to_owned(),
                grant: None,
                count: 1,
            };
            Said::No(vec![denial], decided(Decision::Rejected, Some(id)))
        };
        match stored.standing(now) {
            Standing::Over {
                end: Settled::Rejected,
            } => return Ok(said_no(REJECTED)),
            Standing::Over {
                end: Settled::Expired,
            } => {
                approvals::expire(tx, now)?;
                return Ok(said_no(EXPIRED));
            }
            Standing::Approved { .. } => match approvals::redeem(tx, id, &digest, now) {
                Ok(()) => {
                    return Ok(Said::Go(Leave {
                        decided: decided(Decision::Approved, Some(id)),
                        subject: Some(digest),
                    }));
                }
                // What would be done is not what was shown: people are asked about that.
                Err(ApprovalsError::Refused(Refused::Void)) => {}
                Err(ApprovalsError::Refused(Refused::Expired)) => {
                    return Ok(said_no(EXPIRED));
                }
                Err(error) => return Err(error.into()),
            },
            Standing::Pending { .. } | Standing::Over { .. } => {}
        }
    }
    let challenge = approvals::challenge(
        tx,
        &Question {
            subject: &subject,
            rendered: asked.shown.rendered.as_bytes(),
            class: asked.class,
            reason: &asked.verdict.reason(),
            terms: &asked.verdict.terms,
            requester: asked.who,
        },
        now,
    )?;
    let asked = decided(Decision::Asked, Some(&challenge.id));
    Ok(Said::Ask(challenge, asked))
}

/// Whether nobody needs to be asked any more. What leaves the workspace is always asked about.
fn agreed_beforehand(asked: &Asked<'_>) -> bool {
    asked.beforehand && asked.verdict.beforehand && asked.class == EffectClass::Tree
}

/// Labels what deserves a second look in a text that somebody else wrote.
pub(super) fn label(output: &mut Output) {
    if !output.origin.is_untrusted() {
        return;
    }
    for finding in lula_gate::findings::scan(&output.text).findings {
        let name = finding.label.name();
        if !output.findings.iter().any(|known| known == name) {
            output.findings.push(name.to_owned());
        }
    }
}

/// Judges an act.
pub(super) fn judge(policy: &Policy, act: &Act) -> Verdict {
    policy.judge(act)
}

/// How an act ended, for the record.
pub(super) fn ended(outcome: &Outcome) -> Ended {
    match outcome {
        Outcome::Done { output } => Ended::Done {
            status: match &output.details {
                Some(Details::Command { status, .. }) => Some(*status),
                _ => None,
            },
        },
        Outcome::Failed { code, .. } => Ended::Failed {
            code: code.to_string(),
        },
        Outcome::Denied { .. } | Outcome::NeedsApproval { .. } => Ended::NotDone,
    }
}

/// The digest a receipt is known by.
pub(super) fn receipt_digest(receipt: Option<&Receipt>) -> Option<Digest> {
    receipt.and_then(|receipt| Digest::of(Domain::Receipt, receipt).ok())
}

impl Hands {
    /// Every question that people can still answer.
    pub fn approvals(&self) -> Result<ApprovalList, Refusal> {
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        let now = now_ms();
        let expired = approvals::expire(&tx, now)?;
        let pending = approvals::pending(&tx, now)?;
        tx.commit()?;
        drop(expired);
        Ok(ApprovalList {
            approvals: pending.iter().map(|stored| view(stored, now)).collect(),
        })
    }

    /// One question.
    pub fn approval(&self, id: &ApprovalId) -> Result<ApprovalView, Refusal> {
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        Ok(view(&approvals::load(&tx, id)?, now_ms()))
    }

    /// Takes a signed answer.
    pub fn vote(&self, id: &ApprovalId, token: &ApprovalToken) -> Result<ApprovalView, Refusal> {
        if token.id != *id {
            let message = "the answer is about another question".to_owned();
            return Err(Refusal::BadRequest(message));
        }
        // Read anew: keys are added and retired while the runner runs.
        let keys = Keyring::open(&self.setup.state)
            .map_err(|error| Refusal::Internal(error.to_string()))?;
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        let now = now_ms();
        approvals::vote(&tx, &keys, token, now)?;
        let stored = approvals::load(&tx, id)?;
        tx.commit()?;
        drop(ledger);
        self.gate.record(&Recorded {
            time_ms: now,
            principal: token.approver.clone(),
            run: None,
            effect: None,
            tool: "vote".to_owned(),
            about: format!("{id} as {}", token.role),
            call: stored.subject.call,
            decision: Decided {
                verdict: match token.decision {
                    lula_protocol::Decision::Approve => Decision::Approved,
                    lula_protocol::Decision::Reject => Decision::Rejected,
                },
                rule: None,
                approval: Some(id.clone()),
            },
            outcome: Ended::Done { status: None },
            receipt: None,
            diff: Some(stored.subject.diff),
        })?;
        Ok(view(&stored, now))
    }
}

fn view(stored: &approvals::Stored, now: u64) -> ApprovalView {
    let needed = stored.approval.terms.quorum.get();
    let agreed = stored
        .approval
        .votes
        .iter()
        .filter(|vote| vote.decision == lula_protocol::Decision::Approve)
        .count();
    let standing = match stored.standing(now) {
        Standing::Pending { .. } => "pending",
        Standing::Approved { .. } => "approved",
        Standing::Over { end } => match end {
            Settled::Used => "used",
            Settled::Void => "void",
            Settled::Rejected => "rejected",
            Settled::Expired => "expired",
        },
    };
    ApprovalView {
        challenge: stored.challenge.clone(),
        subject: stored.subject.clone(),
        role: stored.approval.terms.role.clone(),
        standing: standing.to_owned(),
        approvals: u32::try_from(agreed).unwrap_or(u32::MAX),
        needed,
        rendered: String::from_utf8_lossy(&stored.rendered).into_owned(),
        requester: stored.approval.requester.clone(),
        votes: stored
            .approval
            .votes
            .iter()
            .map(|vote| VoteView {
                approver: vote.approver.clone(),
                role: vote.role.clone(),
                decision: vote.decision,
            })
            .collect(),
    }
}
