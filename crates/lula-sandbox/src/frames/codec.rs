//! Frames out of a byte stream, however it is cut.

use super::wire::{ExecFrameError, FrameWriter};

/// The most bytes a frame's body may have. Command lines and environments are the largest.
pub const MAX_BODY: usize = 1024 * 1024;

const LENGTH: usize = 4;
const HEADER: usize = 1 + 4;

/// One frame as it came: what kind, about which command, and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecFrame {
    /// What kind of message it is.
    pub kind: u8,
    /// The command it is about; 0 is the sandbox itself.
    pub command: u32,
    pub payload: Vec<u8>,
}

impl ExecFrame {
    /// Appends the frame to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), ExecFrameError> {
        let body = HEADER + self.payload.len();
        if body > MAX_BODY {
            return Err(ExecFrameError::TooLarge {
                what: "frame",
                value: body as u64,
                limit: MAX_BODY as u64,
            });
        }
        let mut writer = FrameWriter {
            bytes: std::mem::take(out),
        };
        #[allow(clippy::cast_possible_truncation)] // at most MAX_BODY
        writer.u32(body as u32).u8(self.kind).u32(self.command);
        writer.bytes.extend_from_slice(&self.payload);
        *out = writer.bytes;
        Ok(())
    }
}

/// Collects bytes and gives frames back. Holds at most one frame and what was pushed with it.
#[derive(Debug, Default)]
pub struct ExecFrameDecoder {
    buffer: Vec<u8>,
    read: usize,
}

impl ExecFrameDecoder {
    /// A decoder that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes as they arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read == self.buffer.len() {
            self.buffer.clear();
            self.read = 0;
        } else if self.read > MAX_BODY {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if it has arrived.
    pub fn next_frame(&mut self) -> Result<Option<ExecFrame>, ExecFrameError> {
        let rest = &self.buffer[self.read..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let body = u32::from_le_bytes(*length) as usize;
        if body > MAX_BODY {
            return Err(ExecFrameError::TooLarge {
                what: "frame",
                value: body as u64,
                limit: MAX_BODY as u64,
            });
        }
        if body < HEADER {
            return Err(ExecFrameError::Short {
                what: "frame header",
            });
        }
        let Some(body_bytes) = rest.get(..body) else {
            return Ok(None);
        };
        let (header, payload) = body_bytes.split_at(HEADER);
        let mut reader = super::FrameReader::new(header);
        let frame = ExecFrame {
            kind: reader.u8("kind")?,
            command: reader.u32("command")?,
            payload: payload.to_vec(),
        };
        self.read += LENGTH + body;
        Ok(Some(frame))
    }
}
