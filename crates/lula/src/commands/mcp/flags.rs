//! The flags of `lula mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lula_mcp::install::McpClientKind;

const INSTALL_HELP: &str = "\
Shows the difference, asks, and writes the agent's user configuration; comments and order stay as they are.

Examples:
  lula mcp install codex
  lula mcp install claude --yes
  lula mcp install codex --remove";

const SERVE_HELP: &str = "\
The client starts this command and speaks to it over standard input and output. Each client has a workspace of its
own over the directory: commands run in the sandbox, and what is written is held until it is committed. A commit
waits for `lula approve`; what a client leaves held waits for `lula diff` and `lula commit`.

An approval protects you from an agent that has no hands but these. docs/mcp.md says how to take the others away.

Examples:
  lula mcp serve
  codex mcp add lula -- lula mcp serve
  claude mcp add lula -- lula mcp serve --dir ~/src/project";

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve sandboxed tools to one MCP client on standard input and output
    Serve(McpServeFlags),
    /// Write the server into an agent's own configuration, or take it out again
    Install(McpInstallFlags),
}

#[derive(Debug, Args)]
#[command(after_help = INSTALL_HELP)]
pub(crate) struct McpInstallFlags {
    /// The agent: codex, claude, opencode, gemini, qwen, goose, cursor or vscode
    #[arg(value_enum, value_name = "AGENT")]
    pub(crate) agent: McpAgent,
    /// Take the entry out again
    #[arg(long)]
    pub(crate) remove: bool,
    /// Write without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// An agent whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpAgent {
    Codex,
    Claude,
    Opencode,
    Gemini,
    Qwen,
    Goose,
    Cursor,
    Vscode,
}

impl From<McpAgent> for McpClientKind {
    fn from(agent: McpAgent) -> Self {
        match agent {
            McpAgent::Codex => Self::Codex,
            McpAgent::Claude => Self::Claude,
            McpAgent::Opencode => Self::Opencode,
            McpAgent::Gemini => Self::Gemini,
            McpAgent::Qwen => Self::Qwen,
            McpAgent::Goose => Self::Goose,
            McpAgent::Cursor => Self::Cursor,
            McpAgent::Vscode => Self::Vscode,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct McpServeFlags {
    /// Directory to work on; by default the repository around this one
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Who decides about commits: `ask` always waits for an approval, `rules` leaves it to the policy rules
    #[arg(long, value_enum, default_value_t = CommitDecision::Ask)]
    pub(crate) commits: CommitDecision,
}

/// Who decides whether a client's change reaches the operator's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommitDecision {
    /// An approver, each time.
    Ask,
    /// The policy rules alone.
    Rules,
}
