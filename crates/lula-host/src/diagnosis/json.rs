//! Lines of the log as JSON, one document each, for programs that gather logs. Every text in it is redacted
//! by itself, so that what is taken out never breaks the document.

use std::fmt;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use lula_protocol::RunId;
use lula_protocol::calendar::utc_text;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::redacted::redacted_text;
use crate::otlp::TraceId;

/// The fields of a span or an event.
#[derive(Debug, Default, Clone)]
struct LineFields(Map<String, Value>);

impl LineFields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, json!(redacted_text(&format!("{value:?}"))));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, json!(redacted_text(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }
}

/// Writes each event as a line of JSON.
pub(super) struct JsonLines<W>(pub(super) W);

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = LineFields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<LineFields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Map::new();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let metadata = event.metadata();
        line.insert("time".to_owned(), json!(utc_text(now)));
        line.insert("time_ms".to_owned(), json!(now));
        line.insert("level".to_owned(), json!(metadata.level().as_str()));
        line.insert("target".to_owned(), json!(metadata.target()));
        let mut fields = LineFields::default();
        event.record(&mut fields);
        let mut run = fields.0.get("run").cloned();
        let mut spans = Map::new();
        for span in context.event_scope(event).into_iter().flatten() {
            let extensions = span.extensions();
            let Some(known) = extensions.get::<LineFields>() else {
                continue;
            };
            let own = if span.name() == "run" { "id" } else { "run" };
            run = run.or_else(|| known.0.get(own).cloned());
            spans.insert(span.name().to_owned(), Value::Object(known.0.clone()));
        }
        let run = run.and_then(|run| run.as_str()?.parse::<RunId>().ok());
        if let Some(run) = run {
            line.insert("trace_id".to_owned(), json!(TraceId::of(&run)));
            line.insert("run".to_owned(), json!(run));
        }
        if let Some(message) = fields.0.remove("message") {
            line.insert("message".to_owned(), message);
        }
        fields.0.remove("run");
        line.insert("fields".to_owned(), Value::Object(fields.0));
        line.insert("spans".to_owned(), Value::Object(spans));
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        // In one call: lines of several processes meet in one file. A reader that went away is no reason to
        // say so where it cannot be read.
        let _ = self.0.make_writer().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Sheet(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sheet {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_a_document_that_names_run_and_trace_and_no_secret() {
        let sheet = Sheet::default();
        let sink = sheet.clone();
        let layer = JsonLines(move || sink.clone());
        let run = RunId::from_parts(1, [1; 10]);
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("run", id = %run, epoch = 3);
            let entered = span.enter();
            tracing::info!(said = %format!("password=\"{token}\"\nlevel=ERROR"), "asked {token}");
            drop(entered);
            tracing::warn!(%run, "outside of it");
        });
        let bytes = sheet.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains(&token), "{text}");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
        for line in &lines {
            assert_eq!(line["run"], run.to_string());
            assert_eq!(line["trace_id"], TraceId::of(&run).to_string());
        }
        assert_eq!(lines[0]["spans"]["run"]["epoch"], 3);
        assert_eq!(
            (&lines[0]["level"], &lines[1]["level"]),
            (&json!("INFO"), &json!("WARN"))
        );
    }
}
