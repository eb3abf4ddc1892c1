//! Finding what the caller must not leak.

use std::path::Path;

use super::probe::{AttackBodyResult, AttackExpectation, AttackFamily, AttackProbe};
use super::scene::AttackScene;

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Secrets, name, attempts, body)
        .outside(AttackExpectation::Yields(FOUND))
        .inside(AttackExpectation::Yields(NOTHING))
}

const FOUND: &str = "the secret";
const NOTHING: &str = "nothing";

fn verdict(found: bool) -> String {
    if found { FOUND } else { NOTHING }.to_owned()
}

/// Looks for the token in one file of every process that can be seen.
fn in_every_process(scene: &AttackScene, file: &str) -> String {
    let token = scene.token();
    let own = std::process::id().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return verdict(false);
    };
    let mut found = false;
    for process in processes.flatten() {
        let name = process.file_name();
        let number = name
            .to_str()
            .is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()));
        if number && name.to_str() != Some(own.as_str()) {
            let text = std::fs::read(process.path().join(file)).unwrap_or_default();
            found |= contains(&text, token.as_bytes());
        }
    }
    verdict(found)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}

/// Looks for the token in every readable small file below a directory.
fn below(place: &Path, token: &str, depth: u32) -> bool {
    let Ok(entries) = std::fs::read_dir(place) else {
        return false;
    };
    entries.flatten().take(2000).any(|entry| {
        let Ok(kind) = entry.file_type() else {
            return false;
        };
        if kind.is_dir() {
            depth > 0 && below(&entry.path(), token, depth - 1)
        } else {
            let small = entry.metadata().is_ok_and(|meta| meta.len() < 4096);
            kind.is_file()
                && small
                && std::fs::read(entry.path()).is_ok_and(|text| contains(&text, token.as_bytes()))
        }
    })
}

pub(super) const PROBES: &[AttackProbe] = &[
    probe(
        "environments",
        "find a secret in some process's environment",
        |s| Ok(in_every_process(s, "environ")),
    ),
    probe(
        "command_lines",
        "find a secret in some process's arguments",
        |s| Ok(in_every_process(s, "cmdline")),
    )
    // Landlock cannot hide one process's public files and show another's.
    .by_tier(Some(AttackExpectation::Yields(NOTHING)), None)
    .where_proc_is_shared(None),
    probe(
        "temporary_files",
        "find a secret in the temporary directory",
        |scene| {
            let place = scene.secret();
            let shared = place.ancestors().nth(2).unwrap_or(Path::new("/tmp"));
            Ok(verdict(below(shared, &scene.token(), 2)))
        },
    ),
    probe(
        "shared_memory_files",
        "find a secret in /dev/shm",
        |scene| Ok(verdict(below(Path::new("/dev/shm"), &scene.token(), 1))),
    ),
    probe(
        "inherited_variables",
        "find a variable that was not granted",
        |scene| {
            let granted = scene.variables();
            let more = std::env::vars_os().any(|(name, _)| {
                name.to_str()
                    .is_none_or(|name| !granted.iter().any(|granted| granted == name))
            });
            Ok(verdict(more))
        },
    ),
    probe(
        "search_path",
        "have a program of the workspace found before the system's",
        |scene| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let found = std::env::split_paths(&path)
                .any(|place| place.is_relative() || place.starts_with(scene.workspace()));
            Ok(verdict(found))
        },
    )
    // Outside, whether a workspace is in PATH is the user's affair: the control adds it.
    .controlled_by(|scene| {
        let path = std::env::join_paths([scene.workspace()]).unwrap_or_default();
        let found = std::env::split_paths(&path).any(|place| place.starts_with(scene.workspace()));
        Ok(verdict(found))
    }),
    probe(
        "preloaded_library",
        "have a library loaded into every command",
        |_| {
            Ok(verdict(
                ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"]
                    .iter()
                    .any(|name| std::env::var_os(name).is_some()),
            ))
        },
    ),
];
