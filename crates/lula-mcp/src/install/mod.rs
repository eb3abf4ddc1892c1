//! Lula in the configuration of an agent: which file that is, what is written there, and how it is taken back.

mod edit;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use edit::{json_text, toml_text};

/// The name under which an agent knows the server.
const NAME: &str = "lula";
/// Largest configuration that is edited, in bytes.
const LARGEST: u64 = 8 << 20;
/// How long an agent waits for one call, in seconds: a project's tests take their time.
const CALL_S: u64 = 900;
const START_S: u64 = 30;

/// An agent whose configuration is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpClientKind {
    Codex,
    Claude,
    Opencode,
    Gemini,
    Qwen,
    Goose,
    Cursor,
    Vscode,
}

/// How to start the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCommandLine {
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

/// Where the person's files are, as their environment says.
#[derive(Debug, Clone)]
pub struct ClientHome {
    pub home: PathBuf,
    /// A variable of the environment, such as the one that moves an agent's directory.
    pub variable: fn(&str) -> Option<PathBuf>,
}

/// What is to become of an agent's configuration.
#[derive(Debug)]
pub struct ConfigurationChange {
    /// The file, as it is known to the person.
    pub path: PathBuf,
    pub before: String,
    pub after: String,
}

/// Why an agent's configuration is left alone.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// It cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// It is no text, or too long for a configuration.
    #[error("{} is no configuration: {why}", .path.display())]
    Unreadable { path: PathBuf, why: String },
    /// Something else has that name there.
    #[error("{} has a server of the name {NAME} that starts something else: {other}", .path.display())]
    Taken { path: PathBuf, other: String },
    /// There is no parser that keeps the person's own text.
    #[error("the configuration of goose is YAML, which is not edited here; add to {}:\n\n{text}", .path.display())]
    ByHand { path: PathBuf, text: String },
    /// It changed since it was shown.
    #[error("{} changed since the difference was shown", .0.display())]
    Changed(PathBuf),
}

impl McpClientKind {
    /// The file in which the agent looks for servers.
    fn path(self, of: &ClientHome) -> PathBuf {
        let below = |variable: &str, otherwise: &str| {
            (of.variable)(variable).unwrap_or_else(|| of.home.join(otherwise))
        };
        let config = || below("XDG_CONFIG_HOME", ".config");
        match self {
            Self::Codex => below("CODEX_HOME", ".codex").join("config.toml"),
            Self::Claude => below("CLAUDE_CONFIG_DIR", "").join(".claude.json"),
            Self::Opencode => {
                let directory = config().join("opencode");
                let commented = directory.join("opencode.jsonc");
                if commented.exists() {
                    commented
                } else {
                    directory.join("opencode.json")
                }
            }
            Self::Gemini => of.home.join(".gemini/settings.json"),
            Self::Qwen => of.home.join(".qwen/settings.json"),
            Self::Goose => config().join("goose/config.yaml"),
            Self::Cursor => of.home.join(".cursor/mcp.json"),
            Self::Vscode => config().join("Code/User/mcp.json"),
        }
    }

    /// The table that holds the servers, and the entry of ours.
    fn entry(self, server: &ServerCommandLine) -> (&'static str, Value) {
        let program = server.program.to_string_lossy();
        let (command, args) = (json!(program), json!(server.arguments));
        match self {
            Self::Codex => (
                "mcp_servers",
                json!({"command": command, "args": args, "startup_timeout_sec": START_S,
                    "tool_timeout_sec": CALL_S}),
            ),
            Self::Opencode => {
                let mut line = vec![program.into_owned()];
                line.extend(server.arguments.iter().cloned());
                (
                    "mcp",
                    json!({"type": "local", "command": line, "enabled": true,
                        "timeout": START_S * 1000}),
                )
            }
            Self::Claude => (
                "mcpServers",
                json!({"type": "stdio", "command": command, "args": args}),
            ),
            Self::Gemini | Self::Qwen => (
                "mcpServers",
                json!({"command": command, "args": args, "timeout": CALL_S * 1000}),
            ),
            Self::Vscode => (
                "servers",
                json!({"type": "stdio", "command": command, "args": args}),
            ),
            Self::Cursor | Self::Goose => ("mcpServers", json!({"command": command, "args": args})),
        }
    }

    /// What the configuration becomes with our entry, or without it where there is no server.
    pub fn change(
        self,
        server: Option<&ServerCommandLine>,
        of: &ClientHome,
    ) -> Result<ConfigurationChange, InstallError> {
        let path = self.path(of);
        let before = read(&path)?;
        let ours = server.map(|server| self.entry(server));
        if let (Self::Goose, Some(server)) = (self, server) {
            let text = goose(server);
            return Err(InstallError::ByHand { path, text });
        }
        let table = match &ours {
            Some((table, _)) => table,
            None => self.entry(&ServerCommandLine::nothing()).0,
        };
        let entry = ours.as_ref().map(|(_, entry)| entry);
        let edited = match self {
            Self::Codex => toml_text(&before, table, NAME, entry),
            _ => json_text(&before, table, NAME, entry),
        };
        let edited = edited.map_err(|why| InstallError::Unreadable {
            path: path.clone(),
            why,
        })?;
        if let Some(other) = edited.replaced.filter(|other| !is_ours(other)) {
            return Err(InstallError::Taken {
                path,
                other: other.to_string(),
            });
        }
        Ok(ConfigurationChange {
            path,
            before,
            after: edited.text,
        })
    }
}

impl ServerCommandLine {
    fn nothing() -> Self {
        Self {
            program: PathBuf::new(),
            arguments: Vec::new(),
        }
    }
}

/// Whether an entry starts `lula mcp serve`, wherever that is: another version may be replaced.
fn is_ours(entry: &Value) -> bool {
    let words = match &entry["command"] {
        Value::Array(line) => line.clone(),
        command => std::iter::once(command.clone())
            .chain(entry["args"].as_array().into_iter().flatten().cloned())
            .collect(),
    };
    let mut words = words.iter().filter_map(Value::as_str);
    let program = words.next().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|name| name == "lula") && words.next() == Some("mcp")
}

fn goose(server: &ServerCommandLine) -> String {
    let quoted = |text: &str| json!(text).to_string();
    let arguments: Vec<String> = server.arguments.iter().map(|one| quoted(one)).collect();
    format!(
        "extensions:\n  lula:\n    name: lula\n    type: stdio\n    enabled: true\n    cmd: {}\n    args: [{}]\n    \
         timeout: {CALL_S}\n",
        quoted(&server.program.to_string_lossy()),
        arguments.join(", ")
    )
}

fn read(path: &Path) -> Result<String, InstallError> {
    let failed = |source| InstallError::File {
        path: path.to_owned(),
        source,
    };
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.is_file() || metadata.len() > LARGEST => {
            return Err(InstallError::Unreadable {
                path: path.to_owned(),
                why: "it is no file of a configuration's size".to_owned(),
            });
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map_err(failed)
}

impl ConfigurationChange {
    /// Whether there is anything to write.
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// Writes it, whole or not at all, unless the file changed since. A link stays one.
    pub fn write(&self) -> Result<(), InstallError> {
        let target = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        let failed = |source| InstallError::File {
            path: self.path.clone(),
            source,
        };
        if read(&target)? != self.before {
            return Err(InstallError::Changed(self.path.clone()));
        }
        let directory = target.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(failed)?;
        // As private as the file was; such files hold keys.
        let mut fresh = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        fresh.write_all(self.after.as_bytes()).map_err(failed)?;
        if let Ok(metadata) = target.metadata() {
            let permissions = metadata.permissions();
            fresh
                .as_file()
                .set_permissions(permissions)
                .map_err(failed)?;
        }
        fresh.as_file().sync_all().map_err(failed)?;
        fresh
            .persist(&target)
            .map_err(|error| failed(error.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
