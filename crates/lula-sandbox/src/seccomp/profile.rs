//! The seccomp profile for containers in which this program runs: `deploy/seccomp/lula-namespace.json`, held
//! against the tables of this crate.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::SyscallAbi;
use super::families::REFUSED;

/// What no sandbox's command may do, but the engine has to.
const OF_THE_ENGINE: &str = "sethostname";

/// The calls of the profile, in the order of their names.
fn allowed() -> BTreeSet<&'static str> {
    SyscallAbi::ALL
        .into_iter()
        .flat_map(SyscallAbi::calls)
        .map(|(name, _)| *name)
        .filter(|name| !REFUSED.contains(name) || *name == OF_THE_ENGINE)
        .collect()
}

/// In the form of the OCI runtime specification, which Docker, Podman, containerd and CRI-O read.
fn profile() -> String {
    let rows = |names: &mut dyn Iterator<Item = &'static str>| {
        let mut rows = String::new();
        for name in names {
            let comma = if rows.is_empty() { "" } else { ",\n" };
            let _ = write!(rows, "{comma}        {name:?}");
        }
        rows
    };
    let refused = REFUSED
        .iter()
        .copied()
        .filter(|name| *name != OF_THE_ENGINE);
    format!(
        r#"{{
  "defaultAction": "SCMP_ACT_ERRNO",
  "defaultErrnoRet": 38,
  "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
  "syscalls": [
    {{
      "action": "SCMP_ACT_ERRNO",
      "errnoRet": 1,
      "names": [
{}
      ]
    }},
    {{
      "action": "SCMP_ACT_ALLOW",
      "names": [
{}
      ]
    }}
  ]
}}
"#,
        rows(&mut refused.collect::<BTreeSet<_>>().into_iter()),
        rows(&mut allowed().into_iter()),
    )
}

#[test]
fn the_shipped_profile_is_made_of_these_tables() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/seccomp/lula-namespace.json"
    );
    if std::env::var_os("LULA_WRITE_PROFILE").is_some() {
        std::fs::write(path, profile()).unwrap();
    }
    let shipped = std::fs::read_to_string(path).unwrap();
    assert!(
        shipped == profile(),
        "deploy/seccomp/lula-namespace.json is not what the tables say: run this test with \
         LULA_WRITE_PROFILE=1"
    );
}

#[test]
fn the_profile_has_what_the_namespace_tier_needs_and_nothing_that_is_never_needed() {
    let allowed = allowed();
    for name in [
        "clone3",
        "unshare",
        "mount_setattr",
        "open_tree",
        "sethostname",
        "openat2",
    ] {
        assert!(allowed.contains(name), "{name}");
    }
    for name in [
        "bpf",
        "kexec_load",
        "io_uring_setup",
        "keyctl",
        "init_module",
        "ptrace",
    ] {
        assert!(!allowed.contains(name), "{name}");
    }
}
