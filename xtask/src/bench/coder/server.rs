//! A model on loopback that says what it is told to say, and notes when it was asked what. It speaks
//! chat completions, whole or streamed, with a thread for each connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use super::conversation::ModelAnswer;

/// Longest question that is read.
const LONGEST: usize = 64 << 20;

/// A question, and when it came and was answered.
#[derive(Debug, Clone)]
pub(super) struct AskedQuestion {
    pub(super) body: Vec<u8>,
    pub(super) came: Instant,
    pub(super) answered: Instant,
}

/// The model. It listens until the program ends.
pub(super) struct ScriptedModel {
    address: SocketAddr,
    state: Arc<Mutex<ScriptState>>,
}

#[derive(Default)]
struct ScriptState {
    answers: Vec<ModelAnswer>,
    asked: Vec<AskedQuestion>,
    /// Questions for which there was no answer left.
    beyond: usize,
}

impl ScriptedModel {
    pub(super) fn start(answers: Vec<ModelAnswer>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let model = Self {
            address: listener.local_addr()?,
            state: Arc::new(Mutex::new(ScriptState {
                answers,
                ..ScriptState::default()
            })),
        };
        let state = Arc::clone(&model.state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                // A client that goes away is nothing to report.
                std::thread::spawn(move || serve(&stream, &state).ok());
            }
        });
        Ok(model)
    }

    /// The address below which `/v1` is.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked, how many answers were left over, and how many questions had none.
    pub(super) fn told(&self) -> (Vec<AskedQuestion>, usize, usize) {
        let state = lock(&self.state);
        let left = state.answers.len().saturating_sub(state.asked.len());
        (state.asked.clone(), left, state.beyond)
    }
}

fn lock(state: &Mutex<ScriptState>) -> std::sync::MutexGuard<'_, ScriptState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: &TcpStream, state: &Mutex<ScriptState>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some((path, body)) = question(&mut reader)? {
        let came = Instant::now();
        if !path.ends_with("/chat/completions") {
            write(stream, 404, "application/json", b"{}")?;
            continue;
        }
        let answer = {
            let mut state = lock(state);
            let answer = state.answers.get(state.asked.len()).cloned();
            state.beyond += usize::from(answer.is_none());
            answer
        };
        let Some(answer) = answer else {
            let said = json!({"error": {"message": "the script is at its end"}}).to_string();
            write(stream, 400, "application/json", said.as_bytes())?;
            continue;
        };
        let streamed =
            serde_json::from_slice::<Value>(&body).is_ok_and(|body| body["stream"] == true);
        let number = lock(state).asked.len();
        // Noted before the answer is out: the next question may be there before this thread goes on.
        lock(state).asked.push(AskedQuestion {
            body,
            came,
            answered: Instant::now(),
        });
        if streamed {
            write(
                stream,
                200,
                "text/event-stream",
                pieces(&answer, number).as_bytes(),
            )?;
        } else {
            let whole = whole(&answer, number).to_string();
            write(stream, 200, "application/json", whole.as_bytes())?;
        }
        stream.flush()?;
    }
    Ok(())
}

/// The next question of a connection.
fn question(reader: &mut impl BufRead) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let mut length = 0_usize;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    if length > LONGEST {
        return Err(std::io::Error::other("the question is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((path, body)))
}

fn write(mut stream: &TcpStream, status: u16, kind: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

fn calls(answer: &ModelAnswer, number: usize) -> Vec<Value> {
    let calls = answer.calls.iter().enumerate();
    calls
        .map(|(index, (name, arguments))| {
            json!({"index": index, "id": format!("call_{number}_{index}"), "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect()
}

fn usage() -> Value {
    json!({"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050})
}

fn whole(answer: &ModelAnswer, number: usize) -> Value {
    let message =
        json!({"role": "assistant", "content": answer.say, "tool_calls": calls(answer, number)});
    json!({"id": format!("answer_{number}"), "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": usage()})
}

/// The same as events.
fn pieces(answer: &ModelAnswer, number: usize) -> String {
    let event = |choices: Value, usage: Value| {
        let event = json!({"id": format!("answer_{number}"), "object": "chat.completion.chunk",
            "created": 0, "model": "scripted", "choices": choices, "usage": usage});
        format!("data: {event}\n\n")
    };
    let delta =
        json!({"role": "assistant", "content": answer.say, "tool_calls": calls(answer, number)});
    [
        event(
            json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            Value::Null,
        ),
        event(
            json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]),
            Value::Null,
        ),
        event(json!([]), usage()),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn ask(model: &ScriptedModel, body: &str) -> String {
        let mut stream = TcpStream::connect(model.address).unwrap();
        let length = body.len();
        let question =
            format!("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(question.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn answers_come_in_their_order_whole_or_streamed_and_then_no_more() {
        let answer = |say: &str| ModelAnswer {
            say: say.to_owned(),
            calls: vec![("bash".to_owned(), json!({"command": "ls"}))],
        };
        let model = ScriptedModel::start(vec![answer("one"), answer("two")]).unwrap();
        let first = ask(&model, "{}");
        assert!(
            first.contains("\"content\":\"one\"") && first.contains("call_0_0"),
            "{first}"
        );
        let second = ask(&model, "{\"stream\":true}");
        assert!(
            second.contains("data: [DONE]") && second.contains("\"two\""),
            "{second}"
        );
        assert!(ask(&model, "{}").starts_with("HTTP/1.1 400"));
        let (asked, left, beyond) = model.told();
        assert_eq!((asked.len(), left, beyond), (2, 0, 1));
        assert!(asked[1].came >= asked[0].answered);
    }
}
