//! Asking until the answer can be used: shape, call, read, and at most twice tell the model
//! exactly what was wrong.

use crate::client::{Client, Exchange, Patience, Try};
use crate::error::ModelError;
use crate::name::Endpoint;
use crate::normal::{ModelRequest, ModelResponse};
use crate::output::read::ask_again;
use crate::output::{Answer, Fault, read, shape};
use crate::spend::Purse;
use crate::wire::Delta;

/// How often a model is told what was wrong.
pub const REPAIRS: u32 = 2;

/// A usable answer, or why there is none, and everything that was tried for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The answer.
    pub result: Result<Answer, ModelError>,
    /// The last whole response, which the answer was read from.
    pub response: Option<ModelResponse>,
    /// What was wrong with the answers before it, in order.
    pub faults: Vec<Fault>,
    /// Every try of every question.
    pub tries: Vec<Try>,
}

impl Client {
    /// Asks a model for a usable answer.
    pub async fn ask_well(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        patience: Patience,
        purse: &dyn Purse,
        watch: &mut (dyn FnMut(Delta) + Send),
    ) -> Asked {
        let mut asked = Asked {
            result: Err(ModelError::Unusable {
                model: endpoint.name.clone(),
                asked: 0,
                fault: Fault::Empty,
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
            let Exchange { result, tries } = self
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
                    watch(Delta::Discarded);
                }
            }
        }
        asked
    }
}
