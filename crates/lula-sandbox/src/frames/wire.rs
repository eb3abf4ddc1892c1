//! Numbers, bytes and lists, little-endian, each with its length before it.

/// Bytes that do not make a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecFrameError {
    /// The bytes end before the message does.
    #[error("the message ends early: {what} is missing")]
    Short {
        /// What was being read.
        what: &'static str,
    },
    /// Bytes are left over after the message.
    #[error("{count} bytes are left over after the message")]
    Trailing {
        /// How many bytes are left over.
        count: usize,
    },
    /// A length or number outside what is allowed.
    #[error("{what} is {value}, more than the {limit} allowed")]
    TooLarge {
        /// What was being read.
        what: &'static str,
        value: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// A kind or choice that does not exist.
    #[error("{what} has no variant {value}")]
    Unknown {
        /// What was being read.
        what: &'static str,
        value: u32,
    },
    /// Text that is not UTF-8, or holds a NUL where none may be.
    #[error("{what} is not valid text")]
    NotText {
        /// What was being read.
        what: &'static str,
    },
}

/// Appends values to bytes.
#[derive(Debug, Default)]
pub(crate) struct FrameWriter {
    pub(crate) bytes: Vec<u8>,
}

impl FrameWriter {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        // A slice longer than this could not have come through a frame and will not go into one:
        // the codec refuses bodies far below it.
        self.u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.bytes.extend_from_slice(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn list<T>(
        &mut self,
        items: &[T],
        mut each: impl FnMut(&mut Self, &T),
    ) -> &mut Self {
        self.u32(u32::try_from(items.len()).unwrap_or(u32::MAX));
        for item in items {
            each(self, item);
        }
        self
    }

    pub(crate) fn option<T>(
        &mut self,
        value: Option<T>,
        each: impl FnOnce(&mut Self, T),
    ) -> &mut Self {
        self.bool(value.is_some());
        if let Some(value) = value {
            each(self, value);
        }
        self
    }
}

/// Takes values from bytes it does not trust.
#[derive(Debug)]
pub(crate) struct FrameReader<'a> {
    rest: &'a [u8],
}

impl<'a> FrameReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], ExecFrameError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(ExecFrameError::Short { what })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ExecFrameError> {
        let taken = self.take(N, what)?;
        taken.try_into().map_err(|_| ExecFrameError::Short { what })
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, ExecFrameError> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn bool(&mut self, what: &'static str) -> Result<bool, ExecFrameError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(ExecFrameError::Unknown {
                what,
                value: other.into(),
            }),
        }
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, ExecFrameError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, ExecFrameError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, ExecFrameError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], ExecFrameError> {
        let length = self.u32(what)? as usize;
        self.take(length, what)
    }

    /// Bytes that may become a C string.
    pub(crate) fn without_nul(&mut self, what: &'static str) -> Result<Vec<u8>, ExecFrameError> {
        let bytes = self.bytes(what)?;
        if bytes.contains(&0) {
            return Err(ExecFrameError::NotText { what });
        }
        Ok(bytes.to_vec())
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<String, ExecFrameError> {
        String::from_utf8(self.without_nul(what)?).map_err(|_| ExecFrameError::NotText { what })
    }

    pub(crate) fn list<T>(
        &mut self,
        what: &'static str,
        mut each: impl FnMut(&mut Self) -> Result<T, ExecFrameError>,
    ) -> Result<Vec<T>, ExecFrameError> {
        let count = self.u32(what)? as usize;
        // Every item takes at least one byte: a count beyond that is a lie, and reserving memory
        // for it would be the attack.
        if count > self.rest.len() {
            return Err(ExecFrameError::TooLarge {
                what,
                value: count as u64,
                limit: self.rest.len() as u64,
            });
        }
        (0..count).map(|_| each(self)).collect()
    }

    pub(crate) fn option<T>(
        &mut self,
        what: &'static str,
        each: impl FnOnce(&mut Self) -> Result<T, ExecFrameError>,
    ) -> Result<Option<T>, ExecFrameError> {
        if self.bool(what)? {
            each(self).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn end(&self) -> Result<(), ExecFrameError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(ExecFrameError::Trailing {
                count: self.rest.len(),
            })
        }
    }
}
