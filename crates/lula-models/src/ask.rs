//! Asking until the answer can be used: shape, call, read, and at most twice tell the model
//! exactly what was wrong.

use crate::client::{CallPatience, CallTry, ModelClient, ModelExchange};
use crate::error::ModelError;
use crate::name::ModelEndpoint;
use crate::normal::{ModelRequest, ModelResponse};
use crate::output::read::ask_again;
use crate::output::{AnswerFault, ModelAnswer, read, shape};
use crate::spend::SpendAccount;
use crate::wire::StreamDelta;

/// How often a model is told what was wrong.
pub const REPAIRS: u32 = 2;

/// A usable answer, or why there is none, and everything that was tried for it.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedModel {
    /// The answer, or why there is none.
    pub result: Result<ModelAnswer, ModelError>,
    /// The last whole response, which the answer was read from.
    pub response: Option<ModelResponse>,
    /// What was wrong with the answers before it, in order.
    pub faults: Vec<AnswerFault>,
    /// Every try of every question.
    pub tries: Vec<CallTry>,
}

impl ModelClient {
    /// Asks a model for a usable answer.
    pub async fn ask_well(
        &self,
        endpoint: &ModelEndpoint,
        request: &ModelRequest,
        patience: CallPatience,
        purse: &dyn SpendAccount,
        watch: &mut (dyn FnMut(StreamDelta) + Send),
    ) -> AskedModel {
        let mut asked = AskedModel {
            result: Err(ModelError::Unusable {
                model: endpoint.name.clone(),
                asked: 0,
                fault: AnswerFault::Empty,
            }),
            response: None,
            faults: Vec::new(),
            tries: Vec::new(),
        };
        let mut shaped = match shape(request, endpoint.capability) {
            Ok(shaped) => shaped,
            Err(error) => {
                asked.result = Err(error.into());
                return asked;
            }
        };
        for round in 1..=REPAIRS + 1 {
            let ModelExchange { result, tries } = self
                .complete(endpoint, &shaped.request, patience, purse, watch)
                .await;
            asked.tries.extend(tries);
            let response = match result {
                Ok(response) => response,
                Err(error) => {
                    asked.result = Err(error);
                    return asked;
                }
            };
            let answer = read(&shaped, &response);
            match answer {
                Ok(answer) => {
                    asked.response = Some(response);
                    asked.result = Ok(answer);
                    return asked;
                }
                Err(fault) => {
                    let repairable = fault.is_repairable();
                    shaped = ask_again(&shaped, &response, &fault);
                    asked.response = Some(response);
                    asked.faults.push(fault.clone());
                    asked.result = Err(ModelError::Unusable {
                        model: endpoint.name.clone(),
                        asked: round,
                        fault,
                    });
                    if !repairable {
                        return asked;
                    }
                    watch(StreamDelta::Discarded);
                }
            }
        }
        asked
    }
}
