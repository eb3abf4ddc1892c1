//! Becoming more than one is, or reaching other processes.

use std::path::Path;

use super::act::{apart, at, call, done, list, open_to_write, path, status};
use super::probe::{
    AttackBodyResult, AttackExpectation, AttackFamily, AttackObservation, AttackProbe,
};
use super::scene::AttackScene;

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Privilege, name, attempts, body)
}

const PTRACE_SEIZE: u64 = 0x4206;
/// The number of `IPC_STAT` among the commands of `shmctl`.
const STAT: u64 = 2;
const THREAD_KEYRING: u64 = (-1_i64).cast_unsigned();

/// Reads one byte of another process at an address that is surely mapped nowhere: permission is
/// checked first.
fn peek(pid: u64) -> AttackBodyResult {
    let mut byte = [0_u8; 8];
    let local = [byte.as_mut_ptr().addr() as u64, 1];
    let remote = [4096_u64, 1];
    let (local, remote) = (local.as_ptr().addr() as u64, remote.as_ptr().addr() as u64);
    match call("process_vm_readv", &[pid, local, 1, remote, 1, 0]) {
        Err(AttackObservation::Errno(libc::EFAULT)) => Ok(String::new()),
        other => other.map(|_| String::new()),
    }
}

fn raise_open_files() -> AttackBodyResult {
    const OPEN_FILES: u64 = 7;
    let mut limit = [0_u64; 2];
    call(
        "prlimit64",
        &[0, OPEN_FILES, 0, limit.as_mut_ptr().addr() as u64],
    )?;
    let higher = [limit[0], limit[1].saturating_add(1)];
    done(
        "prlimit64",
        &[0, OPEN_FILES, higher.as_ptr().addr() as u64, 0],
    )
}

/// By tier: what is missing in a private tree, and refused in the shared one.
const HIDDEN: [Option<AttackExpectation>; 2] = [
    Some(AttackExpectation::Fails(&[libc::ENOENT])),
    Some(AttackExpectation::Fails(&[libc::EACCES])),
];
const KERNEL_FILE: [Option<AttackExpectation>; 2] = [
    Some(AttackExpectation::Fails(&[
        libc::EROFS,
        libc::EACCES,
        libc::ENOENT,
    ])),
    Some(AttackExpectation::Fails(&[libc::EACCES])),
];

pub(super) const PROBES: &[AttackProbe] = &[
    probe(
        "new_privileges",
        "gain privileges by a program that runs as its owner",
        |_| status("NoNewPrivs"),
    )
    .outside(AttackExpectation::Yields("0"))
    .inside(AttackExpectation::Yields("1")),
    probe(
        "capabilities_to_gain",
        "find a capability that could be gained",
        |_| status("CapBnd"),
    )
    .controlled_by(|_| {
        let bounding = status("CapBnd")?;
        let none = bounding.trim_matches('0').is_empty();
        Ok(if none { bounding } else { "some".to_owned() })
    })
    .outside(AttackExpectation::Yields("some"))
    .by_tier(Some(AttackExpectation::Yields("0000000000000000")), None),
    probe("capabilities_held", "use a capability", |_| {
        status("CapEff")
    })
    .controlled_by(|_| {
        apart(libc::CLONE_NEWUSER)?;
        let held = status("CapEff")?;
        Ok(if held.trim_matches('0').is_empty() {
            "none"
        } else {
            "some"
        }
        .to_owned())
    })
    .outside(AttackExpectation::Yields("some"))
    .inside(AttackExpectation::Yields("0000000000000000"))
    .privileged(),
    probe("become_root", "take user id 0", |_| {
        done("setresuid", &[0, 0, 0])
    })
    // Without namespaces the user stays who it was; root then is root without capabilities.
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::EPERM, libc::EINVAL])),
        None,
    )
    .privileged(),
    probe("become_another", "take another user id", |_| {
        done("setresuid", &[1, 1, 1])
    })
    .inside(AttackExpectation::Fails(&[libc::EPERM, libc::EINVAL]))
    .privileged(),
    probe("change_groups", "drop or take groups", |_| {
        done("setgroups", &[0, 0])
    })
    .privileged(),
    probe(
        "victims_namespace",
        "open a namespace of a process outside",
        |scene| {
            std::fs::File::open(format!("/proc/{}/ns/mnt", scene.victim()))?;
            Ok(String::new())
        },
    )
    .by_tier(HIDDEN[0], HIDDEN[1])
    .where_proc_is_shared(Some(AttackExpectation::Fails(&[libc::EACCES, libc::EPERM]))),
    probe("trace", "attach to a process outside", |s| {
        done("ptrace", &[PTRACE_SEIZE, s.victim(), 0, 0])
    })
    .privileged(),
    probe("trace_own_child", "trace at all", |_| {
        done("ptrace", &[0, 0, 0, 0])
    }),
    probe("peek", "read another process's memory", |s| {
        peek(s.victim())
    })
    .privileged(),
    probe("poke", "write another process's memory", |s| {
        done("process_vm_writev", &[s.victim(), 0, 0, 0, 0, 0])
    })
    .privileged(),
    probe(
        "victim_by_descriptor",
        "hold a process outside by descriptor",
        |s| done("pidfd_open", &[s.victim(), 0]),
    )
    .by_tier(Some(AttackExpectation::Fails(&[libc::ESRCH])), None),
    probe(
        "steal_descriptor",
        "take a descriptor out of another process",
        |_| done("pidfd_getfd", &[0, 0, 0]),
    )
    .outside(AttackExpectation::Fails(&[libc::EBADF])),
    probe("kill_outside", "signal a process outside", |s| {
        done("kill", &[s.victim(), 0])
    })
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::ESRCH])),
        Some(AttackExpectation::Fails(&[libc::EPERM])),
    ),
    probe(
        "limit_outside",
        "change a limit of a process outside",
        |s| {
            let mut limit = [0_u64; 2];
            done(
                "prlimit64",
                &[s.victim(), 7, 0, limit.as_mut_ptr().addr() as u64],
            )
        },
    )
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::ESRCH])),
        Some(AttackExpectation::Fails(&[libc::EPERM])),
    ),
    probe(
        "compare_processes",
        "compare kernel objects of processes (kcmp)",
        |s| done("kcmp", &[s.victim(), s.victim(), 1, 0, 0]),
    ),
    probe("keyring", "read a kernel keyring", |_| {
        done("keyctl", &[0, THREAD_KEYRING, 1])
    }),
    probe("add_key", "store a key in the kernel", |_| {
        let (kind, name) = (path(Path::new("user")), path(Path::new("lula-probe")));
        done(
            "add_key",
            &[at(&kind), at(&name), at(&name), 4, THREAD_KEYRING],
        )
    }),
    probe("shared_memory", "attach shared memory of the host", |s| {
        let mut info = [0_u8; 256];
        done(
            "shmctl",
            &[s.shared_memory(), STAT, info.as_mut_ptr().addr() as u64],
        )
    })
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::EINVAL, libc::EIDRM])),
        Some(AttackExpectation::Fails(&[libc::EPERM])),
    ),
    probe(
        "release_agent",
        "have the host run a program (CVE-2022-0492)",
        |_| {
            list("/sys/fs/cgroup/")?;
            Ok(String::new())
        },
    )
    .by_tier(HIDDEN[0], HIDDEN[1])
    .not_everywhere(),
    probe(
        "core_pattern",
        "have the host run a program at the next crash",
        |_| open_to_write("/proc/sys/kernel/core_pattern"),
    )
    .by_tier(KERNEL_FILE[0], KERNEL_FILE[1])
    .privileged(),
    probe(
        "overcommit",
        "change how the machine gives out memory",
        |_| open_to_write("/proc/sys/vm/overcommit_memory"),
    )
    .by_tier(KERNEL_FILE[0], KERNEL_FILE[1])
    .privileged(),
    probe(
        "panic_timeout",
        "change what the machine does after a crash",
        |_| open_to_write("/proc/sys/kernel/panic"),
    )
    .by_tier(KERNEL_FILE[0], KERNEL_FILE[1])
    .privileged(),
    probe("raise_limit", "raise one's own hard limit", |_| {
        raise_open_files()
    })
    .privileged(),
    probe(
        "spared_from_memory_kill",
        "be the last to be killed for memory",
        |_| {
            std::fs::write("/proc/self/oom_score_adj", "-999")?;
            Ok(String::new())
        },
    )
    .inside(AttackExpectation::Fails(&[libc::EACCES, libc::EROFS]))
    .privileged(),
    probe(
        "real_time",
        "take the CPU for good by a real-time priority",
        |_| {
            let priority = [1_u32; 2];
            done(
                "sched_setscheduler",
                &[0, 1, priority.as_ptr().addr() as u64],
            )
        },
    )
    .privileged(),
    probe(
        "helper_program",
        "put another file in place of the sandbox's own program (CVE-2019-5736)",
        |_| {
            let program = std::env::current_exe()?;
            let planted = program.with_extension("probe");
            std::fs::hard_link(&program, &planted)?;
            std::fs::remove_file(planted)?;
            Ok(String::new())
        },
    )
    .inside(AttackExpectation::Fails(&[
        libc::EROFS,
        libc::EACCES,
        libc::EXDEV,
        libc::EPERM,
    ]))
    .privileged(),
    probe(
        "first_process",
        "overwrite the program of the sandbox's first process",
        |_| open_to_write("/proc/1/exe"),
    )
    .controlled_by(|_| open_to_write("/proc/self/exe"))
    .outside(AttackExpectation::Fails(&[libc::ETXTBSY]))
    .inside(AttackExpectation::Fails(&[
        libc::EROFS,
        libc::EACCES,
        libc::ENOENT,
    ]))
    .privileged(),
    probe(
        "first_process_memory",
        "read the memory of the sandbox's first process",
        |_| {
            std::fs::File::open("/proc/1/mem")?;
            Ok(String::new())
        },
    )
    .controlled_by(|_| {
        std::fs::File::open("/proc/self/mem")?;
        Ok(String::new())
    })
    .inside(AttackExpectation::Fails(&[libc::EACCES, libc::EPERM])),
    probe("no_randomisation", "turn off address randomisation", |_| {
        done("personality", &[0x0004_0000])
    }),
];
