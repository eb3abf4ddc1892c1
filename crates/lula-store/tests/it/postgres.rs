//! Postgres against the kit.

use std::sync::Arc;

use lula_store::postgres::PostgresOptions;
use lula_store::{Durability, PostgresStore, Store, StoreError};

pub(crate) fn url() -> String {
    std::env::var("LULA_TEST_POSTGRES_URL").unwrap_or_else(|_| {
        panic!("LULA_TEST_POSTGRES_URL is not set: run `cargo xtask test`, which starts a server")
    })
}

async fn open() -> Arc<dyn Store> {
    let options = PostgresOptions {
        schema: "lula_conformance".to_owned(),
        connections: 4,
        durability: Durability::ProcessCrash,
        ..PostgresOptions::default()
    };
    Arc::new(PostgresStore::connect(&url(), options).await.unwrap())
}

lula_store::conformance_tests!(open);

#[tokio::test]
async fn a_schema_name_that_would_be_sql_is_refused() {
    let options = PostgresOptions {
        schema: "x; DROP SCHEMA public".to_owned(),
        ..PostgresOptions::default()
    };
    let refused = PostgresStore::connect(&url(), options).await.err().unwrap();
    assert!(refused.to_string().contains("no schema name"), "{refused}");
}

#[tokio::test]
async fn a_schema_of_a_newer_program_is_refused_untouched() {
    let (client, connection) = tokio_postgres::connect(&url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
        .batch_execute(
            "DROP SCHEMA IF EXISTS lula_newer CASCADE; CREATE SCHEMA lula_newer;
             CREATE TABLE lula_newer.lula_schema(version INT NOT NULL);
             INSERT INTO lula_newer.lula_schema VALUES (99)",
        )
        .await
        .unwrap();
    let options = PostgresOptions {
        schema: "lula_newer".to_owned(),
        durability: Durability::ProcessCrash,
        ..PostgresOptions::default()
    };
    let refused = PostgresStore::connect(&url(), options).await.err().unwrap();
    assert!(
        matches!(refused, StoreError::Newer { found: 99, .. }),
        "{refused}"
    );
}
