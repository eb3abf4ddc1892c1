//! What a driver has to read before it is locked out of the files it stands in.

use std::sync::Arc;

use lula_agents::{ModelPort, RunTask};
use lula_graph::SigningKey;
use lula_store::SecretGuard;

use super::model_endpoints;
use crate::error::HostError;
use crate::installation::Installation;
use crate::otlp::{OtlpExporter, OtlpTarget};
use crate::runs::seal_key;

/// The keys of the models a task names, and the one that seals logs.
pub struct DriverKeys {
    pub(crate) models: Arc<dyn ModelPort>,
    /// Keeps the keys of the models out of the store.
    pub(crate) guard: SecretGuard,
    pub(crate) seal: SigningKey,
    /// Where the trace of a run goes once it is over.
    pub(crate) traces: Option<Arc<OtlpExporter>>,
}

impl DriverKeys {
    /// Reads them as the configuration says.
    pub fn read(task: &RunTask, installation: &Installation) -> Result<Self, HostError> {
        let mut asked = task.models.clone();
        asked.extend(task.guidance.judges.iter().cloned());
        let (models, guard) = model_endpoints::door(&asked, installation)?;
        Ok(Self {
            models,
            guard,
            seal: seal_key(installation)?,
            traces: OtlpExporter::open(&OtlpTarget::Configured, installation)?,
        })
    }
}
