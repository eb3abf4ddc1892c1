//! Records, as connections fill them in.

use std::net::SocketAddr;
use std::time::Instant;

use super::resolve::ResolveFailure;
use super::{Engine, locked};
use crate::record::{EgressDenial, EgressRefusal, EgressStage, EgressVerdict};
use crate::{ConnectionRecord, DomainName};

/// Names and verdicts remembered, so that each is told once.
const MOST_NAMES_TOLD: usize = 4096;

impl ConnectionRecord {
    pub(crate) fn begun(stage: EgressStage, number: u64, attribution: Option<String>) -> Self {
        Self {
            stage,
            connection: number,
            attribution,
            client: None,
            name: None,
            dialled: None,
            address: None,
            port: 0,
            bytes_up: 0,
            bytes_down: 0,
            verdict: EgressVerdict::Failed,
            rule: None,
            denial: None,
            failure: None,
            dropped_by: None,
            duration_ms: 0,
            relay: None,
            request: None,
            status: None,
            credentials: Vec::new(),
            redacted: false,
        }
    }

    pub(crate) fn deny(&mut self, reason: EgressRefusal, text: String, grant: Option<String>) {
        self.verdict = EgressVerdict::Denied;
        self.denial = Some(EgressDenial {
            reason,
            text,
            grant,
        });
    }

    pub(crate) fn fail(&mut self, why: String) {
        self.verdict = EgressVerdict::Failed;
        self.failure = Some(why);
    }

    /// Says why a name led nowhere.
    pub(crate) fn unresolved(&mut self, name: &DomainName, port: u16, failure: ResolveFailure) {
        match failure {
            ResolveFailure::Refused(address) => {
                let kind = crate::address::AddressKind::of(address);
                let grant = kind
                    .is_allowed(true)
                    .then(|| format!("{name}:{port} private"));
                self.deny(
                    EgressRefusal::AddressNotAllowed,
                    format!("{name} leads to {address}, which is no address of the public network"),
                    grant,
                );
            }
            ResolveFailure::NoAddress => self.fail(format!("{name} has no address")),
            ResolveFailure::Unavailable(why) => {
                self.fail(format!("{name} could not be resolved: {why}"));
            }
        }
    }
}

impl Engine {
    pub(crate) fn record_of_name(&self, name: &str, client: SocketAddr) -> ConnectionRecord {
        let mut record =
            ConnectionRecord::begun(EgressStage::Name, self.number(), self.attribution());
        record.client = Some(client);
        record.name = Some(name.to_owned());
        record.port = 53;
        record
    }

    pub(super) fn record_of_connection(
        &self,
        client: SocketAddr,
        dialled: SocketAddr,
    ) -> ConnectionRecord {
        let mut record =
            ConnectionRecord::begun(EgressStage::Connection, self.number(), self.attribution());
        record.client = Some(client);
        record.dialled = Some(dialled.ip().to_canonical());
        record.port = dialled.port();
        record
    }

    /// Tells a record, whose duration ends now.
    pub(crate) fn told(&self, mut record: ConnectionRecord, started: Instant) {
        record.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        (self.recorder)(record);
    }

    /// Tells a record of a name, once for each name, verdict and exec: each has a receipt of its own.
    pub(crate) fn told_name(&self, record: ConnectionRecord, started: Instant) {
        let name = record.name.clone().unwrap_or_default();
        let key = (name, record.verdict, record.attribution.clone());
        let mut told = locked(&self.names_told);
        if told.len() >= MOST_NAMES_TOLD {
            told.clear();
        }
        let is_new = told.insert(key);
        drop(told);
        if is_new {
            self.told(record, started);
        }
    }

    /// Tells that something was turned away because too much came at once.
    pub(crate) fn told_overload(&self, client: SocketAddr, port: u16) {
        let now = Instant::now();
        if !self.overload_told.take(now) {
            return;
        }
        let mut record =
            ConnectionRecord::begun(EgressStage::Connection, self.number(), self.attribution());
        record.client = Some(client);
        record.port = port;
        record.deny(
            EgressRefusal::LimitReached,
            "more names or connections were begun than the policy's limits allow at once"
                .to_owned(),
            None,
        );
        self.told(record, now);
    }
}
