//! A run as a trace of OpenTelemetry: a fold over its log, with ids that follow from the run and from places
//! in its log. The same log makes the same spans wherever and however often it is read, so exporting again
//! repeats and never doubles.
//!
//! The spans are what the driver did: a run, the nodes it visited, and in each the models it asked and the
//! acts that it had done by the runner and in sandboxes. What was said and written is left out, unless
//! `otel.content` asks for it; every text is redacted.

mod context;
mod dialect;
mod encode;
mod export;
mod fold;
mod names;
mod read;
mod span;

pub use context::{SpanId, TraceContext, TraceId};
pub use export::{OtlpExporter, OtlpTarget};
pub use read::RunTrace;
pub use span::RunSpan;
