//! Ids of traces and spans, and the header that carries them (W3C Trace Context, `traceparent`).

use std::fmt;
use std::str::FromStr;

use lula_protocol::{Digest, RunId};
use serde::{Serialize, Serializer};

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub(super) [u8; 16]);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub(super) [u8; 8]);

fn derived<const N: usize>(of: &str) -> [u8; N] {
    let digest = Digest::of_bytes(of.as_bytes());
    let mut id = [0; N];
    id.copy_from_slice(&digest.as_bytes()[..N]);
    // An id of zeros means none.
    id[N - 1] |= 1;
    id
}

impl TraceId {
    /// The trace of a run that was not begun within another trace.
    pub fn of(run: &RunId) -> Self {
        Self(derived(&format!("lula/trace/v1 {run}")))
    }
}

impl SpanId {
    /// The span that begins or ends at a place of a log.
    pub(super) fn at(run: &RunId, seq: u64, what: &str) -> Self {
        Self(derived(&format!("lula/span/v1 {run} {seq} {what}")))
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The trace that a run belongs to, and the span of it that is above the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: TraceId,
    pub(super) parent: Option<SpanId>,
}

/// A text that is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a traceparent of W3C Trace Context, such as 00-<32 digits>-<16 digits>-01")]
pub struct BadTraceParent;

fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(plain) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    bytes.iter().any(|byte| *byte != 0).then_some(bytes)
}

impl FromStr for TraceContext {
    type Err = BadTraceParent;
    fn from_str(given: &str) -> Result<Self, BadTraceParent> {
        let mut parts = given.trim().split('-');
        let mut next = || parts.next().ok_or(BadTraceParent);
        let (version, trace, parent, flags) = (next()?, next()?, next()?, next()?);
        // A later version may say more after what is known; version ff is none.
        let later = version.len() == 2 && version != "ff" && version != "00";
        if !(version == "00" && parts.next().is_none() || later) || flags.len() != 2 {
            return Err(BadTraceParent);
        }
        Ok(Self {
            trace: TraceId(digits(trace).ok_or(BadTraceParent)?),
            parent: Some(SpanId(digits(parent).ok_or(BadTraceParent)?)),
        })
    }
}

impl TraceContext {
    /// The context of a run: the one it was begun in, or one of its own.
    pub fn of(run: &RunId, traceparent: Option<&str>) -> Self {
        let own = Self {
            trace: TraceId::of(run),
            parent: None,
        };
        traceparent
            .and_then(|text| text.parse().ok())
            .unwrap_or(own)
    }

    /// What a run hands on: its trace, with its own span above what follows.
    pub fn traceparent(&self, run: &RunId) -> String {
        format!("00-{}-{}-01", self.trace, Self::root(run))
    }

    /// The span of a run as a whole.
    pub(super) fn root(run: &RunId) -> SpanId {
        SpanId::at(run, 0, "run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_and_nothing_else_is() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read: TraceContext = good.parse().unwrap();
        assert_eq!(read.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(read.parent.unwrap().to_string(), "00f067aa0ba902b7");
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(bad.parse::<TraceContext>(), Err(BadTraceParent), "{bad}");
        }
    }

    #[test]
    fn ids_follow_from_the_run_and_differ_between_places() {
        let run = RunId::from_parts(1, [1; 10]);
        assert_eq!(TraceId::of(&run), TraceId::of(&run));
        assert_ne!(
            TraceId::of(&run),
            TraceId::of(&RunId::from_parts(2, [1; 10]))
        );
        assert_ne!(SpanId::at(&run, 1, "act"), SpanId::at(&run, 2, "act"));
        assert_ne!(SpanId::at(&run, 1, "act"), SpanId::at(&run, 1, "visit"));
        let context = TraceContext::of(&run, Some("nonsense"));
        assert_eq!(context.trace, TraceId::of(&run));
        let again: TraceContext = context.traceparent(&run).parse().unwrap();
        assert_eq!(again.parent, Some(TraceContext::root(&run)));
    }
}
