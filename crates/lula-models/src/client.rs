//! Calling a model: one question, as many tries as policy allows, every try paid for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lula_protocol::{Amounts, Digest, Dimension};
use serde_json::{Value, json};

use crate::clock::{Clock, Dice, SystemClock, SystemDice};
use crate::error::ModelError;
use crate::name::Endpoint;
use crate::normal::{ModelRequest, ModelResponse, Usage};
use crate::resilience::{
    Breaker, BreakerPolicy, Bucket, BucketPolicy, Health, RetryPolicy, Trouble, next_wait,
};
use crate::spend::{Purse, actual, input_bound, worst_case};
use crate::transport::{Http, Method, Transport, TransportError, WireResponse};
use crate::wire::{self, Decoder, Delta, FailureKind, WireError, read_failure, request_body};

/// Most bytes of a refusal that are read.
const MAX_REFUSAL: usize = 64 << 10;

/// How a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Whether the answer is streamed.
    pub streamed: bool,
    /// The longest time without a byte.
    pub idle: Duration,
    /// The longest time for everything, waits and retries included.
    pub total: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            streamed: true,
            idle: Duration::from_mins(1),
            total: Duration::from_mins(10),
        }
    }
}

/// One try, for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Try {
    /// The digest of the request's bytes.
    pub request: Digest,
    /// The answer's bytes, as far as they came, without the key.
    pub raw: Vec<u8>,
    /// The status, where one came.
    pub status: Option<u16>,
    /// What it used, as the server said.
    pub usage: Option<Usage>,
    /// What was booked for it.
    pub spent: Amounts,
    /// How long it was waited before.
    pub waited: Duration,
    /// How long it took.
    pub took: Duration,
    /// What went wrong; `None` for success.
    pub error: Option<String>,
}

/// What came of a question: the answer, and every try that was made for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The answer.
    pub result: Result<ModelResponse, ModelError>,
    /// Every try.
    pub tries: Vec<Try>,
}

/// Policies of a client.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policies {
    /// Trying again.
    pub retry: RetryPolicy,
    /// Leaving alone.
    pub breaker: BreakerPolicy,
    /// Smoothing.
    pub bucket: BucketPolicy,
}

/// Speaks to models. Cheap to clone; clones share buckets and breakers.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    dice: Arc<dyn Dice>,
    policies: Policies,
    buckets: Arc<Mutex<BTreeMap<String, Bucket>>>,
    breakers: Arc<Mutex<BTreeMap<String, Breaker>>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("policies", &self.policies)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client on the network, with the machine's time and chance.
    pub fn live() -> Result<Self, TransportError> {
        Ok(Self::new(
            Arc::new(Http::new()?),
            Arc::new(SystemClock::default()),
            Arc::new(SystemDice),
            Policies::default(),
        ))
    }

    /// A client on anything.
    pub fn new(
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        dice: Arc<dyn Dice>,
        policies: Policies,
    ) -> Self {
        Self {
            transport,
            clock,
            dice,
            policies,
            buckets: Arc::default(),
            breakers: Arc::default(),
        }
    }

    /// The health of every model called so far: recorded before a choice is made from it.
    pub fn health(&self) -> BTreeMap<String, Health> {
        let now = self.clock.now();
        lock(&self.breakers)
            .iter()
            .map(|(name, breaker)| (name.clone(), breaker.health(now)))
            .collect()
    }

    /// Asks a model. `watch` sees the answer grow; only the returned answer may be acted on.
    pub async fn complete(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        patience: Patience,
        purse: &dyn Purse,
        watch: &mut (dyn FnMut(Delta) + Send),
    ) -> Exchange {
        let mut tries = Vec::new();
        let result = self
            .try_all(endpoint, request, patience, purse, watch, &mut tries)
            .await;
        Exchange { result, tries }
    }

    async fn try_all(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        patience: Patience,
        purse: &dyn Purse,
        watch: &mut (dyn FnMut(Delta) + Send),
        tries: &mut Vec<Try>,
    ) -> Result<ModelResponse, ModelError> {
        let request = endpoint.fit(request);
        let body = request_body(endpoint.wire, &endpoint.quirks, &request, patience.streamed)
            .map_err(|error| ModelError::Wire {
                model: endpoint.name.clone(),
                error,
            })?;
        let total = match purse.left(Dimension::WallMs) {
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
        loop {
            let _admitted = self.admit(endpoint)?;
            let queue = self.bucket(endpoint, Bucket::take);
            let left = deadline.saturating_sub(self.clock.now());
            if queue >= left {
                return Err(out_of_time());
            }
            self.clock.sleep(queue).await;
            waited += queue;
            let bound = input_bound(&body, endpoint.context);
            let worst = worst_case(&endpoint.price, bound, u64::from(request.max_tokens));
            let hold = purse.reserve(&worst).await?;
            let begun = self.clock.now();
            let attempt = Attempt {
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
                (Err(_), false) => Amounts::none(),
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
            tries.push(Try {
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
            let trouble = trouble(&error);
            self.note(endpoint, trouble, &error);
            cuts += u32::from(trouble == Trouble::Cut);
            if told {
                watch(Delta::Discarded);
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
        }
    }

    fn admit<'a>(&'a self, endpoint: &'a Endpoint) -> Result<Admitted<'a>, ModelError> {
        let now = self.clock.now();
        match self.breaker(endpoint, Breaker::admit) {
            Ok(()) => Ok(Admitted {
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
    fn note(&self, endpoint: &Endpoint, trouble: Trouble, error: &ModelError) {
        let policy = self.policies.breaker;
        match (trouble, error) {
            (Trouble::Refused(kind, asked), _) => {
                if let (FailureKind::RateLimited, Some(asked)) = (kind, asked) {
                    self.bucket(endpoint, |bucket, now| bucket.pause(now, asked));
                }
                let beyond = matches!(
                    kind,
                    FailureKind::Unauthorized | FailureKind::NotFound | FailureKind::Unpaid
                );
                // A request that is wrong says nothing of the model's health.
                if beyond || kind.is_passing() {
                    self.breaker(endpoint, |breaker, now| {
                        breaker.failed(&policy, now, beyond);
                    });
                }
            }
            (Trouble::Unreachable | Trouble::Cut, _)
            | (_, ModelError::Deadline { .. } | ModelError::Idle { .. }) => {
                self.breaker(endpoint, |breaker, now| breaker.failed(&policy, now, false));
            }
            (Trouble::Final, _) => {}
        }
    }

    fn breaker<T>(&self, endpoint: &Endpoint, act: impl FnOnce(&mut Breaker, Duration) -> T) -> T {
        let now = self.clock.now();
        act(
            lock(&self.breakers)
                .entry(endpoint.name.clone())
                .or_default(),
            now,
        )
    }

    fn bucket<T>(&self, endpoint: &Endpoint, act: impl FnOnce(&mut Bucket, Duration) -> T) -> T {
        let now = self.clock.now();
        let fresh = Bucket::new(self.policies.bucket);
        let mut buckets = lock(&self.buckets);
        act(
            buckets
                .entry(endpoint.provider().to_owned())
                .or_insert(fresh),
            now,
        )
    }

    /// Embeds texts.
    pub async fn embed(
        &self,
        endpoint: &Endpoint,
        model: &str,
        texts: &[&str],
        patience: Patience,
        purse: &dyn Purse,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let wire_error = |error| ModelError::Wire {
            model: endpoint.name.clone(),
            error,
        };
        let path = wire::embedding_path(endpoint.wire).map_err(wire_error)?;
        let body = wire::embedding_body(endpoint.wire, model, texts).map_err(wire_error)?;
        let bound = input_bound(&body, None);
        let worst = worst_case(&endpoint.price, bound, 0);
        let hold = purse.reserve(&worst).await?;
        let answer = self.ask(endpoint, path, body, patience).await;
        let used = match &answer {
            Ok(body) => {
                let usage = wire::embedding_usage(body);
                actual(&endpoint.price, usage.as_ref(), &worst)
            }
            Err(_) => Amounts::none(),
        };
        purse.settle(hold, &used).await?;
        wire::read_embeddings(endpoint.wire, &answer?, texts.len()).map_err(wire_error)
    }

    /// Asks a server that can for the number of tokens of a text.
    pub async fn tokenize(
        &self,
        endpoint: &Endpoint,
        model: &str,
        text: &str,
        patience: Patience,
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
        endpoint: &Endpoint,
        path: &str,
        body: Vec<u8>,
        patience: Patience,
    ) -> Result<Vec<u8>, ModelError> {
        let deadline = self.clock.now().saturating_add(patience.total);
        let attempt = Attempt {
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

fn trouble(error: &ModelError) -> Trouble {
    match error {
        ModelError::Transport {
            error: TransportError::Unreachable { .. },
            ..
        } => Trouble::Unreachable,
        ModelError::Refused { failure, .. } => Trouble::Refused(failure.kind, failure.retry_after),
        ModelError::Wire {
            error: WireError::Cut | WireError::Malformed(_),
            ..
        }
        | ModelError::Transport {
            error: TransportError::Broken(_),
            ..
        }
        | ModelError::Idle { .. } => Trouble::Cut,
        _ => Trouble::Final,
    }
}

/// A call the breaker let through. However it ends, also by being dropped, the next may try.
struct Admitted<'a> {
    client: &'a Client,
    endpoint: &'a Endpoint,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.client
            .breaker(self.endpoint, |breaker, _| breaker.abandoned());
    }
}

/// One try.
struct Attempt<'a> {
    client: &'a Client,
    endpoint: &'a Endpoint,
    body: &'a [u8],
    patience: Patience,
    deadline: Duration,
}

/// What one try saw.
struct Seen {
    result: Result<ModelResponse, ModelError>,
    status: Option<u16>,
    raw: Vec<u8>,
    /// Whether the server may have done work that it charges for.
    reached: bool,
}

impl Attempt<'_> {
    fn model(&self) -> String {
        self.endpoint.name.clone()
    }

    async fn run(&self, watch: &mut (dyn FnMut(Delta) + Send)) -> Seen {
        let mut response = match self.begin(self.endpoint.wire.path()).await {
            Ok(response) => response,
            Err(error) => {
                let reached = !matches!(trouble(&error), Trouble::Unreachable)
                    && !matches!(
                        error,
                        ModelError::Transport {
                            error: TransportError::NoAnswer(_) | TransportError::Unsafe { .. },
                            ..
                        }
                    );
                return Seen {
                    result: Err(error),
                    status: None,
                    raw: Vec::new(),
                    reached,
                };
            }
        };
        let status = Some(response.status);
        if !(200..300).contains(&response.status) {
            let mut raw = Vec::new();
            while raw.len() < MAX_REFUSAL {
                match self.next(&mut response).await {
                    Ok(Some(bytes)) => raw.extend(bytes),
                    // The status alone says enough.
                    Ok(None) | Err(_) => break,
                }
            }
            raw.truncate(MAX_REFUSAL);
            let error = self.refusal(&response, &raw);
            return Seen {
                result: Err(error),
                status,
                raw,
                reached: false,
            };
        }
        let mut decoder = Decoder::new(self.endpoint.wire, self.patience.streamed);
        let result = self.read(&mut response, &mut decoder, watch).await;
        let raw = decoder.raw().to_vec();
        let result = result.and_then(|()| decoder.finish().map_err(|error| self.wire(error)));
        Seen {
            result,
            status,
            raw,
            reached: true,
        }
    }

    async fn read(
        &self,
        response: &mut WireResponse,
        decoder: &mut Decoder,
        watch: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<(), ModelError> {
        while let Some(bytes) = self.next(response).await? {
            for delta in decoder.push(&bytes).map_err(|error| self.wire(error))? {
                watch(delta);
            }
        }
        Ok(())
    }

    async fn begin(&self, path: &str) -> Result<WireResponse, ModelError> {
        let request = self
            .endpoint
            .request(Method::Post, path, self.body.to_vec());
        let sent = self.client.transport.send(&request);
        // A server that does not stream says nothing until it is done.
        let patience = if self.patience.streamed {
            self.patience.idle
        } else {
            self.patience.total
        };
        self.in_time(sent, patience).await
    }

    async fn next(&self, response: &mut WireResponse) -> Result<Option<Vec<u8>>, ModelError> {
        self.in_time(response.body.next(), self.patience.idle).await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, TransportError>>,
        idle: Duration,
    ) -> Result<T, ModelError> {
        let clock = &self.client.clock;
        let left = self.deadline.saturating_sub(clock.now());
        let limit = idle.min(left);
        tokio::select! {
            biased;
            done = work => done.map_err(|error| ModelError::Transport { model: self.model(), error }),
            () = clock.sleep(limit) => Err(if left <= idle {
                ModelError::Deadline { model: self.model(), within: self.patience.total }
            } else {
                ModelError::Idle { model: self.model(), after: idle }
            }),
        }
    }

    fn refusal(&self, response: &WireResponse, raw: &[u8]) -> ModelError {
        let mut failure = read_failure(response.status, &response.headers, raw);
        failure.said = self.endpoint.scrub(&failure.said);
        self.failed(failure)
    }

    fn failed(&self, failure: wire::Failure) -> ModelError {
        if failure.kind == FailureKind::ContextOverflow {
            ModelError::ContextOverflow {
                model: self.model(),
            }
        } else {
            ModelError::Refused {
                model: self.model(),
                failure,
            }
        }
    }

    fn wire(&self, error: WireError) -> ModelError {
        match error {
            WireError::Reported(mut failure) => {
                failure.said = self.endpoint.scrub(&failure.said);
                self.failed(failure)
            }
            WireError::Malformed(said) => {
                let error = WireError::Malformed(self.endpoint.scrub(&said));
                ModelError::Wire {
                    model: self.model(),
                    error,
                }
            }
            error => ModelError::Wire {
                model: self.model(),
                error,
            },
        }
    }
}
