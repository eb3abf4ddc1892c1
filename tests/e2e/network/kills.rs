//! The process that answers for a sandbox's network, killed at any moment: nothing goes out by another way, and
//! nothing is left behind waiting.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::Stage;
use crate::support::{Dice, strike, wait_until};

/// Many clients at once, for ever: what is granted, and every way around it.
const CLIENTS: &str = "
import socket, ssl, threading, time
context = ssl._create_unverified_context()
def ask(host, name, port):
    while True:
        try:
            with socket.create_connection((host, port), 5) as raw:
                if port == 443: raw = context.wrap_socket(raw, server_hostname=name)
                raw.sendall(b'GET /%s HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' % (host.encode(), name.encode()))
                while raw.recv(1000): pass
        except OSError: time.sleep(0.001)
for host, name, port in [('pkg.example.org', 'pkg.example.org', 443)] * 6 + [
    ('other.example.org', 'other.example.org', 443), ('93.184.216.34', 'pkg.example.org', 443),
    ('93.184.216.34', 'pkg.example.org', 80), ('93.184.216.34', 'x', 8443), ('127.0.0.1', 'x', 22),
]:
    threading.Thread(target=ask, args=(host, name, port)).start()
";

/// The processes below one, itself included, as they are now, and the parent of each.
pub(super) fn family(of: u32) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::from([(of, 0)]);
    loop {
        let before = found.len();
        for process in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let name = process.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| {
                let mut fields = rest.split(' ');
                fields.nth(1)?.parse().ok()
            });
            if let Some(parent) = parent.filter(|parent| found.contains_key(parent)) {
                found.entry(pid).or_insert(parent);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[test]
fn a_killed_proxy_lets_nothing_out_and_leaves_nothing_hanging() {
    let mut dice = Dice(u64::from(std::process::id()));
    for round in 0..6 {
        let stage = Stage::new();
        let line = [
            "exec",
            "--net",
            "pkg.example.org",
            "--",
            "python3",
            "-c",
            CLIENTS,
        ];
        // The stage goes on hearing after the program is dead.
        let mut child = stage
            .command(&[("LINGER", "2")], &line)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the first request", || {
            std::fs::read_to_string(stage.directory.path().join("heard"))
                .is_ok_and(|heard| heard.lines().count() > 2)
        });
        std::thread::sleep(Duration::from_millis(dice.roll(150)));
        let all = family(child.id());
        // The stage starts one program: this one.
        let program = all.iter().find(|(_, parent)| **parent == child.id());
        assert!(strike(*program.unwrap().0), "round {round}: {all:?}");
        let begun = Instant::now();
        child.wait().unwrap();
        let left = || {
            let alive = |pid: &&u32| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                let is_dead = stat
                    .rsplit_once(") ")
                    .map(|(_, rest)| rest.starts_with('Z'));
                is_dead == Some(false)
            };
            all.keys().filter(alive).count()
        };
        wait_until("the end of everything inside", || left() == 0);
        assert!(begun.elapsed() < Duration::from_mins(2), "round {round}");
        let heard = stage.heard();
        let granted = |line: &&str| line.starts_with("GET pkg.example.org /pkg.example.org");
        let strange: Vec<_> = heard.lines().filter(|line| !granted(line)).collect();
        assert!(strange.is_empty(), "round {round}: {strange:?}");
    }
}
