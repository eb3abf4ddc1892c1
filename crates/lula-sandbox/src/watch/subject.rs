//! What a watched call is about, by its name and its registers.

/// What a command wants of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WantedAccess {
    Read,
    /// Change what is there, or make or remove a name.
    Write,
    Execute,
}

/// A path in the caller's memory, and where it begins if it is relative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallerPath {
    /// A descriptor, or [`HERE`].
    pub(super) from: i32,
    /// Where its text is.
    pub(super) address: u64,
    pub(super) wish: WantedAccess,
}

/// The caller's directory (`AT_FDCWD`).
pub(super) const HERE: i32 = -100;

/// The paths that a call names. Of calls with two paths both count.
pub(super) fn paths(name: &str, args: &[u64; 6]) -> Vec<CallerPath> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the kernel takes the low word as a descriptor"
    )]
    let descriptor = |index: usize| args[index] as i32;
    let plain = |index: usize, wish| CallerPath {
        from: HERE,
        address: args[index],
        wish,
    };
    let beside = |index: usize, wish| CallerPath {
        from: descriptor(index),
        address: args[index + 1],
        wish,
    };
    match name {
        "open" => vec![plain(0, opening(args[1]))],
        "openat" => vec![beside(0, opening(args[2]))],
        "execve" => vec![plain(0, WantedAccess::Execute)],
        "execveat" => vec![beside(0, WantedAccess::Execute)],
        "chmod" | "chown" | "creat" | "lchown" | "mkdir" | "mknod" | "rmdir" | "truncate"
        | "unlink" => vec![plain(0, WantedAccess::Write)],
        "fchmodat" | "fchmodat2" | "fchownat" | "mkdirat" | "mknodat" | "unlinkat" => {
            vec![beside(0, WantedAccess::Write)]
        }
        "link" | "rename" => vec![plain(0, WantedAccess::Write), plain(1, WantedAccess::Write)],
        "linkat" | "renameat" | "renameat2" => {
            vec![
                beside(0, WantedAccess::Write),
                beside(2, WantedAccess::Write),
            ]
        }
        // The first text is what the link says, which may be anything.
        "symlink" => vec![plain(1, WantedAccess::Write)],
        "symlinkat" => vec![beside(1, WantedAccess::Write)],
        _ => Vec::new(),
    }
}

fn opening(flags: u64) -> WantedAccess {
    const ACCESS: u64 = 3;
    /// `O_CREAT | O_TRUNC`, and the bit of `O_TMPFILE` that is not `O_DIRECTORY`.
    const CHANGES: u64 = 0o100 | 0o1000 | 0o20_000_000;
    if flags & ACCESS != 0 || flags & CHANGES != 0 {
        WantedAccess::Write
    } else {
        WantedAccess::Read
    }
}

/// Takes `.`, `..` and doubled slashes out of an absolute path, as text.
pub(super) fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::SyscallAbi;

    #[test]
    fn every_watched_call_names_a_path() {
        for name in crate::seccomp::PATHS {
            assert!(!paths(name, &[0; 6]).is_empty(), "{name}");
            let known = SyscallAbi::ALL
                .iter()
                .any(|abi| abi.number_of(name).is_some());
            assert!(known, "{name}");
        }
        assert!(paths("read", &[0; 6]).is_empty());
    }

    #[test]
    fn opening_to_look_is_no_change() {
        let wish = |flags| paths("openat", &[u64::MAX - 99, 7, flags, 0, 0, 0])[0];
        assert_eq!(wish(0).wish, WantedAccess::Read);
        assert_eq!(wish(0).from, HERE);
        for flags in [1, 2, 0o100, 0o1000, 0o20_200_000] {
            assert_eq!(wish(flags).wish, WantedAccess::Write, "{flags:o}");
        }
    }

    #[test]
    fn a_path_is_made_plain_and_never_leaves_the_root() {
        for (path, expected) in [
            ("/", "/"),
            ("//a/./b/../c/", "/a/c"),
            ("/../../x", "/x"),
            ("/a/../..", "/"),
        ] {
            assert_eq!(plain(path), expected);
        }
    }
}
