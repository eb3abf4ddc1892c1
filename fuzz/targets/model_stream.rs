//! Any bytes from a model's server are an answer or an error, for every protocol, and an answer
//! does not depend on where the network cut the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_models::wire::{ResponseDecoder, WireProtocol, WireError, embedding_usage, read_embeddings, read_failure};

const WIRES: [WireProtocol; 4] = [WireProtocol::Chat, WireProtocol::Responses, WireProtocol::Messages, WireProtocol::Ollama];

fuzz_target!(|bytes: &[u8]| {
    let Some((&[choice, cut], body)) = bytes.split_first_chunk::<2>() else { return };
    let wire = WIRES[usize::from(choice) % WIRES.len()];
    let streamed = choice & 0x80 == 0;
    let whole = decode(wire, streamed, &[body]);
    let (first, second) = body.split_at(body.len() * usize::from(cut) / 256);
    let pieces = decode(wire, streamed, &[first, second]);
    // Errors may differ in what they met first; answers may not.
    if let (Ok(whole), Ok(pieces)) = (&whole, &pieces) {
        assert_eq!(whole.parts, pieces.parts);
        assert_eq!(whole.usage, pieces.usage);
        assert_eq!(whole.raw, pieces.raw);
    }
    assert_eq!(whole.is_ok(), pieces.is_ok());

    let _ = read_failure(u16::from(cut) + 400, &[], body);
    let _ = embedding_usage(body);
    let _ = read_embeddings(wire, body, usize::from(cut) % 4);
});

fn decode(
    wire: WireProtocol,
    streamed: bool,
    pieces: &[&[u8]],
) -> Result<lula_models::normal::ModelResponse, WireError> {
    let mut decoder = ResponseDecoder::new(wire, streamed);
    for piece in pieces {
        decoder.push(piece)?;
    }
    decoder.finish()
}
