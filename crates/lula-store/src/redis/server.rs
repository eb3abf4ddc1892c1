//! The server behind the store: whether it keeps what it acknowledges, and what it has to tell.

use std::collections::HashMap;
use std::time::Duration;

use lula_protocol::RunId;
use redis::aio::ConnectionManager;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, TlsCertificates};
use tokio::sync::broadcast;

use super::failed;
use crate::error::{StoreError, StoreResult};
use crate::run::Durability;
use crate::store::StoreHint;
use crate::transport::{ServerTransport, is_loopback};

const RECONNECT: Duration = Duration::from_secs(1);

/// Reads an address, and how the server behind it is spoken to.
pub(super) fn client(url: &str, transport: &ServerTransport) -> StoreResult<Client> {
    let info = url.into_connection_info().map_err(failed)?;
    let here = match info.addr() {
        ConnectionAddr::Tcp(host, _) => is_loopback(host),
        ConnectionAddr::Unix(_) => true,
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            return Err(StoreError::Insecure(
                "#insecure encrypts to any server that answers: leave it out, and name the server's \
                 authority in store.ca"
                    .to_owned(),
            ));
        }
        ConnectionAddr::TcpTls { .. } => {
            let certificates = TlsCertificates {
                client_tls: None,
                root_cert: transport.ca_bytes()?,
            };
            return Client::build_with_tls(info, certificates).map_err(failed);
        }
        _ => false,
    };
    transport.check_cleartext(info.redis_settings().password().is_some(), here)?;
    Client::open(info).map_err(failed)
}

/// Refuses a server that would forget or evict.
pub(super) async fn check_durable(
    connection: &mut ConnectionManager,
    durability: Durability,
) -> StoreResult<()> {
    let mut settings = HashMap::new();
    for name in ["appendonly", "appendfsync", "maxmemory", "maxmemory-policy"] {
        let found: HashMap<String, String> = redis::cmd("CONFIG")
            .arg("GET")
            .arg(name)
            .query_async(connection)
            .await
            .map_err(|error| {
                StoreError::NotDurable(format!(
                    "the settings of this Redis cannot be read ({error}); if it keeps what it \
                     acknowledges, set store.accept_loss = \"yes\""
                ))
            })?;
        settings.extend(found);
    }
    judge(&settings, durability)
}

/// Whether settings keep what is acknowledged.
fn judge(settings: &HashMap<String, String>, durability: Durability) -> StoreResult<()> {
    let setting = |name: &str| settings.get(name).map(String::as_str).unwrap_or_default();
    let refuse = |what: &str, remedy: &str| {
        Err(StoreError::NotDurable(format!(
            "this Redis {what}: {remedy}, or set store.accept_loss = \"yes\" and lose runs"
        )))
    };
    if setting("appendonly") != "yes" {
        return refuse("forgets data when it restarts", "set appendonly yes");
    }
    if durability == Durability::PowerLoss && setting("appendfsync") != "always" {
        return refuse(
            "forgets up to a second of data when the power fails",
            "set appendfsync always, or store.durability = \"process-crash\" here",
        );
    }
    if setting("appendfsync") == "no" {
        return refuse(
            "leaves it to chance when data is written",
            "set appendfsync everysec",
        );
    }
    if setting("maxmemory") != "0" && setting("maxmemory-policy") != "noeviction" {
        return refuse(
            "evicts data when it is full",
            "set maxmemory-policy noeviction",
        );
    }
    Ok(())
}

/// Passes hints on from the stream until no receiver is left.
pub(super) async fn listen(client: Client, stream: String, out: broadcast::WeakSender<StoreHint>) {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    loop {
        if let Ok(mut connection) = client
            .get_multiplexed_async_connection_with_config(&config)
            .await
        {
            let mut last = "$".to_owned();
            loop {
                let Some(sender) = out.upgrade() else { return };
                if last == "$" {
                    // Whatever happened before is not known here.
                    let _ = sender.send(StoreHint::Any);
                }
                drop(sender);
                let mut read = redis::cmd("XREAD");
                read.arg("COUNT").arg(512).arg("BLOCK").arg(500);
                read.arg("STREAMS").arg(&stream).arg(&last);
                let answer: redis::RedisResult<Option<redis::streams::StreamReadReply>> =
                    read.query_async(&mut connection).await;
                let Ok(answer) = answer else { break };
                let Some(sender) = out.upgrade() else { return };
                for entry in answer
                    .into_iter()
                    .flat_map(|reply| reply.keys)
                    .flat_map(|key| key.ids)
                {
                    let text: String = entry.get("h").unwrap_or_default();
                    let run = |id: &str| id.parse::<RunId>().ok();
                    let hint = match text.split_once(':') {
                        Some(("r", id)) => run(id).map(StoreHint::Run),
                        Some(("s", id)) => run(id).map(StoreHint::Signal),
                        _ => None,
                    };
                    let _ = sender.send(hint.unwrap_or(StoreHint::Any));
                    last = entry.id;
                }
            }
        }
        if out.upgrade().is_none() {
            return;
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        let durable = [
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("maxmemory", "0"),
            ("maxmemory-policy", "noeviction"),
        ];
        let all = durable.iter().chain(pairs);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_password_does_not_leave_the_machine_in_clear() {
        let strict = ServerTransport::default();
        let refused = client("redis://:hunter22@db.example.com/0", &strict);
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("in clear") && !refused.contains("hunter22"),
            "{refused}"
        );
        client("redis://:hunter22@127.0.0.1/0", &strict).unwrap();
        client("rediss://:hunter22@db.example.com/0", &strict).unwrap();
        client("redis://db.example.com/0", &strict).unwrap();
        let blind = client("rediss://db.example.com/#insecure", &strict);
        assert!(blind.unwrap_err().to_string().contains("store.ca"));
    }

    #[test]
    fn a_server_that_keeps_everything_is_accepted() {
        judge(&settings(&[]), Durability::PowerLoss).unwrap();
        judge(
            &settings(&[("appendfsync", "everysec")]),
            Durability::ProcessCrash,
        )
        .unwrap();
    }

    #[test]
    fn a_server_that_would_lose_data_is_refused_with_the_setting_to_change() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("appendonly", "no")], "appendonly yes"),
            (&[("appendfsync", "everysec")], "appendfsync always"),
            (&[("appendfsync", "no")], "appendfsync always"),
            (
                &[("maxmemory", "1"), ("maxmemory-policy", "allkeys-lru")],
                "noeviction",
            ),
        ];
        for (pairs, remedy) in cases {
            let why = judge(&settings(pairs), Durability::PowerLoss)
                .unwrap_err()
                .to_string();
            assert!(why.contains(remedy), "{why}");
        }
        let relaxed = judge(
            &settings(&[("appendfsync", "no")]),
            Durability::ProcessCrash,
        );
        assert!(
            relaxed.is_err(),
            "no setting leaves the time of writing to chance"
        );
        judge(&HashMap::new(), Durability::ProcessCrash).unwrap_err();
    }
}
