//! The only way to a model.

use std::collections::BTreeMap;

use async_trait::async_trait;
use lula_models::name::Endpoint;
use lula_models::normal::{ModelRequest, ModelResponse};
use lula_models::spend::{Ledger, SharedLedger};
use lula_models::{Client, Patience};
use lula_protocol::{Amounts, Dimension};

/// Why a model gave no answer, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MindError {
    /// What happened, without any key.
    pub message: String,
    /// What it cost all the same.
    pub spent: Amounts,
}

/// Whoever answers questions.
#[async_trait]
pub trait Minds: Send + Sync + 'static {
    /// Asks once; retries of a broken connection are inside. Spends no more than is allowed.
    async fn ask(
        &self,
        mind: &str,
        request: &ModelRequest,
        at_most: &Amounts,
    ) -> Result<(ModelResponse, Amounts), MindError>;
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Minds for Nobody {
    async fn ask(
        &self,
        mind: &str,
        _: &ModelRequest,
        _: &Amounts,
    ) -> Result<(ModelResponse, Amounts), MindError> {
        Err(MindError {
            message: format!("{mind} is not configured here: name it with --model"),
            spent: Amounts::none(),
        })
    }
}

/// Models of providers.
pub struct Providers {
    client: Client,
    endpoints: BTreeMap<String, Endpoint>,
    patience: Patience,
}

impl Providers {
    /// These, by their names.
    pub fn new(client: Client, endpoints: Vec<Endpoint>) -> Self {
        Self {
            client,
            endpoints: endpoints
                .into_iter()
                .map(|endpoint| (endpoint.name.clone(), endpoint))
                .collect(),
            patience: Patience::default(),
        }
    }
}

#[async_trait]
impl Minds for Providers {
    async fn ask(
        &self,
        mind: &str,
        request: &ModelRequest,
        at_most: &Amounts,
    ) -> Result<(ModelResponse, Amounts), MindError> {
        let free = |message: String| MindError {
            message,
            spent: Amounts::none(),
        };
        let Some(endpoint) = self.endpoints.get(mind) else {
            return Err(free(format!(
                "{mind} is not configured here: name it with --model"
            )));
        };
        let mut ledger = Ledger::default();
        // Calls that were refused cost nothing and may be tried again; only money and tokens cap.
        let mut limits = at_most.clone();
        limits.0.remove(&Dimension::ModelCalls);
        ledger
            .open("ask", None, limits)
            .map_err(|error| free(error.to_string()))?;
        let purse = SharedLedger::new(ledger).account("ask");
        let exchange = self
            .client
            .complete(endpoint, request, self.patience, &purse, &mut |_| ())
            .await;
        let mut spent = Amounts::none();
        for one in &exchange.tries {
            for (dimension, amount) in one.spent.iter() {
                let sum = spent.0.entry(dimension).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        match exchange.result {
            Ok(response) => Ok((response, spent)),
            Err(error) => Err(MindError {
                message: error.to_string(),
                spent,
            }),
        }
    }
}
