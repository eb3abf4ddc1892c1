//! Traces by OTLP: what a collector receives of a run, from every door.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Said;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::support::{FIX, LulaEnv, Models, Repo, run_with, wait_until};

/// What a collector heard: the heads of requests, and their bodies.
type Heard = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector.
struct Collector {
    url: String,
    heard: Heard,
}

impl Collector {
    /// One that answers its requests with these statuses, and then with 200.
    fn answering(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard: Heard = Arc::default();
        let (all, mut statuses) = (Arc::clone(&heard), statuses.iter().copied());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut lines = String::new();
                while !lines.ends_with("\r\n\r\n") {
                    if stream.read_line(&mut lines).unwrap_or(0) == 0 {
                        break;
                    }
                }
                let length = lines.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.parse::<usize>().unwrap())
                });
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body).unwrap();
                let status = statuses.next().unwrap_or(200);
                if status == 200 {
                    all.lock().unwrap().push((lines, body));
                }
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { url, heard }
    }

    fn start() -> Self {
        Self::answering(&[])
    }

    fn spans(&self) -> Vec<Span> {
        let heard = self.heard.lock().unwrap();
        let requests = heard
            .iter()
            .map(|(_, body)| ExportTraceServiceRequest::decode(&body[..]).unwrap());
        requests
            .flat_map(|request| request.resource_spans)
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect()
    }

    fn bytes(&self) -> String {
        let heard = self.heard.lock().unwrap();
        let all = heard.iter().map(|(head, body)| {
            let body = String::from_utf8_lossy(body);
            format!("{head}{body}")
        });
        all.collect()
    }
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let text = |said: &Said| match said {
        Said::StringValue(text) => text.clone(),
        Said::IntValue(number) => number.to_string(),
        Said::DoubleValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = span.attributes.iter();
    pairs
        .filter_map(|one| Some((one.key.clone(), text(one.value.as_ref()?.value.as_ref()?))))
        .collect()
}

fn hex(id: &[u8]) -> String {
    let digits: Vec<String> = id.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// Every span leads to the one root, within its time.
#[track_caller]
fn connected(spans: &[Span]) -> &Span {
    let ids: BTreeMap<&[u8], &Span> = spans.iter().map(|one| (&one.span_id[..], one)).collect();
    assert_eq!(ids.len(), spans.len(), "an id is there twice");
    let roots: Vec<&Span> = spans
        .iter()
        .filter(|one| !ids.contains_key(&one.parent_span_id[..]))
        .collect();
    assert_eq!(roots.len(), 1, "{roots:#?}");
    for span in spans {
        assert_eq!(span.trace_id, roots[0].trace_id);
        assert!(
            span.start_time_unix_nano <= span.end_time_unix_nano,
            "{span:?}"
        );
        assert!(
            span.start_time_unix_nano >= roots[0].start_time_unix_nano,
            "{span:?}"
        );
    }
    roots[0]
}

#[test]
fn a_run_is_one_trace_from_the_task_to_the_model_and_the_tools() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let collector = Collector::answering(&[503, 429]);
    let model = Models::mending(1);
    let endpoint = ["--otel-endpoint", collector.url.as_str()];
    run_with(&world, &Models::strong(&model), FIX, &endpoint).exits(0);
    let spans = collector.spans();
    let root = connected(&spans);
    assert_eq!(root.name, "invoke_workflow lula");
    assert!(root.parent_span_id.is_empty());
    assert_eq!(attributes(root)["lula.exit"], "verified");
    let named = |name: &str| {
        let found = spans.iter().find(|one| one.name == name);
        found.unwrap_or_else(|| {
            let names: Vec<_> = spans.iter().map(|one| &one.name).collect();
            panic!("{name} is not in {names:?}")
        })
    };
    let chat = named("chat strong");
    let said = attributes(chat);
    assert_eq!(said["gen_ai.operation.name"], "chat");
    assert_eq!(said["gen_ai.request.model"], "strong");
    assert!(said["gen_ai.usage.output_tokens"].parse::<u64>().unwrap() > 0);
    assert!(!said.contains_key("gen_ai.system"), "{said:?}");
    let coder = named("invoke_agent coder");
    assert_eq!(chat.parent_span_id, coder.span_id);
    assert_eq!(coder.parent_span_id, root.span_id);
    assert_eq!(
        attributes(named("verifier"))["gen_ai.evaluation.score.label"],
        "pass"
    );
    let tool = attributes(named("execute_tool run_tests"));
    assert_eq!(tool["gen_ai.tool.name"], "run_tests");
    // The same spans from the log, as often as they are asked for.
    let shown = world.run(&["trace", "last", "--json"]).exits(0).json();
    assert_eq!(shown["trace_id"], hex(&root.trace_id));
    let ids = |spans: &[Span]| {
        spans
            .iter()
            .map(|one| hex(&one.span_id))
            .collect::<Vec<_>>()
    };
    let listed = shown["spans"].as_array().unwrap().iter();
    let listed: Vec<_> = listed
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed, ids(&spans));
    let again = Collector::start();
    world
        .run(&["trace", "last", "--otlp", &again.url])
        .exits(0)
        .says(&hex(&root.trace_id));
    assert_eq!(again.spans(), spans);
}

#[test]
fn a_run_that_is_begun_within_a_trace_goes_on_with_it() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let collector = Collector::start();
    let above = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let set = [
        ("TRACEPARENT", above),
        ("LULA_OTEL_ENDPOINT", collector.url.as_str()),
    ];
    world.run_with(&set, &["run", FIX]).exits(0);
    let spans = collector.spans();
    let root = connected(&spans);
    assert_eq!(hex(&root.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(hex(&root.parent_span_id), "00f067aa0ba902b7");
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn no_secret_is_in_a_trace_or_in_what_is_said_of_it() {
    let canary = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let collector = Collector::start();
    let task = format!("fix the failing tests; the token is {canary}");
    let set = [
        ("LULA_OTEL_ENDPOINT", collector.url.as_str()),
        ("LULA_OTEL_HEADERS", "x-api-key=env:COLLECTOR"),
        ("LULA_OTEL_DIALECT", "langfuse"),
        ("LULA_OTEL_CONTENT", "yes"),
        ("COLLECTOR", "plain-words-of-a-key"),
        ("LULA_LOG", "trace"),
        ("LULA_LOG_FORMAT", "json"),
    ];
    let ran = world.run_with(&set, &["run", &task, "--repair", "--deliver", "none"]);
    let all = collector.bytes();
    // The key goes where it is meant to go, and nowhere else.
    assert!(
        all.contains("x-api-key: plain-words-of-a-key"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        all.matches("plain-words-of-a-key").count(),
        collector.heard.lock().unwrap().len()
    );
    assert!(!all.contains(&canary));
    let spans = collector.spans();
    let root = attributes(connected(&spans));
    assert!(
        root["input.value"].contains("[redacted:github-token]"),
        "{root:?}"
    );
    assert_eq!(root["langfuse.observation.input"], root["input.value"]);
    let log: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .collect();
    assert!(!log.is_empty(), "{}", ran.stderr);
    for line in log {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string(), "{line}");
        if !line["run"].is_null() {
            assert_eq!(line["trace_id"], hex(&spans[0].trace_id), "{line}");
        }
    }
    assert!(!ran.stderr.contains(&canary) && !ran.stderr.contains("plain-words"));
}

#[test]
fn a_collector_that_is_gone_or_refuses_costs_a_warning_and_no_run() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let collector = Collector::answering(&[400]);
    for url in ["http://127.0.0.1:1", collector.url.as_str()] {
        let ran = world.run(&["run", FIX, "--deliver", "none", "--otel-endpoint", url]);
        ran.exits(0).says("the trace was not exported");
    }
    for (flags, said) in [
        (["--otel-endpoint", "nonesuch"], "otel.endpoint"),
        (["--otel-headers", "x-api-key"], "otel.headers"),
    ] {
        let first = ["run", FIX, "--otel-endpoint", "http://127.0.0.1:1"];
        let line = if flags[0] == first[2] {
            [&first[..2], &flags].concat()
        } else {
            [&first[..], &flags].concat()
        };
        let refused = world.run(&line).exits(2).says(said);
        assert!(!refused.stderr.contains("x-api-key="), "{}", refused.stderr);
    }
    // A key does not go over the network in clear.
    let set = [("KEY", "secret")];
    let line = ["run", FIX, "--otel-headers", "x=env:KEY", "--otel-endpoint"];
    let clear = world.run_with(&set, &[&line[..], &["http://example.org"]].concat());
    clear.exits(2).says("in clear");
    wait_until("nothing was begun", || {
        world
            .run(&["runs", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len()
            == 2
    });
}
