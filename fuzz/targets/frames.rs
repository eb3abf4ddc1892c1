//! Any bytes from a sandbox are frames or an error; what decodes encodes to the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_sandbox::frames::{ExecFrameDecoder, ExecServerEvent, ExecServerRequest};

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = ExecFrameDecoder::new();
    // In two pieces, as a socket may deliver them.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for piece in [first, second] {
        decoder.push(piece);
        while let Ok(Some(frame)) = decoder.next_frame() {
            if let Ok(event) = ExecServerEvent::from_frame(&frame) {
                assert_eq!(ExecServerEvent::from_frame(&event.frame(frame.command)), Ok(event));
            }
            if let Ok(request) = ExecServerRequest::from_frame(&frame) {
                assert_eq!(ExecServerRequest::from_frame(&request.frame(frame.command)), Ok(request));
            }
        }
    }
});
