//! A server in a process, and a client that speaks HTTP to it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{LulaEnv, Ran, interrupt};

/// What came back.
#[derive(Debug)]
pub(crate) struct ApiAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl ApiAnswer {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.text());
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// A header of the answer, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            (found.to_ascii_lowercase() == name).then(|| value.to_owned())
        })
    }

    /// The code of a refusal, which every refusal has.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let kind = self.header("content-type");
        assert_eq!(
            kind.as_deref(),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{problem}"
        );
        problem["code"].as_str().unwrap().to_owned()
    }
}

/// `lula serve`, until it is dropped.
pub(crate) struct RunningServer {
    pub(crate) child: Child,
    place: String,
    token: Option<String>,
}

impl RunningServer {
    /// On a free port, with these flags.
    pub(crate) fn start(world: &LulaEnv, flags: &[&str]) -> Self {
        Self::start_with(world, flags, &[])
    }

    pub(crate) fn start_with(world: &LulaEnv, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let fixed = ["serve", "--json", "--server-listen", "127.0.0.1:0"];
        let mut child = world
            .command(&[&fixed[..], flags].concat())
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        let mut byte = [0];
        let out = child.stdout.as_mut().unwrap();
        let listening = loop {
            if out.read(&mut byte).unwrap() == 0 {
                let mut error = String::new();
                child
                    .stderr
                    .take()
                    .unwrap()
                    .read_to_string(&mut error)
                    .unwrap();
                panic!(
                    "it does not listen: {}{error}",
                    String::from_utf8_lossy(&said)
                );
            }
            said.push(byte[0]);
            if let Ok(document) = serde_json::from_slice::<Value>(&said) {
                break document["listening"].as_str().unwrap().to_owned();
            }
        };
        Self {
            child,
            place: listening.split_once("://").unwrap().1.to_owned(),
            token: None,
        }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.place)
    }

    /// Every request from here on is sent with this token.
    pub(crate) fn with_token(&mut self, token: &str) -> &mut Self {
        self.token = Some(token.to_owned());
        self
    }

    /// A connection with a request on it whose answer was not read. HTTP/1.0: it ends with the answer.
    pub(crate) fn connect(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> TcpStream {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(2)))
            .unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.0\r\ncontent-length: {}\r\n",
            body.len()
        );
        let has = |name: &str| headers.iter().any(|(given, _)| *given == name);
        if !has("host") {
            write!(head, "host: {}\r\n", self.place).unwrap();
        }
        if let (Some(token), false) = (&self.token, has("authorization")) {
            write!(head, "authorization: Bearer {token}\r\n").unwrap();
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // A server that has refused already need not read what is too long.
        let _ = stream.write_all(body);
        stream
    }

    pub(crate) fn send(
        &self,
        what: (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> ApiAnswer {
        let mut stream = self.connect(what, headers, body);
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("{what:?}: no answer: {read:?}"));
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        ApiAnswer {
            status,
            head,
            body: answer[end + 4..].to_vec(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> ApiAnswer {
        self.send(("GET", path), &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> ApiAnswer {
        self.post_with(path, &[], body)
    }

    pub(crate) fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> ApiAnswer {
        let kind = [("content-type", "application/json")];
        let text = body.to_string();
        self.send(
            ("POST", path),
            &[&kind[..], headers].concat(),
            text.as_bytes(),
        )
    }

    /// Begins a run and tells its id.
    #[track_caller]
    pub(crate) fn begin(&self, body: &Value) -> String {
        let run = self.post("/v1/runs", body).is(201).json();
        run["run"].as_str().unwrap().to_owned()
    }

    /// A run once it stands like this.
    #[track_caller]
    pub(crate) fn until(&self, run: &str, standing: &str) -> Value {
        let patience = Instant::now() + Duration::from_mins(3);
        loop {
            let seen = self.get(&format!("/v1/runs/{run}")).is(200).json();
            if seen["standing"] == standing {
                return seen;
            }
            let over = seen["status"] == "done" || !seen["trouble"].is_null();
            assert!(
                !over && Instant::now() < patience,
                "not {standing}: {seen:#}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A run once it is over or waits.
    #[track_caller]
    pub(crate) fn rests(&self, run: &str) -> Value {
        let patience = Instant::now() + Duration::from_mins(3);
        loop {
            let seen = self.get(&format!("/v1/runs/{run}")).is(200).json();
            if seen["standing"] == "waiting" || seen["status"] == "done" {
                return seen;
            }
            let stuck = !seen["trouble"].is_null() || Instant::now() > patience;
            assert!(!stuck, "{seen:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What a run asks, once it does.
    #[track_caller]
    pub(crate) fn question(&self, run: &str) -> Value {
        self.until(run, "waiting");
        let all = self.get("/v1/approvals").is(200).json();
        let asked = all["approvals"].as_array().unwrap();
        let id = asked.iter().find(|one| one["run"] == run);
        let id = id.unwrap_or_else(|| panic!("{all:#}"))["id"]
            .as_str()
            .unwrap();
        self.get(&format!("/v1/approvals/{id}")).is(200).json()
    }

    /// Answers it with the digest it shows.
    pub(crate) fn answer(&self, question: &Value, decision: &str) -> ApiAnswer {
        let path = format!(
            "/v1/approvals/{}/{decision}",
            question["id"].as_str().unwrap()
        );
        self.post(&path, &json!({"digest": question["digest"]}))
    }

    pub(crate) fn follow(&self, run: &str, seen: Option<u64>) -> EventLines {
        let seen = seen.map(|seen| seen.to_string());
        let headers: Vec<(&str, &str)> = seen
            .as_deref()
            .map(|seen| ("last-event-id", seen))
            .into_iter()
            .collect();
        let path = format!("/v1/runs/{run}/events");
        let stream = self.connect(("GET", &path), &headers, b"");
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.contains("200 OK"), "{head}");
        EventLines(lines)
    }

    /// Asks it to end, and tells how it did.
    pub(crate) fn end(mut self) -> Ran {
        interrupt(&self.child);
        let child = std::mem::replace(
            &mut self.child,
            std::process::Command::new("true").spawn().unwrap(),
        );
        Ran::from(child.wait_with_output().unwrap())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream of events.
pub(crate) struct EventLines(BufReader<TcpStream>);

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct HeardEvent {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Iterator for EventLines {
    type Item = HeardEvent;

    /// The next event; nothing where the stream ended.
    fn next(&mut self) -> Option<HeardEvent> {
        let mut event = HeardEvent {
            id: None,
            name: String::new(),
            data: Value::Null,
        };
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end_matches('\n');
            if let Some(id) = line.strip_prefix("id: ") {
                event.id = Some(id.parse().unwrap());
            } else if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut event.name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                event.data = serde_json::from_str(data).unwrap();
            } else if line.is_empty() && !event.name.is_empty() {
                return Some(event);
            }
        }
    }
}
