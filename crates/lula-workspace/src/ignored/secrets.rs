//! Ignored files that are known to hold secrets, by their names.

use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType, OFlags};

use crate::tree::{RootedTree, beneath, os};

/// Names of files and directories that hold nothing else.
const NAMES: [&str; 15] = [
    ".aws",
    ".azure",
    ".docker",
    ".env",
    ".envrc",
    ".gcloud",
    ".git-credentials",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
    "credentials",
    "secrets",
];
const ENDINGS: [&str; 9] = [
    ".age",
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".p12",
    ".pem",
    ".pfx",
    ".tfstate",
];
const BEGINNINGS: [&str; 7] = [
    ".env.",
    "credentials.",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "secrets.",
];
/// What such a name ends with where it is meant to be read by everybody.
const SAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".pub"];

/// Directories of what others wrote, or a build did: what looks like a key in there is a fixture.
const FOREIGN: [&str; 14] = [
    ".git",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "target",
    "vendor",
    "venv",
];
/// Most names that are looked at, and the deepest directory.
const MOST: usize = 20_000;
const DEPTH: usize = 6;

pub(super) fn is_secret(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    let sample = SAMPLES.iter().any(|ending| name.ends_with(ending));
    !sample
        && (NAMES.contains(&name.as_str())
            || ENDINGS.iter().any(|ending| name.ends_with(ending))
            || BEGINNINGS.iter().any(|begin| name.starts_with(begin)))
}

/// Those among what is ignored, directories that are ignored as a whole looked through.
pub(super) fn among(checkout: &RootedTree, ignored: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut left = MOST;
    for path in ignored {
        let plain = path.strip_suffix(b"/").unwrap_or(path);
        let name = plain.rsplit(|byte| *byte == b'/').next().unwrap_or(plain);
        if is_secret(name) {
            found.push(plain.to_vec());
        } else if path.ends_with(b"/")
            && !is_foreign(name)
            && let Ok(directory) = beneath(&checkout.top, os(plain), OFlags::DIRECTORY)
        {
            walk(&directory, plain, 0, &mut left, &mut found);
        }
    }
    found
}

fn is_foreign(name: &[u8]) -> bool {
    FOREIGN.iter().any(|known| known.as_bytes() == name)
}

fn walk(
    directory: &OwnedFd,
    place: &[u8],
    depth: usize,
    left: &mut usize,
    found: &mut Vec<Vec<u8>>,
) {
    let Ok(entries) = Dir::read_from(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || *left == 0 {
            continue;
        }
        *left -= 1;
        let path = [place, b"/", name].concat();
        if is_secret(name) {
            found.push(path);
        } else if entry.file_type() == FileType::Directory
            && depth < DEPTH
            && !is_foreign(name)
            && let Ok(inner) = beneath(directory, os(name), OFlags::DIRECTORY)
        {
            walk(&inner, &path, depth + 1, left, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_samples_of_them() {
        for name in [
            ".env",
            ".env.local",
            "server.pem",
            "id_rsa",
            "credentials.json",
            "Prod.KEY",
        ] {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        for name in [
            ".env.example",
            "id_rsa.pub",
            "environment.py",
            "keys.py",
            "monkey",
            "_version.py",
        ] {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }
}
