//! Groups on this very machine. Where none can be made, that must be said, with a reason.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::*;

const LIMITS: CgroupLimits = CgroupLimits {
    memory_bytes: Some(64 << 20),
    cpu_millicores: Some(500),
    pids: Some(20),
};

/// A way to make groups, or proof that the refusal is explained.
fn backend() -> Option<CgroupBackend> {
    let backend = CgroupBackend::detect();
    if backend.kind() == CgroupKind::None {
        assert!(!backend.refusals().is_empty(), "no way and no reason");
        let leaf = backend.create("nothing", &LIMITS).unwrap();
        assert_eq!(leaf.not_applied().len(), 3);
        assert!(leaf.kill().is_err());
        return None;
    }
    Some(backend)
}

/// Runs a script in a group; it starts once it is inside.
fn shell(leaf: &CgroupLeaf, script: &str) -> Child {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("read go; {script}")])
        .stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    leaf.attach(pid).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child
}

#[test]
fn limits_read_back_or_are_named_as_not_applied() {
    let Some(backend) = backend() else { return };
    let leaf = backend.create("limits", &LIMITS).unwrap();
    let reported = leaf.read_back().unwrap();
    let missing = |what: &str| {
        leaf.not_applied()
            .iter()
            .any(|one| one.asked.starts_with(what))
    };
    assert!(reported.memory_bytes == LIMITS.memory_bytes || missing("memory"));
    assert!(reported.cpu_millicores == LIMITS.cpu_millicores || missing("cpu"));
    assert!(reported.pids == LIMITS.pids || missing("pids"));
    leaf.remove().unwrap();
}

#[test]
fn a_killed_tree_is_gone_and_so_is_its_group() {
    let Some(backend) = backend() else { return };
    let leaf = backend.create("kill", &LIMITS).unwrap();
    let mut child = shell(
        &leaf,
        "setsid sleep 100 & setsid sleep 100 & (sleep 100 &) & wait",
    );
    leaf.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
    leaf.remove().unwrap();
    assert!(
        backend.create("kill", &LIMITS).is_ok(),
        "the name is free again"
    );
}

#[test]
fn a_frozen_tree_stands_still_until_thawed() {
    let Some(backend) = backend() else { return };
    let leaf = backend.create("freeze", &LIMITS).unwrap();
    let counter = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "while :; do echo x >> {}; sleep 0.01; done",
        counter.path().display()
    );
    let mut child = shell(&leaf, &script);
    let size = || std::fs::metadata(counter.path()).unwrap().len();
    let grows_from = |start: u64| {
        let deadline = Instant::now() + Duration::from_secs(10);
        while size() <= start && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        size() > start
    };
    assert!(grows_from(0), "the child runs");
    leaf.freeze().unwrap();
    let frozen = size();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(size(), frozen);
    leaf.thaw().unwrap();
    assert!(grows_from(frozen), "the child runs on");
    leaf.remove().unwrap();
    child.wait().unwrap();
}

#[test]
fn too_many_processes_are_refused_and_counted() {
    let Some(backend) = backend() else { return };
    let leaf = backend
        .create(
            "pids",
            &CgroupLimits {
                pids: Some(4),
                ..CgroupLimits::default()
            },
        )
        .unwrap();
    if !leaf.not_applied().is_empty() {
        return;
    }
    let mut child = shell(
        &leaf,
        "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done 2>/dev/null; wait",
    );
    let deadline = Instant::now() + Duration::from_secs(10);
    while leaf.events().pids_refused == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(leaf.events().pids_refused > 0);
    leaf.remove().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_memory_bomb_is_killed_and_counted() {
    let Some(backend) = backend() else { return };
    let limits = CgroupLimits {
        memory_bytes: Some(32 << 20),
        ..CgroupLimits::default()
    };
    let leaf = backend.create("memory", &limits).unwrap();
    if !leaf.not_applied().is_empty() {
        return;
    }
    // Holds all it reads in one variable.
    let mut child = shell(
        &leaf,
        "x=$(head -c 400000000 /dev/zero | tr '\\0' x); sleep 100",
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    while leaf.events().oom_kills == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(leaf.events().oom_kills > 0);
    let usage = leaf.usage();
    assert!(usage.peak_memory_bytes.is_some_and(|peak| peak <= 32 << 20));
    assert!(usage.cpu_us.is_some_and(|cpu| cpu > 0));
    leaf.remove().unwrap();
    child.wait().unwrap();
}

#[test]
fn names_that_could_mean_another_place_are_refused() {
    let backend = CgroupBackend::detect();
    for name in [
        "",
        "..",
        "a/b",
        "a.b",
        "A",
        "memory.max",
        "a\0b",
        &"a".repeat(65),
    ] {
        assert!(
            matches!(backend.create(name, &LIMITS), Err(CgroupError::Name(_))),
            "{name:?}"
        );
    }
}

#[test]
fn a_name_in_use_is_refused() {
    let Some(backend) = backend() else { return };
    let _leaf = backend.create("twice", &LIMITS).unwrap();
    assert!(backend.create("twice", &LIMITS).is_err());
}

#[test]
fn groups_of_a_dead_runner_are_swept_and_those_of_a_living_one_stay() {
    let Some(backend) = backend() else { return };
    let leaf = backend.create("alive", &LIMITS).unwrap();
    let home = leaf.v2_dir_fd().map(|fd| {
        let path = std::fs::read_link(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&fd)
        ));
        path.unwrap().parent().unwrap().to_owned()
    });
    let Some(home) = home else { return };
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let namespace: String = namespace
        .to_str()
        .unwrap()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let dead = home.join(format!("runner-{}-1-{namespace}-0.s1", std::process::id()));
    std::fs::create_dir_all(dead.join("left")).unwrap();
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    std::fs::write(dead.join("left/cgroup.procs"), child.id().to_string()).unwrap();
    assert!(backend.sweep() >= 1);
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
    assert!(!dead.exists());
    assert!(leaf.read_back().is_ok());
}
