//! The log of a run: compare-and-swap on its head, all or nothing, and reading it back.

use std::sync::Arc;
use std::time::Duration;

use lula_protocol::event::LogChain;
use lula_protocol::{ApprovalId, Digest};

use super::beside::effect;
use super::fixtures::{StoreHandle, cancel, fresh_run, is_fenced, new_run, next, note, owned};
use crate::{
    ApprovalChange, Blob, EffectState, LeaseAfterAppend, LogHead, LogRecord, RunFilter, RunLease,
    RunStatus, StoreError, StoreHint, check_run,
};

pub async fn a_run_reads_back_as_it_was_written(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let append = next(&lease, lease.head, &["second", "third"]);
    let head = a.append(append.clone()).await.unwrap();
    assert_eq!(head, append.new_head());
    let row = b.run(&lease.run).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.epoch, row.head),
        (RunStatus::Running, 1, head)
    );
    assert_eq!(
        (row.tenant.as_str(), row.owner.as_deref()),
        ("acme", Some("alice"))
    );
    let log = b.read(&lease.run, 0, 100).await.unwrap();
    assert_eq!(log[1..], append.records[..]);
    LogRecord::verify(&mut LogChain::start(lease.run.clone()), &log).unwrap();
    assert_eq!(log[2].read_body().unwrap(), note("third"));
    assert_eq!(check_run(&*b, &lease.run).await.unwrap().events, 3);
    assert!(b.run(&fresh_run()).await.unwrap().is_none());
}

pub async fn a_run_is_created_once(a: StoreHandle, b: StoreHandle) {
    let (new, lease) = new_run(None);
    a.create(new.clone()).await.unwrap();
    let again = b.create(new).await;
    assert!(matches!(again, Err(StoreError::RunExists(_))), "{again:?}");
    assert_eq!(a.read(&lease.run, 0, 10).await.unwrap().len(), 1);
}

pub async fn a_run_is_created_and_continued_at_once(a: StoreHandle, b: StoreHandle) {
    let (new, lease) = new_run(Some("alice"));
    let append = next(&lease, lease.head, &["second"]);
    let head = a
        .create_and_append(new.clone(), append.clone())
        .await
        .unwrap();
    assert_eq!(head, append.new_head());
    assert_eq!(b.run(&lease.run).await.unwrap().unwrap().head, head);
    assert_eq!(b.read(&lease.run, 0, 10).await.unwrap().len(), 2);
    let twice = b.create_and_append(new, append).await;
    assert!(matches!(twice, Err(StoreError::RunExists(_))), "{twice:?}");
    assert_eq!(b.read(&lease.run, 0, 10).await.unwrap().len(), 2);
    check_run(&*b, &lease.run).await.unwrap();
}

pub async fn a_run_is_created_and_put_to_rest_at_once(a: StoreHandle, b: StoreHandle) {
    let waits = LeaseAfterAppend::Suspend {
        wake_ms: Some(90_000),
    };
    for (rest, status) in [
        (waits, RunStatus::Suspended),
        (LeaseAfterAppend::Done, RunStatus::Done),
    ] {
        let (new, lease) = new_run(Some("alice"));
        let mut append = next(&lease, lease.head, &["second"]);
        append.rest = rest;
        let head = a.create_and_append(new, append).await.unwrap();
        let row = b.run(&lease.run).await.unwrap().unwrap();
        assert_eq!((row.status, row.head, row.owner), (status, head, None));
        check_run(&*b, &lease.run).await.unwrap();
    }
}

pub async fn an_append_needs_the_head_and_the_epoch(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let stale = next(&lease, lease.head, &["stale"]);
    let head = a.append(next(&lease, lease.head, &["good"])).await.unwrap();
    is_fenced(&b.append(stale).await);
    for epoch in [0, 2] {
        let wrong = RunLease {
            epoch,
            ..lease.clone()
        };
        is_fenced(&b.append(next(&wrong, head, &["wrong epoch"])).await);
    }
    let forked = LogHead {
        hash: Digest::of_bytes(b"other"),
        ..head
    };
    is_fenced(&b.append(next(&lease, forked, &["wrong hash"])).await);
    let stranger = RunLease {
        run: fresh_run(),
        ..lease.clone()
    };
    is_fenced(&b.append(next(&stranger, head, &["no such run"])).await);
    assert_eq!(a.read(&lease.run, 0, 10).await.unwrap().len(), 2);
}

pub async fn of_many_appends_at_one_head_one_wins(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let tries = (0..16).map(|index| {
        let store = if index % 2 == 0 {
            Arc::clone(&a)
        } else {
            Arc::clone(&b)
        };
        let append = next(&lease, lease.head, &[&format!("try {index}")]);
        tokio::spawn(async move { store.append(append).await.is_ok() })
    });
    let tries: Vec<_> = tries.collect();
    let mut won = 0;
    for one in tries {
        won += u32::from(one.await.unwrap());
    }
    assert_eq!(won, 1);
    assert_eq!(a.read(&lease.run, 0, 100).await.unwrap().len(), 2);
}

pub async fn a_refused_append_leaves_nothing_behind(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let signal = b.send(&lease.run, &cancel()).await.unwrap();
    let mut append = next(&lease, lease.head, &["must not appear"]);
    let blob = Blob::new(format!("blob of {}", lease.run).into_bytes());
    append.blobs = vec![blob.clone()];
    append.effects = vec![effect(EffectState::Intended)];
    append.takes = vec![signal];
    append.rest = LeaseAfterAppend::Done;
    append.approvals = vec![ApprovalChange::Use {
        approval: ApprovalId::from_parts(1, [9; 10]),
        digest: Digest::of_bytes(b"nothing"),
    }];
    let refused = a.append(append).await;
    assert!(
        matches!(refused, Err(StoreError::Approval { .. })),
        "{refused:?}"
    );
    assert_eq!(
        b.run(&lease.run).await.unwrap().unwrap().status,
        RunStatus::Running
    );
    assert_eq!(b.read(&lease.run, 0, 10).await.unwrap().len(), 1);
    assert!(b.effects(&lease.run).await.unwrap().is_empty());
    assert_eq!(b.signals(&lease.run).await.unwrap().len(), 1);
    assert!(b.blob(&blob.digest).await.is_err());
    a.append(next(&lease, lease.head, &["goes on"]))
        .await
        .unwrap();
}

pub async fn a_log_is_read_in_pages(a: StoreHandle, b: StoreHandle) {
    let lease = owned(&*a).await;
    let texts: Vec<String> = (0..20).map(|index| format!("event {index}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    a.append(next(&lease, lease.head, &texts)).await.unwrap();
    let whole = b.read(&lease.run, 0, 100).await.unwrap();
    assert_eq!(whole.len(), 21);
    let mut paged = Vec::new();
    while let Some(page) = Some(b.read(&lease.run, paged.len() as u64, 4).await.unwrap())
        && !page.is_empty()
    {
        assert!(page.len() <= 4);
        paged.extend(page);
    }
    assert_eq!(paged, whole);
    let missing = b.read(&fresh_run(), 0, 10).await;
    assert!(matches!(missing, Err(StoreError::NoRun(_))), "{missing:?}");
}

pub async fn runs_are_listed_by_age_and_filtered(a: StoreHandle, b: StoreHandle) {
    let tenant = format!("tenant {}", fresh_run());
    let mut ids = Vec::new();
    for index in 0..3 {
        let (mut new, _) = new_run((index == 1).then_some("alice"));
        new.tenant.clone_from(&tenant);
        ids.push(new.run.clone());
        a.create(new).await.unwrap();
    }
    ids.sort();
    let filter = RunFilter {
        tenant: Some(tenant),
        ..RunFilter::default()
    };
    let list = |filter: RunFilter| {
        let b = Arc::clone(&b);
        async move {
            let rows = b.runs(&filter).await.unwrap();
            rows.into_iter().map(|row| row.run).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(filter.clone()).await, ids);
    let ready = RunFilter {
        status: Some(RunStatus::Ready),
        ..filter.clone()
    };
    assert_eq!(list(ready).await.len(), 2);
    let page = RunFilter {
        after: Some(ids[0].clone()),
        limit: Some(1),
        ..filter
    };
    assert_eq!(list(page).await, ids[1..2]);
}

pub async fn a_watcher_hears_of_an_append(a: StoreHandle, _: StoreHandle) {
    let lease = owned(&*a).await;
    let mut hints = a.watch();
    let listening = async {
        loop {
            match hints.recv().await.unwrap() {
                StoreHint::Run(run) if run == lease.run => return,
                _ => {}
            }
        }
    };
    // A hint can be lost while a watcher connects; then the next append brings another.
    let noise = async {
        let mut head = lease.head;
        loop {
            head = a.append(next(&lease, head, &["hear me"])).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = noise => {}
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("no hint came"),
    }
}
