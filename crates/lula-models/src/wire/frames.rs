//! Cutting a byte stream into frames: server-sent events, or one JSON value a line.

/// How frames are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFraming {
    /// Server-sent events; the frame is the event's data.
    Sse,
    /// One JSON value a line.
    Lines,
}

/// Why the bytes are no frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamFrameError {
    #[error("the stream is not UTF-8")]
    NotText,
}

/// Collects bytes and gives out whole frames. The cut of the input never shows in the output.
#[derive(Debug)]
pub struct StreamFrames {
    framing: StreamFraming,
    line: Vec<u8>,
    data: String,
    has_data: bool,
    after_cr: bool,
    at_start: bool,
}

impl StreamFrames {
    /// A reader at the beginning of a stream.
    pub fn new(framing: StreamFraming) -> Self {
        Self {
            framing,
            line: Vec::new(),
            data: String::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
        }
    }

    /// The frames that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, StreamFrameError> {
        let mut frames = Vec::new();
        for &byte in bytes {
            // A line ends with LF, CR or CRLF.
            let ends = match byte {
                b'\n' if self.after_cr => {
                    self.after_cr = false;
                    continue;
                }
                b'\n' | b'\r' => true,
                _ => false,
            };
            self.after_cr = byte == b'\r';
            if ends {
                let line = std::mem::take(&mut self.line);
                self.end_line(line, &mut frames)?;
            } else {
                self.line.push(byte);
            }
        }
        Ok(frames)
    }

    /// The last frame, where the server did not end its line.
    pub fn finish(&mut self) -> Result<Vec<String>, StreamFrameError> {
        let mut frames = Vec::new();
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.end_line(line, &mut frames)?;
        }
        if self.has_data {
            frames.push(std::mem::take(&mut self.data));
            self.has_data = false;
        }
        Ok(frames)
    }

    fn end_line(
        &mut self,
        line: Vec<u8>,
        frames: &mut Vec<String>,
    ) -> Result<(), StreamFrameError> {
        let mut line = String::from_utf8(line).map_err(|_| StreamFrameError::NotText)?;
        if std::mem::take(&mut self.at_start)
            && let Some(rest) = line.strip_prefix('\u{feff}')
        {
            line.drain(..line.len() - rest.len());
        }
        match self.framing {
            StreamFraming::Lines => {
                if !line.trim().is_empty() {
                    frames.push(line);
                }
            }
            StreamFraming::Sse if line.is_empty() => {
                if self.has_data {
                    frames.push(std::mem::take(&mut self.data));
                    self.has_data = false;
                }
            }
            StreamFraming::Sse => {
                // Comments and the fields `event`, `id` and `retry` carry nothing we need: every
                // protocol repeats the event's name in its data.
                let value = match line.split_once(':') {
                    Some(("data", value)) => value.strip_prefix(' ').unwrap_or(value),
                    None if line == "data" => "",
                    _ => return Ok(()),
                };
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(framing: StreamFraming, bytes: &[u8]) -> Vec<String> {
        let mut frames = StreamFrames::new(framing);
        let mut out = frames.push(bytes).unwrap();
        out.extend(frames.finish().unwrap());
        out
    }

    #[test]
    fn events_are_the_joined_data_lines() {
        let stream =
            b"\xef\xbb\xbf: hello\nevent: x\ndata: {\"a\":\ndata: 1}\n\ndata:[DONE]\r\n\r\n";
        assert_eq!(whole(StreamFraming::Sse, stream), ["{\"a\":\n1}", "[DONE]"]);
    }

    #[test]
    fn a_last_line_without_its_end_still_counts() {
        assert_eq!(whole(StreamFraming::Sse, b"data: a"), ["a"]);
        assert_eq!(
            whole(StreamFraming::Lines, b"{}\n{\"done\":true}"),
            ["{}", "{\"done\":true}"]
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        assert_eq!(
            StreamFrames::new(StreamFraming::Lines).push(b"\xff\n"),
            Err(StreamFrameError::NotText)
        );
    }

    proptest! {
        #[test]
        fn the_cut_of_the_input_never_shows(
            text in "(data: [a-zé\"{}]{0,9}|: c|event: x|data)?(\n|\r\n|\r|\n\n|\r\n\r\n){0,3}",
            more in "(data: ü[a-z]{0,9}\n?\n?){0,4}",
            cuts in proptest::collection::vec(0_usize..80, 0..6),
        ) {
            let bytes = [text.as_bytes(), more.as_bytes()].concat();
            for framing in [StreamFraming::Sse, StreamFraming::Lines] {
                let mut frames = StreamFrames::new(framing);
                let mut out = Vec::new();
                let mut at = 0;
                let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
                cuts.sort_unstable();
                for cut in cuts.into_iter().chain([bytes.len()]) {
                    out.extend(frames.push(&bytes[at..cut]).unwrap());
                    at = cut;
                }
                out.extend(frames.finish().unwrap());
                prop_assert_eq!(out, whole(framing, &bytes));
            }
        }
    }
}
