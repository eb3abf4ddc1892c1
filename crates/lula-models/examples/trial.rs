//! Tries a live model by hand, through every kind of answer, and can record the trial:
//!
//! `cargo run -p lula-models --example trial -- NAME [CASSETTE]`
//!
//! NAME is a model's name such as `ollama/qwen2.5-coder` or `llamacpp@http://127.0.0.1:8081/m`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::sync::Arc;
use std::time::Duration;

use lula_models::name::ModelName;
use lula_models::normal::{ModelMessage, ModelRequest, ModelTool, OutputShape};
use lula_models::probe::probe;
use lula_models::spend::{ModelPrice, PriceTable, UnlimitedSpend};
use lula_models::transport::{
    BoxedFuture, HttpTransport, ModelTransport, RecordingTransport, TransportError, WireRequest,
    WireResponse,
};
use lula_models::{
    CallPatience, ClientPolicies, ModelClient, SystemMonotonicClock, SystemRandomSource,
};
use serde_json::json;

struct Shared(Arc<RecordingTransport<HttpTransport>>);

impl ModelTransport for Shared {
    fn send<'a>(
        &'a self,
        request: &'a WireRequest,
    ) -> BoxedFuture<'a, Result<WireResponse, TransportError>> {
        self.0.send(request)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let name: ModelName = arguments
        .next()
        .expect("NAME")
        .parse()
        .unwrap_or_else(|error| panic!("{error}"));
    let recorder = Arc::new(RecordingTransport::new(HttpTransport::new().unwrap()));
    let client = ModelClient::new(
        Arc::new(Shared(Arc::clone(&recorder))),
        Arc::new(SystemMonotonicClock::default()),
        Arc::new(SystemRandomSource),
        ClientPolicies::default(),
    );
    let prices = PriceTable::built_in(ModelPrice::ceiling(100.0).unwrap()).unwrap();
    let key = name.usual_key().and_then(|key| key.resolve().ok());
    let mut endpoint = name.endpoint(key, prices.of(&name.priced_as()).clone());
    let patience = CallPatience {
        idle: Duration::from_mins(2),
        ..CallPatience::default()
    };

    let seen = probe(&client, &endpoint, &name.model, patience, &UnlimitedSpend).await;
    println!("probe: {seen:#?}");
    endpoint.capability = seen.capability;

    let ask = |text: &str| {
        let mut request = ModelRequest::new(&name.model, vec![ModelMessage::user(text)], 300);
        request.temperature = Some(0.0);
        request.seed = Some(1);
        request
    };
    let file = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n";
    let read_file = ModelTool {
        name: "read_file".into(),
        description: "Reads a file of the repository.".into(),
        parameters: json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}}}),
    };
    let schema = json!({"type": "object", "required": ["file", "line"], "additionalProperties": false,
        "properties": {"file": {"enum": ["calc.py", "test_calc.py"]}, "line": {"type": "integer"}}});
    let shown = lula_edit::anchor::show(file);
    let listed = lula_edit::functions::show("calc.py", file);
    let questions = [
        (
            "tool",
            ask("The test of calc.py fails. Look at the file first.").with_tools(vec![read_file]),
        ),
        (
            "json",
            ask(&format!("Where is the bug in calc.py?\n{file}")).with_output(OutputShape::Json {
                name: "place".into(),
                schema,
            }),
        ),
        (
            "search/replace",
            ask(&format!("Fix add in calc.py:\n{file}")).with_output(OutputShape::Edits {
                format: lula_edit::EditFormat::SearchReplace,
            }),
        ),
        (
            "lines",
            ask(&format!("Fix add in calc.py:\n{shown}")).with_output(OutputShape::Edits {
                format: lula_edit::EditFormat::LineRange,
            }),
        ),
        (
            "function",
            ask(&format!(
                "Fix add in calc.py:\n{file}\nFunctions:\n{listed}"
            ))
            .with_output(OutputShape::Edits {
                format: lula_edit::EditFormat::Function,
            }),
        ),
        (
            "whole",
            ask(&format!("Fix add in calc.py:\n{file}")).with_output(OutputShape::Edits {
                format: lula_edit::EditFormat::Whole,
            }),
        ),
    ];
    for (title, request) in questions {
        let asked = client
            .ask_well(&endpoint, &request, patience, &UnlimitedSpend, &mut |_| {})
            .await;
        println!("\n== {title}");
        for fault in &asked.faults {
            println!("fault: {fault}");
        }
        for done in &asked.tries {
            println!("try: {:?} {:?} {:?}", done.status, done.usage, done.took);
        }
        match &asked.result {
            Ok(answer) => {
                println!("{answer:#?}");
                let batch = lula_edit::apply_all(&answer.edits, |path| {
                    (path == "calc.py").then(|| file.to_owned())
                });
                if !batch.results.is_empty() {
                    println!("{:?}\n{:?}", batch.results, batch.files);
                }
            }
            Err(error) => println!("error: {error}"),
        }
    }
    if let Some(path) = arguments.next() {
        recorder.save(path.as_ref()).unwrap();
        println!("\nrecorded in {path}");
    }
}
