//! Bundles: everything that was recorded, checked with nothing but the file.

use std::sync::Arc;

use lula_graph::{EngineOptions, RunStart, SigningKey, bundle, seal};
use proptest::prelude::*;

use crate::delivery::{Delivery, HandClock, Job, Yard, engine_with, options, sqlite};

async fn bundled() -> (Vec<u8>, String) {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(directory.path());
    let key = SigningKey::from_bytes(&[9; 32]);
    let public = seal::public_key(&key);
    let sealed = EngineOptions {
        seal: Some(key),
        seal_every: 10,
        ..options()
    };
    let yard = Arc::new(Yard::default());
    let engine = engine_with(
        Delivery,
        Arc::clone(&store),
        yard,
        &HandClock::new(),
        sealed,
    );
    let job = Job {
        rounds: 2,
        weight: 5_000,
        price: 0,
    };
    let (run, _) = engine.run(&job, &RunStart::default()).await.unwrap();
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
    let mut file = Vec::new();
    bundle::export(&*store, &run, &mut file).await.unwrap();
    (file, public)
}

#[tokio::test]
async fn a_bundle_is_verified_without_a_store() {
    let (file, public) = bundled().await;
    let found = bundle::verify(&file[..]).unwrap();
    assert_eq!(found.summary.as_deref(), Some("2 rounds"));
    assert!(found.blobs >= 1);
    assert_eq!(found.seals.keys().collect::<Vec<_>>(), [&public]);
    assert_eq!(
        found.seals[&public],
        found.events - 2,
        "the last seal vouches for the whole log"
    );
}

#[test]
fn every_change_of_a_bundle_is_noticed() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (file, _) = runtime.block_on(bundled());
    let plain = zstd::decode_all(&file[..]).unwrap();
    let pack = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let lines: Vec<&[u8]> = plain.split_inclusive(|byte| *byte == b'\n').collect();
    for missing in 0..lines.len() {
        let mut cut = lines.clone();
        cut.remove(missing);
        bundle::verify(&pack(&cut.concat())[..]).unwrap_err();
    }
    proptest!(ProptestConfig::with_cases(64), |(at in 0..plain.len(), bit in 0_u8..8)| {
        let mut changed = plain.clone();
        changed[at] ^= 1 << bit;
        let verified = bundle::verify(&pack(&changed)[..]);
        // White space around the lines is the only thing that says nothing.
        let only_space = changed[at].is_ascii_whitespace() && plain[at].is_ascii_whitespace();
        prop_assert!(verified.is_err() || only_space, "byte {} bit {}", at, bit);
    });
}

#[test]
fn hostile_bundles_fail_without_panic() {
    proptest!(|(bytes: Vec<u8>)| {
        prop_assert!(bundle::verify(&bytes[..]).is_err());
        let packed = zstd::encode_all(&bytes[..], 1).unwrap();
        prop_assert!(bundle::verify(&packed[..]).is_err());
    });
}
