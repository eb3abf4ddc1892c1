use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use lula_protocol::Digest;
use proptest::prelude::*;

use super::*;

struct Desk {
    directory: tempfile::TempDir,
}

fn entry(number: u64) -> AuditEntry {
    AuditEntry {
        time_ms: 1_000 + number,
        principal: "local:1000".parse().unwrap(),
        run: None,
        effect: None,
        tool: if number.is_multiple_of(2) {
            "exec"
        } else {
            "write_file"
        }
        .to_owned(),
        about: format!("act {number}"),
        call: Digest::of_bytes(&number.to_be_bytes()),
        decision: AuditDecision {
            verdict: AuditVerdict::Allowed,
            rule: None,
            approval: None,
        },
        outcome: AuditEnding::Done { status: Some(0) },
        receipt: None,
        diff: None,
    }
}

fn act(number: u64) -> AuditLineBody {
    AuditLineBody::Act {
        entry: Box::new(entry(number)),
    }
}

impl Desk {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn options() -> AuditOptions {
        AuditOptions {
            seal_every: 4,
            ..AuditOptions::redacting(|text| text.replace("canary", "[redacted]"))
        }
    }

    fn log(&self) -> AuditLog {
        AuditLog::open(self.directory.path(), Self::options()).unwrap()
    }

    /// A log of this many acts, sealed at its end.
    fn with(acts: u64) -> Self {
        let desk = Self::new();
        let mut log = desk.log();
        for number in 0..acts {
            log.append(&[entry(number)]).unwrap();
        }
        log.seal().unwrap();
        desk
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("audit.jsonl")
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn put(&self, lines: &[String]) {
        fs::write(self.path(), lines.join("\n") + "\n").unwrap();
    }

    fn check(&self) -> AuditCheckReport {
        verify(self.directory.path(), None, None).unwrap()
    }

    #[track_caller]
    fn shows(&self, trouble: AuditFault, line: usize) {
        let report = self.check();
        assert!(
            report
                .problems
                .iter()
                .any(|p| p.trouble == trouble && p.line == line),
            "{trouble:?} at line {line} is not in {:#?}",
            report.problems
        );
    }
}

#[test]
fn a_log_nobody_touched_is_intact() {
    let desk = Desk::with(10);
    let report = desk.check();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!((report.entries, report.unsealed), (10, 0));
    assert!(report.seals >= 3);
    assert_eq!(report.head.unwrap().seq + 1, desk.lines().len() as u64);
    assert_eq!(report.sealed_through, Some(report.head.unwrap().seq));
}

#[test]
fn an_empty_place_is_an_empty_log() {
    let desk = Desk::new();
    let report = verify(&desk.directory.path().join("nowhere"), None, None).unwrap();
    assert!(report.is_intact());
    assert_eq!(report.entries, 0);
}

#[test]
fn an_edited_entry_is_found_where_it_stands() {
    let desk = Desk::with(10);
    let mut lines = desk.lines();
    lines[3] = lines[3].replace("\"status\":0", "\"status\":1");
    desk.put(&lines);
    desk.shows(AuditFault::Edited, 4);
    assert_eq!(
        desk.check().sealed_through,
        None,
        "the first seal stands behind the change"
    );
    let mut lines = Desk::lines(&desk);
    lines[3] = lines[3].replace("\"status\":1", "\"status\":0");
    lines[6] = lines[6].replace("\"status\":0", "\"status\":1");
    desk.put(&lines);
    assert_eq!(desk.check().sealed_through, Some(4));
}

#[test]
fn an_entry_rewritten_with_its_hash_breaks_the_chain_behind_it() {
    let desk = Desk::with(10);
    let mut lines = desk.lines();
    let before = line::UncheckedAuditLine::read(lines[1].as_bytes())
        .unwrap()
        .head();
    let (forged, _) = line::write(Some(before), &act(77)).unwrap();
    lines[2] = String::from_utf8(forged).unwrap().trim_end().to_owned();
    desk.put(&lines);
    desk.shows(AuditFault::Unlinked, 4);
}

#[test]
fn a_history_rewritten_to_its_end_has_no_signature() {
    let desk = Desk::with(3);
    let mut head = None;
    let mut lines = Vec::new();
    for number in 50..60 {
        let (line, next) = line::write(head, &act(number)).unwrap();
        lines.push(String::from_utf8(line).unwrap().trim_end().to_owned());
        head = Some(next);
    }
    desk.put(&lines);
    let report = desk.check();
    assert_eq!(report.sealed_through, None);
    assert!(
        report
            .problems
            .iter()
            .any(|p| p.trouble == AuditFault::OtherHead),
        "{report:#?}"
    );
}

#[test]
fn a_history_signed_by_somebody_else_is_not_ours() {
    let (ours, theirs) = (Desk::with(5), Desk::with(5));
    fs::copy(theirs.path(), ours.path()).unwrap();
    ours.shows(AuditFault::ForeignSeal, 5);
}

#[test]
fn a_signature_cannot_be_moved() {
    let desk = Desk::with(10);
    let lines = desk.lines();
    let seals: Vec<_> = (0..lines.len())
        .filter(|at| lines[*at].contains("\"seal\""))
        .collect();
    let first = line::UncheckedAuditLine::read(lines[seals[0]].as_bytes()).unwrap();
    let before = line::UncheckedAuditLine::read(lines[seals[1] - 1].as_bytes())
        .unwrap()
        .head();
    let (moved, _) = line::write(Some(before), &first.body().unwrap()).unwrap();
    let mut forged = lines.clone();
    forged[seals[1]] = String::from_utf8(moved).unwrap().trim_end().to_owned();
    desk.put(&forged);
    desk.shows(AuditFault::BadSeal, seals[1] + 1);
}

#[test]
fn removed_repeated_moved_and_inserted_entries_are_found() {
    let desk = Desk::with(10);
    let lines = desk.lines();
    let mut removed = lines.clone();
    removed.remove(4);
    desk.put(&removed);
    desk.shows(AuditFault::Missing, 5);

    let mut repeated = lines.clone();
    repeated.insert(5, lines[4].clone());
    desk.put(&repeated);
    desk.shows(AuditFault::Repeated, 6);

    let mut moved = lines.clone();
    moved.swap(5, 6);
    desk.put(&moved);
    desk.shows(AuditFault::OutOfOrder, 7);

    let mut inserted = lines.clone();
    let at = line::UncheckedAuditLine::read(lines[4].as_bytes())
        .unwrap()
        .head();
    let (extra, _) = line::write(Some(at), &act(99)).unwrap();
    inserted.insert(5, String::from_utf8(extra).unwrap().trim_end().to_owned());
    desk.put(&inserted);
    assert!(!desk.check().is_intact());

    let mut garbage = lines.clone();
    garbage.insert(2, "{}".to_owned());
    desk.put(&garbage);
    desk.shows(AuditFault::NotAnEntry, 3);

    let mut beside = lines.clone();
    beside[2] = lines[2].replacen('{', "{\"note\":1,", 1);
    desk.put(&beside);
    desk.shows(AuditFault::NotAnEntry, 3);

    desk.put(&lines);
    assert!(desk.check().is_intact());
}

#[test]
fn a_cut_log_is_found_and_what_follows_does_not_hide_it() {
    let desk = Desk::with(10);
    let known = desk.check().head;
    let lines = desk.lines();
    desk.put(&lines[..6]);
    desk.shows(AuditFault::CutOff, 6);
    desk.log().append_sealed(&[entry(11)]).unwrap();
    desk.shows(AuditFault::Missing, 7);
    let report = verify(desk.directory.path(), None, known).unwrap();
    assert!(
        report
            .problems
            .iter()
            .any(|p| p.trouble == AuditFault::OtherHead)
    );

    fs::remove_file(desk.path()).unwrap();
    assert!(!desk.check().is_intact(), "a removed log is a cut log");
}

#[test]
fn a_torn_end_is_kept_aside_and_recorded() {
    let desk = Desk::with(3);
    let whole = fs::read(desk.path()).unwrap();
    let mut torn = whole.clone();
    torn.extend_from_slice(b"{\"body\":{\"kind\":\"act\",\"entry\":{\"tim");
    fs::write(desk.path(), &torn).unwrap();
    assert!(
        desk.check()
            .problems
            .iter()
            .any(|p| p.trouble == AuditFault::Torn)
    );
    desk.log().append_sealed(&[entry(4)]).unwrap();
    let report = desk.check();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!((report.recovered, report.entries), (1, 4));
    let aside = fs::read_dir(desk.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("torn-")
        })
        .unwrap();
    assert_eq!(fs::read(aside).unwrap(), torn[whole.len()..]);
}

#[test]
fn a_log_whose_end_is_no_entry_takes_no_more() {
    let desk = Desk::with(3);
    let mut text = fs::read(desk.path()).unwrap();
    text.extend_from_slice(b"hello\n");
    fs::write(desk.path(), text).unwrap();
    let appended = desk.log().append(&[entry(4)]);
    assert!(matches!(appended, Err(AuditError::Damaged { .. })));
}

#[test]
fn the_chain_goes_on_from_file_to_file() {
    let desk = Desk::new();
    let options = AuditOptions {
        rotate_bytes: 2_000,
        ..Desk::options()
    };
    for number in 0..20 {
        let mut log = AuditLog::open(desk.directory.path(), options).unwrap();
        log.append(&[entry(number)]).unwrap();
    }
    let files = log::files(desk.directory.path()).unwrap();
    assert!(files.len() > 3, "{files:?}");
    let report = desk.check();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.entries, 20);
    assert_eq!(
        show(desk.directory.path(), &AuditFilter::default())
            .unwrap()
            .len(),
        20
    );
    fs::remove_file(&files[1]).unwrap();
    assert!(
        desk.check()
            .problems
            .iter()
            .any(|p| p.trouble == AuditFault::Missing)
    );
}

#[test]
fn writers_at_the_same_time_share_one_chain() {
    let desk = Desk::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let desk = &desk;
            scope.spawn(move || {
                let mut log = desk.log();
                for number in 0..10 {
                    log.append(&[entry(writer * 100 + number)]).unwrap();
                }
            });
        }
    });
    let report = desk.check();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.entries, 40);
}

#[test]
fn no_secret_is_written() {
    let desk = Desk::new();
    let mut secret = entry(1);
    secret.about = "push with canary".into();
    secret.tool = "canary".into();
    secret.decision.rule = Some("canary".into());
    secret.outcome = AuditEnding::Failed {
        code: "canary".into(),
    };
    desk.log().append(&[secret]).unwrap();
    assert!(!fs::read_to_string(desk.path()).unwrap().contains("canary"));
}

#[test]
fn entries_can_be_chosen() {
    let desk = Desk::with(10);
    let shown = |filter: AuditFilter| show(desk.directory.path(), &filter).unwrap();
    let exec = shown(AuditFilter {
        tool: Some("exec".into()),
        ..AuditFilter::default()
    });
    assert_eq!(exec.len(), 5);
    let last = shown(AuditFilter {
        last: Some(2),
        ..AuditFilter::default()
    });
    assert_eq!(
        last.iter().map(|one| one.entry.time_ms).collect::<Vec<_>>(),
        [1_008, 1_009]
    );
    let since = shown(AuditFilter {
        since_ms: Some(1_007),
        ..AuditFilter::default()
    });
    assert_eq!(since.len(), 3);
}

#[test]
fn an_exported_log_is_checked_alone() {
    let desk = Desk::with(10);
    let mut bundle = Vec::new();
    export(&mut desk.log(), desk.directory.path(), &mut bundle).unwrap();
    let report = verify_bundle(&bundle[..], None).unwrap();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.entries, 10);
    let other = Desk::new().log().public_key();
    assert!(
        !verify_bundle(&bundle[..], Some(&other))
            .unwrap()
            .is_intact()
    );
    let text = String::from_utf8(bundle.clone()).unwrap();
    let edited = text.replacen("act 3", "act 4", 1);
    let report = verify_bundle(edited.as_bytes(), None).unwrap();
    assert_eq!(
        (report.problems[0].trouble, report.problems[0].line),
        (AuditFault::Edited, 5)
    );
    let cut: Vec<_> = text
        .lines()
        .take(6)
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(
        !verify_bundle(cut.concat().as_bytes(), None)
            .unwrap()
            .is_intact()
    );
    assert!(verify_bundle(&b"{}\n"[..], None).is_err());
}

#[test]
fn the_key_is_private() {
    let desk = Desk::with(1);
    let path = desk.directory.path().join("seal.key");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(!format!("{:?}", desk.log()).contains(fs::read_to_string(&path).unwrap().trim()));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let opened = AuditLog::open(desk.directory.path(), Desk::options());
    assert!(matches!(
        opened,
        Err(AuditError::Key {
            source: lula_files::PrivateFileError::NotPrivate { mode: 0o644 },
            ..
        })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_changed_byte_goes_unnoticed(at in 0.0..1.0_f64, value in any::<u8>()) {
        let desk = Desk::with(3);
        let mut bytes = fs::read(desk.path()).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of a small length")]
        let index = (at * bytes.len() as f64) as usize;
        prop_assume!(bytes[index] != value);
        bytes[index] = value;
        fs::write(desk.path(), bytes).unwrap();
        prop_assert!(!desk.check().is_intact());
    }

    #[test]
    fn no_bytes_make_the_check_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let desk = Desk::new();
        fs::write(desk.path(), &bytes).unwrap();
        let report = desk.check();
        prop_assert!(bytes.is_empty() || !report.is_intact());
        let _ = verify_bundle(&bytes[..], None);
    }
}
