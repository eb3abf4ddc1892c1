//! What a sandbox may reach over the network, by name.
//!
//! A sandbox has a network namespace in which every address is local, so that each connection it makes
//! arrives at a listening socket of this crate ([`SandboxListeners`]), whatever address it dialled. An
//! [`EgressPolicy`] says which names it may reach; [`Egress::start`] serves them until its handle is
//! dropped:
//!
//! 1. The sandbox asks for a name. An allowed name is answered with an address that stands for this name
//!    alone (198.18.0.0/15, which exists nowhere); any other name is refused and no packet leaves.
//! 2. The sandbox connects to that address. The first bytes must agree with the name: the server name of
//!    TLS, the `Host` of HTTP.
//! 3. The name, never an address that the sandbox chose, is resolved and checked again, and dialled.
//! 4. The bytes are relayed as they are. Only where a rule speaks of methods and paths, or a credential is
//!    bound to the name, the connection is opened with a certificate of an authority that lives as long as
//!    the handle, and each request is judged by itself.
//!
//! The other way, a port of a server inside is reached only where it was published
//! ([`EgressHandle::publish`]): from a listener that the caller made, or by name from another sandbox whose
//! rules name it.
//!
//! Everything is bounded, and what fails refuses: a dead engine has closed its listeners. No secret is in
//! a policy, a record or an error; [`BrokeredCredential`] lends it to the one header it is for.
//!
//! The decisions (`policy`, `address`, the readers of first bytes) are pure. The crate starts no program,
//! reads no variable and writes no file: its caller hands in what was resolved.
#![forbid(unsafe_code)]

mod address;
mod credential;
mod engine;
mod error;
mod handle;
mod hello;
mod intercept;
mod listeners;
mod names;
mod outside;
mod policy;
mod published;
mod record;
mod trust;

pub use credential::{BrokeredCredential, CredentialUse};
pub use error::EgressError;
pub use handle::{Egress, EgressHandle, PublishedServers};
pub use hello::{ClientHello, FirstBytes, read_client_hello};
pub use listeners::SandboxListeners;
pub use outside::{NameResolver, Outside, SystemResolver, UpstreamProxy};
pub use policy::{
    CredentialRule, CredentialSource, DomainName, DomainPattern, EgressGroups, EgressLimits,
    EgressNarrowing, EgressNarrowingLimits, EgressPolicy, EgressProtocol, EgressRule,
    InvalidEgress, MethodName, PathGlob, RequestDetail,
};
pub use published::{PublishedPort, SandboxNeighbours, SandboxNetwork};
pub use record::{
    ConnectionRecord, ConnectionSide, EgressDenial, EgressRefusal, EgressStage, EgressVerdict,
    Relay,
};
pub use trust::java_trust_store;
