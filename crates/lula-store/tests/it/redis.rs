//! Redis against the kit, and a server that would forget.

use std::sync::Arc;

use lula_store::redis::RedisOptions;
use lula_store::{Durability, RedisStore, Store, StoreError};

fn url() -> String {
    std::env::var("LULA_TEST_REDIS_URL").unwrap_or_else(|_| {
        panic!("LULA_TEST_REDIS_URL is not set: run `cargo xtask test`, which starts a server")
    })
}

async fn open() -> Arc<dyn Store> {
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
