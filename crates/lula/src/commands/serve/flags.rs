//! The flags of `lula serve` and `lula server keys`.

use std::time::Duration;

use clap::Subcommand;
use lula_protocol::Principal;
use lula_server::identity::ServerRole;

use crate::cli::values::parse_duration;

pub(crate) const SERVE_HELP: &str = "\
Without configuration the server listens on loopback, takes every request for yours, and works on the
repository around this directory. Each run has a driver and a runner of its own, as with `lula run
--detach`. Settings are flags too: --server-listen, --server-auth, --server-repositories.
`GET /v1/openapi.json` describes the API; docs/server.md explains it.

Examples:
  lula serve
  lula serve --server-listen 127.0.0.1:0 --server-repositories api=/srv/api,web=/srv/web
  lula server keys add --for ada@example.org --role operator && lula serve --server-auth bearer";

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// List, add or revoke the bearer keys of the server
    #[command(subcommand)]
    Keys(ServerKeysCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerKeysCommand {
    /// List keys: who holds them and what they allow
    List,
    /// Make a key and print it, the only time it can be read
    Add {
        /// Who holds it: the name in approvals and in the audit log
        #[arg(long = "for", value_name = "NAME")]
        who: Principal,
        /// Role: viewer, operator, approver or admin; repeatable
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<ServerRole>,
        /// Role of approval rules in which its holder answers; repeatable
        #[arg(long = "votes-as", value_name = "ROLE")]
        votes_as: Vec<String>,
        /// Only good for this repository; repeatable
        #[arg(long = "repository", value_name = "NAME")]
        repositories: Vec<String>,
        /// Expires after this time, such as 720h
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires: Option<Duration>,
    },
    /// Revoke a key: it opens nothing from the next request on
    Revoke {
        /// The id that `lula server keys list` shows
        id: String,
    },
}
