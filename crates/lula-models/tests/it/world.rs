//! What the tests share: a client on a clock that only moves when it is waited for, and a rich
//! conversation.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lula_models::name::{ModelEndpoint, ModelName};
use lula_models::normal::{
    MessagePart, MessageRole, ModelMessage, ModelRequest, ModelTool, ModelToolCall, ThinkingEffort,
};
use lula_models::resilience::RetryPolicy;
use lula_models::secret::SecretKey;
use lula_models::spend::ModelPrice;
use lula_models::transport::{BoxedFuture, HttpTransport, ModelTransport};
use lula_models::wire::WireProtocol;
use lula_models::{
    CallPatience, ClientPolicies, ModelClient, MonotonicClock, SeededRandomSource,
    SystemMonotonicClock,
};
use serde_json::json;

/// A clock without time of its own: a wait is over at once, and its length is remembered. Only for
/// transports that answer at once.
#[derive(Default)]
pub(crate) struct TestClock {
    now: Mutex<Duration>,
    waits: Mutex<Vec<Duration>>,
}

impl TestClock {
    pub(crate) fn waits(&self) -> Vec<Duration> {
        self.waits.lock().unwrap().clone()
    }
}

impl MonotonicClock for TestClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep(&self, time: Duration) -> BoxedFuture<'_, ()> {
        Box::pin(async move {
            if !time.is_zero() {
                *self.now.lock().unwrap() += time;
                self.waits.lock().unwrap().push(time);
            }
        })
    }
}

pub(crate) fn client_on(transport: Arc<dyn ModelTransport>) -> (ModelClient, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let dice = Arc::new(SeededRandomSource::new(1));
    (
        ModelClient::new(transport, clock.clone(), dice, ClientPolicies::default()),
        clock,
    )
}

/// One transport for all tests: reading the machine's certificates takes its time.
pub(crate) fn http() -> HttpTransport {
    static HTTP: OnceLock<HttpTransport> = OnceLock::new();
    HTTP.get_or_init(|| HttpTransport::new().unwrap()).clone()
}

/// A client on real time whose waits between tries are almost nothing.
pub(crate) fn quick_client(transport: Arc<dyn ModelTransport>) -> ModelClient {
    let retry = RetryPolicy {
        base: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    ModelClient::new(
        transport,
        Arc::new(SystemMonotonicClock::default()),
        Arc::new(SeededRandomSource::new(1)),
        ClientPolicies {
            retry,
            ..ClientPolicies::default()
        },
    )
}

pub(crate) const KEY: &str = "sk-canary-3f9a7c21d4e8";

pub(crate) fn endpoint(wire: WireProtocol, base: &str) -> ModelEndpoint {
    let kind = match wire {
        WireProtocol::Chat => "openai-chat",
        WireProtocol::Responses => "openai",
        WireProtocol::Messages => "anthropic",
        WireProtocol::Ollama => "ollama",
    };
    let name: ModelName = format!("{kind}@{base}/v1/script").parse().unwrap();
    name.endpoint(
        Some(SecretKey::new(KEY)),
        ModelPrice::ceiling(10.0).unwrap(),
    )
}

pub(crate) fn patience(streamed: bool) -> CallPatience {
    CallPatience {
        streamed,
        ..CallPatience::default()
    }
}

pub(crate) fn question(text: &str) -> ModelRequest {
    ModelRequest::new("script", vec![ModelMessage::user(text)], 200)
}

pub(crate) fn read_file() -> ModelTool {
    ModelTool {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        parameters: json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}}}),
    }
}

/// Rules, a task, a thought, a call, its result, and two tools given in the wrong order.
pub(crate) fn conversation(wire: WireProtocol) -> ModelRequest {
    let notes = match wire {
        WireProtocol::Messages => {
            json!({"type": "thinking", "thinking": "Look first.", "signature": "c2ln"})
        }
        _ => json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}),
    };
    let say = |role, parts| ModelMessage {
        role,
        parts,
        cache_here: false,
    };
    let mut request = ModelRequest::new(
        "model-1",
        vec![
            ModelMessage::system("You fix code.").cached(),
            ModelMessage::system("This repository uses pytest.").cached(),
            ModelMessage::user("Fix the failing test – schnell."),
            say(
                MessageRole::Assistant,
                vec![
                    MessagePart::Reasoning {
                        wire,
                        text: "Look first.".into(),
                        raw: notes,
                    },
                    MessagePart::text("I look at the file."),
                    MessagePart::Call(ModelToolCall {
                        id: "call_1".into(),
                        name: "read_file".into(),
                        arguments: json!({"path": "calc.py"}),
                    }),
                ],
            ),
            say(
                MessageRole::User,
                vec![MessagePart::Result {
                    id: "call_1".into(),
                    name: "read_file".into(),
                    content: "def add(a, b):\n    return a - b\n".into(),
                    failed: false,
                }],
            ),
        ],
        1024,
    );
    let run = ModelTool {
        name: "run".into(),
        description: "Runs a command.".into(),
        parameters: json!({"type": "object", "required": ["argv"], "properties": {
            "argv": {"type": "array", "items": {"type": "string"}}}}),
    };
    request.tools = vec![run, read_file()];
    request.temperature = Some(0.2);
    request.seed = Some(7);
    request.effort = ThinkingEffort::Off;
    request.context = Some(16_384);
    request
}
