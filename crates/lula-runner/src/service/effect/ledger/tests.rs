use super::*;

fn entry(effect: u8, epoch: u64, request: &str) -> EffectLedgerEntry {
    EffectLedgerEntry {
        effect: EffectId::from_parts(1, [effect; 10]),
        run: RunId::from_parts(1, [7; 10]),
        epoch,
        workspace: WorkspaceId::from_parts(1, [8; 10]),
        class: EffectClass::Tree,
        runner: "one".to_owned(),
        request: Digest::of_bytes(request.as_bytes()),
    }
}

fn begun(ledger: &mut EffectLedger, entry: &EffectLedgerEntry) {
    let tx = ledger.transaction().unwrap();
    begin(&tx, entry, Some("before"), None, 1).unwrap();
    tx.commit().unwrap();
}

fn ledger() -> (tempfile::TempDir, EffectLedger) {
    let directory = tempfile::tempdir().unwrap();
    let ledger = EffectLedger::open(&directory.path().join("hands.db")).unwrap();
    (directory, ledger)
}

#[test]
fn a_result_is_told_again_and_survives_a_restart() {
    let (directory, mut ledger) = ledger();
    let call = entry(1, 1, "a");
    assert_eq!(ledger.look(&call).unwrap(), KnownEffect::Fresh);
    begun(&mut ledger, &call);
    ledger.finish(&call.effect, b"result", "{}").unwrap();
    drop(ledger);
    let mut ledger = EffectLedger::open(&directory.path().join("hands.db")).unwrap();
    assert_eq!(
        ledger.look(&call).unwrap(),
        KnownEffect::Done(b"result".to_vec())
    );
}

#[test]
fn one_id_is_one_act() {
    let (_directory, mut ledger) = ledger();
    let call = entry(1, 1, "a");
    begun(&mut ledger, &call);
    ledger.finish(&call.effect, b"r", "{}").unwrap();
    assert_eq!(ledger.look(&entry(1, 1, "b")).unwrap(), KnownEffect::Reused);
    assert!(
        ledger.finish(&call.effect, b"other", "{}").is_err(),
        "a result is final"
    );
}

#[test]
fn a_replaced_worker_is_fenced_off_even_from_stored_results() {
    let (_directory, mut ledger) = ledger();
    assert_eq!(ledger.look(&entry(1, 5, "a")).unwrap(), KnownEffect::Fresh);
    assert_eq!(
        ledger.look(&entry(2, 4, "b")).unwrap(),
        KnownEffect::Fenced { newest: 5 }
    );
    assert_eq!(ledger.look(&entry(2, 5, "b")).unwrap(), KnownEffect::Fresh);
}

#[test]
fn what_people_agreed_to_can_be_done_again_after_a_crash_without_asking_anew() {
    let (_directory, mut ledger) = ledger();
    let call = entry(1, 1, "a");
    let subject = Digest::of_bytes(b"agreed");
    for _ in 0..2 {
        let tx = ledger.transaction().unwrap();
        begin(&tx, &call, None, Some(&subject), 1).unwrap();
        tx.commit().unwrap();
        ledger.forget(&call.effect).unwrap();
        assert_eq!(ledger.look(&call).unwrap(), KnownEffect::Again { subject });
    }
}

#[test]
fn an_entry_waits_until_the_audit_has_it() {
    let (_directory, mut ledger) = ledger();
    let call = entry(1, 1, "a");
    begun(&mut ledger, &call);
    ledger.finish(&call.effect, b"r", "entry").unwrap();
    let waiting = vec![(call.effect.clone(), "entry".to_owned(), "one".to_owned())];
    assert_eq!(ledger.unaudited().unwrap(), waiting);
    ledger.audited(&call.effect).unwrap();
    assert!(ledger.unaudited().unwrap().is_empty());
}

#[test]
fn what_was_begun_and_not_ended_is_found_with_the_state_before_it() {
    let (_directory, mut ledger) = ledger();
    let (first, second) = (entry(1, 1, "a"), entry(2, 1, "b"));
    begun(&mut ledger, &first);
    begun(&mut ledger, &second);
    let names: Vec<_> = ledger.unfinished().unwrap();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0].effect, second.effect, "the newest first");
    assert_eq!(names[0].before.as_deref(), Some("before"));
    ledger.forget(&second.effect).unwrap();
    ledger.give_up(&first.effect).unwrap();
    assert_eq!(ledger.look(&second).unwrap(), KnownEffect::Fresh);
    assert_eq!(ledger.look(&first).unwrap(), KnownEffect::Unknown);
    assert!(ledger.unfinished().unwrap().is_empty());
}
