use std::fs;
use std::path::Path;

use lula_env::{EnvironmentInputs, EnvironmentRecipe, InputFile};
use lula_protocol::Digest;

use super::record::FORMAT;
use super::*;

/// A store with one environment for the project `p`, which was made from `lock`.
fn world() -> (tempfile::TempDir, EnvironmentStore, EnvironmentRecord) {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().join("p");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("lock"), "one").unwrap();
    let store = EnvironmentStore::at(directory.path());
    store.open().unwrap();
    let record = record(&project, "one");
    let building = store.begin().unwrap();
    fs::create_dir_all(building.join("above/.venv")).unwrap();
    store.finish(&building, &record).unwrap();
    (directory, store, record)
}

fn record(project: &Path, lock: &str) -> EnvironmentRecord {
    let input = |path: &str, digest| InputFile {
        path: path.to_owned(),
        digest,
    };
    let inputs = EnvironmentInputs {
        format: FORMAT,
        place: project.to_str().unwrap().to_owned(),
        machine: "linux".to_owned(),
        files: vec![
            input("lock", Some(Digest::of_bytes(lock.as_bytes()))),
            input("uv.lock", None),
        ],
        recipe: EnvironmentRecipe::default(),
        tools: Vec::new(),
    };
    EnvironmentRecord {
        digest: inputs.digest().unwrap(),
        inputs,
        directories: vec![".venv".to_owned()],
        files: Vec::new(),
        changed: Vec::new(),
        installed: vec![".venv".to_owned()],
        bytes: 10,
        made_ms: 1,
        took_ms: 1,
    }
}

fn fit(directory: &Path) -> EnvironmentFit {
    let project = directory.join("p");
    EnvironmentSource::new(directory, EnvironmentChoice::Fitting).fit(&project, &project)
}

#[test]
fn an_environment_fits_as_long_as_its_inputs_are_the_same() {
    let (directory, _, record) = world();
    let project = directory.path().join("p");
    assert!(matches!(fit(directory.path()), EnvironmentFit::Fits(found) if found.record == record));
    fs::write(project.join("lock"), "two").unwrap();
    assert!(
        matches!(fit(directory.path()), EnvironmentFit::Outdated { file, .. } if file == "lock")
    );
    fs::write(project.join("lock"), "one").unwrap();
    // What was not there counts too.
    fs::write(project.join("uv.lock"), "").unwrap();
    assert!(
        matches!(fit(directory.path()), EnvironmentFit::Outdated { file, .. } if file == "uv.lock")
    );
    fs::remove_file(project.join("uv.lock")).unwrap();
    fs::create_dir_all(project.join(".venv/bin")).unwrap();
    fs::write(project.join(".venv/bin/python"), "").unwrap();
    assert!(matches!(
        fit(directory.path()),
        EnvironmentFit::OwnInstalled(_)
    ));
}

#[test]
fn a_commit_that_brings_such_a_directory_along_has_its_own() {
    let (directory, ..) = world();
    let source = EnvironmentSource::new(directory.path(), EnvironmentChoice::Fitting);
    let commit = directory.path().join("commit");
    fs::create_dir(&commit).unwrap();
    fs::write(commit.join("lock"), "one").unwrap();
    let shown = directory.path().join("p");
    assert!(source.find(&commit, &shown).unwrap().is_some());
    fs::create_dir(commit.join(".venv")).unwrap();
    assert!(source.find(&commit, &shown).unwrap().is_none());
}

#[test]
fn an_environment_whose_record_was_changed_is_none() {
    let (directory, store, record) = world();
    let path = store
        .directory()
        .join(record.name())
        .join("environment.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("uv.lock", "uw.lock")).unwrap();
    assert!(store.list().is_empty());
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(store.list().is_empty());
    fs::write(&path, &text).unwrap();
    assert_eq!(store.list().len(), 1);
    assert!(matches!(fit(directory.path()), EnvironmentFit::Fits(_)));
    // Under another name it is another one's.
    fs::rename(
        path.parent().unwrap(),
        store.directory().join("env-000000000000"),
    )
    .unwrap();
    assert!(store.list().is_empty());
}

#[test]
fn what_an_ended_process_was_building_is_swept_and_never_listed() {
    let (_directory, store, record) = world();
    let left = store.directory().join("building-4194305-0");
    fs::create_dir_all(left.join("home/go/mod/read-only")).unwrap();
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(left.join("home/go/mod/read-only"), mode(0o555)).unwrap();
    let own = store.begin().unwrap();
    assert_eq!(store.list().len(), 1);
    store.sweep();
    assert!(!left.exists() && own.exists());
    let found = store.find(&record.name()[..8]).unwrap();
    store.remove(&found).unwrap();
    assert!(matches!(
        store.find(&record.name()),
        Err(EnvironmentError::Unknown(_))
    ));
}

#[test]
fn an_exported_environment_is_the_same_on_another_machine_and_a_changed_one_is_refused() {
    let (directory, store, record) = world();
    let found = store.find(&record.name()).unwrap();
    let made = found.directory.join("above/.venv");
    fs::write(made.join("tool"), "run me").unwrap();
    let program = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(made.join("tool"), program).unwrap();
    std::os::unix::fs::symlink("tool", made.join("link")).unwrap();
    let file = directory.path().join("one.environment");
    parcel::export(&found, &file).unwrap();

    let other = tempfile::tempdir().unwrap();
    let elsewhere = EnvironmentStore::at(other.path());
    let taken = parcel::import(&elsewhere, &file).unwrap();
    assert_eq!(taken.record, record);
    let made = taken.directory.join("above/.venv");
    assert_eq!(fs::read_link(made.join("link")).unwrap(), Path::new("tool"));
    let data = fs::metadata(made.join("tool")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o777,
        0o755
    );

    let mut bytes = zstd::decode_all(fs::File::open(&file).unwrap()).unwrap();
    let at = bytes.windows(6).position(|part| part == b"run me").unwrap();
    for change in [
        Box::new(|bytes: &mut Vec<u8>| bytes[at] = b'R') as Box<dyn Fn(&mut Vec<u8>)>,
        Box::new(|bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 40)),
    ] {
        let mut changed = bytes.clone();
        change(&mut changed);
        let packed = zstd::encode_all(changed.as_slice(), 1).unwrap();
        fs::write(&file, packed).unwrap();
        let third = tempfile::tempdir().unwrap();
        let elsewhere = EnvironmentStore::at(third.path());
        let refused = parcel::import(&elsewhere, &file);
        assert!(matches!(refused, Err(EnvironmentError::NotExported { .. })));
        assert!(elsewhere.list().is_empty());
    }
    // A name that leads outside of the environment.
    let name = bytes
        .windows(11)
        .position(|part| part == b"above/.venv")
        .unwrap();
    bytes[name..name + 11].copy_from_slice(b"../../x.ven");
    fs::write(&file, zstd::encode_all(bytes.as_slice(), 1).unwrap()).unwrap();
    let third = tempfile::tempdir().unwrap();
    assert!(parcel::import(&EnvironmentStore::at(third.path()), &file).is_err());
    assert!(!third.path().join("x.ven").exists());
}
