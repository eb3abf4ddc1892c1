//! The contract, kept by scripts and plain commands.

use async_trait::async_trait;
use lula_protocol::payload::BlobRef;
use lula_protocol::{ApprovalId, BudgetDimension, Digest, RunId, RunSignal};
use redis::AsyncCommands;
use tokio::sync::broadcast;

use super::arguments::{RedisArgumentSections, json};
use super::codec::{self, corrupt};
use super::{RedisStore, failed};
use crate::append::{
    ApprovalRow, ApprovalState, EffectRow, EffectState, LeaseAfterAppend, LedgerRow, LogAppend,
    StateSnapshot,
};
use crate::body;
use crate::error::{StoreError, StoreResult};
use crate::record::{LogHead, LogRecord};
use crate::run::{LeaseClaim, NewRun, RunFilter, RunLease, RunRow};
use crate::store::{RunStore, StoreHint};

#[async_trait]
impl RunStore for RedisStore {
    fn backend(&self) -> &'static str {
        "redis"
    }

    async fn create(&self, run: NewRun) -> StoreResult<()> {
        self.guard.check_new(&run)?;
        let mut connection = self.connection.clone();
        let mut call = self.scripts.create.prepare_invoke();
        let due = run.claim.as_ref().map_or(0, LeaseClaim::until_ms);
        call.arg(&self.prefix)
            .arg(run.run.as_str())
            .arg(&run.graph)
            .arg(due);
        let fields = codec::new_fields(&run);
        call.arg(fields.len());
        for (name, value) in fields {
            call.arg(name).arg(value);
        }
        let mut sections = RedisArgumentSections(&mut call);
        sections.events(&run.records);
        sections.blobs(&run.blobs);
        sections.ledger(&run.ledger)?;
        let answer: String = call.invoke_async(&mut connection).await.map_err(failed)?;
        if answer == "ok" {
            Ok(())
        } else {
            Err(StoreError::RunExists(run.run))
        }
    }

    async fn append(&self, append: LogAppend) -> StoreResult<LogHead> {
        append.check_limits()?;
        self.guard.check_append(&append)?;
        let head = append.new_head();
        let mut call = self.scripts.append.prepare_invoke();
        call.arg(&self.prefix)
            .arg(append.run.as_str())
            .arg(append.epoch);
        call.arg(append.expected.next)
            .arg(append.expected.hash.to_string());
        call.arg(head.next).arg(head.hash.to_string());
        let (rest, wake) = match append.rest {
            LeaseAfterAppend::Keep => ("keep", None),
            LeaseAfterAppend::Suspend { wake_ms } => ("suspend", wake_ms),
            LeaseAfterAppend::Yield => ("yield", None),
            LeaseAfterAppend::Done => ("done", None),
        };
        call.arg(rest)
            .arg(wake.map(|wake| wake.to_string()).unwrap_or_default());
        let mut sections = RedisArgumentSections(&mut call);
        sections.events(&append.records);
        sections.blobs(&append.blobs);
        sections.0.arg(append.effects.len());
        for row in &append.effects {
            sections
                .0
                .arg(row.effect.as_str())
                .arg(row.state.name())
                .arg(json(row)?);
        }
        sections.approvals(&append.approvals);
        sections.ledger(&append.ledger)?;
        sections.0.arg(append.takes.len());
        for signal in &append.takes {
            sections.0.arg(signal.to_string());
        }
        sections.0.arg(usize::from(append.snapshot.is_some()));
        if let Some(snapshot) = &append.snapshot {
            sections
                .0
                .arg(snapshot.head.next)
                .arg(snapshot.head.hash.to_string());
            sections.0.arg(body::pack(&snapshot.bytes));
        }
        let mut connection = self.connection.clone();
        let answer: String = call.invoke_async(&mut connection).await.map_err(failed)?;
        match answer.split_once(':') {
            None if answer == "ok" => Ok(head),
            Some(("approval", rest)) => {
                let (op, id) = rest.split_once(':').unwrap_or(("", rest));
                let why = match op {
                    "use" => "it was used, or is for something else",
                    _ => "it is not open",
                };
                let approval = id.parse().map_err(corrupt)?;
                Err(StoreError::Approval { approval, why })
            }
            _ => Err(StoreError::Fenced {
                run: append.run,
                epoch: append.epoch,
            }),
        }
    }

    async fn read(&self, run: &RunId, from: u64, limit: u32) -> StoreResult<Vec<LogRecord>> {
        self.need(run).await?;
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut connection = self.connection.clone();
        // The entry before the first one asked for brings the digest that one continues.
        let first = from.saturating_sub(1);
        let index = |seq: u64| isize::try_from(seq).unwrap_or(isize::MAX);
        let last = from.saturating_add(u64::from(limit)) - 1;
        let found: Vec<Vec<u8>> = connection
            .lrange(self.key("ev", run.as_str()), index(first), index(last))
            .await
            .map_err(failed)?;
        let mut previous = LogHead::empty().hash;
        let mut records = Vec::new();
        for (seq, bytes) in (first..).zip(found) {
            if seq >= from {
                records.push(codec::read_event(run, seq, previous, &bytes)?);
            }
            previous = codec::event_hash(&bytes).ok_or_else(|| corrupt("an event is too short"))?;
        }
        Ok(records)
    }

    async fn run(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        let fields = self.fields(self.key("run", run.as_str())).await?;
        if fields.is_empty() {
            return Ok(None);
        }
        codec::read_run(run, &fields).map(Some)
    }

    async fn runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>> {
        let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        let mut rows = Vec::new();
        for run in self.run_ids(filter.after.as_ref()).await? {
            if rows.len() >= limit {
                break;
            }
            let Some(row) = self.run(&run).await? else {
                continue;
            };
            let wanted = filter
                .tenant
                .as_ref()
                .is_none_or(|tenant| row.tenant == *tenant)
                && filter.status.is_none_or(|status| row.status == status);
            if wanted {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    async fn claim(
        &self,
        graph: &str,
        claim: &LeaseClaim,
        limit: u32,
    ) -> StoreResult<Vec<RunLease>> {
        let leases = self.claim_some(graph, claim, limit, "").await?;
        Ok(leases.unwrap_or_default())
    }

    async fn claim_run(&self, run: &RunId, claim: &LeaseClaim) -> StoreResult<Option<RunLease>> {
        match self.claim_some("", claim, 1, run.as_str()).await? {
            None => Err(StoreError::NoRun(run.clone())),
            Some(leases) => Ok(leases.into_iter().next()),
        }
    }

    async fn renew(&self, lease: &RunLease, until_ms: u64) -> StoreResult<bool> {
        let mut connection = self.connection.clone();
        let mut call = self.scripts.renew.prepare_invoke();
        call.arg(&self.prefix)
            .arg(lease.run.as_str())
            .arg(lease.epoch)
            .arg(until_ms);
        let answer: i64 = call.invoke_async(&mut connection).await.map_err(failed)?;
        if answer < 0 {
            return Err(StoreError::Fenced {
                run: lease.run.clone(),
                epoch: lease.epoch,
            });
        }
        Ok(answer == 1)
    }

    async fn send(&self, run: &RunId, signal: &RunSignal) -> StoreResult<u64> {
        let text = json(signal)?;
        self.guard.check_text("a signal", &text)?;
        let mut connection = self.connection.clone();
        let mut call = self.scripts.send.prepare_invoke();
        call.arg(&self.prefix).arg(run.as_str()).arg(text);
        let id: i64 = call.invoke_async(&mut connection).await.map_err(failed)?;
        u64::try_from(id).map_err(|_| StoreError::NoRun(run.clone()))
    }

    async fn signals(&self, run: &RunId) -> StoreResult<Vec<(u64, RunSignal)>> {
        self.need(run).await?;
        let fields = self.fields(self.key("sig", run.as_str())).await?;
        let read = |(id, body): (&String, &String)| {
            let signal = serde_json::from_str(body).map_err(corrupt)?;
            Ok((id.parse().map_err(corrupt)?, signal))
        };
        let mut signals = fields
            .iter()
            .map(read)
            .collect::<StoreResult<Vec<(u64, RunSignal)>>>()?;
        signals.sort_by_key(|(id, _)| *id);
        Ok(signals)
    }

    async fn blob(&self, digest: &Digest) -> StoreResult<Vec<u8>> {
        let mut connection = self.connection.clone();
        let key = self.key("blob", &digest.to_string());
        let stored: Option<Vec<u8>> = connection.get(key).await.map_err(failed)?;
        if let Some(stored) = stored {
            return body::unpack_blob(digest, &stored);
        }
        let dropped: bool = connection
            .sismember(format!("{}:dropped", self.prefix), digest.to_string())
            .await
            .map_err(failed)?;
        Err(if dropped {
            StoreError::Dropped(*digest)
        } else {
            StoreError::NoBlob(*digest)
        })
    }

    async fn condemn_blobs(&self, blobs: &[BlobRef]) -> StoreResult<()> {
        if blobs.is_empty() {
            return Ok(());
        }
        let digests: Vec<String> = blobs.iter().map(|blob| blob.digest.to_string()).collect();
        let mut connection = self.connection.clone();
        let _: u64 = connection
            .sadd(format!("{}:condemned", self.prefix), digests)
            .await
            .map_err(failed)?;
        Ok(())
    }

    async fn drop_blobs(&self, blobs: &[BlobRef]) -> StoreResult<Vec<BlobRef>> {
        let mut connection = self.connection.clone();
        let mut call = self.scripts.drop.prepare_invoke();
        call.arg(&self.prefix);
        for blob in blobs {
            call.arg(blob.digest.to_string());
        }
        let gone: Vec<String> = call.invoke_async(&mut connection).await.map_err(failed)?;
        let dropped = |blob: &&BlobRef| gone.contains(&blob.digest.to_string());
        Ok(blobs.iter().filter(dropped).copied().collect())
    }

    async fn effects(&self, run: &RunId) -> StoreResult<Vec<EffectRow>> {
        self.need(run).await?;
        let fields = self.fields(self.key("eff", run.as_str())).await?;
        let read = |text: &String| serde_json::from_str(text).map_err(corrupt);
        let mut rows = fields
            .values()
            .map(read)
            .collect::<StoreResult<Vec<EffectRow>>>()?;
        rows.sort_by(|a, b| (a.intent_seq, &a.effect).cmp(&(b.intent_seq, &b.effect)));
        Ok(rows)
    }

    async fn effects_in(&self, state: EffectState) -> StoreResult<Vec<(RunId, EffectRow)>> {
        let runs = if state == EffectState::Settled {
            self.run_ids(None).await?
        } else {
            let mut connection = self.connection.clone();
            let members: Vec<String> = connection
                .smembers(self.key("effs", state.name()))
                .await
                .map_err(failed)?;
            let run = |member: &String| {
                let id = member.split(' ').next().unwrap_or_default();
                id.parse::<RunId>().map_err(corrupt)
            };
            let mut runs = members.iter().map(run).collect::<StoreResult<Vec<_>>>()?;
            runs.sort();
            runs.dedup();
            runs
        };
        let mut found = Vec::new();
        for run in runs {
            let rows = self.effects(&run).await?;
            let wanted = rows.into_iter().filter(|row| row.state == state);
            found.extend(wanted.map(|row| (run.clone(), row)));
        }
        Ok(found)
    }

    async fn approval(&self, approval: &ApprovalId) -> StoreResult<Option<ApprovalRow>> {
        let fields = self.fields(self.key("apr", approval.as_str())).await?;
        if fields.is_empty() {
            return Ok(None);
        }
        codec::read_approval(approval.as_str(), &fields).map(Some)
    }

    async fn approvals_in(&self, state: ApprovalState) -> StoreResult<Vec<ApprovalRow>> {
        let mut connection = self.connection.clone();
        let mut ids: Vec<String> = connection
            .smembers(self.key("aprs", state.name()))
            .await
            .map_err(failed)?;
        ids.sort();
        let mut rows = Vec::new();
        for id in ids {
            let id = id.parse().map_err(corrupt)?;
            // It may have changed since the list was read.
            let row = self.approval(&id).await?;
            rows.extend(row.filter(|row| row.state == state));
        }
        Ok(rows)
    }

    async fn ledger(&self, run: &RunId) -> StoreResult<Vec<LedgerRow>> {
        self.need(run).await?;
        let fields = self.fields(self.key("led", run.as_str())).await?;
        let read = |text: &String| serde_json::from_str(text).map_err(corrupt);
        let mut rows = fields
            .values()
            .map(read)
            .collect::<StoreResult<Vec<LedgerRow>>>()?;
        rows.sort_by_key(|row| BudgetDimension::name(row.dimension));
        Ok(rows)
    }

    async fn snapshot(&self, run: &RunId) -> StoreResult<Option<StateSnapshot>> {
        self.need(run).await?;
        let mut connection = self.connection.clone();
        let key = self.key("snap", run.as_str());
        let found: (Option<u64>, Option<String>, Option<Vec<u8>>) = redis::cmd("HMGET")
            .arg(key)
            .arg("next")
            .arg("hash")
            .arg("body")
            .query_async(&mut connection)
            .await
            .map_err(failed)?;
        let (Some(next), Some(hash), Some(stored)) = found else {
            return Ok(None);
        };
        // Only a cache: one that cannot be read is as good as none.
        let Ok(bytes) = body::unpack(&stored) else {
            return Ok(None);
        };
        let hash = hash.parse().map_err(corrupt)?;
        Ok(Some(StateSnapshot {
            head: LogHead { next, hash },
            bytes,
        }))
    }

    async fn drop_snapshots(&self, run: &RunId) -> StoreResult<()> {
        self.need(run).await?;
        let mut connection = self.connection.clone();
        let _: i64 = connection
            .del(self.key("snap", run.as_str()))
            .await
            .map_err(failed)?;
        Ok(())
    }

    fn watch(&self) -> broadcast::Receiver<StoreHint> {
        self.hints.subscribe()
    }
}
