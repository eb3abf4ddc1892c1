//! Starting an engine, and what can be done with one that runs.

use std::os::fd::OwnedFd;

use crate::{
    BrokeredCredential, ConnectionRecord, EgressError, EgressPolicy, EgressRule, Outside,
    SandboxListeners,
};

/// Serves the connections of one sandbox.
#[derive(Debug)]
pub struct Egress;

/// An engine that runs. Dropping it closes its listeners and cuts every connection.
#[derive(Debug)]
pub struct EgressHandle {}

impl Egress {
    /// Starts serving on a thread of its own. Nothing is let out before this returns, and nothing after
    /// the handle is gone.
    ///
    /// `credentials` has the secrets for the credentials of the policy; one of the policy's that is missing
    /// is an error. `recorder` is called on the engine's thread: it must not block.
    pub fn start(
        listeners: SandboxListeners,
        policy: EgressPolicy,
        credentials: Vec<BrokeredCredential>,
        outside: Outside,
        recorder: impl Fn(ConnectionRecord) + Send + Sync + 'static,
    ) -> Result<EgressHandle, EgressError> {
        let _ = (listeners, policy, credentials, outside, recorder);
        Err(EgressError::Ended)
    }
}

impl EgressHandle {
    /// The certificate of this engine's authority, in PEM, for the trust bundles of the sandbox. Its key
    /// is in memory only and ends with the handle.
    pub fn ca_certificate_pem(&self) -> &str {
        ""
    }

    /// The policy that was started with.
    pub fn policy(&self) -> &EgressPolicy {
        unimplemented!()
    }

    /// Allows what a rule says from now on. A person's grant: a narrowing of the repository does not bind
    /// it. Its port must have a listener.
    pub fn grant(&self, rule: EgressRule) -> Result<(), EgressError> {
        let _ = rule;
        Err(EgressError::Ended)
    }

    /// Takes a rule back, whether granted or of the policy, and cuts the open connections that no other
    /// rule allows. Whether the rule was in force.
    pub fn revoke(&self, rule: &EgressRule) -> Result<bool, EgressError> {
        let _ = rule;
        Err(EgressError::Ended)
    }

    /// The rules that were granted since the start and not taken back.
    pub fn granted(&self) -> Vec<EgressRule> {
        Vec::new()
    }

    /// Serves another port of the sandbox, on a listener made like those of [`SandboxListeners`].
    pub fn listen(&self, port: u16, listener: OwnedFd) -> Result<(), EgressError> {
        let _ = (port, listener);
        Err(EgressError::Ended)
    }

    /// From now on names and connections belong to this exec, until it is said again.
    pub fn attribute(&self, exec: Option<String>) {
        let _ = exec;
    }

    /// Whether the engine serves. One that ended lets nothing out.
    pub fn is_alive(&self) -> bool {
        false
    }

    /// Stops serving: closes the listeners, cuts every connection, waits until the last record was told.
    pub fn stop(self) {}
}
