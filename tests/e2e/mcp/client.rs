//! An MCP client as it comes from elsewhere: JSON-RPC, a line a message, over the standard streams of `lula mcp
//! serve`. Written against the protocol, not against the library that the server is built with.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::LulaEnv;

/// No answer takes longer on the slowest machine.
const PATIENCE: Duration = Duration::from_mins(2);

pub(super) struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    last: u64,
    /// The version, where each request says it and nothing was agreed on before.
    stateless: Option<String>,
    /// What was told beside answers.
    pub(super) notifications: Vec<Value>,
}

/// What a tool answered.
#[derive(Debug)]
pub(super) struct ToolAnswer(pub(super) Value);

impl ToolAnswer {
    pub(super) fn text(&self) -> &str {
        self.0["content"][0]["text"].as_str().unwrap()
    }

    pub(super) fn data(&self) -> &Value {
        &self.0["structuredContent"]
    }

    #[track_caller]
    pub(super) fn well(self) -> Self {
        assert_ne!(self.0["isError"], json!(true), "{}", self.text());
        self
    }

    #[track_caller]
    pub(super) fn refused(self) -> Self {
        assert_eq!(self.0["isError"], json!(true), "{}", self.text());
        self
    }
}

impl McpClient {
    /// Starts a server for this client, and begins as that version of the protocol says.
    pub(super) fn start(world: &LulaEnv, version: &str, flags: &[&str]) -> Self {
        let mut child = world
            .command(&[&["mcp", "serve"], flags].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line);
                let message = message.unwrap_or_else(|_| panic!("no message: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut client = Self {
            input: child.stdin.take(),
            child,
            messages,
            last: 0,
            stateless: None,
            notifications: Vec::new(),
        };
        if version >= "2026-07-28" {
            client.stateless = Some(version.to_owned());
            let found = client.ask("server/discover", &json!({}));
            let versions = &found["result"]["supportedVersions"];
            assert!(
                versions.as_array().unwrap().contains(&json!(version)),
                "{found:#}"
            );
            return client;
        }
        let begun = client.ask(
            "initialize",
            &json!({"protocolVersion": version, "capabilities": {},
                "clientInfo": {"name": "elsewhere\u{1b}[31m", "version": "1"}}),
        );
        assert_eq!(begun["result"]["protocolVersion"], version, "{begun:#}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(super) fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// The whole answer to a request.
    pub(super) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut parameters = parameters.clone();
        if let Some(version) = &self.stateless {
            let meta = &mut parameters["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] =
                json!({"name": "elsewhere", "version": "1"});
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        self.answer(id)
    }

    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.messages.recv_timeout(PATIENCE).unwrap();
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Calls a tool and takes what it answers.
    #[track_caller]
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> ToolAnswer {
        let asked = json!({"name": tool, "arguments": arguments,
            "_meta": {"progressToken": "t"}});
        let answered = self.ask("tools/call", &asked);
        assert!(answered["error"].is_null(), "{answered:#}");
        ToolAnswer(answered["result"].clone())
    }

    /// The digest of what is held.
    pub(super) fn digest(&mut self) -> String {
        let diff = self.call("diff", &json!({})).well();
        let digest = diff.text().lines().next().unwrap();
        digest.strip_prefix("digest ").unwrap().to_owned()
    }

    /// Goes away, and tells what the server said to the operator at its end.
    pub(super) fn leave(mut self) -> String {
        drop(self.input.take());
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    }
}
