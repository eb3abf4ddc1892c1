//! Blobs: found by their digest, dropped when no run needs them.

use std::sync::Arc;

use lula_protocol::event::{EffectResult, ResultSource};
use lula_protocol::payload::BlobRef;
use lula_protocol::{BudgetAmounts, Digest, EffectClass, EffectId, EventBody, EventPayload};

use super::fixtures::{StoreHandle, fresh, fresh_run, next, owned};
use crate::{Blob, LeaseAfterAppend, LogAppend, LogRecord, StoreError, check_run, compact_store};

pub async fn blobs_are_found_by_their_digest(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let blob = Blob::new(format!("{} {}", lease.run, "x".repeat(100_000)).into_bytes());
    let mut append = next(&lease, lease.head, &["with a blob"]);
    append.blobs = vec![blob.clone(), blob.clone()];
    a.append(append).await.unwrap();
    assert_eq!(b.blob(&blob.digest).await.unwrap(), blob.bytes);
    let missing = b.blob(&Digest::of_bytes(b"never stored")).await;
    assert!(matches!(missing, Err(StoreError::NoBlob(_))), "{missing:?}");
}

fn named(blob: &Blob) -> BlobRef {
    BlobRef {
        digest: blob.digest,
        size: blob.bytes.len() as u64,
    }
}

pub async fn a_condemned_blob_is_dropped_unless_it_is_stored_again(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let blob = |text: &str| Blob::new(format!("{} {text}", lease.run).into_bytes());
    let (one, other) = (blob("dropped"), blob("stored again"));
    let mut append = next(&lease, lease.head, &["with blobs"]);
    append.blobs = vec![one.clone(), other.clone()];
    let head = a.append(append).await.unwrap();
    let both = [named(&one), named(&other)];
    assert_eq!(
        b.drop_blobs(&both).await.unwrap(),
        [],
        "nobody condemned them"
    );

    b.condemn_blobs(&both).await.unwrap();
    assert_eq!(a.blob(&one.digest).await.unwrap(), one.bytes, "still there");
    let mut append = next(&lease, head, &["once more"]);
    append.blobs = vec![other.clone()];
    let head = a.append(append).await.unwrap();
    assert_eq!(b.drop_blobs(&both).await.unwrap(), [named(&one)]);
    assert_eq!(b.drop_blobs(&both).await.unwrap(), [], "once is enough");
    let gone = a.blob(&one.digest).await;
    assert!(matches!(gone, Err(StoreError::Dropped(_))), "{gone:?}");
    assert_eq!(a.blob(&other.digest).await.unwrap(), other.bytes);

    let mut append = next(&lease, head, &["and back"]);
    append.blobs = vec![one.clone()];
    a.append(append).await.unwrap();
    assert_eq!(b.blob(&one.digest).await.unwrap(), one.bytes);
    let unseen = named(&blob("never there"));
    assert_eq!(b.drop_blobs(&[unseen]).await.unwrap(), [unseen]);
    let gone = a.blob(&unseen.digest).await;
    assert!(matches!(gone, Err(StoreError::Dropped(_))), "{gone:?}");
}

/// Something large that a run was told, or did.
fn settled(class: EffectClass, text: &str) -> (Vec<EventBody>, Blob) {
    let packed = EventPayload::pack(&text.repeat(5_000 / text.len() + 1)).unwrap();
    let (digest, bytes) = packed.blob.unwrap();
    let (now, random) = fresh();
    let effect = EffectId::from_parts(now, random);
    let intended = EventBody::EffectIntended {
        ordinal: 0,
        effect: effect.clone(),
        class,
        name: "act".to_owned(),
        request: Digest::of_bytes(b"request"),
        pre_tree: None,
        reserve: BudgetAmounts::none(),
        approval: None,
    };
    let settled = EventBody::EffectSettled {
        effect,
        via: ResultSource::Executed,
        spent: BudgetAmounts::none(),
        result: EffectResult::Done(packed.payload),
    };
    (vec![intended, settled], Blob { digest, bytes })
}

pub async fn what_old_runs_were_told_is_dropped_and_what_others_need_is_kept(
    a: StoreHandle,
    b: StoreHandle,
) {
    let word = fresh_run();
    let (told, told_blob) = settled(EffectClass::Model, &format!("told {word} "));
    let (shared, shared_blob) = settled(EffectClass::Tree, &format!("shared {word} "));
    let (pushed, pushed_blob) = settled(EffectClass::External, &format!("pushed {word} "));
    let run = |bodies: Vec<EventBody>, blobs: Vec<Blob>, rest: LeaseAfterAppend| {
        let a = Arc::clone(&a);
        async move {
            let lease = owned(&*a).await;
            let (records, _) =
                LogRecord::continue_log(&lease.run, lease.head, lease.epoch, 2, &bodies).unwrap();
            let mut append = LogAppend::new(lease.run.clone(), lease.epoch, lease.head);
            (append.records, append.blobs, append.rest) = (records, blobs, rest);
            a.append(append).await.unwrap();
            lease.run
        }
    };
    let all = [told, shared.clone(), pushed].concat();
    let blobs = vec![told_blob.clone(), shared_blob.clone(), pushed_blob.clone()];
    let over = run(all, blobs, LeaseAfterAppend::Done).await;
    let suspended = LeaseAfterAppend::Suspend { wake_ms: None };
    let waiting = run(shared, vec![shared_blob.clone()], suspended).await;

    assert_eq!(
        compact_store(&*b, 2).await.unwrap().blobs,
        0,
        "not old enough"
    );
    let compacted = compact_store(&*b, 3).await.unwrap();
    // Other checks use the same store at the same time.
    assert!(compacted.runs >= 1 && compacted.blobs >= 1, "{compacted:?}");
    let gone = a.blob(&told_blob.digest).await;
    assert!(matches!(gone, Err(StoreError::Dropped(_))), "{gone:?}");
    assert_eq!(
        a.blob(&shared_blob.digest).await.unwrap(),
        shared_blob.bytes
    );
    assert_eq!(
        a.blob(&pushed_blob.digest).await.unwrap(),
        pushed_blob.bytes
    );
    let checked = check_run(&*a, &over).await.unwrap();
    assert_eq!((checked.blobs, checked.dropped), (2, 1));
    assert_eq!(check_run(&*a, &waiting).await.unwrap().dropped, 0);
}
