//! The only way to a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use lula_models::name::ModelEndpoint;
use lula_models::normal::{ModelRequest, ModelResponse};
use lula_models::spend::{SharedSpendLedger, SpendLedger};
use lula_models::wire::StreamDelta;
use lula_models::{BROKE_OFF, CallPatience, ModelClient};
use lula_protocol::{BudgetAmounts, BudgetDimension};

/// Why a model gave no answer, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelCallError {
    /// What happened, without any key.
    pub message: String,
    /// What it cost all the same.
    pub spent: BudgetAmounts,
}

/// The models that answer questions.
#[async_trait]
pub trait ModelPort: Send + Sync + 'static {
    /// Asks once; retries of a broken connection are inside. Spends no more than is allowed.
    async fn ask(
        &self,
        model: &str,
        request: &ModelRequest,
        at_most: &BudgetAmounts,
    ) -> Result<(ModelResponse, BudgetAmounts), ModelCallError>;

    /// The same, heard while the answer grows. What is heard is for a display of the moment: only the
    /// whole answer may be acted on.
    async fn ask_heard(
        &self,
        model: &str,
        request: &ModelRequest,
        at_most: &BudgetAmounts,
        _hear: &AnswerObserver,
    ) -> Result<(ModelResponse, BudgetAmounts), ModelCallError> {
        self.ask(model, request, at_most).await
    }
}

/// Hears an answer grow, piece by piece.
pub type AnswerObserver = Arc<dyn Fn(&StreamDelta) + Send + Sync>;

/// No models: every question is refused, with the flag that names one.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

#[async_trait]
impl ModelPort for NoModels {
    async fn ask(
        &self,
        model: &str,
        _: &ModelRequest,
        _: &BudgetAmounts,
    ) -> Result<(ModelResponse, BudgetAmounts), ModelCallError> {
        Err(ModelCallError {
            message: format!("{model} is not configured here: name it with --model"),
            spent: BudgetAmounts::none(),
        })
    }
}

/// Models that providers serve over HTTP.
pub struct ProviderModels {
    client: ModelClient,
    endpoints: BTreeMap<String, ModelEndpoint>,
    patience: CallPatience,
}

impl ProviderModels {
    /// These, by their names.
    pub fn new(client: ModelClient, endpoints: Vec<ModelEndpoint>) -> Self {
        Self {
            client,
            endpoints: endpoints
                .into_iter()
                .map(|endpoint| (endpoint.name.clone(), endpoint))
                .collect(),
            patience: CallPatience::default(),
        }
    }
}

#[async_trait]
impl ModelPort for ProviderModels {
    async fn ask(
        &self,
        model: &str,
        request: &ModelRequest,
        at_most: &BudgetAmounts,
    ) -> Result<(ModelResponse, BudgetAmounts), ModelCallError> {
        let deaf: AnswerObserver = Arc::new(|_| ());
        self.ask_heard(model, request, at_most, &deaf).await
    }

    async fn ask_heard(
        &self,
        model: &str,
        request: &ModelRequest,
        at_most: &BudgetAmounts,
        hear: &AnswerObserver,
    ) -> Result<(ModelResponse, BudgetAmounts), ModelCallError> {
        let free = |message: String| ModelCallError {
            message,
            spent: BudgetAmounts::none(),
        };
        let Some(endpoint) = self.endpoints.get(model) else {
            return Err(free(format!(
                "{model} is not configured here: name it with --model"
            )));
        };
        let mut ledger = SpendLedger::default();
        // Calls that were refused cost nothing and may be tried again; only money and tokens cap.
        let mut limits = at_most.clone();
        limits.0.remove(&BudgetDimension::ModelCalls);
        limits.0.remove(&BudgetDimension::UnpricedCalls);
        ledger
            .open("ask", None, limits)
            .map_err(|error| free(error.to_string()))?;
        let purse = SharedSpendLedger::new(ledger).account("ask");
        let exchange = self
            .client
            .complete(endpoint, request, self.patience, &purse, &mut |delta| {
                hear(&delta)
            })
            .await;
        let mut spent = BudgetAmounts::none();
        for one in &exchange.tries {
            for (dimension, amount) in one.spent.iter() {
                let sum = spent.0.entry(dimension).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        match exchange.result {
            Ok(response) => Ok((response, spent)),
            Err(error) => Err(ModelCallError {
                message: if error.broke_off() {
                    format!("{BROKE_OFF}: {error}")
                } else {
                    error.to_string()
                },
                spent,
            }),
        }
    }
}
