//! How many bytes of a stream may still be sent.

/// The credit a stream starts with, and the most it may ever have outstanding.
pub const WINDOW: u64 = 256 * 1024;

/// A breach of the agreement about credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamCreditError {
    /// More was sent than had been granted.
    #[error("{sent} bytes were sent against a credit of {left}")]
    Overdrawn {
        /// How many bytes were sent at once.
        sent: u64,
        /// Bytes that were left.
        left: u64,
    },
    /// More was granted than a stream may ever have outstanding.
    #[error("a credit of {granted} on top of {left} is more than a window of {WINDOW}")]
    Inflated {
        /// How many bytes were granted at once.
        granted: u64,
        /// Bytes that were left.
        left: u64,
    },
}

/// What is left of a stream's credit. Both sides keep one and they agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamCredit(u64);

impl Default for StreamCredit {
    fn default() -> Self {
        Self(WINDOW)
    }
}

impl StreamCredit {
    /// Bytes that may be sent now.
    pub const fn left(self) -> u64 {
        self.0
    }

    /// Takes note that `sent` bytes went out or came in.
    pub fn spend(&mut self, sent: u64) -> Result<(), StreamCreditError> {
        self.0 = self
            .0
            .checked_sub(sent)
            .ok_or(StreamCreditError::Overdrawn { sent, left: self.0 })?;
        Ok(())
    }

    /// Takes note that `granted` more may be sent.
    pub fn grant(&mut self, granted: u64) -> Result<(), StreamCreditError> {
        let inflated = StreamCreditError::Inflated {
            granted,
            left: self.0,
        };
        let sum = self.0.checked_add(granted).ok_or(inflated)?;
        if sum > WINDOW {
            return Err(inflated);
        }
        self.0 = sum;
        Ok(())
    }
}
