//! Calling a model: one question, as many tries as policy allows, every try paid for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lula_protocol::{BudgetAmounts, BudgetDimension, Digest};
use serde_json::{Value, json};

use crate::attempt::{CallAttempt, trouble};
use crate::clock::{MonotonicClock, RandomSource, SystemMonotonicClock, SystemRandomSource};
use crate::error::ModelError;
use crate::name::ModelEndpoint;
use crate::normal::{ModelRequest, ModelResponse, TokenUsage};
use crate::refused::RefusedFields;
use crate::resilience::{
    BreakerPolicy, BucketPolicy, CircuitBreaker, ModelHealth, RateBucket, RetryPolicy, TryFailure,
    next_wait,
};
use crate::spend::{SpendAccount, actual, input_bound, worst_case};
use crate::transport::{HttpTransport, ModelTransport, TransportError};
use crate::wire::{self, ServerFailureKind, StreamDelta, WireError};

/// How a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPatience {
    /// Whether the answer is streamed.
    pub streamed: bool,
    /// The longest time without a byte.
    pub idle: Duration,
    /// The longest time for everything, waits and retries included.
    pub total: Duration,
}

impl Default for CallPatience {
    fn default() -> Self {
        Self {
            streamed: true,
            // A model that thinks, or waits for its turn at a busy server, says nothing for minutes.
            idle: Duration::from_mins(5),
            total: Duration::from_mins(30),
        }
    }
}

/// One try, for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct CallTry {
    /// The digest of the request's bytes.
    pub request: Digest,
    /// The answer's bytes, as far as they came, without the key.
    pub raw: Vec<u8>,
    /// The status, where one came.
    pub status: Option<u16>,
    /// What it used, as the server said.
    pub usage: Option<TokenUsage>,
    /// What was booked for it.
    pub spent: BudgetAmounts,
    /// How long it was waited before.
    pub waited: Duration,
    /// How long it took.
    pub took: Duration,
    /// What went wrong; `None` for success.
    pub error: Option<String>,
}

/// What came of a question: the answer, and every try that was made for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelExchange {
    pub result: Result<ModelResponse, ModelError>,
    /// Every try, in order, with how it ended.
    pub tries: Vec<CallTry>,
}

/// Policies of a client.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientPolicies {
    /// When a failed call is tried again.
    pub retry: RetryPolicy,
    /// When a failing model is left alone.
    pub breaker: BreakerPolicy,
    /// How fast calls may follow one another.
    pub bucket: BucketPolicy,
}

/// Speaks to models. Cheap to clone; clones share buckets and breakers.
#[derive(Clone)]
pub struct ModelClient {
    pub(crate) transport: Arc<dyn ModelTransport>,
    pub(crate) clock: Arc<dyn MonotonicClock>,
    dice: Arc<dyn RandomSource>,
    policies: ClientPolicies,
    buckets: Arc<Mutex<BTreeMap<String, RateBucket>>>,
    breakers: Arc<Mutex<BTreeMap<String, CircuitBreaker>>>,
    /// What each model was seen to refuse, by its name.
    refused: Arc<Mutex<BTreeMap<String, RefusedFields>>>,
}

impl std::fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("policies", &self.policies)
            .finish_non_exhaustive()
    }
}

impl ModelClient {
    /// A client on the network, with the machine's time and chance.
    pub fn live() -> Result<Self, TransportError> {
        Ok(Self::new(
            Arc::new(HttpTransport::new()?),
            Arc::new(SystemMonotonicClock::default()),
            Arc::new(SystemRandomSource),
            ClientPolicies::default(),
        ))
    }

    /// A client on anything.
    pub fn new(
        transport: Arc<dyn ModelTransport>,
        clock: Arc<dyn MonotonicClock>,
        dice: Arc<dyn RandomSource>,
        policies: ClientPolicies,
    ) -> Self {
        Self {
            transport,
            clock,
            dice,
            policies,
            buckets: Arc::default(),
            breakers: Arc::default(),
            refused: Arc::default(),
        }
    }

    /// The health of every model called so far: recorded before a choice is made from it.
    pub fn health(&self) -> BTreeMap<String, ModelHealth> {
        let now = self.clock.now();
        lock(&self.breakers)
            .iter()
            .map(|(name, breaker)| (name.clone(), breaker.health(now)))
            .collect()
    }

    /// Asks a model. `watch` sees the answer grow; only the returned answer may be acted on.
    pub async fn complete(
        &self,
        endpoint: &ModelEndpoint,
        request: &ModelRequest,
        patience: CallPatience,
        purse: &dyn SpendAccount,
        watch: &mut (dyn FnMut(StreamDelta) + Send),
    ) -> ModelExchange {
        let mut tries = Vec::new();
        let result = self
            .try_all(endpoint, request, patience, purse, watch, &mut tries)
            .await;
        ModelExchange { result, tries }
    }

    async fn try_all(
        &self,
        endpoint: &ModelEndpoint,
        request: &ModelRequest,
        patience: CallPatience,
        purse: &dyn SpendAccount,
        watch: &mut (dyn FnMut(StreamDelta) + Send),
        tries: &mut Vec<CallTry>,
    ) -> Result<ModelResponse, ModelError> {
        let request = endpoint.fit(request);
        let mut refused = lock(&self.refused)
            .get(&endpoint.name)
            .copied()
            .unwrap_or_default();
        let mut body = refused.body(endpoint, &request, patience.streamed)?;
        let total = match purse.left(BudgetDimension::WallMs) {
            Some(left) => patience.total.min(Duration::from_millis(left)),
            None => patience.total,
        };
        let deadline = self.clock.now().saturating_add(total);
        let out_of_time = || ModelError::Deadline {
            model: endpoint.name.clone(),
            within: total,
        };
        let mut cuts = 0;
        let mut waited = Duration::ZERO;
        let mut failed: Option<ModelError> = None;
        loop {
            let _admitted = self.admit(endpoint)?;
            let queue = self.bucket(endpoint, RateBucket::take);
            let left = deadline.saturating_sub(self.clock.now());
            if queue >= left {
                return Err(out_of_time());
            }
            self.clock.sleep(queue).await;
            waited += queue;
            let bound = input_bound(&body, request.pictures(), endpoint.context);
            let worst = worst_case(&endpoint.price, bound, u64::from(request.max_tokens));
            let hold = purse.reserve(&worst).await;
            // What went wrong says more than that another try is not covered.
            let hold = hold.map_err(|uncovered| failed.take().unwrap_or(uncovered.into()))?;
            let begun = self.clock.now();
            let attempt = CallAttempt {
                client: self,
                endpoint,
                body: &body,
                patience,
                deadline,
            };
            let mut told = false;
            let mut listen = |delta| {
                told = true;
                watch(delta);
            };
            let seen = attempt.run(&mut listen).await;
            let took = self.clock.now().saturating_sub(begun);
            let spent = match (&seen.result, seen.reached) {
                // The server did no work that it charges for.
                (Err(_), false) => BudgetAmounts::none(),
                (result, _) => {
                    let usage = result.as_ref().ok().and_then(|response| response.usage);
                    actual(&endpoint.price, usage.as_ref(), &worst)
                }
            };
            purse.settle(hold, &spent).await?;
            let usage = seen
                .result
                .as_ref()
                .ok()
                .and_then(|response| response.usage);
            tracing::debug!(
                model = %endpoint.name,
                status = seen.status,
                input_tokens = usage.map(|usage| usage.input),
                output_tokens = usage.map(|usage| usage.output),
                ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                attempt = tries.len() + 1,
                answered = seen.result.is_ok(),
                "model asked"
            );
            tries.push(CallTry {
                request: Digest::of_bytes(&body),
                raw: endpoint
                    .key
                    .as_ref()
                    .map_or_else(|| seen.raw.clone(), |key| key.scrub_bytes(&seen.raw)),
                status: seen.status,
                usage,
                spent,
                waited: std::mem::take(&mut waited),
                took,
                error: seen.result.as_ref().err().map(ToString::to_string),
            });
            let error = match seen.result {
                Ok(response) => {
                    let policy = self.policies.breaker;
                    self.breaker(endpoint, |breaker, now| {
                        breaker.succeeded(&policy, now, took);
                    });
                    return Ok(response);
                }
                Err(error) => error,
            };
            // Where a server names a field that it does not take, it is asked again without that field.
            if let ModelError::Refused { failure, .. } = &error
                && refused.learn(failure, &request)
            {
                lock(&self.refused).insert(endpoint.name.clone(), refused);
                body = refused.body(endpoint, &request, patience.streamed)?;
                continue;
            }
            let trouble = trouble(&error);
            self.note(endpoint, trouble, &error);
            cuts += u32::from(trouble == TryFailure::Cut);
            if told {
                watch(StreamDelta::Discarded);
            }
            let count = u32::try_from(tries.len()).unwrap_or(u32::MAX);
            let roll = self.dice.roll();
            let Some(wait) = next_wait(&self.policies.retry, trouble, count, cuts, roll) else {
                return Err(error);
            };
            if wait >= deadline.saturating_sub(self.clock.now()) {
                return Err(error);
            }
            self.clock.sleep(wait).await;
            waited += wait;
            failed = Some(error);
        }
    }

    fn admit<'a>(&'a self, endpoint: &'a ModelEndpoint) -> Result<BreakerPass<'a>, ModelError> {
        let now = self.clock.now();
        match self.breaker(endpoint, CircuitBreaker::admit) {
            Ok(()) => Ok(BreakerPass {
                client: self,
                endpoint,
            }),
            Err(until) => Err(ModelError::Resting {
                model: endpoint.name.clone(),
                rest: until.saturating_sub(now),
            }),
        }
    }

    /// Tells the breaker and the bucket what a failure means for later calls.
    fn note(&self, endpoint: &ModelEndpoint, trouble: TryFailure, error: &ModelError) {
        let policy = self.policies.breaker;
        match (trouble, error) {
            (TryFailure::Refused(kind, asked), _) => {
                if let (ServerFailureKind::RateLimited, Some(asked)) = (kind, asked) {
                    self.bucket(endpoint, |bucket, now| bucket.pause(now, asked));
                }
                let beyond = matches!(
                    kind,
                    ServerFailureKind::Unauthorized
                        | ServerFailureKind::NotFound
                        | ServerFailureKind::Unpaid
                );
                // A request that is wrong says nothing of the model's health.
                if beyond || kind.is_passing() {
                    self.breaker(endpoint, |breaker, now| {
                        breaker.failed(&policy, now, beyond);
                    });
                }
            }
            (TryFailure::Unreachable | TryFailure::Cut, _)
            | (_, ModelError::Deadline { .. } | ModelError::Idle { .. }) => {
                self.breaker(endpoint, |breaker, now| breaker.failed(&policy, now, false));
            }
            (TryFailure::Final, _) => {}
        }
    }

    fn breaker<T>(
        &self,
        endpoint: &ModelEndpoint,
        act: impl FnOnce(&mut CircuitBreaker, Duration) -> T,
    ) -> T {
        let now = self.clock.now();
        act(
            lock(&self.breakers)
                .entry(endpoint.name.clone())
                .or_default(),
            now,
        )
    }

    fn bucket<T>(
        &self,
        endpoint: &ModelEndpoint,
        act: impl FnOnce(&mut RateBucket, Duration) -> T,
    ) -> T {
        let now = self.clock.now();
        let fresh = RateBucket::new(self.policies.bucket);
        let mut buckets = lock(&self.buckets);
        act(
            buckets
                .entry(endpoint.provider().to_owned())
                .or_insert(fresh),
            now,
        )
    }

    pub async fn embed(
        &self,
        endpoint: &ModelEndpoint,
        model: &str,
        texts: &[&str],
        patience: CallPatience,
        purse: &dyn SpendAccount,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let wire_error = |error| ModelError::Wire {
            model: endpoint.name.clone(),
            error,
        };
        let path = wire::embedding_path(endpoint.wire).map_err(wire_error)?;
        let body = wire::embedding_body(endpoint.wire, model, texts).map_err(wire_error)?;
        let bound = input_bound(&body, std::iter::empty(), None);
        let worst = worst_case(&endpoint.price, bound, 0);
        let hold = purse.reserve(&worst).await?;
        let answer = self.ask(endpoint, path, body, patience).await;
        let used = match &answer {
            Ok(body) => {
                let usage = wire::embedding_usage(body);
                actual(&endpoint.price, usage.as_ref(), &worst)
            }
            Err(_) => BudgetAmounts::none(),
        };
        purse.settle(hold, &used).await?;
        wire::read_embeddings(endpoint.wire, &answer?, texts.len()).map_err(wire_error)
    }

    /// Asks a server that can for the number of tokens of a text.
    pub async fn tokenize(
        &self,
        endpoint: &ModelEndpoint,
        model: &str,
        text: &str,
        patience: CallPatience,
    ) -> Result<u64, ModelError> {
        let malformed = |what: &str| ModelError::Wire {
            model: endpoint.name.clone(),
            error: WireError::Malformed(what.to_owned()),
        };
        if !endpoint.quirks.tokenize {
            let error = WireError::Unsupported {
                wire: endpoint.wire,
                what: "counting tokens",
            };
            return Err(ModelError::Wire {
                model: endpoint.name.clone(),
                error,
            });
        }
        // llama.cpp reads `content`, vLLM `prompt`.
        let body = json!({"model": model, "content": text, "prompt": text}).to_string();
        let answer = self
            .ask(endpoint, "/tokenize", body.into_bytes(), patience)
            .await?;
        let value: Value = serde_json::from_slice(&answer).map_err(|_| malformed("not JSON"))?;
        let count = value.get("count").and_then(Value::as_u64);
        let listed = value
            .get("tokens")
            .and_then(Value::as_array)
            .map(|list| list.len() as u64);
        count.or(listed).ok_or_else(|| malformed("no tokens"))
    }

    /// One plain exchange without retries.
    async fn ask(
        &self,
        endpoint: &ModelEndpoint,
        path: &str,
        body: Vec<u8>,
        patience: CallPatience,
    ) -> Result<Vec<u8>, ModelError> {
        let deadline = self.clock.now().saturating_add(patience.total);
        let attempt = CallAttempt {
            client: self,
            endpoint,
            body: &body,
            patience,
            deadline,
        };
        let mut response = attempt.begin(path).await?;
        let mut whole = Vec::new();
        while let Some(bytes) = attempt.next(&mut response).await? {
            whole.extend(bytes);
            if whole.len() > wire::MAX_ANSWER {
                let error = WireError::Malformed("too long".to_owned());
                return Err(ModelError::Wire {
                    model: endpoint.name.clone(),
                    error,
                });
            }
        }
        if (200..300).contains(&response.status) {
            Ok(whole)
        } else {
            Err(attempt.refusal(&response, &whole))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call the breaker let through. However it ends, also by being dropped, the next may try.
struct BreakerPass<'a> {
    client: &'a ModelClient,
    endpoint: &'a ModelEndpoint,
}

impl Drop for BreakerPass<'_> {
    fn drop(&mut self) {
        self.client
            .breaker(self.endpoint, |breaker, _| breaker.abandoned());
    }
}
