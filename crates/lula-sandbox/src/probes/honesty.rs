//! The sandbox's own word about itself, checked from the inside.

use super::act::{call, status};
use super::probe::{
    AttackBodyResult, AttackExpectation, AttackFamily, AttackObservation, AttackProbe,
};
use super::scene::AttackScene;

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Honesty, name, attempts, body)
}

/// Whether this process is in another namespace than the host.
fn separate(scene: &AttackScene, kind: &str) -> AttackBodyResult {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}"))?;
    let same = link.to_str() == Some(scene.namespace(kind));
    Ok(if same {
        "shared with the host"
    } else {
        "separate"
    }
    .to_owned())
}

const fn namespace(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    probe(name, attempts, body)
        .outside(AttackExpectation::Yields("shared with the host"))
        .by_tier(Some(AttackExpectation::Yields("separate")), None)
}

pub(super) const PROBES: &[AttackProbe] = &[
    namespace(
        "separate_users",
        "is the user namespace another one?",
        |s| separate(s, "user"),
    ),
    namespace(
        "separate_mounts",
        "is the mount namespace another one?",
        |s| separate(s, "mnt"),
    ),
    namespace(
        "separate_processes",
        "is the pid namespace another one?",
        |s| separate(s, "pid"),
    ),
    namespace(
        "separate_network",
        "is the network namespace another one?",
        |s| separate(s, "net"),
    ),
    namespace("separate_ipc", "is the IPC namespace another one?", |s| {
        separate(s, "ipc")
    }),
    namespace(
        "separate_host_name",
        "is the UTS namespace another one?",
        |s| separate(s, "uts"),
    ),
    namespace(
        "separate_control_groups",
        "is the cgroup namespace another one?",
        |s| separate(s, "cgroup"),
    ),
    probe(
        "filter_in_force",
        "is there a seccomp filter more than outside?",
        |scene| Ok(more(filters()? > scene.filters())),
    )
    .outside(AttackExpectation::Yields(NOT_MORE))
    .inside(AttackExpectation::Yields(MORE)),
    probe(
        "path_rules_in_force",
        "are there more Landlock rules than outside?",
        |scene| Ok(more(free_landlock_layers()? < scene.free_landlock_layers())),
    )
    .outside(AttackExpectation::Yields(NOT_MORE))
    .inside(AttackExpectation::Yields(MORE)),
];

const MORE: &str = "more than outside";
const NOT_MORE: &str = "no more than outside";

fn more(more: bool) -> String {
    if more { MORE } else { NOT_MORE }.to_owned()
}

/// How many filters this process is under; one, where the kernel only says that there is some.
pub(super) fn filters() -> Result<u64, AttackObservation> {
    Ok(match status("Seccomp_filters")?.parse() {
        Ok(count) => count,
        Err(_) => u64::from(status("Seccomp")? == "2"),
    })
}

/// How many more Landlock layers this process may take. The kernel allows sixteen: one less shows
/// that one is in force. It is left with none.
pub(super) fn free_landlock_layers() -> Result<u64, AttackObservation> {
    const NO_NEW_PRIVS: u64 = 38;
    call("prctl", &[NO_NEW_PRIVS, 1, 0, 0, 0])?;
    // Handles nothing but execution, which this process is done with.
    let attributes = [1_u64];
    let ruleset = call(
        "landlock_create_ruleset",
        &[attributes.as_ptr().addr() as u64, 8, 0],
    )?;
    let mut free = 0;
    while free < 64 {
        match call("landlock_restrict_self", &[ruleset, 0]) {
            Ok(_) => free += 1,
            Err(AttackObservation::Errno(libc::E2BIG)) => break,
            Err(seen) => return Err(seen),
        }
    }
    Ok(free)
}
