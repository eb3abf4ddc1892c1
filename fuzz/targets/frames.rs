//! Any bytes from a sandbox are frames or an error; what decodes encodes to the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_sandbox::frames::{Decoder, Event, Request};

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::new();
    // In two pieces, as a socket may deliver them.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for piece in [first, second] {
        decoder.push(piece);
        while let Ok(Some(frame)) = decoder.next_frame() {
            if let Ok(event) = Event::from_frame(&frame) {
                assert_eq!(Event::from_frame(&event.frame(frame.command)), Ok(event));
            }
            if let Ok(request) = Request::from_frame(&frame) {
                assert_eq!(Request::from_frame(&request.frame(frame.command)), Ok(request));
            }
        }
    }
});
