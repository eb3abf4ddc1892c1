//! Space to read into that starts small: most of what is read is short, and memory that was never
//! touched costs nothing.

/// Size of a buffer before anything was read, in bytes.
const FIRST: usize = 4096;

/// A buffer that grows as long as what is read fills it.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    most: usize,
}

impl Buffer {
    /// One that never has more than so many bytes.
    pub(crate) fn up_to(most: usize) -> Self {
        Self {
            bytes: vec![0; FIRST.min(most)],
            most,
        }
    }

    /// Where to read to.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The bytes that were read. The next space is larger if there was just enough.
    pub(crate) fn filled(&mut self, count: usize) -> &[u8] {
        if count == self.bytes.len() && count < self.most {
            self.bytes.resize((count * 2).min(self.most), 0);
        }
        &self.bytes[..count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_while_it_is_filled_and_no_further_than_told() {
        let mut buffer = Buffer::up_to(10_000);
        assert_eq!(buffer.space().len(), FIRST);
        buffer.space()[0] = 7;
        assert_eq!(buffer.filled(1), [7]);
        assert_eq!(buffer.space().len(), FIRST);
        for expected in [2 * FIRST, 10_000, 10_000] {
            let whole = buffer.space().len();
            assert_eq!(buffer.filled(whole).len(), whole);
            assert_eq!(buffer.space().len(), expected);
        }
        assert_eq!(buffer.filled(1), [7], "what was read stays");
    }
}
