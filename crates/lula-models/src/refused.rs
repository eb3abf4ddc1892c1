//! Fields that a server was seen to refuse. Models change what they take from one version to the next,
//! and servers that call themselves compatible take less: what a refusal names is not sent again.

use crate::error::ModelError;
use crate::name::ModelEndpoint;
use crate::normal::{MessagePart, ModelRequest, ThinkingEffort};
use crate::wire::{ServerFailure, ServerFailureKind, request_body};

/// What a model does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools)] // Each is one independent fact about a server.
pub(crate) struct RefusedFields {
    /// `max_tokens`: it wants `max_completion_tokens`.
    max_tokens: bool,
    temperature: bool,
    /// Whatever says how much to think.
    effort: bool,
    /// Pictures: the model is told that there was one.
    pictures: bool,
}

/// What stands for a picture that a server does not take.
const NO_PICTURE: &str = "[a picture stood here, which your server does not take: find out by \
                          commands what you need of it]";

impl RefusedFields {
    /// Learns from a refusal; whether it is worth asking again.
    pub(crate) fn learn(&mut self, failure: &ServerFailure, request: &ModelRequest) -> bool {
        let said = failure.said.to_lowercase();
        // Servers refuse pictures with statuses of all kinds.
        if request.pictures().next().is_some() && !self.pictures && refuses_pictures(&said) {
            self.pictures = true;
            return true;
        }
        if failure.kind != ServerFailureKind::BadRequest {
            return false;
        }
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
        if self.pictures {
            let parts = request.messages.iter_mut().flat_map(|one| &mut one.parts);
            for part in parts.filter(|part| matches!(part, MessagePart::Image { .. })) {
                *part = MessagePart::text(NO_PICTURE);
            }
        }
        request_body(endpoint.wire, &quirks, &request, streamed).map_err(|error| ModelError::Wire {
            model: endpoint.name.clone(),
            error,
        })
    }
}

/// Whether a refusal is about pictures, as servers say it.
fn refuses_pictures(said: &str) -> bool {
    let about = ["image", "vision", "multimodal", "multi-modal"];
    let refuses = [
        "not support",
        "n't support",
        "unsupported",
        "support image",
        "unknown variant",
        "not a multimodal",
        "missing data required",
        "not allowed",
        "only supported",
        "invalid content type",
    ];
    let holds = |words: &[&str]| words.iter().any(|word| said.contains(word));
    holds(&about) && holds(&refuses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::ModelMessage;
    use crate::wire::read_failure;

    fn words() -> ModelRequest {
        ModelRequest::new("m", vec![ModelMessage::user("hello")], 10)
    }

    fn picture() -> ModelRequest {
        let mut request = words();
        request.messages[0].parts.push(MessagePart::Image {
            media_type: "image/png".to_owned(),
            base64: "AAAA".to_owned(),
        });
        request
    }

    fn refusal(said: &str) -> ServerFailure {
        let body = serde_json::json!({"error": {"message": said, "type": "invalid_request_error"}});
        read_failure(400, &[], body.to_string().as_bytes())
    }

    #[test]
    fn what_a_refusal_names_is_left_out_and_nothing_is_tried_twice() {
        let mut known = RefusedFields::default();
        let limit = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                     'max_completion_tokens' instead.";
        assert!(known.learn(&refusal(limit), &words()));
        assert!(!known.learn(&refusal(limit), &words()));
        assert!(known.learn(
            &refusal("`temperature` is deprecated for this model."),
            &words()
        ));
        let effort = "Unrecognized request argument supplied: reasoning_effort";
        assert!(known.learn(&refusal(effort), &words()));
        assert!(known.max_tokens && known.temperature && known.effort);
    }

    #[test]
    fn a_server_that_takes_no_pictures_is_known_by_its_words() {
        for said in [
            "No endpoints found that support image input",
            "image input is not supported - hint: if this is unexpected, provide the mmproj",
            "Failed to deserialize the JSON body: messages[2]: unknown variant `image_url`, expected `text`",
            "m is not a multimodal model",
            "this model is missing data required for image input",
            "Invalid content type. image_url is only supported by certain models.",
        ] {
            let mut known = RefusedFields::default();
            assert!(known.learn(&refusal(said), &picture()), "{said}");
            assert!(!known.learn(&refusal(said), &picture()), "{said}");
            assert!(
                !RefusedFields::default().learn(&refusal(said), &words()),
                "{said}"
            );
        }
        let broken = "Could not process image";
        assert!(!RefusedFields::default().learn(&refusal(broken), &picture()));
    }

    #[test]
    fn another_mistake_teaches_nothing() {
        let mut known = RefusedFields::default();
        for said in [
            "temperature must be between 0 and 2",
            "messages must not be empty",
        ] {
            assert!(!known.learn(&refusal(said), &words()), "{said}");
        }
    }
}
