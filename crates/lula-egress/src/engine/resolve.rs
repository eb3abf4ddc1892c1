//! Names resolved outside, and every address judged each time it is used.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Engine, locked};
use crate::address::AddressKind;
use crate::{DomainName, SandboxNetwork};

/// Longest time for one lookup.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most names whose addresses are remembered.
const MOST: usize = 4096;

/// Addresses as they were found. Whether they may be used is asked again each time.
#[derive(Debug, Default)]
pub(crate) struct Resolutions(HashMap<DomainName, (Instant, Vec<IpAddr>)>);

/// Why a name leads nowhere.
#[derive(Debug)]
pub(crate) enum ResolveFailure {
    NoAddress,
    /// It has addresses and none is allowed; this is one of them.
    Refused(IpAddr),
    Unavailable(String),
}

impl Engine {
    /// The addresses of a name that may be dialled. They are dialled as they are returned, so what was
    /// judged is what is reached.
    pub(crate) async fn resolve(
        &self,
        name: &DomainName,
        private: bool,
    ) -> Result<Vec<IpAddr>, ResolveFailure> {
        if name.is_of_sandbox() {
            // It has no address outside, and is never asked for there.
            return Err(ResolveFailure::NoAddress);
        }
        let found = self.look_up(name).await?;
        let allowed: Vec<IpAddr> = found
            .iter()
            .copied()
            .filter(|address| AddressKind::of(*address).is_allowed(private))
            .collect();
        match (found.first(), allowed.is_empty()) {
            (None, _) => Err(ResolveFailure::NoAddress),
            (Some(refused), true) => Err(ResolveFailure::Refused(*refused)),
            (Some(_), false) => Ok(allowed),
        }
    }

    /// The network of another sandbox in which the server of that name is.
    pub(crate) fn neighbour(
        &self,
        name: &DomainName,
        port: u16,
    ) -> Option<Arc<dyn SandboxNetwork>> {
        self.outside().neighbours.as_ref()?.find(name, port)
    }

    async fn look_up(&self, name: &DomainName) -> Result<Vec<IpAddr>, ResolveFailure> {
        let lives = self.outside().resolutions_live;
        if let Some((when, addresses)) = locked(&self.resolutions).0.get(name)
            && when.elapsed() < lives
        {
            return Ok(addresses.clone());
        }
        let unavailable = |why: &str| ResolveFailure::Unavailable(why.to_owned());
        let _permit = self
            .lookups
            .acquire()
            .await
            .map_err(|_| unavailable("the engine ends"))?;
        let (resolver, asked) = (Arc::clone(&self.outside().resolver), name.clone());
        let lookup = tokio::task::spawn_blocking(move || resolver.resolve(&asked));
        let addresses = match tokio::time::timeout(PATIENCE, lookup).await {
            Err(_) => return Err(unavailable("the resolver did not answer within 10 seconds")),
            Ok(Err(_)) => return Err(unavailable("the resolver ended")),
            Ok(Ok(Err(error))) => return Err(ResolveFailure::Unavailable(error.to_string())),
            Ok(Ok(Ok(addresses))) => addresses,
        };
        let mut resolutions = locked(&self.resolutions);
        if resolutions.0.len() >= MOST {
            resolutions.0.retain(|_, (when, _)| when.elapsed() < lives);
        }
        if resolutions.0.len() < MOST {
            resolutions
                .0
                .insert(name.clone(), (Instant::now(), addresses.clone()));
        }
        Ok(addresses)
    }
}
