//! What the tests share: a client on a clock that only moves when it is waited for, and a rich
//! conversation.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lula_models::name::{Endpoint, ModelName};
use lula_models::normal::{Call, Effort, Message, ModelRequest, Part, Role, Tool};
use lula_models::resilience::RetryPolicy;
use lula_models::secret::Secret;
use lula_models::spend::Price;
use lula_models::transport::{Http, Later, Transport};
use lula_models::wire::Wire;
use lula_models::{Client, Clock, Patience, Policies, SeededDice, SystemClock};
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

impl Clock for TestClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep(&self, time: Duration) -> Later<'_, ()> {
        Box::pin(async move {
            if !time.is_zero() {
                *self.now.lock().unwrap() += time;
                self.waits.lock().unwrap().push(time);
            }
        })
    }
}

pub(crate) fn client_on(transport: Arc<dyn Transport>) -> (Client, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let dice = Arc::new(SeededDice::new(1));
    (
        Client::new(transport, clock.clone(), dice, Policies::default()),
        clock,
    )
}

/// One transport for all tests: reading the machine's certificates takes its time.
pub(crate) fn http() -> Http {
    static HTTP: OnceLock<Http> = OnceLock::new();
    HTTP.get_or_init(|| Http::new().unwrap()).clone()
}

/// A client on real time whose waits between tries are almost nothing.
pub(crate) fn quick_client(transport: Arc<dyn Transport>) -> Client {
    let retry = RetryPolicy {
        base: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    Client::new(
        transport,
        Arc::new(SystemClock::default()),
        Arc::new(SeededDice::new(1)),
        Policies {
            retry,
            ..Policies::default()
        },
    )
}

pub(crate) const KEY: &str = "sk-canary-3f9a7c21d4e8";

pub(crate) fn endpoint(wire: Wire, base: &str) -> Endpoint {
    let kind = match wire {
        Wire::Chat => "openai-chat",
        Wire::Responses => "openai",
        Wire::Messages => "anthropic",
        Wire::Ollama => "ollama",
    };
    let name: ModelName = format!("{kind}@{base}/v1/script").parse().unwrap();
    name.endpoint(Some(Secret::new(KEY)), Price::ceiling(10.0).unwrap())
}

pub(crate) fn patience(streamed: bool) -> Patience {
    Patience {
        streamed,
        ..Patience::default()
    }
}

pub(crate) fn question(text: &str) -> ModelRequest {
    ModelRequest::new("script", vec![Message::user(text)], 200)
}

pub(crate) fn read_file() -> Tool {
    Tool {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        parameters: json!({"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}}}),
    }
}

/// Rules, a task, a thought, a call, its result, and two tools given in the wrong order.
pub(crate) fn conversation(wire: Wire) -> ModelRequest {
    let notes = match wire {
        Wire::Messages => {
            json!({"type": "thinking", "thinking": "Look first.", "signature": "c2ln"})
        }
        _ => json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}),
    };
    let say = |role, parts| Message {
        role,
        parts,
        cache_here: false,
    };
    let mut request = ModelRequest::new(
        "model-1",
        vec![
            Message::system("You fix code.").cached(),
            Message::system("This repository uses pytest.").cached(),
            Message::user("Fix the failing test – schnell."),
            say(
                Role::Assistant,
                vec![
                    Part::Reasoning {
                        wire,
                        text: "Look first.".into(),
                        raw: notes,
                    },
                    Part::text("I look at the file."),
                    Part::Call(Call {
                        id: "call_1".into(),
                        name: "read_file".into(),
                        arguments: json!({"path": "calc.py"}),
                    }),
                ],
            ),
            say(
                Role::User,
                vec![Part::Result {
                    id: "call_1".into(),
                    name: "read_file".into(),
                    content: "def add(a, b):\n    return a - b\n".into(),
                    failed: false,
                }],
            ),
        ],
        1024,
    );
    let run = Tool {
        name: "run".into(),
        description: "Runs a command.".into(),
        parameters: json!({"type": "object", "required": ["argv"], "properties": {
            "argv": {"type": "array", "items": {"type": "string"}}}}),
    };
    request.tools = vec![run, read_file()];
    request.temperature = Some(0.2);
    request.seed = Some(7);
    request.effort = Effort::Off;
    request.context = Some(16_384);
    request
}
