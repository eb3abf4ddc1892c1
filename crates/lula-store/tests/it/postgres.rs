//! Postgres against the kit.

use std::sync::Arc;

use lula_store::postgres::PostgresOptions;
use lula_store::{
    Blob, Durability, PostgresStore, RunFilter, RunStore, ServerTransport, StoreError, body,
};

pub(crate) fn url() -> String {
    std::env::var("LULA_TEST_POSTGRES_URL").unwrap_or_else(|_| {
        panic!("LULA_TEST_POSTGRES_URL is not set: run `cargo xtask test`, which starts a server")
    })
}

async fn open() -> Arc<dyn RunStore> {
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

#[tokio::test]
async fn a_schema_of_an_older_program_is_brought_forward_and_keeps_its_blobs() {
    let schema = format!("older_{}", std::process::id());
    let options = || PostgresOptions {
        schema: schema.clone(),
        connections: 2,
        durability: Durability::ProcessCrash,
        ..PostgresOptions::default()
    };
    drop(PostgresStore::connect(&url(), options()).await.unwrap());
    let (client, connection) = tokio_postgres::connect(&url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    // As the first version had it.
    let blob = Blob::new(b"kept for years".to_vec());
    client
        .batch_execute(&format!(
            "SET search_path={schema}; ALTER TABLE blobs DROP COLUMN fate;
             UPDATE lula_schema SET version=1"
        ))
        .await
        .unwrap();
    client
        .execute(
            "INSERT INTO blobs(hash,size,bytes) VALUES ($1,14,$2)",
            &[&blob.digest.as_bytes().as_slice(), &body::pack(&blob.bytes)],
        )
        .await
        .unwrap();
    let store = PostgresStore::connect(&url(), options()).await.unwrap();
    assert_eq!(store.blob(&blob.digest).await.unwrap(), blob.bytes);
}

async fn connect(url: &str, transport: ServerTransport) -> Result<PostgresStore, StoreError> {
    let options = PostgresOptions {
        schema: "lula_encrypted".to_owned(),
        connections: 2,
        durability: Durability::ProcessCrash,
        transport,
        ..PostgresOptions::default()
    };
    PostgresStore::connect(url, options).await
}

fn authority() -> ServerTransport {
    let path = std::env::var("LULA_TEST_POSTGRES_CA").unwrap_or_else(|_| {
        panic!("LULA_TEST_POSTGRES_CA is not set: run `cargo xtask test`, which starts a server")
    });
    ServerTransport {
        ca: Some(path.into()),
        ..ServerTransport::default()
    }
}

#[tokio::test]
async fn a_server_is_spoken_to_encrypted_when_its_certificate_holds() {
    let encrypted = format!("{}?sslmode=verify-full", url());
    let store = connect(&encrypted, authority()).await.unwrap();
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap(), []);
    let (client, connection) = tokio_postgres::connect(&url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let sql = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
               WHERE application_name='lula' AND ssl";
    let row = client.query_one(sql, &[]).await.unwrap();
    assert!(row.get::<_, i64>(0) > 0, "no encrypted connection is open");
}

#[tokio::test]
async fn a_server_nobody_vouches_for_is_refused() {
    for mode in ["require", "verify-full"] {
        let url = format!("{}?sslmode={mode}", url());
        // The machine does not know the authority of the test server.
        let refused = connect(&url, ServerTransport::default())
            .await
            .err()
            .unwrap();
        assert!(refused.to_string().contains("certificate"), "{refused}");
        // The certificate is for the address, not for this name.
        let named = url.replace("127.0.0.1", "localhost");
        let refused = connect(&named, authority()).await.err().unwrap();
        assert!(refused.to_string().contains("certificate"), "{refused}");
    }
}
