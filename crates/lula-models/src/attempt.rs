//! One try: send, read within the limits of time, and say what came of it.

use std::time::Duration;

use crate::client::{CallPatience, ModelClient};
use crate::error::ModelError;
use crate::name::ModelEndpoint;
use crate::normal::ModelResponse;
use crate::resilience::TryFailure;
use crate::transport::{HttpMethod, TransportError, WireResponse};
use crate::wire::{self, ResponseDecoder, ServerFailureKind, StreamDelta, WireError, read_failure};

/// Most bytes of a refusal that are read.
const MAX_REFUSAL: usize = 64 << 10;

/// What an error means for trying again.
pub(crate) fn trouble(error: &ModelError) -> TryFailure {
    match error {
        ModelError::Transport {
            error: TransportError::Unreachable { .. },
            ..
        } => TryFailure::Unreachable,
        ModelError::Refused { failure, .. } => {
            TryFailure::Refused(failure.kind, failure.retry_after)
        }
        ModelError::Wire {
            error: WireError::Cut | WireError::Malformed(_),
            ..
        }
        | ModelError::Transport {
            error: TransportError::Broken(_),
            ..
        }
        | ModelError::Idle { .. } => TryFailure::Cut,
        _ => TryFailure::Final,
    }
}

/// One request to a server, with how long each part of it may take.
pub(crate) struct CallAttempt<'a> {
    pub(crate) client: &'a ModelClient,
    pub(crate) endpoint: &'a ModelEndpoint,
    pub(crate) body: &'a [u8],
    pub(crate) patience: CallPatience,
    pub(crate) deadline: Duration,
}

/// What one try saw.
pub(crate) struct CallObservation {
    pub(crate) result: Result<ModelResponse, ModelError>,
    pub(crate) status: Option<u16>,
    pub(crate) raw: Vec<u8>,
    /// Whether the server may have done work that it charges for.
    pub(crate) reached: bool,
}

impl CallAttempt<'_> {
    fn model(&self) -> String {
        self.endpoint.name.clone()
    }

    pub(crate) async fn run(&self, watch: &mut (dyn FnMut(StreamDelta) + Send)) -> CallObservation {
        let mut response = match self.begin(self.endpoint.wire.path()).await {
            Ok(response) => response,
            Err(error) => {
                let reached = !matches!(trouble(&error), TryFailure::Unreachable)
                    && !matches!(
                        error,
                        ModelError::Transport {
                            error: TransportError::NoAnswer(_) | TransportError::Unsafe { .. },
                            ..
                        }
                    );
                return CallObservation {
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
            return CallObservation {
                result: Err(error),
                status,
                raw,
                reached: false,
            };
        }
        let mut decoder = ResponseDecoder::new(self.endpoint.wire, self.patience.streamed);
        let result = self.read(&mut response, &mut decoder, watch).await;
        let raw = decoder.raw().to_vec();
        let result = result.and_then(|()| decoder.finish().map_err(|error| self.wire(error)));
        CallObservation {
            result,
            status,
            raw,
            reached: true,
        }
    }

    async fn read(
        &self,
        response: &mut WireResponse,
        decoder: &mut ResponseDecoder,
        watch: &mut (dyn FnMut(StreamDelta) + Send),
    ) -> Result<(), ModelError> {
        while let Some(bytes) = self.next(response).await? {
            for delta in decoder.push(&bytes).map_err(|error| self.wire(error))? {
                watch(delta);
            }
        }
        Ok(())
    }

    pub(crate) async fn begin(&self, path: &str) -> Result<WireResponse, ModelError> {
        let request = self
            .endpoint
            .request(HttpMethod::Post, path, self.body.to_vec());
        let sent = self.client.transport.send(&request);
        // A server that does not stream says nothing until it is done.
        let patience = if self.patience.streamed {
            self.patience.idle
        } else {
            self.patience.total
        };
        self.in_time(sent, patience).await
    }

    pub(crate) async fn next(
        &self,
        response: &mut WireResponse,
    ) -> Result<Option<Vec<u8>>, ModelError> {
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

    pub(crate) fn refusal(&self, response: &WireResponse, raw: &[u8]) -> ModelError {
        let mut failure = read_failure(response.status, &response.headers, raw);
        failure.said = self.endpoint.scrub(&failure.said);
        self.failed(failure)
    }

    fn failed(&self, failure: wire::ServerFailure) -> ModelError {
        if failure.kind == ServerFailureKind::ContextOverflow {
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
