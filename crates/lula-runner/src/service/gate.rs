//! Whether an act may happen: rules, people's answers, and the record of both.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use lula_audit::{
    AuditDecision, AuditEnding, AuditEntry as Recorded, AuditLog, AuditVerdict as Decision,
};
use lula_files::FinalLink;
use lula_gate::approvals::{
    self, ApprovalKeyring, ApprovalQuestion, ApprovalRefusal, ApprovalStanding, ApprovalsError,
    SettledApproval,
};
use lula_gate::rules::{
    self, GateAct, GateVerdict, RuleSet, RulesFileSource, RulesFileTrust, Ruling,
};
use lula_protocol::approval::ApprovalSubject;
use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use lula_protocol::digest::DigestDomain;
use lula_protocol::{
    ApprovalChallenge, ApprovalId, ApprovalToken, Digest, EffectClass, Principal, SandboxReceipt,
    ToolOutcome, ToolOutput, ToolOutputDetails,
};
use rusqlite::Transaction;

use super::RunnerService;
use super::clock::now_ms;
use super::refusal::RequestRefusal;
use lula_runner_api::{ApprovalList, ApprovalView, EXPIRED, REJECTED, VoteView};

/// Largest rules file of a repository, in bytes.
const MAX_RULES_BYTES: u64 = 256 << 10;

/// A rules file of the operator.
#[derive(Debug, Clone)]
pub struct RunnerRulesFile {
    /// What to call it in messages.
    pub name: String,
    pub text: String,
}

/// Everything that decides and records.
#[derive(Debug)]
pub(super) struct EffectGate {
    files: Vec<RunnerRulesFile>,
    own: RuleSet,
    log: Mutex<AuditLog>,
}

/// What is shown to people, and what it holds for.
#[derive(Debug)]
pub(super) struct ShownApproval {
    pub(super) rendered: String,
    pub(super) base_tree: Digest,
}

/// Why an act may happen, for the record.
#[derive(Debug, Clone)]
pub(super) struct ActPermission {
    pub(super) decided: AuditDecision,
    /// Digest of what people agreed to, where they did.
    pub(super) subject: Option<Digest>,
}

/// What the gate says about an act, inside the transaction that begins it.
pub(super) enum GateAnswer {
    /// It may happen; the approval, if there was one, is spent.
    Go(ActPermission),
    /// Approvers are asked first: what they are asked, and why.
    Ask(ApprovalChallenge, AuditDecision),
    /// It may not happen: what was refused, and why.
    No(Vec<SandboxDenial>, AuditDecision),
}

impl EffectGate {
    pub(super) fn open(state: &Path, files: Vec<RunnerRulesFile>) -> Result<Self, RequestRefusal> {
        let own = load(&files, None)?;
        let options = lula_audit::AuditOptions::redacting(|text| {
            lula_gate::redact::redact(text).into_owned()
        });
        let log = AuditLog::open(&state.join("audit"), options)
            .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
        // A first key is made here, so that a person can answer the first question.
        ApprovalKeyring::open(state)
            .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
        Ok(Self {
            files,
            own,
            log: Mutex::new(log),
        })
    }

    /// The rules for a workspace: ours, and what its repository adds to them.
    pub(super) fn policy(&self, base: &Path) -> Result<RuleSet, RequestRefusal> {
        match repository_rules(base)? {
            None => Ok(self.own.clone()),
            Some(text) => load(&self.files, Some(&text)),
        }
    }

    /// Digest of our own rules.
    pub(super) fn version(&self) -> Result<Digest, RequestRefusal> {
        version(&self.own)
    }

    pub(super) fn record(&self, entry: &Recorded) -> Result<(), RequestRefusal> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.append(std::slice::from_ref(entry))
            .map(|_| ())
            .map_err(|error| RequestRefusal::Internal(error.to_string()))
    }

    /// Signs what stands in the audit's log.
    pub(super) fn seal(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // Without it the log ends unsigned, which `verify` tells the reader.
        let _ = log.seal();
    }
}

pub(super) fn version(policy: &RuleSet) -> Result<Digest, RequestRefusal> {
    let internal = |error| RequestRefusal::Internal(format!("the rules have no digest: {error}"));
    policy.version().map_err(internal)
}

fn load(files: &[RunnerRulesFile], repository: Option<&str>) -> Result<RuleSet, RequestRefusal> {
    let mut sources: Vec<RulesFileSource<'_>> = files
        .iter()
        .map(|file| RulesFileSource {
            file: &file.name,
            text: &file.text,
            trust: RulesFileTrust::Operator,
        })
        .collect();
    sources.extend(repository.map(|text| RulesFileSource {
        file: rules::REPOSITORY_FILE,
        text,
        trust: RulesFileTrust::Repository,
    }));
    RuleSet::load(&sources).map_err(|error| RequestRefusal::BadRules(error.to_string()))
}

/// The repository's rules as they are in the user's tree: nothing an agent writes changes them.
fn repository_rules(base: &Path) -> Result<Option<String>, RequestRefusal> {
    let path = base.join(rules::REPOSITORY_FILE);
    lula_files::read_regular_text(&path, MAX_RULES_BYTES, FinalLink::Refused)
        .map_err(|why| RequestRefusal::BadRules(format!("{}: {why}", path.display())))
}

/// An act to be judged, as the ledger and the approvals name it.
pub(super) struct JudgedAct<'a> {
    /// Digest of the rules that judged it.
    pub(super) rules: Digest,
    pub(super) verdict: &'a GateVerdict,
    pub(super) tool: &'a str,
    pub(super) call: Digest,
    pub(super) shown: &'a ShownApproval,
    pub(super) who: &'a Principal,
    /// What people agreed to before a crash.
    pub(super) agreed: Option<Digest>,
    /// What it does to the world.
    pub(super) class: EffectClass,
    /// Whether the operator who started this runner agreed to what rules leave to them.
    pub(super) beforehand: bool,
}

/// Judges an act inside the transaction that begins it: an approval is spent in the same commit in
/// which its act is written down.
pub(super) fn decide(
    tx: &Transaction<'_>,
    asked: &JudgedAct<'_>,
) -> Result<GateAnswer, RequestRefusal> {
    let rule = asked.verdict.rule().map(str::to_owned);
    let decided = |verdict, approval: Option<&ApprovalId>| AuditDecision {
        verdict,
        rule: rule.clone(),
        approval: approval.cloned(),
    };
    match asked.verdict.ruling {
        Ruling::Allow => {
            return Ok(GateAnswer::Go(ActPermission {
                decided: decided(Decision::Allowed, None),
                subject: None,
            }));
        }
        Ruling::Deny => {
            let denials = asked.verdict.denials(asked.tool);
            return Ok(GateAnswer::No(denials, decided(Decision::Denied, None)));
        }
        Ruling::Ask if agreed_beforehand(asked) => {
            return Ok(GateAnswer::Go(ActPermission {
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
        .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
    let now = now_ms();
    let stored = approvals::for_call(tx, &asked.call)?;
    if let Some(stored) = &stored {
        let id = stored.id();
        if asked.agreed == Some(digest) {
            return Ok(GateAnswer::Go(ActPermission {
                decided: decided(Decision::Approved, Some(id)),
                subject: Some(digest),
            }));
        }
        let said_no = |why: &str| {
            let denial = SandboxDenial {
                attempt: DeniedAttempt::Call {
                    tool: asked.tool.to_owned(),
                },
                rule: why.to_owned(),
                grant: None,
                count: 1,
            };
            GateAnswer::No(vec![denial], decided(Decision::Rejected, Some(id)))
        };
        match stored.standing(now) {
            ApprovalStanding::Over {
                end: SettledApproval::Rejected,
            } => return Ok(said_no(REJECTED)),
            ApprovalStanding::Over {
                end: SettledApproval::Expired,
            } => {
                approvals::expire(tx, now)?;
                return Ok(said_no(EXPIRED));
            }
            ApprovalStanding::Approved { .. } => match approvals::redeem(tx, id, &digest, now) {
                Ok(()) => {
                    return Ok(GateAnswer::Go(ActPermission {
                        decided: decided(Decision::Approved, Some(id)),
                        subject: Some(digest),
                    }));
                }
                // What would be done is not what was shown: people are asked about that.
                Err(ApprovalsError::Refused(ApprovalRefusal::Void)) => {}
                Err(ApprovalsError::Refused(ApprovalRefusal::Expired)) => {
                    return Ok(said_no(EXPIRED));
                }
                Err(error) => return Err(error.into()),
            },
            ApprovalStanding::Pending { .. } | ApprovalStanding::Over { .. } => {}
        }
    }
    let challenge = approvals::challenge(
        tx,
        &ApprovalQuestion {
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
    Ok(GateAnswer::Ask(challenge, asked))
}

/// Whether no approver needs to be asked any more. What leaves the workspace is always asked about.
fn agreed_beforehand(asked: &JudgedAct<'_>) -> bool {
    asked.beforehand && asked.verdict.beforehand && asked.class == EffectClass::Tree
}

/// Labels what deserves a second look in an untrusted text.
pub(super) fn label(output: &mut ToolOutput) {
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

pub(super) fn judge(policy: &RuleSet, act: &GateAct) -> GateVerdict {
    policy.judge(act)
}

/// How an act ended, for the record.
pub(super) fn ended(outcome: &ToolOutcome) -> AuditEnding {
    match outcome {
        ToolOutcome::Done { output } => AuditEnding::Done {
            status: match &output.details {
                Some(ToolOutputDetails::Command { status, .. }) => Some(*status),
                _ => None,
            },
        },
        ToolOutcome::Failed { code, .. } => AuditEnding::Failed {
            code: code.to_string(),
        },
        ToolOutcome::Denied { .. } | ToolOutcome::NeedsApproval { .. } => AuditEnding::NotDone,
    }
}

/// The digest a receipt is known by.
pub(super) fn receipt_digest(receipt: Option<&SandboxReceipt>) -> Option<Digest> {
    receipt.and_then(|receipt| Digest::of(DigestDomain::Receipt, receipt).ok())
}

impl RunnerService {
    /// Every question that people can still answer.
    pub fn approvals(&self) -> Result<ApprovalList, RequestRefusal> {
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

    /// One question with its answers so far.
    pub fn approval(&self, id: &ApprovalId) -> Result<ApprovalView, RequestRefusal> {
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        Ok(view(&approvals::load(&tx, id)?, now_ms()))
    }

    /// Takes a signed answer.
    pub fn vote(
        &self,
        id: &ApprovalId,
        token: &ApprovalToken,
    ) -> Result<ApprovalView, RequestRefusal> {
        if token.id != *id {
            let message = "the answer is about another question".to_owned();
            return Err(RequestRefusal::BadRequest(message));
        }
        // Read anew: keys are added and retired while the runner runs.
        let keys = ApprovalKeyring::open(&self.setup.state)
            .map_err(|error| RequestRefusal::Internal(error.to_string()))?;
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
            decision: AuditDecision {
                verdict: match token.decision {
                    lula_protocol::ApprovalDecision::Approve => Decision::Approved,
                    lula_protocol::ApprovalDecision::Reject => Decision::Rejected,
                },
                rule: None,
                approval: Some(id.clone()),
            },
            outcome: AuditEnding::Done { status: None },
            receipt: None,
            diff: Some(stored.subject.diff),
        })?;
        Ok(view(&stored, now))
    }
}

fn view(stored: &approvals::StoredApproval, now: u64) -> ApprovalView {
    let needed = stored.approval.terms.quorum.get();
    let agreed = stored
        .approval
        .votes
        .iter()
        .filter(|vote| vote.decision == lula_protocol::ApprovalDecision::Approve)
        .count();
    let standing = match stored.standing(now) {
        ApprovalStanding::Pending { .. } => "pending",
        ApprovalStanding::Approved { .. } => "approved",
        ApprovalStanding::Over { end } => match end {
            SettledApproval::Used => "used",
            SettledApproval::Void => "void",
            SettledApproval::Rejected => "rejected",
            SettledApproval::Expired => "expired",
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
