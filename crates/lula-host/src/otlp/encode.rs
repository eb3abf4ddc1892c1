//! Spans as OTLP has them. Every text is redacted on its way out.

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as ProtoValue;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use super::dialect::OtlpDialect;
use super::names;
use super::read::RunTrace;
use super::span::{RunSpan, SpanValue, SpanWork};
use crate::diagnosis::redacted_text;

fn text(value: &str) -> ProtoValue {
    ProtoValue::StringValue(redacted_text(value))
}

fn any(value: ProtoValue) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn attribute(name: &str, value: &SpanValue) -> KeyValue {
    let value = match value {
        SpanValue::Text(said) => text(said),
        SpanValue::Texts(all) => ProtoValue::ArrayValue(ArrayValue {
            values: all.iter().map(|one| any(text(one))).collect(),
        }),
        SpanValue::Number(number) => ProtoValue::IntValue(*number),
        SpanValue::Fraction(number) => ProtoValue::DoubleValue(*number),
    };
    KeyValue {
        key: name.to_owned(),
        value: Some(any(value)),
        ..KeyValue::default()
    }
}

const fn nanoseconds(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

fn span(one: &RunSpan, trace: &RunTrace, dialect: OtlpDialect) -> Span {
    let spoken = dialect.spoken(one, trace.run.as_str());
    let kind = match one.work {
        SpanWork::Chat => SpanKind::Client,
        _ => SpanKind::Internal,
    };
    let code = if one.failed {
        StatusCode::Error
    } else {
        StatusCode::Unset
    };
    Span {
        trace_id: trace.id.0.to_vec(),
        span_id: one.id.0.to_vec(),
        parent_span_id: one.parent.map_or_else(Vec::new, |id| id.0.to_vec()),
        name: redacted_text(&one.name),
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(one.begin_ms),
        end_time_unix_nano: nanoseconds(one.end_ms),
        attributes: spoken
            .0
            .iter()
            .map(|(name, value)| attribute(name, value))
            .collect(),
        status: Some(Status {
            code: code.into(),
            ..Status::default()
        }),
        // Sampled.
        flags: 1,
        ..Span::default()
    }
}

/// A part of a trace as the body of a request.
pub(super) fn request(trace: &RunTrace, spans: &[RunSpan], dialect: OtlpDialect) -> Bytes {
    let said = |name: &str, value: &str| attribute(name, &SpanValue::from(value));
    let mut resource = vec![
        said("service.name", "lula"),
        said("service.version", env!("CARGO_PKG_VERSION")),
    ];
    if dialect == OtlpDialect::OpenInference {
        resource.push(said("openinference.project.name", "lula"));
    }
    let scope = ScopeSpans {
        scope: Some(InstrumentationScope {
            name: "lula".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        }),
        spans: spans.iter().map(|one| span(one, trace, dialect)).collect(),
        schema_url: names::SCHEMA_URL.to_owned(),
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: resource,
                ..Resource::default()
            }),
            scope_spans: vec![scope],
            ..ResourceSpans::default()
        }],
    };
    Bytes::from(request.encode_to_vec())
}
