//! Fields that a server was seen to refuse. Models change what they take from one version to the next,
//! and servers that call themselves compatible take less: what a refusal names is not sent again.

use crate::error::ModelError;
use crate::name::ModelEndpoint;
use crate::normal::{ModelRequest, ThinkingEffort};
use crate::wire::{ServerFailure, ServerFailureKind, request_body};

/// What a model does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RefusedFields {
    /// `max_tokens`: it wants `max_completion_tokens`.
    max_tokens: bool,
    temperature: bool,
    /// Whatever says how much to think.
    effort: bool,
}

impl RefusedFields {
    /// Learns from a refusal; whether it is worth asking again.
    pub(crate) fn learn(&mut self, failure: &ServerFailure) -> bool {
        if failure.kind != ServerFailureKind::BadRequest {
            return false;
        }
        let said = failure.said.to_lowercase();
        let names = |field: &str| said.contains(field);
        // A value out of its range is the caller's mistake, not the field's.
        let refuses = [
            "unsupported",
            "not support",
            "unknown",
            "unrecognized",
            "deprecated",
            "not permitted",
            "not allowed",
            "extra inputs",
            "unexpected",
        ];
        if !refuses.iter().any(|word| said.contains(word)) {
            return false;
        }
        let before = *self;
        self.max_tokens |= names("max_completion_tokens");
        self.temperature |= names("temperature");
        self.effort |= [
            "reasoning_effort",
            "reasoning.effort",
            "output_config",
            "effort",
            "thinking",
        ]
        .iter()
        .any(|field| names(field));
        *self != before
    }

    /// The body of a request without them.
    pub(crate) fn body(
        self,
        endpoint: &ModelEndpoint,
        request: &ModelRequest,
        streamed: bool,
    ) -> Result<Vec<u8>, ModelError> {
        let mut quirks = endpoint.quirks.clone();
        quirks.max_completion_tokens |= self.max_tokens;
        let mut request = request.clone();
        if self.temperature {
            request.temperature = None;
        }
        if self.effort {
            request.effort = ThinkingEffort::Off;
        }
        request_body(endpoint.wire, &quirks, &request, streamed).map_err(|error| ModelError::Wire {
            model: endpoint.name.clone(),
            error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::read_failure;

    fn refusal(said: &str) -> ServerFailure {
        let body = serde_json::json!({"error": {"message": said, "type": "invalid_request_error"}});
        read_failure(400, &[], body.to_string().as_bytes())
    }

    #[test]
    fn what_a_refusal_names_is_left_out_and_nothing_is_tried_twice() {
        let mut known = RefusedFields::default();
        let limit = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                     'max_completion_tokens' instead.";
        assert!(known.learn(&refusal(limit)));
        assert!(!known.learn(&refusal(limit)));
        assert!(known.learn(&refusal("`temperature` is deprecated for this model.")));
        assert!(known.learn(&refusal(
            "Unrecognized request argument supplied: reasoning_effort"
        )));
        assert!(known.max_tokens && known.temperature && known.effort);
    }

    #[test]
    fn another_mistake_teaches_nothing() {
        let mut known = RefusedFields::default();
        for said in [
            "temperature must be between 0 and 2",
            "messages must not be empty",
        ] {
            assert!(!known.learn(&refusal(said)), "{said}");
        }
    }
}
