//! Where questions and answers are kept. Every function works inside the caller's transaction.

use lula_protocol::approval::ApprovalSubject;
use lula_protocol::canonical::CanonicalError;
use lula_protocol::{
    ApprovalChallenge, ApprovalDecision, ApprovalId, ApprovalToken, Digest, EffectClass, Principal,
};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::keys::{ApprovalKeyring, ApprovalTokenError};
use super::question::{ApprovalQuestion, ApprovalVote, StoredApproval};
use super::state::{Approval, ApprovalRefusal, ApprovalStanding, SettledApproval, VoteRefusal};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS approvals (
    id         TEXT PRIMARY KEY,
    digest     BLOB NOT NULL,
    call       BLOB NOT NULL,
    subject    TEXT NOT NULL,
    rendered   BLOB NOT NULL,
    class      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    terms      TEXT NOT NULL,
    requester  TEXT NOT NULL,
    nonce      TEXT NOT NULL UNIQUE,
    asked_ms   INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    settled    TEXT,
    settled_ms INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS approvals_of_call ON approvals (call, asked_ms);
CREATE INDEX IF NOT EXISTS approvals_open ON approvals (asked_ms) WHERE settled IS NULL;
CREATE TABLE IF NOT EXISTS approval_votes (
    approval TEXT NOT NULL REFERENCES approvals (id),
    number   INTEGER NOT NULL,
    approver TEXT NOT NULL,
    role     TEXT NOT NULL,
    decision TEXT NOT NULL,
    token    TEXT NOT NULL,
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (approval, number),
    UNIQUE (approval, approver, decision)
) STRICT;
";

const COLUMNS: &str = "id, digest, subject, rendered, class, reason, terms, requester, nonce, \
                       asked_ms, expires_ms, settled";

/// Why the approvals could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalsError {
    /// The database said no.
    #[error("the approvals cannot be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    /// A value has no digest.
    #[error("the subject of an approval cannot be encoded: {0}")]
    Canonical(#[from] CanonicalError),
    /// A row does not hold what was written.
    #[error("the stored approval {id} is damaged: {reason}")]
    Damaged {
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What is shown is not what the subject names.
    #[error("what would be shown is not what would be approved: the diff's digest differs")]
    ShownIsNotSubject,
    /// The system gave no random bytes.
    #[error("the system has no random bytes for a nonce")]
    NoRandomness,
    /// There is no such question.
    #[error("there is no approval {0}")]
    Unknown(ApprovalId),
    /// The token belongs to another question or to other bytes.
    #[error("the answer is not for this question: its digest, nonce or expiry differs")]
    OtherQuestion,
    /// The token is not believed.
    #[error(transparent)]
    Token(#[from] ApprovalTokenError),
    /// The answer does not count.
    #[error(transparent)]
    Vote(#[from] VoteRefusal),
    /// The act may not happen.
    #[error(transparent)]
    Refused(#[from] ApprovalRefusal),
}

/// Makes the tables where they are missing.
pub fn migrate(connection: &Connection) -> Result<(), ApprovalsError> {
    Ok(connection.execute_batch(SCHEMA)?)
}

/// Asks. The same subject asked again while its question is open gets the same challenge, so a
/// call that is repeated does not ask twice.
pub fn challenge(
    tx: &Transaction<'_>,
    question: &ApprovalQuestion<'_>,
    now_ms: u64,
) -> Result<ApprovalChallenge, ApprovalsError> {
    let digest = question.subject.digest()?;
    if Digest::of_bytes(question.rendered) != question.subject.diff {
        return Err(ApprovalsError::ShownIsNotSubject);
    }
    if let Some(open) = for_call(tx, &question.subject.call)?
        && open.challenge.digest == digest
        && open.approval.requester == *question.requester
        && !matches!(open.standing(now_ms), ApprovalStanding::Over { .. })
    {
        return Ok(open.challenge);
    }
    let mut random = [0; 26];
    getrandom::fill(&mut random).map_err(|_| ApprovalsError::NoRandomness)?;
    let mut of_id = [0; 10];
    of_id.copy_from_slice(&random[..10]);
    let challenge = ApprovalChallenge {
        id: ApprovalId::from_parts(now_ms, of_id),
        digest,
        nonce: Digest::of_bytes(&random[10..]).to_string()[3..35].to_owned(),
        expires_ms: now_ms.saturating_add(question.terms.open_ms),
        reason: question.reason.to_owned(),
    };
    let json = |value: serde_json::Result<String>| value.map_err(CanonicalError::from);
    tx.prepare_cached(
        "INSERT INTO approvals (id, digest, call, subject, rendered, class, reason, terms, \
         requester, nonce, asked_ms, expires_ms) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
    )?
    .execute(params![
        challenge.id.as_str(),
        digest.as_bytes(),
        question.subject.call.as_bytes(),
        json(serde_json::to_string(question.subject))?,
        question.rendered,
        question.class.name(),
        question.reason,
        json(serde_json::to_string(question.terms))?,
        question.requester.as_str(),
        challenge.nonce,
        to_sql(now_ms),
        to_sql(challenge.expires_ms),
    ])?;
    Ok(challenge)
}

/// The latest question about a call, by the call's digest. A call that is repeated finds its
/// approval with it; [`redeem`] then voids it if anything but the call has changed.
pub fn for_call(
    tx: &Transaction<'_>,
    call: &Digest,
) -> Result<Option<StoredApproval>, ApprovalsError> {
    let id: Option<String> = tx
        .prepare_cached("SELECT id FROM approvals WHERE call = ? ORDER BY asked_ms DESC, id DESC")?
        .query_row([call.as_bytes()], |row| row.get(0))
        .optional()?;
    id.map_or(Ok(None), |id| find(tx, &id))
}

/// One question with its answers.
pub fn load(tx: &Transaction<'_>, id: &ApprovalId) -> Result<StoredApproval, ApprovalsError> {
    find(tx, id.as_str())?.ok_or_else(|| ApprovalsError::Unknown(id.clone()))
}

/// Every question that people can still answer, oldest first.
pub fn pending(tx: &Transaction<'_>, now_ms: u64) -> Result<Vec<StoredApproval>, ApprovalsError> {
    let mut open = unsettled(tx)?;
    open.retain(|stored| matches!(stored.standing(now_ms), ApprovalStanding::Pending { .. }));
    Ok(open)
}

/// Takes a signed answer.
pub fn vote(
    tx: &Transaction<'_>,
    keys: &ApprovalKeyring,
    token: &ApprovalToken,
    now_ms: u64,
) -> Result<ApprovalStanding, ApprovalsError> {
    keys.verify(token)?;
    let mut stored = load(tx, &token.id)?;
    let challenge = &stored.challenge;
    if challenge.digest != token.digest
        || challenge.nonce != token.nonce
        || challenge.expires_ms != token.expires_ms
    {
        return Err(ApprovalsError::OtherQuestion);
    }
    let number = stored.approval.votes.len();
    let answer = ApprovalVote {
        approver: token.approver.clone(),
        role: token.role.clone(),
        decision: token.decision,
    };
    let standing = stored.approval.apply(answer, now_ms)?;
    tx.prepare_cached(
        "INSERT INTO approval_votes (approval, number, approver, role, decision, token, at_ms) \
         VALUES (?,?,?,?,?,?,?)",
    )?
    .execute(params![
        token.id.as_str(),
        to_sql(number as u64),
        token.approver.as_str(),
        token.role,
        decision_name(token.decision),
        serde_json::to_string(token).map_err(CanonicalError::from)?,
        to_sql(now_ms),
    ])?;
    settle(tx, &stored, now_ms)?;
    Ok(standing)
}

/// Spends an approval on an act whose subject was computed just now. Commit in the same transaction
/// as the intent of the act. After [`ApprovalRefusal::Void`] and [`ApprovalRefusal::Expired`] commit too: that is
/// what keeps the end on record. Nothing is spent unless this returns `Ok`.
pub fn redeem(
    tx: &Transaction<'_>,
    id: &ApprovalId,
    subject_digest_now: &Digest,
    now_ms: u64,
) -> Result<(), ApprovalsError> {
    let mut stored = load(tx, id)?;
    let before = stored.approval.settled;
    let redeemed = stored.approval.redeem(subject_digest_now, now_ms);
    if stored.approval.settled != before {
        settle(tx, &stored, now_ms)?;
    }
    Ok(redeemed?)
}

/// Writes down every end that time alone has brought. Returns the questions that expired.
pub fn expire(tx: &Transaction<'_>, now_ms: u64) -> Result<Vec<ApprovalId>, ApprovalsError> {
    let mut expired = Vec::new();
    for mut stored in unsettled(tx)? {
        if let ApprovalStanding::Over { end } = stored.standing(now_ms) {
            stored.approval.settled = Some(end);
            settle(tx, &stored, now_ms)?;
            expired.push(stored.challenge.id);
        }
    }
    Ok(expired)
}

fn settle(
    tx: &Transaction<'_>,
    stored: &StoredApproval,
    now_ms: u64,
) -> Result<(), ApprovalsError> {
    if let Some(end) = stored.approval.settled {
        tx.prepare_cached("UPDATE approvals SET settled = ?, settled_ms = ? WHERE id = ?")?
            .execute(params![end.name(), to_sql(now_ms), stored.id().as_str()])?;
    }
    Ok(())
}

fn unsettled(tx: &Transaction<'_>) -> Result<Vec<StoredApproval>, ApprovalsError> {
    let ids: Vec<String> = tx
        .prepare_cached("SELECT id FROM approvals WHERE settled IS NULL ORDER BY asked_ms, id")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        all.extend(find(tx, &id)?);
    }
    Ok(all)
}

fn find(tx: &Transaction<'_>, id: &str) -> Result<Option<StoredApproval>, ApprovalsError> {
    let row = tx
        .prepare_cached(&format!("SELECT {COLUMNS} FROM approvals WHERE id = ?"))?
        .query_row([id], RawRow::read)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    let damaged = |reason: String| ApprovalsError::Damaged {
        id: id.to_owned(),
        reason,
    };
    let mut stored = row.parse().map_err(damaged)?;
    let votes: Vec<(String, String, String)> = tx
        .prepare_cached(
            "SELECT approver, role, decision FROM approval_votes WHERE approval = ? ORDER BY number",
        )?
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (approver, role, decision) in votes {
        stored.approval.votes.push(ApprovalVote {
            approver: approver
                .parse::<Principal>()
                .map_err(|error| damaged(error.to_string()))?,
            role,
            decision: decision_from(&decision)
                .ok_or_else(|| damaged(format!("{decision:?} is no decision")))?,
        });
    }
    Ok(Some(stored))
}

struct RawRow {
    id: String,
    digest: [u8; 32],
    subject: String,
    rendered: Vec<u8>,
    class: String,
    reason: String,
    terms: String,
    requester: String,
    nonce: String,
    asked_ms: i64,
    expires_ms: i64,
    settled: Option<String>,
}

impl RawRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            digest: row.get(1)?,
            subject: row.get(2)?,
            rendered: row.get(3)?,
            class: row.get(4)?,
            reason: row.get(5)?,
            terms: row.get(6)?,
            requester: row.get(7)?,
            nonce: row.get(8)?,
            asked_ms: row.get(9)?,
            expires_ms: row.get(10)?,
            settled: row.get(11)?,
        })
    }

    /// Fails on anything that was not written by [`challenge`].
    fn parse(self) -> Result<StoredApproval, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let subject: ApprovalSubject =
            serde_json::from_str(&self.subject).map_err(|error| text(&error))?;
        let digest = Digest::from_bytes(self.digest);
        if subject.digest().map_err(|error| text(&error))? != digest {
            return Err("its subject does not have its digest".to_owned());
        }
        let settled = self
            .settled
            .map(|name| {
                SettledApproval::from_name(&name).ok_or_else(|| format!("{name:?} is no end"))
            })
            .transpose()?;
        let expires_ms = from_sql(self.expires_ms);
        let approval = Approval {
            digest,
            class: EffectClass::from_name(&self.class)
                .ok_or_else(|| format!("{:?} is no class", self.class))?,
            terms: serde_json::from_str(&self.terms).map_err(|error| text(&error))?,
            requester: self.requester.parse().map_err(|error| text(&error))?,
            expires_ms,
            votes: Vec::new(),
            settled,
        };
        Ok(StoredApproval {
            challenge: ApprovalChallenge {
                id: self.id.parse().map_err(|error| text(&error))?,
                digest,
                nonce: self.nonce,
                expires_ms,
                reason: self.reason,
            },
            subject,
            rendered: self.rendered,
            asked_ms: from_sql(self.asked_ms),
            approval,
        })
    }
}

const fn decision_name(decision: ApprovalDecision) -> &'static str {
    match decision {
        ApprovalDecision::Approve => "approve",
        ApprovalDecision::Reject => "reject",
    }
}

fn decision_from(name: &str) -> Option<ApprovalDecision> {
    [ApprovalDecision::Approve, ApprovalDecision::Reject]
        .into_iter()
        .find(|decision| decision_name(*decision) == name)
}

/// Times far beyond any calendar are kept as the latest one `SQLite` can hold.
fn to_sql(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn from_sql(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
