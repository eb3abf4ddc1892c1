//! One open door: the engine that serves it, and what it refused.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lula_egress::{ConnectionRecord, EgressHandle, EgressStage};
use lula_protocol::SandboxDenial;
use lula_protocol::denial::DeniedAttempt;
use lula_sandbox::OpenDoor;

use super::as_flag;
use super::bundle::TrustBundle;
use super::grants::GrantServer;
use crate::record::now_ms;

/// Different refusals that one sandbox remembers.
const MOST: usize = 1024;

/// What was refused, in order, and which addresses stand for which names.
#[derive(Debug, Default)]
pub(super) struct SeenDenials(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    count: u64,
    denials: Vec<(u64, SandboxDenial)>,
    names: Vec<(IpAddr, String)>,
}

impl SeenDenials {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, record: &ConnectionRecord) {
        let mut seen = self.seen();
        if let (Some(address), Some(name)) = (record.dialled, &record.name)
            && seen.names.len() < MOST
            && !seen.names.iter().any(|(known, _)| *known == address)
        {
            seen.names.push((address, name.clone()));
        }
        if let Some(mut denial) = record.sandbox_denial() {
            denial.grant = denial.grant.as_deref().map(as_flag);
            if let (EgressStage::Name, Some(name)) = (record.stage, &record.name) {
                denial.attempt = DeniedAttempt::Resolve { host: name.clone() };
            }
            seen.count += 1;
            let number = seen.count;
            if seen.denials.len() < MOST {
                seen.denials.push((number, denial));
            }
        }
    }

    fn since(&self, mark: u64) -> Vec<SandboxDenial> {
        let mut found: Vec<SandboxDenial> = Vec::new();
        for (_, denial) in self.seen().denials.iter().filter(|(at, _)| *at > mark) {
            let same = |known: &&mut SandboxDenial| {
                (&known.attempt, &known.rule) == (&denial.attempt, &denial.rule)
            };
            match found.iter_mut().find(same) {
                Some(known) => known.count += denial.count,
                None => found.push(denial.clone()),
            }
        }
        found
    }
}

/// A door and what can be done with it while its sandbox runs.
#[derive(Debug)]
pub(super) struct ServedDoor {
    pub(super) id: String,
    pub(super) subject: Option<String>,
    pub(super) begun_ms: u64,
    pub(super) handle: EgressHandle,
}

/// A door as its sandbox holds it.
#[derive(Debug)]
pub(super) struct EgressDoor {
    pub(super) served: Arc<ServedDoor>,
    seen: Arc<SeenDenials>,
    commands: AtomicU64,
    /// Shown inside, and heard of live grants, for as long as the sandbox stands.
    _held: (TrustBundle, Arc<GrantServer>),
}

impl EgressDoor {
    pub(super) fn new(
        id: String,
        subject: Option<String>,
        handle: EgressHandle,
        seen: Arc<SeenDenials>,
        held: (TrustBundle, Arc<GrantServer>),
    ) -> Self {
        Self {
            served: Arc::new(ServedDoor {
                id,
                subject,
                begun_ms: now_ms(),
                handle,
            }),
            seen,
            commands: AtomicU64::new(0),
            _held: held,
        }
    }
}

impl OpenDoor for EgressDoor {
    fn command_begins(&self, program: &str) -> u64 {
        let number = self.commands.fetch_add(1, Ordering::Relaxed) + 1;
        self.served
            .handle
            .attribute(Some(format!("{number}:{program}")));
        self.seen.seen().count
    }

    fn denials_since(&self, mark: u64) -> Vec<SandboxDenial> {
        self.seen.since(mark)
    }

    fn name_of(&self, address: IpAddr) -> Option<String> {
        let seen = self.seen.seen();
        let mut names = seen.names.iter();
        names
            .find(|(known, _)| *known == address)
            .map(|(_, name)| name.clone())
    }
}
