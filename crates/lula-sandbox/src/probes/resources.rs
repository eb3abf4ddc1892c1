//! Taking more of the machine than was granted.

use std::path::Path;

use super::probe::{
    AttackBodyResult, AttackExpectation, AttackFamily, AttackObservation, AttackProbe,
};
use super::scene::AttackScene;

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Resources, name, attempts, body)
}

/// More threads than the `strict` profile grants.
const THREADS: usize = 300;
/// More open files than it grants.
const FILES: usize = 1100;
/// More memory than it grants, in mebibytes.
const MEMORY: usize = 640;

pub(super) const PROBES: &[AttackProbe] = &[
    probe("descriptors", "open more files than granted", |_| {
        let mut open = Vec::new();
        for _ in 0..FILES {
            open.push(std::fs::File::open("/dev/null")?);
        }
        Ok(String::new())
    })
    .controlled_by(|_| {
        let mut open = Vec::new();
        rustix::process::setrlimit(
            rustix::process::Resource::Nofile,
            rustix::process::Rlimit {
                current: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
                maximum: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
            },
        )?;
        for _ in 0..FILES {
            open.push(std::fs::File::open("/dev/null")?);
        }
        Ok(String::new())
    })
    .inside(AttackExpectation::Fails(&[libc::EMFILE])),
    probe(
        "processes",
        "start more processes than granted (a fork bomb)",
        |_| {
            let (hold, held) = std::sync::mpsc::channel::<()>();
            let held = std::sync::Arc::new(std::sync::Mutex::new(held));
            let mut threads = Vec::new();
            let mut failure = None;
            for _ in 0..THREADS {
                let held = std::sync::Arc::clone(&held);
                let thread = std::thread::Builder::new()
                    .stack_size(32 * 1024)
                    .spawn(move || {
                        if let Ok(held) = held.lock() {
                            let _ = held.recv();
                        }
                    });
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
            drop(hold);
            for thread in threads {
                let _ = thread.join();
            }
            match failure {
                Some(error) => Err(AttackObservation::from(error)),
                None => Ok(String::new()),
            }
        },
    )
    .inside(AttackExpectation::Fails(&[libc::EAGAIN]))
    .limited_by("pids"),
    probe("memory", "take more memory than granted", |_| {
        let mut hoard = Vec::new();
        for _ in 0..MEMORY {
            // Written, so that it is real.
            let mut block = vec![0_u8; 1 << 20];
            for page in block.chunks_mut(4096) {
                page[0] = 1;
            }
            hoard.push(std::hint::black_box(block));
        }
        Ok(String::new())
    })
    .inside(AttackExpectation::Killed)
    .limited_by("memory")
    .destructive(),
    probe("scratch_space", "fill the private directories", |_| {
        fill(Path::new("/tmp"), 512)
    })
    .controlled_by(|scene| fill(&scene.workspace(), 80))
    .by_tier(Some(AttackExpectation::Fails(&[libc::ENOSPC])), None)
    .destructive(),
    probe("file_size", "write one huge file", |scene| {
        let file = scene.workspace().join("huge");
        let sparse = std::fs::File::create(&file)?;
        let grown = sparse.set_len(1 << 40);
        let _ = std::fs::remove_file(&file);
        Ok(grown.map(|()| String::new())?)
    })
    .inside(AttackExpectation::Killed)
    .destructive(),
];

/// Writes files of one mebibyte until something stops it, and removes them.
fn fill(folder: &Path, files: usize) -> AttackBodyResult {
    let name = |number: usize| folder.join(format!("lula-probe-fill-{number}"));
    let block = vec![0_u8; 1 << 20];
    let written = (0..files).try_for_each(|number| std::fs::write(name(number), &block));
    for number in 0..files {
        let _ = std::fs::remove_file(name(number));
    }
    Ok(written.map(|()| String::new())?)
}
