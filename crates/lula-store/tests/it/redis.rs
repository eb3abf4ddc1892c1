//! Redis against the kit, and a server that would forget.

use std::sync::Arc;

use ::redis::AsyncCommands;
use lula_store::redis::RedisOptions;
use lula_store::{Durability, RedisStore, RunFilter, RunStore, ServerTransport, StoreError};

pub(crate) fn url() -> String {
    std::env::var("LULA_TEST_REDIS_URL").unwrap_or_else(|_| {
        panic!("LULA_TEST_REDIS_URL is not set: run `cargo xtask test`, which starts a server")
    })
}

async fn open() -> Arc<dyn RunStore> {
    let options = RedisOptions {
        prefix: "conformance".to_owned(),
        durability: Durability::ProcessCrash,
        ..RedisOptions::default()
    };
    Arc::new(RedisStore::connect(&url(), options).await.unwrap())
}

lula_store::conformance_tests!(open);

#[tokio::test]
async fn a_server_is_judged_by_the_settings_it_has() {
    let client = redis::Client::open(url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let fsync: (String, String) = redis::cmd("CONFIG")
        .arg("GET")
        .arg("appendfsync")
        .query_async(&mut connection)
        .await
        .unwrap();
    let options = RedisOptions {
        prefix: "judged".to_owned(),
        durability: Durability::PowerLoss,
        ..RedisOptions::default()
    };
    let connected = RedisStore::connect(&url(), options.clone()).await;
    if fsync.1 == "always" {
        connected.unwrap();
    } else {
        let refused = connected.err().unwrap();
        assert!(matches!(refused, StoreError::NotDurable(_)), "{refused}");
        let told = RedisOptions {
            accept_loss: true,
            ..options
        };
        RedisStore::connect(&url(), told).await.unwrap();
    }
}

#[tokio::test]
async fn an_older_layout_is_taken_over_and_a_newer_one_refused_untouched() {
    let options = RedisOptions {
        prefix: format!("layout_{}", std::process::id()),
        durability: Durability::ProcessCrash,
        ..RedisOptions::default()
    };
    let key = format!("{{{}}}:layout", options.prefix);
    let client = redis::Client::open(url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut layout = async |set: u32| -> u32 {
        if set > 0 {
            let _: () = connection.set(&key, set).await.unwrap();
        }
        connection.get(&key).await.unwrap()
    };
    layout(1).await;
    RedisStore::connect(&url(), options.clone()).await.unwrap();
    assert_eq!(
        layout(0).await,
        2,
        "an older program must keep away from now on"
    );
    layout(99).await;
    let refused = RedisStore::connect(&url(), options).await.err().unwrap();
    assert!(
        matches!(refused, StoreError::Newer { found: 99, .. }),
        "{refused}"
    );
    assert_eq!(layout(0).await, 99);
}

fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run `cargo xtask test`, which starts a server")
    })
}

async fn connect(url: &str, ca: Option<String>) -> Result<RedisStore, StoreError> {
    let options = RedisOptions {
        prefix: "encrypted".to_owned(),
        durability: Durability::ProcessCrash,
        transport: ServerTransport {
            ca: ca.map(Into::into),
            ..ServerTransport::default()
        },
        ..RedisOptions::default()
    };
    RedisStore::connect(url, options).await
}

#[tokio::test]
async fn a_server_is_spoken_to_encrypted_when_its_certificate_holds() {
    let url = told("LULA_TEST_REDIS_TLS_URL");
    let store = connect(&url, Some(told("LULA_TEST_REDIS_CA")))
        .await
        .unwrap();
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap(), []);
    let in_clear = url.replace("rediss://", "redis://");
    assert!(
        connect(&in_clear, None).await.is_err(),
        "this port speaks only TLS"
    );
}

#[tokio::test]
async fn a_server_nobody_vouches_for_is_refused() {
    let url = told("LULA_TEST_REDIS_TLS_URL");
    // The machine does not know the authority of the test server.
    let refused = connect(&url, None).await.err().unwrap();
    assert!(refused.to_string().contains("certificate"), "{refused}");
    // The certificate is for the address, not for this name.
    let named = url.replace("127.0.0.1", "localhost");
    let ca = Some(told("LULA_TEST_REDIS_CA"));
    let refused = connect(&named, ca).await.err().unwrap();
    assert!(refused.to_string().contains("certificate"), "{refused}");
}
