//! Bytes of a real server with a real small model (llama.cpp, Qwen2.5-Coder-1.5B), asked for a
//! tool call and for an edit in three protocols; only the model's path was shortened to its name.
//! It never calls a tool natively: it writes the call into its words.

use lula_models::normal::{ModelMessage, ModelRequest, ModelStopReason, ModelTool, OutputShape};
use lula_models::output::{OutputCapability, read, shape};
use lula_models::wire::{ResponseDecoder, WireProtocol};
use serde_json::json;

const CALLS: [(WireProtocol, &[u8]); 3] = [
    (WireProtocol::Chat, include_bytes!("recorded/chat_call.sse")),
    (
        WireProtocol::Responses,
        include_bytes!("recorded/responses_call.sse"),
    ),
    (
        WireProtocol::Messages,
        include_bytes!("recorded/messages_call.sse"),
    ),
];

const EDITS: [(WireProtocol, &[u8]); 3] = [
    (WireProtocol::Chat, include_bytes!("recorded/chat_edit.sse")),
    (
        WireProtocol::Responses,
        include_bytes!("recorded/responses_edit.sse"),
    ),
    (
        WireProtocol::Messages,
        include_bytes!("recorded/messages_edit.sse"),
    ),
];

fn decode(wire: WireProtocol, pieces: &[&[u8]]) -> lula_models::normal::ModelResponse {
    let mut decoder = ResponseDecoder::new(wire, true);
    for piece in pieces {
        decoder.push(piece).unwrap();
    }
    decoder.finish().unwrap()
}

#[test]
fn a_call_that_a_real_model_wrote_into_its_words_is_read() {
    let tool = ModelTool {
        name: "pick_day".into(),
        description: "Picks a day by its number.".into(),
        parameters: json!({"type": "object", "required": ["number"],
            "properties": {"number": {"type": "integer"}}}),
    };
    let request =
        ModelRequest::new("qwen", vec![ModelMessage::user("x")], 64).with_tools(vec![tool]);
    let shaped = shape(&request, OutputCapability::ToolCalls).unwrap();
    for (wire, bytes) in CALLS {
        let response = decode(wire, &[bytes]);
        assert_eq!(response.calls().count(), 0, "{wire:?}: none is native");
        let answer = read(&shaped, &response).unwrap();
        assert_eq!(answer.calls[0].arguments, json!({"number": 3}), "{wire:?}");
    }
}

#[test]
fn an_edit_that_a_real_model_wrote_finds_its_place() {
    let file = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n";
    let format = lula_edit::EditFormat::SearchReplace;
    let request = ModelRequest::new("qwen", vec![ModelMessage::user("x")], 300)
        .with_output(OutputShape::Edits { format });
    let shaped = shape(&request, OutputCapability::Text).unwrap();
    for (wire, bytes) in EDITS {
        let response = decode(wire, &[bytes]);
        assert_eq!(response.stop, ModelStopReason::End);
        assert!(response.usage.unwrap().input > 0);
        let answer = read(&shaped, &response).unwrap();
        let batch = lula_edit::apply_all(&answer.edits, |path| {
            (path == "calc.py").then(|| file.to_owned())
        });
        assert!(batch.is_whole(), "{wire:?} {batch:?}");
        assert_eq!(batch.files["calc.py"], file.replacen("a - b", "a + b", 1));
    }
}

#[test]
fn a_real_stream_cut_in_two_anywhere_reads_the_same() {
    for (wire, bytes) in CALLS.into_iter().chain(EDITS) {
        let whole = decode(wire, &[bytes]);
        for cut in (0..bytes.len()).step_by(61) {
            assert_eq!(
                decode(wire, &[&bytes[..cut], &bytes[cut..]]),
                whole,
                "{wire:?} {cut}"
            );
        }
    }
}
