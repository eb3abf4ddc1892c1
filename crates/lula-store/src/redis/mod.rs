//! Redis: for who already runs one with a durable append-only file.
//!
//! Every change is one script, which Redis runs alone; checks come before writes. A server that
//! would forget acknowledged data, or evict it, is refused unless the operator insists.

mod arguments;
mod codec;
mod server;
mod store;

use std::collections::HashMap;
use std::time::Duration;

use lula_protocol::RunId;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, RedisError, Script};
use tokio::sync::broadcast;

use crate::error::{StoreError, StoreResult};
use crate::guard::SecretGuard;
use crate::record::LogHead;
use crate::run::{Durability, LeaseClaim, RunLease};
use crate::store::StoreHint;
use crate::transport::ServerTransport;
use codec::corrupt;

/// The layout of keys this program writes. Since 2, blobs may be condemned and dropped.
const LAYOUT: u32 = 2;
const TIMEOUT: Duration = Duration::from_secs(20);

/// How a server is used.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// The beginning of every key; letters, digits and underscores.
    pub prefix: String,
    /// What acknowledged data survives.
    pub durability: Durability,
    /// Use a server whose settings cannot be read or are not durable all the same.
    pub accept_loss: bool,
    /// How the server is spoken to.
    pub transport: ServerTransport,
    /// Values that must not be stored.
    pub guard: SecretGuard,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "lula".to_owned(),
            durability: Durability::PowerLoss,
            accept_loss: false,
            transport: ServerTransport::default(),
            guard: SecretGuard::default(),
        }
    }
}

struct Scripts {
    create: Script,
    append: Script,
    claim: Script,
    renew: Script,
    send: Script,
    drop: Script,
}

/// A store in a Redis server.
pub struct RedisStore {
    connection: ConnectionManager,
    prefix: String,
    scripts: Scripts,
    hints: broadcast::Sender<StoreHint>,
    guard: SecretGuard,
}

#[allow(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn failed(error: RedisError) -> StoreError {
    let text = error.to_string();
    if text.contains("OOM") || text.contains("MISCONF") {
        return StoreError::Full(text);
    }
    StoreError::backend("redis", text)
}

impl RedisStore {
    /// Connects to a server that keeps what it acknowledges.
    pub async fn connect(url: &str, options: RedisOptions) -> StoreResult<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if options.prefix.is_empty() || !options.prefix.chars().all(plain) {
            return Err(StoreError::backend(
                "redis",
                format_args!(
                    "{:?} is no prefix: use letters, digits and _",
                    options.prefix
                ),
            ));
        }
        let client = server::client(url, &options.transport)?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(TIMEOUT))
            .set_connection_timeout(Some(TIMEOUT));
        let mut connection = ConnectionManager::new_with_config(client.clone(), config)
            .await
            .map_err(failed)?;
        if !options.accept_loss {
            server::check_durable(&mut connection, options.durability).await?;
        }
        // One slot of a cluster, so that scripts may touch every key.
        let prefix = format!("{{{}}}", options.prefix);
        let layout_key = format!("{prefix}:layout");
        let _: bool = connection
            .set_nx(&layout_key, LAYOUT)
            .await
            .map_err(failed)?;
        let found: u32 = connection.get(&layout_key).await.map_err(failed)?;
        if found < LAYOUT {
            // Nothing is to be changed; programs that do not know of it must keep away.
            let _: () = connection.set(&layout_key, LAYOUT).await.map_err(failed)?;
        }
        if found > LAYOUT {
            return Err(StoreError::Newer {
                what: "the server",
                found,
                known: LAYOUT,
            });
        }
        let (hints, _) = broadcast::channel(1024);
        let stream = format!("{prefix}:watch");
        tokio::spawn(server::listen(client, stream, hints.downgrade()));
        Ok(Self {
            connection,
            prefix,
            scripts: Scripts {
                create: Script::new(include_str!("scripts/create.lua")),
                append: Script::new(include_str!("scripts/append.lua")),
                claim: Script::new(include_str!("scripts/claim.lua")),
                renew: Script::new(include_str!("scripts/renew.lua")),
                send: Script::new(include_str!("scripts/send.lua")),
                drop: Script::new(include_str!("scripts/drop.lua")),
            },
            hints,
            guard: options.guard,
        })
    }

    fn key(&self, kind: &str, name: &str) -> String {
        format!("{}:{kind}:{name}", self.prefix)
    }

    async fn need(&self, run: &RunId) -> StoreResult<()> {
        let mut connection = self.connection.clone();
        let there: bool = connection
            .exists(self.key("run", run.as_str()))
            .await
            .map_err(failed)?;
        if there {
            Ok(())
        } else {
            Err(StoreError::NoRun(run.clone()))
        }
    }

    async fn claim_some(
        &self,
        graph: &str,
        claim: &LeaseClaim,
        limit: u32,
        only: &str,
    ) -> StoreResult<Option<Vec<RunLease>>> {
        let mut connection = self.connection.clone();
        let mut call = self.scripts.claim.prepare_invoke();
        call.arg(&self.prefix)
            .arg(graph)
            .arg(&claim.worker)
            .arg(claim.now_ms);
        call.arg(claim.until_ms()).arg(limit).arg(only);
        let answer: Vec<String> = call.invoke_async(&mut connection).await.map_err(failed)?;
        match answer.split_first() {
            Some((verdict, fields)) if verdict == "ok" => {
                let lease = |fields: &[String]| {
                    Ok(RunLease {
                        run: fields[0].parse().map_err(corrupt)?,
                        epoch: fields[1].parse().map_err(corrupt)?,
                        head: LogHead {
                            next: fields[2].parse().map_err(corrupt)?,
                            hash: fields[3].parse().map_err(corrupt)?,
                        },
                    })
                };
                fields
                    .chunks_exact(4)
                    .map(lease)
                    .collect::<StoreResult<_>>()
                    .map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn run_ids(&self, after: Option<&RunId>) -> StoreResult<Vec<RunId>> {
        let mut connection = self.connection.clone();
        let from = after.map_or_else(|| "-".to_owned(), |run| format!("({run}"));
        let ids: Vec<String> = connection
            .zrangebylex(format!("{}:runs", self.prefix), from, "+")
            .await
            .map_err(failed)?;
        ids.iter().map(|id| id.parse().map_err(corrupt)).collect()
    }

    async fn fields(&self, key: String) -> StoreResult<HashMap<String, String>> {
        let mut connection = self.connection.clone();
        connection.hgetall(key).await.map_err(failed)
    }
}
